//! From what the driver said to GPUs that are ours: holds the wish against it, claims what fits,
//! and waits for the rest where that was asked for.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::ask::{Answer, Asking};
use super::{Placement, Unplaced, Watch};
use crate::model::{GpuChoice, GpuWish, Inventory, Wait, duration_text};
use crate::observe::identity;
use crate::place::choose;
use crate::place::claims::{self, Claim, ClaimError, Claimed, Claims, Line};
use crate::place::holder::{claimant, holder};
use crate::place::select::{self, Machine, Offer};
use crate::place::visible::{Device, all};
use crate::plan::env::Chosen;
use crate::report::text::clean;
use crate::supervise::request::Refused;
use crate::supervise::say::say;

/// How often the driver is asked again while GPUs are waited for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often claims and the line of those that wait are looked at meanwhile.
const LOOK_AT_CLAIMS: Duration = Duration::from_millis(200);

/// How long the line that says what is waited for may take.
const SAYING: Duration = Duration::from_millis(200);

/// Devices, and the claims on them.
type Taken = (Vec<Device>, Vec<Claim>);

/// What is to be chosen, and how.
pub struct Chooser<'a> {
    /// The wish.
    pub wish: &'a GpuWish,
    /// The value of `CUDA_VISIBLE_DEVICES` that the run would inherit.
    pub given: Option<&'a str>,
    /// Whether claims count: not inside another run, whose GPUs are ours.
    pub claiming: bool,
    /// Whether waiting is said.
    pub quiet: bool,
    /// The processes that we descend from.
    pub above: BTreeSet<u32>,
}

