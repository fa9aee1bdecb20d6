//! Which GPUs nobody uses.
//!
//! Pure: judges what was read at one moment. Claims are looked at elsewhere.

use std::collections::BTreeSet;

use super::visible::Device;
use crate::model::units::mib_text;
use crate::model::{GpuInfo, GpuProcess, GpuSample, Inventory, Reading};

/// Memory in use that no process explains: up to this much is the driver's own, MiB.
pub const UNEXPLAINED_MIB: f64 = 1024.0;

/// How one GPU stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which.
    pub device: Device,
    /// Why it isn't free, as a sentence without a full stop; None: nobody uses it.
    pub busy: Option<String>,
}

/// How each GPU and MIG device of the inventory stands.
///
/// Busy: a compute process outside `own` holds memory, or more than `UNEXPLAINED_MIB` is in
/// use that nobody explains. A desktop's graphics processes don't count. A GPU of which
/// neither the processes nor the memory can be read isn't free. `command` names a PID.
pub fn standings(
    inventory: &Inventory,
    samples: &[GpuSample],
    own: &BTreeSet<u32>,
    command: &dyn Fn(u32) -> Option<String>,
) -> Vec<Standing> {
    let look = |info: &GpuInfo, device: &Device| {
        let shown = device.shown();
        if info.mig_mode {
            return Some(format!("{shown} is in MIG mode"));
        }
        let Some(sample) = samples.iter().find(|s| s.is_of(info)) else {
            return Some(format!("{shown} was not read"));
        };
        occupied(sample, own, command).map(|why| format!("{shown} {why}"))
    };
    inventory
        .devices()
        .map(|info| {
            let device = Device::from(info);
            let busy = look(info, &device);
            Standing { device, busy }
        })
        .collect()
}

fn occupied(
    sample: &GpuSample,
    own: &BTreeSet<u32>,
    command: &dyn Fn(u32) -> Option<String>,
) -> Option<String> {
    match (&sample.processes, &sample.mem_used_mib) {
        (Reading::Missing(why), Reading::Missing(_)) => Some(format!(
            "can't be judged: its processes and memory can't be read ({why})"
        )),
        (Reading::Missing(_), Reading::Value(used)) => unexplained(*used),
        (Reading::Value(list), used) => {
            let holder = list
                .iter()
                .filter(|p| p.compute && !own.contains(&p.pid))
                // A process whose memory isn't told is on it for something.
                .filter(|p| p.mem_mib.get() != Some(0.0))
                .max_by(|a, b| held(a).total_cmp(&held(b)));
            if let Some(holder) = holder {
                return Some(held_by(holder, command));
            }
            // With a process of unknown memory nothing can be said to be unexplained.
            if list.iter().any(|p| p.mem_mib.get().is_none()) {
                return None;
            }
            let explained: f64 = list.iter().map(held).sum();
            used.get().and_then(|used| unexplained(used - explained))
        }
    }
}

fn held(process: &GpuProcess) -> f64 {
    process.mem_mib.get().unwrap_or(0.0)
}

fn held_by(process: &GpuProcess, command: &dyn Fn(u32) -> Option<String>) -> String {
    let who = command(process.pid).map_or_else(
        || format!("process {}", process.pid),
        |name| format!("{name} (pid {})", process.pid),
    );
    match process.mem_mib.get() {
        Some(mib) => format!("is busy: {who} holds {}", mib_text(mib)),
        None => format!("is busy: {who} is on it"),
    }
}

