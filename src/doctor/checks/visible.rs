//! Which GPUs the command would be shown: `CUDA_VISIBLE_DEVICES` as CUDA reads it, containers.

use super::Check;
use crate::doctor::facts::{Asked, Facts};
use crate::model::Inventory;
use crate::place::visible::{self, Device};

const HIDE: &str = "CUDA_VISIBLE_DEVICES";

pub fn checks(facts: &Facts) -> Vec<Check> {
    let inventory = match &facts.asked {
        Asked::Answered { inventory, .. } => Some(inventory),
        _ => None,
    };
    let mut found = vec![shown(facts, inventory)];
    found.extend(order(facts, inventory));
    found.extend(container(facts));
    found.extend(inventory.and_then(|i| numbers(facts, i)));
    found
}

fn shown(facts: &Facts, inventory: Option<&Inventory>) -> Check {
    let Some(value) = facts.variables.get(HIDE) else {
        return Check::ok(HIDE, "it isn't set: every GPU is visible");
    };
    let unset = "'unset CUDA_VISIBLE_DEVICES', or name the GPUs: CUDA_VISIBLE_DEVICES=0";
    if value.trim().is_empty() {
        return Check::bad(HIDE, "it is set and empty, which hides every GPU", unset);
    }
    if value.trim_start().starts_with("-1") {
        return Check::bad(HIDE, format!("it is {value}, which hides every GPU"), unset);
    }
    let Some(inventory) = inventory else {
        return Check::note(
            HIDE,
            format!("it is {value}; without a driver's answer nobody knows what that shows"),
        );
    };
    let seen = visible::visible(Some(value), inventory);
    let doubt = visible::doubt(value, inventory);
    let cure = format!(
        "name GPUs that are here ({}), or unset it",
        known(inventory)
    );
    if seen.is_empty() {
        // With no GPU at all that is what is wrong, and has been said.
        let why = doubt.unwrap_or_else(|| "it names nothing".to_owned());
        return Check::bad(
            HIDE,
            format!("it is {value}, which shows no GPU: {why}"),
            cure,
        );
    }
    let list: Vec<String> = seen.iter().map(Device::shown).collect();
    let shows = format!("it is {value}, which shows {}", list.join(", "));
    match doubt {
        Some(why) => Check::warning(HIDE, format!("{shows}: {why}"), cure),
        None => Check::ok(HIDE, shows),
    }
}

fn known(inventory: &Inventory) -> String {
    let names: Vec<String> = visible::all(inventory)
        .iter()
        .map(|device| match device {
            Device::Gpu(index) => index.to_string(),
            Device::Mig { name, .. } => name.clone(),
        })
        .collect();
    if names.is_empty() {
        "there is none".to_owned()
    } else {
        names.join(", ")
    }
}

fn order(facts: &Facts, inventory: Option<&Inventory>) -> Option<Check> {
    let name = "CUDA_DEVICE_ORDER";
    let order = facts.variables.get(name).map(String::as_str);
    if let Some(other) = order.filter(|o| !["PCI_BUS_ID", "FASTEST_FIRST"].contains(o)) {
        return Some(Check::warning(
            name,
            format!("it is {other}, which CUDA doesn't know"),
            "CUDA_DEVICE_ORDER=PCI_BUS_ID numbers GPUs as nvidia-smi does",
        ));
    }
    let inventory = inventory?;
    let counted = facts
        .variables
        .get(HIDE)?
        .starts_with(|c: char| c.is_ascii_digit());
    if counted && !visible::numbers_are_certain(order, inventory) {
        return Some(Check::warning(
            name,
            "the GPUs differ, and CUDA numbers the fastest first: a number in CUDA_VISIBLE_DEVICES may be another GPU than nvidia-smi's",
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
        ));
    }
    Some(Check::ok(
        name,
        format!("it is {}", order.unwrap_or("not set")),
    ))
}