impl Chooser<'_> {
    /// Chooses, and waits where that was asked for.
    ///
    /// # Errors
    /// The wish can't be had, or somebody ended us meanwhile.
    pub fn choose(
        &self,
        mut answer: Answer,
        asking: &mut Asking<'_>,
    ) -> Result<Placement, Unplaced> {
        let mut notes = Vec::new();
        let claims = self
            .claims(&mut notes)
            .map_err(|e| self.refused(&e.to_string()))?;
        let line = match (&claims, self.wish.wait) {
            (_, Wait::No) | (None, _) => None,
            (Some(claims), _) => Some(claims.line_up().map_err(|e| self.refused(&e.to_string()))?),
        };
        let began = Instant::now();
        // What was waited for last: whose turn it was, and who claimed what.
        let mut waited: Option<(bool, Vec<String>)> = None;
        loop {
            let offer = self.offer(&answer, claims.as_ref())?;
            let ours = line.as_ref().is_none_or(Line::is_our_turn);
            let taken = if ours {
                self.take(&offer, &answer.inventory, claims.as_ref())?
            } else {
                None
            };
            if let Some((devices, held)) = taken {
                let mut placement = self.placement(
                    &devices,
                    &offer,
                    &answer.inventory,
                    all(&answer.inventory).len(),
                );
                placement.claims = held;
                if waited.is_some() {
                    // One line of ours before the start is enough.
                    placement.said.clear();
                }
                placement.said.append(&mut notes);
                return Ok(placement);
            }
            let why = Self::unavailable(&offer, ours);
            let left = match self.wish.wait {
                Wait::No if !self.wish.asked => return Ok(self.without(&why)),
                Wait::No => {
                    return Err(
                        self.refused(&format!("{why}; add --wait to wait, or use --gpus none"))
                    );
                }
                Wait::For(limit) if began.elapsed() >= limit => {
                    let after = duration_text(limit);
                    return Err(self.refused(&format!("{why}, after waiting for {after}")));
                }
                Wait::For(limit) => limit.saturating_sub(began.elapsed()),
                Wait::Always => LOOK_AT_CLAIMS,
            };
            if waited.is_none() {
                self.say_waiting(&why);
            }
            let now = Some((ours, offer.claimed));
            if waited != now {
                // What the driver said before may be old.
                asking.keep_looking(LOOK_AGAIN);
                waited = now;
            }
            let until = Instant::now() + left.min(LOOK_AT_CLAIMS);
            if let Some(samples) = asking.next(until)? {
                answer.samples = samples;
            }
        }
    }

    /// Where nothing was asked for, claims that can't be seen are no reason not to start.
    fn claims(&self, notes: &mut Vec<String>) -> Result<Option<Claims>, ClaimError> {
        if !self.claiming {
            return Ok(None);
        }
        match Claims::open() {
            Ok(claims) => Ok(Some(claims)),
            Err(error) if self.wish.asked => Err(error),
            Err(error) => {
                notes.push(format!("other runs' claims are not seen: {error}"));
                Ok(None)
            }
        }
    }

    fn offer(&self, answer: &Answer, claims: Option<&Claims>) -> Result<Offer, Unplaced> {
        let standings =
            choose::standings(&answer.inventory, &answer.samples, &BTreeSet::new(), &who);
        let claimed = |device: &Device| {
            let claimed = claims?.claimed(&key(device, &answer.inventory))?;
            if self.is_above(claimed) {
                return None;
            }
            Some(format!(
                "{} is claimed by {}",
                device.shown(),
                claimed.pid.map_or_else(
                    || "a run that can't be seen from here".to_owned(),
                    claimant_text
                )
            ))
        };
        let machine = Machine {
            inventory: &answer.inventory,
            samples: &answer.samples,
            standings: &standings,
            allowed: self.given,
            claimed: &claimed,
        };
        select::offer(self.wish, &machine).map_err(|why| self.refused(&why))
    }

    /// Takes what is needed of what fits; None: that isn't enough, and nothing is taken.
    fn take(
        &self,
        offer: &Offer,
        inventory: &Inventory,
        claims: Option<&Claims>,
    ) -> Result<Option<Taken>, Unplaced> {
        let Some(need) = offer.need else {
            let some = !offer.fit.is_empty();
            return Ok(some.then(|| (offer.fit.clone(), Vec::new())));
        };
        let (mut devices, mut held) = (Vec::new(), Vec::new());
        for device in &offer.fit {
            if devices.len() == need {
                break;
            }
            if let Some(claims) = claims {
                let key = key(device, inventory);
                let taken = claims
                    .take(&key)
                    .map_err(|e| self.refused(&e.to_string()))?;
                let is_given = || claims.claimed(&key).is_some_and(|by| self.is_above(by));
                if taken.is_none() && !is_given() {
                    continue;
                }
                held.extend(taken);
            }
            devices.push(device.clone());
        }
        Ok((devices.len() == need).then_some((devices, held)))
    }

    /// A run around this one has it: its GPUs are ours, whether or not we were told of it.
    fn is_above(&self, claimed: Claimed) -> bool {
        claimed.pid.is_some_and(|pid| self.above.contains(&pid))
    }

    fn unavailable(offer: &Offer, ours: bool) -> String {
        let because = offer.because.join("; ");
        let free = offer.fit.len();
        match (offer.need, free) {
            _ if !ours => "others have waited for longer".to_owned(),
            (_, 0) if because.is_empty() => "there is no GPU".to_owned(),
            (_, 0) => format!("no GPU is free ({because})"),
            (Some(need), _) if because.is_empty() => {
                format!("{free} of {need} GPUs are free: others take them right now")
            }
            (Some(need), _) => format!("{free} of {need} GPUs are free ({because})"),
            (None, _) => because,
        }
    }

    fn say_waiting(&self, why: &str) {
        if !self.quiet {
            say(
                format!(
                    "gpuwatch: waiting for {}: {}\n",
                    clean(&self.asked_for()),
                    clean(why)
                ),
                SAYING,
            );
        }
    }

    fn asked_for(&self) -> String {
        let kind = self
            .wish
            .gpu_type
            .as_ref()
            .map_or_else(String::new, |t| format!(" like {t}"));
        match &self.wish.choice {
            None | Some(GpuChoice::Count(1) | GpuChoice::Free | GpuChoice::None) => {
                format!("a GPU{kind}")
            }
            Some(GpuChoice::Count(n)) => format!("{n} GPUs{kind}"),
            Some(GpuChoice::Named(names)) => format!("GPU {}", names.join(",")),
        }
    }

    /// The default gives way.
    fn without(&self, why: &str) -> Placement {
        let mut placement = Placement::watching(Watch::Shown(self.given.map(str::to_owned)));
        placement
            .said
            .push(format!("{why}: CUDA_VISIBLE_DEVICES is left unset"));
        placement
    }

    fn placement(
        &self,
        devices: &[Device],
        offer: &Offer,
        inventory: &Inventory,
        all: usize,
    ) -> Placement {
        let mut placement = Placement::watching(Watch::These(devices.to_vec()));
        placement.chosen = Some(chosen(devices, inventory, self.wish));
        placement.totals_mib = devices.iter().map(|d| total_mib(d, inventory)).collect();
        placement
            .said
            .push(Self::chosen_text(devices, offer, inventory, all));
        placement
    }

    /// `GPU 1 (Tesla T4) of 2 is free and chosen; GPU 0 is busy: python (pid 7) holds 6.0 GiB`
    fn chosen_text(devices: &[Device], offer: &Offer, inventory: &Inventory, all: usize) -> String {
        let name = |device: &Device| device.info(inventory).and_then(|info| info.name.clone());
        let name = devices.first().and_then(name).filter(|first| {
            let mut others = devices.iter().map(name);
            others.all(|other| other.as_ref() == Some(first))
        });
        let many = devices.len() > 1;
        let names: Vec<String> = devices.iter().map(value).collect();
        let mut text = format!(
            "{}{}{} of {all} {} {}",
            match devices.first() {
                Some(Device::Mig { .. }) => "",
                _ if many => "GPUs ",
                _ => "GPU ",
            },
            names.join(","),
            name.map_or_else(String::new, |name| format!(" ({name})")),
            if many { "are" } else { "is" },
            match offer.need {
                None => "free and chosen",
                Some(_) => "claimed",
            },
        );
        for why in &offer.because {
            text.push_str("; ");
            text.push_str(why);
        }
        text
    }

    /// What can't be had.
    pub fn refused(&self, why: &str) -> Unplaced {
        let flag = match &self.wish.choice {
            Some(GpuChoice::Count(n)) => format!("--gpus {n}"),
            Some(GpuChoice::Named(names)) => format!("--gpus id:{}", names.join(",")),
            _ => "--gpus free".to_owned(),
        };
        Unplaced::Refused(Refused::own(format!("{flag}: {why}")))
    }
}

