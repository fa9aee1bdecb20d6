//! Which GPUs a wish can have now, which it could have later, and which never.
//!
//! Pure: what was read and who claims what are arguments. Taking them is another matter.

use super::choose::Standing;
use super::visible::{Device, all, listed};
use crate::model::units::mib_text;
use crate::model::{GpuChoice, GpuSample, GpuWish, Inventory, Wait, fits};

/// What a wish is held against.
pub struct Machine<'a> {
    /// What there is.
    pub inventory: &'a Inventory,
    /// What was read of it.
    pub samples: &'a [GpuSample],
    /// Who is on it.
    pub standings: &'a [Standing],
    /// The value of `CUDA_VISIBLE_DEVICES` that the run would inherit: it gets no other device.
    pub allowed: Option<&'a str>,
    /// Who claims a device, as a sentence without a full stop.
    pub claimed: &'a dyn Fn(&Device) -> Option<String>,
}

/// Devices that fit now, in the order in which they shall be tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// These fit.
    pub fit: Vec<Device>,
    /// So many of them are needed; None: all of them, one at least.
    pub need: Option<usize>,
    /// Why others don't fit now; of named ones, who else is on them.
    pub because: Vec<String>,
    /// Those of them that are claims.
    pub claimed: Vec<String>,
}

/// Holds a wish against the machine.
///
/// # Errors
/// It can't be had here however long one waits: why, and what to do.
pub fn offer(wish: &GpuWish, machine: &Machine<'_>) -> Result<Offer, String> {
    match &wish.choice {
        Some(GpuChoice::Named(names)) => named(names, wish, machine),
        Some(GpuChoice::Count(count)) => counted(*count, wish, machine),
        // What somebody asked for must be there, or there would be nothing to wait for.
        _ if wish.asked => counted(1, wish, machine).map(|_| free(wish, machine)),
        _ => Ok(free(wish, machine)),
    }
}

impl Machine<'_> {
    /// The devices that the run may have.
    fn there(&self) -> Vec<Device> {
        match self.allowed {
            None => all(self.inventory),
            Some(value) => listed(value, self.inventory),
        }
    }
}

/// All whole GPUs that are free; where there is none, a MIG device, of which a process sees one.
fn free(wish: &GpuWish, machine: &Machine<'_>) -> Offer {
    let mut offer = unnamed(machine.there(), wish, machine);
    match offer.fit.iter().filter(|d| !is_part(d)).count() {
        0 => offer.fit.truncate(1),
        _ => offer.fit.retain(|d| !is_part(d)),
    }
    offer
}

fn is_part(device: &Device) -> bool {
    matches!(device, Device::Mig { .. })
}

fn counted(count: usize, wish: &GpuWish, machine: &Machine<'_>) -> Result<Offer, String> {
    let mut there = machine.there();
    if count == 1 {
        // A whole GPU if one is to be had.
        there.sort_by_key(is_part);
    } else {
        // A process sees one MIG device at most, and no GPU beside it.
        there.retain(|device| !is_part(device));
    }
    let right: Vec<&Device> = there
        .iter()
        .filter(|device| never(device, wish, machine).is_none())
        .collect();
    if right.len() < count {
        let mut text = match right.len() {
            0 if count > 1 && !machine.inventory.instances.is_empty() => {
                "there is no whole GPU, and a process sees one MIG device at most".to_owned()
            }
            0 => "there is no GPU".to_owned(),
            1 => "there is 1 GPU".to_owned(),
            n => format!("there are {n} GPUs"),
        };
        if right.len() < there.len() {
            text.push_str(" that fits");
            let why: Vec<String> = there
                .iter()
                .filter_map(|device| never(device, wish, machine))
                .collect();
            text = format!("{text} ({})", why.join("; "));
        } else if machine.allowed.is_some() && there.len() < machine.inventory.gpus.len() {
            text.push_str(" in CUDA_VISIBLE_DEVICES");
        }
        return Err(text);
    }
    Ok(Offer {
        need: Some(count),
        ..unnamed(there, wish, machine)
    })
}

/// Those that nobody uses or claims.
fn unnamed(there: Vec<Device>, wish: &GpuWish, machine: &Machine<'_>) -> Offer {
    let mut offer = Offer::default();
    for device in there {
        offer.claimed.extend((machine.claimed)(&device));
        let why = never(&device, wish, machine).or_else(|| not_now(&device, wish, machine));
        match why {
            None => offer.fit.push(device),
            Some(why) => offer.because.push(why),
        }
    }
    offer
}

