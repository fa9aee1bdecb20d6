//! Which GPUs the run gets and which are watched: asks the driver, but for three seconds at
//! most, and lets `place` decide.

mod ask;
mod choose;

use crate::launch::signals::Arrivals;
use crate::model::{GpuChoice, GpuInfo, GpuWish, Inventory};
use crate::nvml::protocol::FromHelper;
use crate::place::claims::{self, Claim};
use crate::place::visible::{Device, doubt, visible};
use crate::plan::env::Chosen;

use super::beside::Beside;
use super::request::{Refused, Request};
use ask::Asking;
use choose::Chooser;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// No GPU.
    Nothing,
    /// These.
    These(Vec<Device>),
    /// Those that this value of `CUDA_VISIBLE_DEVICES` shows (None: all).
    Shown(Option<String>),
}

impl Watch {
    /// What is odd about it, once it is known what there is.
    pub fn doubt(&self, inventory: &Inventory) -> Option<String> {
        let Self::Shown(Some(value)) = self else {
            return None;
        };
        let what = doubt(value, inventory)?;
        Some(format!("CUDA_VISIBLE_DEVICES={value}: {what}"))
    }

    /// The devices, once it is known what there is.
    pub fn resolve(&self, inventory: &Inventory) -> Vec<GpuInfo> {
        let devices = match self {
            Self::Nothing => Vec::new(),
            Self::These(devices) => devices.clone(),
            Self::Shown(value) => visible(value.as_deref(), inventory),
        };
        // In the inventory's order, in which the helper reads them.
        let watched = |info: &&GpuInfo| devices.contains(&Device::from(*info));
        inventory.devices().filter(watched).cloned().collect()
    }

    /// Why no GPU is watched although the driver answers.
    pub fn why_none(&self) -> String {
        let why = match self {
            Self::Shown(Some(value)) if value.is_empty() => {
                "CUDA_VISIBLE_DEVICES is empty".to_owned()
            }
            Self::Shown(Some(value)) => format!("CUDA_VISIBLE_DEVICES={value} shows none"),
            _ => "the driver shows none".to_owned(),
        };
        format!("no GPU is watched: {why}")
    }
}

/// The decision.
#[derive(Debug)]
pub struct Placement {
    /// What is watched.
    pub watch: Watch,
    /// What the child gets, if we chose.
    pub chosen: Option<Chosen>,
    /// How much memory those have that the child sees, MiB, in its order; None: not known.
    pub totals_mib: Option<Vec<u64>>,
    /// Claims, which are ours for as long as they are kept.
    pub claims: Vec<Claim>,
    /// What to say before the start.
    pub said: Vec<String>,
    /// What the helper has said already and somebody must still hear.
    pub heard: Vec<FromHelper>,
    /// Signals that came meanwhile and are the child's.
    pub early: Vec<i32>,
}

impl Placement {
    fn watching(watch: Watch) -> Self {
        Self {
            watch,
            chosen: None,
            totals_mib: None,
            claims: Vec::new(),
            said: Vec::new(),
            heard: Vec::new(),
            early: Vec::new(),
        }
    }
}

/// Why there is no placement.
#[derive(Debug)]
pub enum Unplaced {
    /// What was asked for can't be had.
    Refused(Refused),
    /// Somebody ended us while we waited.
    Signal(i32),
}

/// Decides.
///
/// # Errors
/// The wish can't be had, or somebody ended us meanwhile.
pub fn place(
    request: &Request,
    beside: Option<&Beside>,
    arrivals: &Arrivals,
) -> Result<Placement, Unplaced> {
    let given = visible_devices(request);
    let nested = std::env::var_os("GPUWATCH_RUN_ID").is_some();
    let wish = &request.settings.gpus;
    match (&wish.choice, &given) {
        (Some(GpuChoice::None), _) => return Ok(Placement::watching(Watch::Nothing)),
        // The user's own choice, or the outer run's, which may have left it open.
        (None, Some(_)) => return Ok(as_given(given, wish)),
        (None, None) if nested || request.no_env => {
            return Ok(Placement::watching(Watch::Shown(None)));
        }
        _ => {}
    }
    let chooser = Chooser {
        wish,
        given: given.as_deref(),
        claiming: !nested,
        quiet: request.quiet,
        above: claims::above_us(),
    };
    let Some(beside) = beside else {
        return unanswered(&chooser, "its helper can't be started");
    };
    let mut asking = Asking::new(beside, arrivals);
    let mut placement = match asking.first()? {
        Ok(answer) => chooser.choose(answer, &mut asking)?,
        Err(why) => unanswered(&chooser, &why)?,
    };
    placement.heard = asking.heard;
    placement.early = asking.early;
    Ok(placement)
}

/// Only `--gpus` narrows what somebody has set.
fn as_given(given: Option<String>, wish: &GpuWish) -> Placement {
    let mut placement = Placement::watching(Watch::Shown(given));
    if wish.asked {
        placement.said.push(
            "CUDA_VISIBLE_DEVICES is set and stays as it is: add --gpus to choose among its devices"
                .to_owned(),
        );
    }
    placement
}

/// No driver: what was asked for can't be had; the default gives way.
fn unanswered(chooser: &Chooser<'_>, why: &str) -> Result<Placement, Unplaced> {
    if chooser.wish.asked {
        return Err(chooser.refused(&format!("{why}; use --gpus none to run without")));
    }
    let mut placement = Placement::watching(Watch::Shown(None));
    placement.said.push(format!("no GPU is watched: {why}"));
    Ok(placement)
}

/// The value that the child would have without us.
fn visible_devices(request: &Request) -> Option<String> {
    const NAME: &str = "CUDA_VISIBLE_DEVICES";
    let typed = request.env.iter().rev().find(|(name, _)| name == NAME);
    let value = typed
        .map(|(_, value)| value.clone())
        .or_else(|| std::env::var_os(NAME))?;
    Some(value.to_string_lossy().into_owned())
}