fn unexplained(mib: f64) -> Option<String> {
    (mib > UNEXPLAINED_MIB).then(|| {
        format!(
            "is busy: {} are in use by nobody that can be seen",
            mib_text(mib)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Instance, Why};

    fn process(pid: u32, mib: f64) -> GpuProcess {
        GpuProcess {
            pid,
            mem_mib: Reading::Value(mib),
            sm_pct: Reading::Value(0.0),
            compute: true,
            mps_server: false,
        }
    }

    fn busy(used: Reading<f64>, processes: Reading<Vec<GpuProcess>>) -> Option<String> {
        let inventory = Inventory {
            gpus: vec![GpuInfo::default()],
            ..Inventory::default()
        };
        let sample = GpuSample {
            mem_used_mib: used,
            processes,
            ..GpuSample::default()
        };
        let name = |pid| (pid == 123).then(|| "python".to_owned());
        let own = BTreeSet::from([1]);
        let standing = standings(&inventory, &[sample], &own, &name);
        standing[0].busy.clone()
    }

    fn missing<T>() -> Reading<T> {
        Reading::Missing(Why::NotSupported)
    }

    #[test]
    fn nobody_there_is_free() {
        assert_eq!(busy(Reading::Value(500.0), Reading::Value(vec![])), None);
        assert_eq!(busy(missing(), Reading::Value(vec![])), None);
        assert_eq!(busy(Reading::Value(500.0), missing()), None);
    }

    #[test]
    fn another_compute_process_holds_it_whoever_owns_it() {
        let text = busy(
            Reading::Value(7000.0),
            Reading::Value(vec![process(5, 100.0), process(123, 6144.0)]),
        );
        assert_eq!(
            text.as_deref(),
            Some("GPU 0 is busy: python (pid 123) holds 6.0 GiB")
        );
        let mut unknown = process(77, 0.0);
        unknown.mem_mib = missing();
        assert_eq!(
            busy(Reading::Value(0.0), Reading::Value(vec![unknown])).as_deref(),
            Some("GPU 0 is busy: process 77 is on it")
        );
    }

    #[test]
    fn our_own_processes_and_a_desktop_do_not_count() {
        let ours = process(1, 6000.0);
        let mut desktop = process(9, 2000.0);
        desktop.compute = false;
        let idle = process(8, 0.0);
        let list = Reading::Value(vec![ours, desktop, idle]);
        assert_eq!(busy(Reading::Value(8500.0), list), None);
    }

    #[test]
    fn memory_that_nobody_explains_is_somebodys() {
        let text = busy(
            Reading::Value(3000.0),
            Reading::Value(vec![process(1, 500.0)]),
        );
        assert_eq!(
            text.as_deref(),
            Some("GPU 0 is busy: 2.4 GiB are in use by nobody that can be seen")
        );
        assert!(busy(Reading::Value(3000.0), missing()).is_some());
    }

    #[test]
    fn a_split_gpu_is_not_free_and_its_parts_stand_for_themselves() {
        let part = |gi| GpuInfo {
            uuid: Some(format!("MIG-{gi}")),
            instance: Some(Instance {
                gi,
                ..Instance::default()
            }),
            ..GpuInfo::default()
        };
        let inventory = Inventory {
            gpus: vec![GpuInfo {
                mig_mode: true,
                ..GpuInfo::default()
            }],
            instances: vec![part(1), part(2)],
            ..Inventory::default()
        };
        let read = |mig: Option<&str>, list| GpuSample {
            mig: mig.map(str::to_owned),
            mem_used_mib: Reading::Value(10.0),
            processes: Reading::Value(list),
            ..GpuSample::default()
        };
        let samples = [
            read(None, vec![]),
            read(Some("MIG-1"), vec![process(7, 5.0)]),
            read(Some("MIG-2"), vec![]),
        ];
        let standings = standings(&inventory, &samples, &BTreeSet::new(), &|_| None);
        let busy: Vec<_> = standings.iter().map(|s| s.busy.as_deref()).collect();
        assert_eq!(
            busy,
            [
                Some("GPU 0 is in MIG mode"),
                Some("MIG-1 is busy: process 7 holds 5 MiB"),
                None
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_free() {
        let text = busy(missing(), missing());
        assert_eq!(
            text.as_deref(),
            Some("GPU 0 can't be judged: its processes and memory can't be read (NotSupported)")
        );
        let inventory = Inventory {
            gpus: vec![GpuInfo::default()],
            ..Inventory::default()
        };
        let unread = standings(&inventory, &[], &BTreeSet::new(), &|_| None);
        assert_eq!(unread[0].busy.as_deref(), Some("GPU 0 was not read"));
    }
}