fn container(facts: &Facts) -> Option<Check> {
    if !facts.machine.container {
        return None;
    }
    let name = "NVIDIA_VISIBLE_DEVICES";
    let value = facts.variables.get(name).map(String::as_str);
    let answered = matches!(facts.asked, Asked::Answered { .. });
    if matches!(value, Some("" | "void" | "none")) && !answered {
        return Some(Check::bad(
            name,
            format!(
                "it is '{}': the container was given no GPU",
                value.unwrap_or_default()
            ),
            "start it with --gpus all, or with -e NVIDIA_VISIBLE_DEVICES=all and NVIDIA's runtime",
        ));
    }
    let abilities = facts.variables.get("NVIDIA_DRIVER_CAPABILITIES");
    if let Some(abilities) = abilities
        && !abilities
            .split(',')
            .any(|a| matches!(a.trim(), "all" | "compute"))
    {
        return Some(Check::bad(
            "NVIDIA_DRIVER_CAPABILITIES",
            format!("it is '{abilities}', without compute: the container has no libcuda.so.1"),
            "start it with -e NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        ));
    }
    Some(Check::ok(
        name,
        format!("it is {}", value.unwrap_or("not set")),
    ))
}

/// CUDA's numbers beside NVML's and the host's.
fn numbers(facts: &Facts, inventory: &Inventory) -> Option<Check> {
    let setting = facts.variables.get(HIDE).map(String::as_str);
    let seen = visible::visible(setting, inventory);
    if seen.is_empty() {
        return None;
    }
    let host = &facts.kernel.pci;
    let lines: Vec<String> = seen
        .iter()
        .enumerate()
        .map(|(number, device)| {
            let info = device.info(inventory);
            let uuid = info
                .and_then(|i| i.uuid.as_deref())
                .unwrap_or("UUID unknown");
            let gpu = inventory
                .gpus
                .iter()
                .find(|g| Some(g.index) == device.gpu());
            let bus = gpu.and_then(|g| g.pci_bus.as_deref());
            // The host's NVML counts in the order of bus ids, and a container sees them all.
            let place = bus.and_then(|b| host.iter().position(|h| same_bus(h, b)));
            let place = place.map_or(String::new(), |p| format!(", the host's {p}"));
            let bus = bus.unwrap_or("bus unknown");
            format!(
                "CUDA's {number} is {} ({uuid}, {bus}{place})",
                device.shown()
            )
        })
        .collect();
    let of = if host.len() > inventory.gpus.len() {
        format!(
            "{} of this machine's {} GPUs are here; ",
            inventory.gpus.len(),
            host.len()
        )
    } else {
        String::new()
    };
    Some(Check::note("numbers", of + &lines.join("; ")))
}

/// `00000000:1A:00.0` is `0000:1a:00.0`.
fn same_bus(a: &str, b: &str) -> bool {
    let short = |bus: &str| bus.trim_start_matches('0').to_ascii_lowercase();
    short(a) == short(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;
    use crate::model::GpuInfo;

    fn facts(value: Option<&str>, gpus: &[(&str, &str)]) -> Facts {
        let gpu = |(index, (uuid, name)): (usize, &(&str, &str))| GpuInfo {
            index: index as u32,
            uuid: Some((*uuid).to_owned()),
            name: Some((*name).to_owned()),
            pci_bus: Some(format!("00000000:{index}A:00.0")),
            ..GpuInfo::default()
        };
        let mut facts = Facts {
            asked: Asked::Answered {
                inventory: Inventory {
                    gpus: gpus.iter().enumerate().map(gpu).collect(),
                    ..Inventory::default()
                },
                samples: Vec::new(),
            },
            ..Facts::default()
        };
        if let Some(value) = value {
            facts.variables.insert(HIDE.to_owned(), value.to_owned());
        }
        facts
    }

    const TWO: [(&str, &str); 2] = [("GPU-aa1", "A100"), ("GPU-aa2", "A100")];

    #[test]
    fn each_value_is_read_as_cuda_does() {
        for (value, state, says) in [
            (None, State::Ok, "isn't set"),
            (Some(""), State::Bad, "empty"),
            (Some("-1"), State::Bad, "hides every GPU"),
            (Some("0,1"), State::Ok, "GPU 0, GPU 1"),
            (Some("7"), State::Bad, "7 names no device"),
            (Some("0,7"), State::Warning, "7 names no device"),
            (Some("0,0"), State::Bad, "names a device twice"),
            (Some("GPU-aa"), State::Bad, "fits GPUs 0 and 1"),
            (Some("GPU-aa2"), State::Ok, "GPU 1"),
        ] {
            let check = &checks(&facts(value, &TWO))[0];
            assert_eq!(check.state, state, "{value:?}: {check:?}");
            assert!(check.found.contains(says), "{value:?}: {}", check.found);
            assert_eq!(check.cure.is_some(), check.is_wrong(), "{value:?}");
        }
    }

    #[test]
    fn numbers_of_unlike_gpus_need_an_order() {
        let mut facts = facts(Some("0"), &[("GPU-a", "T4"), ("GPU-b", "A100")]);
        let check = order(
            &facts,
            match &facts.asked {
                Asked::Answered { inventory, .. } => Some(inventory),
                _ => None,
            },
        );
        assert!(check.unwrap().cure.unwrap().contains("PCI_BUS_ID"));
        facts
            .variables
            .insert("CUDA_DEVICE_ORDER".to_owned(), "PCI_BUS_ID".to_owned());
        assert!(checks(&facts).iter().all(|c| !c.is_wrong()));
    }

    #[test]
    fn a_container_is_told_its_gpus_numbers_on_the_host() {
        let mut facts = facts(None, &[("GPU-b", "A100")]);
        facts.machine.container = true;
        facts.kernel.pci = vec!["0000:05:00.0".to_owned(), "0000:0a:00.0".to_owned()];
        let all = checks(&facts);
        let told = all.iter().find(|c| c.check == "numbers").unwrap();
        assert!(
            told.found.contains("1 of this machine's 2 GPUs"),
            "{}",
            told.found
        );
        assert!(told.found.contains("the host's 1"), "{}", told.found);
    }

    #[test]
    fn a_container_without_compute_is_named() {
        let mut facts = facts(None, &TWO);
        facts.machine.container = true;
        facts.variables.insert(
            "NVIDIA_DRIVER_CAPABILITIES".to_owned(),
            "utility".to_owned(),
        );
        let wrong: Vec<Check> = checks(&facts).into_iter().filter(Check::is_wrong).collect();
        assert!(
            wrong[0]
                .cure
                .as_deref()
                .unwrap()
                .contains("compute,utility")
        );
    }
}
