//! Which GPUs the run gets and which are watched: asks the driver, but for three seconds at
//! most, and lets `place` decide.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::launch::signals::{Arrivals, name};
use crate::model::{GpuSample, Inventory};
use crate::nvml::protocol::{FromHelper, Watched};
use crate::place::choose::{self, Standing};
use crate::place::holder::holder;
use crate::place::visible::{Device, visible};
use crate::plan::env::Chosen;
use crate::sys::signals::suffer;

use super::beside::Beside;
use super::request::{GpuChoice, Refused, Request};

/// How long a choice of GPUs may delay the start.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// No GPU.
    Nothing,
    /// These, by NVML index.
    These(Vec<u32>),
    /// Those that this value of `CUDA_VISIBLE_DEVICES` shows (None: all).
    Shown(Option<String>),
}

impl Watch {
    /// The NVML indices, once it is known what there is.
    pub fn resolve(&self, inventory: &Inventory) -> Vec<u32> {
        match self {
            Self::Nothing => Vec::new(),
            Self::These(gpus) => gpus.clone(),
            Self::Shown(value) => {
                let shown = visible(value.as_deref(), inventory);
                let gpus: BTreeSet<u32> = shown.iter().filter_map(Device::gpu).collect();
                gpus.into_iter().collect()
            }
        }
    }
}

