//! The helper's second thread: every NVML call is made here, because any may never return.
//!
//! Owns the schedule of ticks. Whatever happens here, the main thread isn't held up by it.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use nvml_wrapper::Nvml;

use super::alarms::{Alarm, Alarms};
use super::desk::{Desk, Watch};
use super::gauge::Gauge;
use super::inventory;
use super::pci;
use super::protocol::{FromHelper, Watched};
use super::quirks::{Quirks, quirks};
use crate::model::{GpuInfo, Inventory};

/// The initial PID namespace's inode (`PROC_PID_INIT_INO` in the kernel's `proc_ns.h`).
const HOST_PID_NAMESPACE: &str = "pid:[4026531836]";
/// The fastest that GPUs are looked at, whatever is ordered.
const FASTEST: Duration = Duration::from_millis(20);
/// How often sleeping GPUs are looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Speaks NVML until the process ends. Says why if it can't.
pub fn run(desk: &Desk) {
    let ended = catch_unwind(AssertUnwindSafe(|| speak(desk)));
    let why = match ended {
        Ok(Ok(())) => return,
        Ok(Err(why)) => why,
        Err(_) => "the NVIDIA driver library answered nonsense (a panic was caught)".to_owned(),
    };
    desk.say(&FromHelper::Failed { why });
}

fn speak(desk: &Desk) -> Result<(), String> {
    let_sleep(desk);
    // Never closed: shutting NVML down can hang and has bugs of its own, and the process
    // ends without it.
    let nvml = ManuallyDrop::new(inventory::open(desk)?);
    let namespaced = is_namespaced();
    let inventory = inventory::take(desk, &nvml, namespaced)?;
    let quirks = quirks(inventory.driver.as_deref(), namespaced);
    desk.say(&FromHelper::Inventory(inventory.clone()));
    tick_for_ever(desk, &nvml, &inventory, quirks);
    Ok(())
}

/// A laptop's GPU that sleeps would be woken by NVML, and kept awake. So as long as all of them
/// sleep, which says that nobody uses one, and nobody asks for readings, there is no NVML.
fn let_sleep(desk: &Desk) {
    let asleep = || pci::all_asleep(&pci::nvidia_gpus(Path::new(pci::DEVICES)));
    while asleep() && desk.wait(0, Some(Instant::now() + LOOK_AGAIN)).number == 0 {}
}

/// Whether our PIDs differ from those that the driver in the host's kernel sees.
fn is_namespaced() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|l| l.as_os_str() != HOST_PID_NAMESPACE)
}

fn tick_for_ever(desk: &Desk, nvml: &Nvml, inventory: &Inventory, quirks: Quirks) {
    let mut seen = 0;
    let mut gauges: Vec<Gauge<'_>> = Vec::new();
    let mut alarms: Option<Alarms<'_>> = None;
    let mut schedule: Option<Schedule> = None;
    loop {
        let orders = desk.wait(seen, schedule.as_ref().map(Schedule::next));
        if orders.number != seen {
            seen = orders.number;
            schedule = orders.watch.as_ref().map(Schedule::new);
            let watched = orders.watch.map(|w| chosen(&w.gpus, inventory));
            let gauge = |device: &GpuInfo| Gauge::new(desk, nvml, device, quirks);
            gauges = watched.iter().flatten().map(|d| gauge(d)).collect();
            desk.during("nvmlEventSetFree", None, || alarms = None);
            continue;
        }
        let mono_ms = monotonic_ms();
        let gpus = gauges.iter_mut().map(Gauge::read).collect();
        desk.say(&FromHelper::Tick { mono_ms, gpus });
        // After the first tick, which somebody may be waiting for.
        let alarms = alarms.get_or_insert_with(|| {
            let watched: Vec<_> = gauges.iter().map(Gauge::watched).collect();
            Alarms::new(desk, nvml, watched)
        });
        for alarm in alarms.take() {
            match alarm {
                Alarm::Xid { gpu, mig, code } => desk.say(&FromHelper::Xid { gpu, mig, code }),
                Alarm::Ecc { gpu } => {
                    let its = gauges.iter_mut().filter(|g| g.watched().index == gpu);
                    its.for_each(Gauge::count_errors_now);
                }
            }
        }
        if let Some(schedule) = &mut schedule {
            schedule.advance(Instant::now());
        }
    }
}

/// The watched devices that exist, in the inventory's order.
fn chosen<'i>(gpus: &Watched, inventory: &'i Inventory) -> Vec<&'i GpuInfo> {
    let whole = inventory.gpus.iter();
    match gpus {
        Watched::All => inventory.devices().collect(),
        Watched::These(list) => whole.filter(|g| list.contains(&g.index)).collect(),
        Watched::Instance(uuid) => {
            let mut parts = inventory.instances.iter();
            parts.find(|i| i.mig() == Some(uuid)).into_iter().collect()
        }
    }
}

fn monotonic_ms() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| {
        t.tv_sec() as u64 * 1000 + t.tv_nsec() as u64 / 1_000_000
    })
}

/// Ticks at whole multiples of the interval after the start: one that comes late doesn't
/// move the later ones, and what a slow driver made us miss isn't made up for.
struct Schedule {
    start: Instant,
    interval: Duration,
    done: u32,
}

impl Schedule {
    fn new(watch: &Watch) -> Self {
        Self {
            start: Instant::now(),
            interval: watch.interval.max(FASTEST),
            done: 0,
        }
    }

    fn next(&self) -> Instant {
        self.start + self.interval * self.done
    }

    fn advance(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.start);
        let passed = (elapsed.as_nanos() / self.interval.as_nanos()) as u32;
        self.done = passed.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Instance;

    #[test]
    fn ticks_do_not_drift_and_missed_ones_are_missed() {
        let mut schedule = Schedule::new(&Watch {
            gpus: Watched::All,
            interval: Duration::from_secs(1),
        });
        let start = schedule.start;
        let s = Duration::from_secs_f64;
        assert_eq!(schedule.next(), start);
        for (now, next) in [(0.0, 1.0), (1.3, 2.0), (2.01, 3.0), (7.9, 8.0)] {
            schedule.advance(start + s(now));
            assert_eq!(schedule.next(), start + s(next));
        }
    }

    #[test]
    fn only_gpus_of_the_inventory_are_watched() {
        let inventory = Inventory {
            gpus: [0, 2, 3]
                .map(|index| crate::model::GpuInfo {
                    index,
                    ..Default::default()
                })
                .to_vec(),
            ..Inventory::default()
        };
        let part = |gi| GpuInfo {
            index: 2,
            uuid: Some(format!("MIG-{gi}")),
            instance: Some(Instance {
                gi,
                ..Instance::default()
            }),
            ..GpuInfo::default()
        };
        let inventory = Inventory {
            instances: vec![part(1), part(2)],
            ..inventory
        };
        let labels = |gpus: &Watched| -> Vec<String> {
            chosen(gpus, &inventory).iter().map(|d| d.label()).collect()
        };
        assert_eq!(labels(&Watched::All), ["0", "2", "3", "MIG-1", "MIG-2"]);
        assert_eq!(labels(&Watched::These(vec![3, 1, 0])), ["0", "3"]);
        assert_eq!(labels(&Watched::Instance("MIG-2".into())), ["MIG-2"]);
        assert_eq!(labels(&Watched::Instance("MIG-3".into())), [""; 0]);
    }
}