/// Somebody else's process by its name, and by its user's where that isn't ours.
fn who(pid: u32) -> Option<String> {
    let found = holder(Path::new("/proc"), pid);
    let name = found.name?;
    match found.user.filter(|user| *user != identity::user()) {
        Some(user) => Some(format!("{user}'s {name}")),
        None => Some(name),
    }
}

fn claimant_text(pid: u32) -> String {
    let found = claimant(Path::new("/proc"), pid);
    let whose = found.user.filter(|user| *user != identity::user());
    let whose = whose.map_or_else(String::new, |user| format!("{user}'s "));
    match found.run {
        Some(run) => format!("{whose}run {run} (pid {pid})"),
        None => format!("{whose}run with pid {pid}"),
    }
}

/// How a device is called among the claims.
fn key(device: &Device, inventory: &Inventory) -> String {
    match (device.info(inventory), device) {
        (Some(info), _) => claims::key(info),
        (None, Device::Mig { name, .. }) => name.clone(),
        (None, Device::Gpu(index)) => format!("index-{index}"),
    }
}

/// A part of a GPU has less than the GPU, and how much isn't known here.
fn total_mib(device: &Device, inventory: &Inventory) -> Option<u64> {
    match device {
        Device::Gpu(_) => device.info(inventory)?.memory_mib,
        Device::Mig { .. } => None,
    }
}

/// As `CUDA_VISIBLE_DEVICES` names it.
fn value(device: &Device) -> String {
    match device {
        Device::Gpu(index) => index.to_string(),
        Device::Mig { name, .. } => name.clone(),
    }
}

fn chosen(devices: &[Device], inventory: &Inventory, wish: &GpuWish) -> Chosen {
    let uuid = |device: &Device| match device {
        Device::Mig { name, .. } => Some(name.clone()),
        Device::Gpu(_) => device.info(inventory)?.uuid.clone(),
    };
    let uuids: Option<Vec<String>> = devices.iter().map(uuid).collect();
    let values: Vec<String> = devices.iter().map(value).collect();
    Chosen {
        indices: values.join(","),
        uuids: uuids.map(|list| list.join(",")),
        how: match &wish.choice {
            Some(GpuChoice::Count(1)) => "auto".to_owned(),
            Some(GpuChoice::Count(n)) => n.to_string(),
            Some(GpuChoice::Named(names)) => format!("id:{}", names.join(",")),
            _ => "free".to_owned(),
        },
        asked: wish.asked,
    }
}