/// The decision.
#[derive(Debug)]
pub struct Placement {
    /// What is watched.
    pub watch: Watch,
    /// What the child gets, if we chose.
    pub chosen: Option<Chosen>,
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
pub fn place(
    request: &Request,
    beside: Option<&Beside>,
    arrivals: &Arrivals,
) -> Result<Placement, Unplaced> {
    let given = visible_devices(request);
    let nested = std::env::var_os("GPUWATCH_RUN_ID").is_some();
    match (request.gpus, &given) {
        (Some(GpuChoice::None), _) => return Ok(Placement::watching(Watch::Nothing)),
        // The user's own choice, or the outer run's, which may have left it open.
        (None, Some(_)) => return Ok(Placement::watching(Watch::Shown(given))),
        (None, None) if nested || request.no_env => {
            return Ok(Placement::watching(Watch::Shown(None)));
        }
        _ => {}
    }
    let explicit = request.gpus.is_some();
    let asked = beside.ok_or_else(|| "its helper can't be started".to_owned());
    let mut early = Vec::new();
    let answer = match asked {
        Ok(beside) => ask(beside, arrivals, &mut early)?,
        Err(why) => Err(Silence {
            why,
            heard: Vec::new(),
        }),
    };
    let mut placement = match answer {
        Ok(answer) => choose(answer, given.as_deref(), explicit).map_err(Unplaced::Refused)?,
        Err(silence) if explicit => {
            let text = format!(
                "--gpus free: {}; use --gpus none to run without",
                silence.why
            );
            return Err(Unplaced::Refused(Refused::own(text)));
        }
        Err(silence) => {
            let mut placement = Placement::watching(Watch::Shown(None));
            placement
                .said
                .push(format!("no GPU is watched: {}", silence.why));
            placement.heard = silence.heard;
            placement
        }
    };
    placement.early = early;
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

/// What the driver said.
struct Answer {
    inventory: Inventory,
    samples: Vec<GpuSample>,
    heard: Vec<FromHelper>,
}

/// It didn't.
struct Silence {
    why: String,
    heard: Vec<FromHelper>,
}

fn ask(
    beside: &Beside,
    arrivals: &Arrivals,
    early: &mut Vec<i32>,
) -> Result<Result<Answer, Silence>, Unplaced> {
    let began = Instant::now();
    let mut heard = Vec::new();
    if let Err(error) = beside.become_helper() {
        return Ok(Err(Silence {
            why: error.to_string(),
            heard,
        }));
    }
    // One look is enough here; the run's own interval comes later.
    beside.watch(Watched::All, Duration::from_secs(3600));
    loop {
        let Ok(said) = beside.receive() else {
            return Ok(Err(Silence {
                why: "its helper has ended".to_owned(),
                heard,
            }));
        };
        heard.extend(said);
        if let Some(answer) = understood(&mut heard) {
            return Ok(answer);
        }
        let left = PATIENCE.saturating_sub(began.elapsed());
        if left.is_zero() {
            let why = format!(
                "the NVIDIA driver has not answered for {} s",
                PATIENCE.as_secs()
            );
            return Ok(Err(Silence { why, heard }));
        }
        wait(beside, arrivals, left);
        take_signals(beside, arrivals, early)?;
    }
}

/// What was heard, if it is all that is needed.
fn understood(heard: &mut Vec<FromHelper>) -> Option<Result<Answer, Silence>> {
    let why = heard.iter().find_map(|m| match m {
        FromHelper::Failed { why } => Some(why.clone()),
        _ => None,
    });
    if let Some(why) = why {
        return Some(Err(Silence {
            why,
            heard: std::mem::take(heard),
        }));
    }
    let inventory = heard.iter().find_map(|m| match m {
        FromHelper::Inventory(inventory) => Some(inventory.clone()),
        _ => None,
    })?;
    let samples = heard.iter().find_map(|m| match m {
        FromHelper::Tick { gpus, .. } => Some(gpus.clone()),
        _ => None,
    });
    // Without a single GPU there is nothing to tick for.
    let samples = if inventory.gpus.is_empty() {
        Vec::new()
    } else {
        samples?
    };
    // The look at all GPUs isn't one of the run's samples.
    heard.retain(|m| !matches!(m, FromHelper::Tick { .. }));
    Some(Ok(Answer {
        inventory,
        samples,
        heard: std::mem::take(heard),
    }))
}

fn wait(beside: &Beside, arrivals: &Arrivals, limit: Duration) {
    let socket = beside.helper_fd();
    let mut fds = vec![PollFd::new(arrivals.as_fd(), PollFlags::POLLIN)];
    if let Some(fd) = socket {
        fds.push(PollFd::new(borrowed(fd), PollFlags::POLLIN));
    }
    // Interrupted or not, everything is looked at again.
    let _ = poll(
        &mut fds,
        PollTimeout::try_from(limit).unwrap_or(PollTimeout::ZERO),
    );
}

fn borrowed(fd: std::os::fd::RawFd) -> BorrowedFd<'static> {
    crate::sys::streams::standard(fd)
}

/// Before there is a child, a signal acts on us as it would on the command.
fn take_signals(
    beside: &Beside,
    arrivals: &Arrivals,
    early: &mut Vec<i32>,
) -> Result<(), Unplaced> {
    while let Some(arrived) = arrivals.next() {
        // The group's or not: what stayed there would be mistaken for the next one's copy.
        beside.consume(arrived.signal);
        if arrived.signal != libc::SIGCHLD && !arrivals.felt(arrived.signal) {
            early.push(arrived.signal);
            continue;
        }
        match name(arrived.signal).as_str() {
            "INT" | "TERM" | "HUP" | "QUIT" => return Err(Unplaced::Signal(arrived.signal)),
            "TSTP" | "TTIN" => suffer(arrived.signal),
            "CHLD" | "CONT" | "WINCH" | "URG" => {}
            _ => early.push(arrived.signal),
        }
    }
    Ok(())
}

fn choose(answer: Answer, given: Option<&str>, explicit: bool) -> Result<Placement, Refused> {
    let Answer {
        inventory,
        samples,
        heard,
    } = answer;
    let command = |pid| holder(Path::new("/proc"), pid).name;
    let mut standings = choose::standings(&inventory, &samples, &BTreeSet::new(), &command);
    if let Some(given) = given {
        let allowed = Watch::Shown(Some(given.to_owned())).resolve(&inventory);
        standings.retain(|s| allowed.contains(&s.gpu));
    }
    let free: Vec<u32> = standings
        .iter()
        .filter(|s| s.busy.is_none())
        .map(|s| s.gpu)
        .collect();
    if free.is_empty() {
        let why = none_free(&standings);
        if explicit {
            return Err(Refused::own(format!(
                "--gpus free: {why}; wait for one, or use --gpus none"
            )));
        }
        let mut placement = Placement::watching(Watch::Shown(None));
        placement
            .said
            .push(format!("{why}: CUDA_VISIBLE_DEVICES is left unset"));
        placement.heard = heard;
        return Ok(placement);
    }
    let said = chosen_text(&free, &standings, &inventory);
    Ok(Placement {
        chosen: Some(chosen(&free, &inventory, explicit)),
        watch: Watch::These(free),
        said: vec![said],
        heard,
        early: Vec::new(),
    })
}

fn none_free(standings: &[Standing]) -> String {
    let busy: Vec<&str> = standings.iter().filter_map(|s| s.busy.as_deref()).collect();
    if busy.is_empty() {
        "there is no GPU".to_owned()
    } else {
        format!("no GPU is free ({})", busy.join("; "))
    }
}

fn chosen(free: &[u32], inventory: &Inventory, asked: bool) -> Chosen {
    let of = |gpu: &u32| {
        inventory
            .gpus
            .iter()
            .find(|g| g.index == *gpu)?
            .uuid
            .clone()
    };
    let uuids: Option<Vec<String>> = free.iter().map(of).collect();
    let indices: Vec<String> = free.iter().map(u32::to_string).collect();
    Chosen {
        indices: indices.join(","),
        uuids: uuids.map(|list| list.join(",")),
        how: "free".to_owned(),
        asked,
    }
}

/// `GPU 1 (Tesla T4) of 2 is free and chosen; GPU 0 is busy: python (pid 7) holds 6.0 GiB`
fn chosen_text(free: &[u32], standings: &[Standing], inventory: &Inventory) -> String {
    let name_of = |gpu: u32| {
        inventory
            .gpus
            .iter()
            .find(|g| g.index == gpu)
            .and_then(|g| g.name.clone())
            .unwrap_or_default()
    };
    let (first, many) = (free.first().copied().unwrap_or_default(), free.len() > 1);
    let indices: Vec<String> = free.iter().map(u32::to_string).collect();
    let mut text = format!(
        "{} {} ({}) of {} {} free and chosen",
        if many { "GPUs" } else { "GPU" },
        indices.join(","),
        name_of(first),
        standings.len(),
        if many { "are" } else { "is" },
    );
    for busy in standings.iter().filter_map(|s| s.busy.as_ref()) {
        text.push_str("; ");
        text.push_str(busy);
    }
    text
}