/// Exactly these. That somebody else is on one is said, but keeps nobody from it who names it,
/// unless waiting was asked for.
fn named(names: &[String], wish: &GpuWish, machine: &Machine<'_>) -> Result<Offer, String> {
    let mut offer = Offer {
        need: Some(names.len()),
        ..Offer::default()
    };
    let allowed = machine.there();
    for name in names {
        let device = find(name, machine.inventory)?;
        if !allowed.contains(&device) && machine.allowed.is_some() {
            return Err(format!("{name} is not in CUDA_VISIBLE_DEVICES"));
        }
        if is_part(&device) && names.len() > 1 {
            return Err(format!(
                "a process sees one MIG device at most, and no GPU beside it: name {} alone",
                device.shown()
            ));
        }
        if offer.fit.contains(&device) {
            return Err(format!("{name} is named twice"));
        }
        if let Some(why) = never(&device, wish, machine) {
            return Err(why);
        }
        let busy = busy(&device, machine);
        let hindered = if wish.wait == Wait::No {
            None
        } else {
            busy.clone()
        };
        let claimed = (machine.claimed)(&device);
        offer.claimed.extend(claimed.clone());
        let hindered = claimed.or(hindered);
        if let Some(why) = hindered.or_else(|| too_full(&device, wish, machine)) {
            offer.because.push(why);
        } else {
            offer.because.extend(busy);
            offer.fit.push(device);
        }
    }
    Ok(offer)
}

fn find(name: &str, inventory: &Inventory) -> Result<Device, String> {
    if let Ok(index) = name.parse::<u32>() {
        let there = inventory.gpus.iter().any(|gpu| gpu.index == index);
        return if there {
            unsplit(Device::Gpu(index), inventory)
        } else {
            Err(format!("there is no GPU {index}: {}", indices(inventory)))
        };
    }
    let starts = |uuid: &str| uuid.starts_with(name);
    let fitting = inventory.devices();
    let fitting = fitting.filter(|device| device.uuid.as_deref().is_some_and(starts));
    let fitting: Vec<Device> = fitting.map(Device::from).collect();
    let whole = |device: &&Device| {
        device
            .info(inventory)
            .is_some_and(|i| i.uuid.as_deref() == Some(name))
    };
    if let Some(device) = fitting.iter().find(whole) {
        return unsplit(device.clone(), inventory);
    }
    if fitting.len() > 1 {
        let names: Vec<String> = fitting.iter().map(Device::shown).collect();
        return Err(format!(
            "{name} fits {}: write more of it",
            names.join(" and ")
        ));
    }
    let found = fitting.into_iter().next();
    // Otherwise as CUDA would read it: the older names of MIG devices.
    let found = found.or_else(|| listed(name, inventory).pop());
    let found = found.ok_or_else(|| {
        format!("there is no device {name}: 'gpuwatch gpus' lists those there are")
    })?;
    unsplit(found, inventory)
}

/// A GPU that is split can't be had as a whole.
fn unsplit(device: Device, inventory: &Inventory) -> Result<Device, String> {
    let Some(gpu) = device.info(inventory).filter(|gpu| gpu.mig_mode) else {
        return Ok(device);
    };
    let parts: Vec<String> = inventory
        .instances_of(gpu.index)
        .filter_map(|i| i.uuid.clone())
        .collect();
    let which = match parts.len() {
        0 => "it has no MIG device that could be used".to_owned(),
        _ => format!("name a MIG device of it: {}", parts.join(", ")),
    };
    Err(format!("GPU {} is in MIG mode: {which}", gpu.index))
}

fn indices(inventory: &Inventory) -> String {
    let indices: Vec<String> = inventory.gpus.iter().map(|g| g.index.to_string()).collect();
    match indices.len() {
        0 => "there is none at all".to_owned(),
        1 => format!("there is {}", indices[0]),
        _ => format!("there are {}", indices.join(", ")),
    }
}

/// Why this device won't do however long one waits.
fn never(device: &Device, wish: &GpuWish, machine: &Machine<'_>) -> Option<String> {
    let info = device.info(machine.inventory)?;
    let name = info.name.as_deref().unwrap_or("of unknown type");
    if let Some(pattern) = &wish.gpu_type
        && !fits(pattern, info.name.as_deref().unwrap_or_default())
    {
        return Some(format!("{} is {name}", device.shown()));
    }
    let total = info.memory_mib.map(|mib| mib as f64)?;
    (total < wish.min_free_mib)
        .then(|| format!("{} has {} in all", device.shown(), mib_text(total)))
}

fn not_now(device: &Device, wish: &GpuWish, machine: &Machine<'_>) -> Option<String> {
    (machine.claimed)(device)
        .or_else(|| busy(device, machine))
        .or_else(|| too_full(device, wish, machine))
}

fn busy(device: &Device, machine: &Machine<'_>) -> Option<String> {
    let mut standings = machine.standings.iter();
    standings.find(|s| s.device == *device)?.busy.clone()
}

/// Memory that can't be read is not enough memory, where some is asked for.
fn too_full(device: &Device, wish: &GpuWish, machine: &Machine<'_>) -> Option<String> {
    if wish.min_free_mib <= 0.0 {
        return None;
    }
    let info = device.info(machine.inventory)?;
    let sample = machine.samples.iter().find(|s| s.is_of(info));
    let free = sample.and_then(|s| Some(s.mem_total_mib.get()? - s.mem_used_mib.get()?));
    let shown = device.shown();
    match free {
        Some(free) if free >= wish.min_free_mib => None,
        Some(free) => Some(format!("{shown} has {} free", mib_text(free))),
        None => Some(format!("{shown} does not tell its free memory")),
    }
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
