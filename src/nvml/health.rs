//! From ticks to events: what of the driver works, said once when it changes.
//!
//! Pure. Owns the names of the sources: `nvml` as a whole, and `nvml/<gpu>/<column>` for a
//! reading, where the column is the one of `samples.csv` (or `processes`).

use std::collections::BTreeMap;

use super::protocol::FromHelper;
use crate::model::{Event, GpuChange, GpuSample, Reading, SourceState, Why};

/// Remembers what was said.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Whether NVML works: None until it has been heard.
    state: Option<SourceState>,
    /// Devices that are lost or of which nothing can be read, by label.
    away: BTreeMap<String, GpuChange>,
    /// Why a reading is missing; readings that aren't here work, or were never seen.
    missing: BTreeMap<(String, &'static str), Why>,
}

impl Health {
    /// Nothing was heard yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What this message changes.
    pub fn hear(&mut self, message: &FromHelper) -> Vec<Event> {
        match message {
            FromHelper::Inventory(_) | FromHelper::Unstuck => self.become_(SourceState::Ok, None),
            FromHelper::Failed { why } => self.become_(SourceState::Failed, Some(why.clone())),
            FromHelper::Stuck { call, gpu, for_s } => {
                let on = gpu.map(|g| format!(" on GPU {g}")).unwrap_or_default();
                let why = format!("{call}{on} has not returned for {for_s:.1} s");
                self.become_(SourceState::Slow, Some(why))
            }
            FromHelper::Xid { gpu, mig, code } => vec![Event::Gpu {
                gpu: mig.clone().unwrap_or_else(|| gpu.to_string()),
                change: GpuChange::Xid,
                code: Some(*code),
            }],
            FromHelper::Tick { gpus, .. } => {
                let mut events = self.become_(SourceState::Ok, None);
                for gpu in gpus {
                    self.look(gpu, &mut events);
                }
                events
            }
        }
    }

    /// No tick came for this long, where one was due.
    pub fn silent(&mut self, for_s: f64) -> Vec<Event> {
        let why = format!("no readings for {for_s:.1} s");
        self.become_(SourceState::Slow, Some(why))
    }

    /// The helper has gone.
    pub fn gone(&mut self) -> Vec<Event> {
        let why = "the helper process that reads the GPUs has ended".to_owned();
        self.become_(SourceState::Failed, Some(why))
    }

    fn become_(&mut self, state: SourceState, why: Option<String>) -> Vec<Event> {
        use SourceState::{Failed, Ok, Slow};
        match (self.state, state) {
            // What has failed is also silent: not worth a word.
            (Some(Failed), Slow) => return Vec::new(),
            (Some(before), now) if before == now => return Vec::new(),
            // Works from the start: nothing to say.
            (None, Ok) => {
                self.state = Some(Ok);
                return Vec::new();
            }
            _ => self.state = Some(state),
        }
        vec![source("nvml".to_owned(), state, why)]
    }

    fn look(&mut self, gpu: &GpuSample, events: &mut Vec<Event>) {
        let (label, columns) = (gpu.label(), columns(gpu));
        let away = away(&columns);
        let change = match (self.away.get(&label), away) {
            // Lost before: that nothing else can be read either is no news.
            (None, None)
            | (Some(GpuChange::Lost), Some(_))
            | (Some(_), Some(GpuChange::Unavailable)) => None,
            (Some(_), None) => Some(GpuChange::Recovered),
            (_, Some(change)) => Some(change),
        };
        if let Some(change) = change {
            match change {
                GpuChange::Recovered => self.away.remove(&label),
                away => self.away.insert(label.clone(), away),
            };
            let (gpu, code) = (label.clone(), None);
            events.push(Event::Gpu { gpu, change, code });
        }
        if away.is_some() {
            // That nothing can be read says why each reading isn't there.
            return;
        }
        for (column, why) in columns {
            self.look_at(&label, column, why, events);
        }
    }

    fn look_at(
        &mut self,
        gpu: &str,
        column: &'static str,
        why: Option<&Why>,
        events: &mut Vec<Event>,
    ) {
        let key = (gpu.to_owned(), column);
        let name = || format!("nvml/{gpu}/{column}");
        match why {
            // A rate has no value at its first look: neither news nor a recovery.
            Some(Why::NotYet) => {}
            Some(why) => {
                let before = self.missing.insert(key, why.clone());
                if before.is_none() {
                    let state = match why {
                        Why::TimedOut => SourceState::Slow,
                        _ => SourceState::Failed,
                    };
                    events.push(source(name(), state, Some(why.to_string())));
                }
            }
            None => {
                if self.missing.remove(&key).is_some() {
                    events.push(source(name(), SourceState::Ok, None));
                }
            }
        }
    }
}

/// Whether a device is lost, or nothing at all can be read of it; None: something can.
fn away(columns: &[(&'static str, Option<&Why>)]) -> Option<GpuChange> {
    let whys = || columns.iter().map(|(_, why)| *why);
    if whys().any(|why| why == Some(&Why::Lost)) {
        return Some(GpuChange::Lost);
    }
    // What isn't supported, or not told yet, doesn't say that a device is away.
    let failed = |why: &Why| !matches!(why, Why::NotSupported | Why::NotYet);
    let none_is_there = whys().all(|why| why.is_some());
    (none_is_there && whys().flatten().any(failed)).then_some(GpuChange::Unavailable)
}

fn source(name: String, state: SourceState, why: Option<String>) -> Event {
    Event::Source { name, state, why }
}

/// Every reading by its column, and why it is missing if it is.
fn columns(gpu: &GpuSample) -> Vec<(&'static str, Option<&Why>)> {
    let processes = gpu.processes.value();
    let of_processes = |pick: fn(&crate::model::GpuProcess) -> &Reading<f64>| {
        processes.and_then(|list| list.iter().find_map(|p| pick(p).why()))
    };
    let mut columns = vec![
        ("gpu_util_pct", gpu.util_pct.why()),
        ("mem_util_pct", gpu.mem_util_pct.why()),
        ("mem_used_mib", gpu.mem_used_mib.why()),
        ("mem_total_mib", gpu.mem_total_mib.why()),
        ("temp_c", gpu.temp_c.why()),
        ("power_w", gpu.power_w.why()),
        ("power_limit_w", gpu.power_limit_w.why()),
        ("energy_j", gpu.energy_total_j.why()),
        ("sm_clock_mhz", gpu.sm_clock_mhz.why()),
        ("throttle", gpu.throttle.why()),
        ("pcie_mb_s", gpu.pcie_mb_s.why()),
        ("ecc_uncorrected", gpu.ecc_uncorrected_total.why()),
        ("sm_active_pct", gpu.sm_active_pct.why()),
        ("tensor_active_pct", gpu.tensor_active_pct.why()),
        ("dram_active_pct", gpu.dram_active_pct.why()),
        ("processes", gpu.processes.why()),
    ];
    // Nobody there: nothing is learnt of what is told per process.
    if processes.is_some_and(|list| !list.is_empty()) {
        columns.push(("job_mem_mib", of_processes(|p| &p.mem_mib)));
        columns.push(("job_sm_pct", of_processes(|p| &p.sm_pct)));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GpuProcess, Inventory, Throttle};

    fn healthy(index: u32) -> GpuSample {
        let value = Reading::Value(1.0);
        GpuSample {
            index,
            mig: None,
            util_pct: value.clone(),
            mem_util_pct: value.clone(),
            mem_used_mib: value.clone(),
            mem_total_mib: value.clone(),
            temp_c: value.clone(),
            power_w: value.clone(),
            power_limit_w: value.clone(),
            energy_total_j: value.clone(),
            sm_clock_mhz: value.clone(),
            throttle: Reading::Value(Throttle(0)),
            pcie_mb_s: value.clone(),
            ecc_uncorrected_total: Reading::Value(0),
            sm_active_pct: value.clone(),
            tensor_active_pct: value.clone(),
            dram_active_pct: value,
            processes: Reading::Value(Vec::new()),
        }
    }

    fn tick(gpus: Vec<GpuSample>) -> FromHelper {
        FromHelper::Tick { mono_ms: 0, gpus }
    }

    fn said(events: &[Event]) -> Vec<String> {
        events
            .iter()
            .map(|e| match e {
                Event::Source { name, state, why } => {
                    format!("{name} {state:?} {}", why.as_deref().unwrap_or("-"))
                }
                Event::Gpu { gpu, change, .. } => format!("gpu {gpu} {change:?}"),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_healthy_driver_is_not_worth_a_word() {
        let mut health = Health::new();
        assert!(
            health
                .hear(&FromHelper::Inventory(Inventory::default()))
                .is_empty()
        );
        assert!(health.hear(&tick(vec![healthy(0), healthy(1)])).is_empty());
    }

    #[test]
    fn a_missing_reading_is_said_once_and_so_is_its_return() {
        let mut health = Health::new();
        let mut bad = healthy(1);
        bad.power_w = Reading::Missing(Why::NotSupported);
        bad.pcie_mb_s = Reading::Missing(Why::NotYet);
        let first = health.hear(&tick(vec![healthy(0), bad.clone()]));
        assert_eq!(said(&first), ["nvml/1/power_w Failed NotSupported"]);
        assert!(health.hear(&tick(vec![healthy(0), bad])).is_empty());
        let back = health.hear(&tick(vec![healthy(0), healthy(1)]));
        assert_eq!(said(&back), ["nvml/1/power_w Ok -"]);
    }

    #[test]
    fn a_lost_gpu_is_one_event_and_not_one_a_reading() {
        let mut health = Health::new();
        let gone = Reading::Missing(Why::Lost);
        let lost = GpuSample {
            index: 1,
            util_pct: gone.clone(),
            mem_used_mib: gone,
            ..GpuSample::default()
        };
        health.hear(&tick(vec![healthy(0), healthy(1)]));
        let events = health.hear(&tick(vec![healthy(0), lost.clone()]));
        assert_eq!(said(&events), ["gpu 1 Lost"]);
        assert!(health.hear(&tick(vec![healthy(0), lost])).is_empty());
        let events = health.hear(&tick(vec![healthy(0), healthy(1)]));
        assert_eq!(said(&events), ["gpu 1 Recovered"]);
    }

    #[test]
    fn a_gpu_of_which_nothing_can_be_read_is_one_event_and_so_is_its_loss() {
        let mut health = Health::new();
        let all = |why: &Why| {
            let (n, t) = (Reading::Missing(why.clone()), Reading::Missing(why.clone()));
            GpuSample {
                throttle: t,
                ecc_uncorrected_total: Reading::Missing(why.clone()),
                processes: Reading::Missing(why.clone()),
                util_pct: n.clone(),
                mem_util_pct: n.clone(),
                mem_used_mib: n.clone(),
                mem_total_mib: n.clone(),
                temp_c: n.clone(),
                power_w: n.clone(),
                power_limit_w: n.clone(),
                energy_total_j: n.clone(),
                sm_clock_mhz: n.clone(),
                pcie_mb_s: n.clone(),
                sm_active_pct: n.clone(),
                tensor_active_pct: n.clone(),
                dram_active_pct: n,
                ..GpuSample::default()
            }
        };
        let mut hear = |gpu| said(&health.hear(&tick(vec![gpu])));
        assert!(hear(healthy(0)).is_empty());
        let broken = Why::Failed("999".into());
        assert_eq!(hear(all(&broken)), ["gpu 0 Unavailable"]);
        assert!(hear(all(&Why::NoPermission)).is_empty());
        assert_eq!(hear(all(&Why::Lost)), ["gpu 0 Lost"]);
        assert!(hear(all(&broken)).is_empty());
        assert_eq!(hear(healthy(0)), ["gpu 0 Recovered"]);
        // A device that has nothing to tell is not away: each reading says so, once.
        assert_eq!(hear(all(&Why::NotSupported)).len(), 16);
    }

    #[test]
    fn per_process_readings_are_judged_by_the_processes() {
        let mut health = Health::new();
        let mut wsl = healthy(0);
        wsl.processes = Reading::Value(vec![GpuProcess {
            pid: 1,
            mem_mib: Reading::Missing(Why::NotSupported),
            sm_pct: Reading::Value(0.0),
            compute: true,
            mps_server: false,
        }]);
        let events = health.hear(&tick(vec![wsl]));
        assert_eq!(said(&events), ["nvml/0/job_mem_mib Failed NotSupported"]);
        // Nobody on it tells nothing.
        assert!(health.hear(&tick(vec![healthy(0)])).is_empty());
    }

    #[test]
    fn a_hang_its_end_and_the_end_of_all() {
        let mut health = Health::new();
        let stuck = FromHelper::Stuck {
            call: "nvmlDeviceGetPowerUsage".into(),
            gpu: Some(2),
            for_s: 3.04,
        };
        let events = health.hear(&stuck);
        assert_eq!(
            said(&events),
            ["nvml Slow nvmlDeviceGetPowerUsage on GPU 2 has not returned for 3.0 s"]
        );
        assert!(health.silent(5.0).is_empty());
        assert_eq!(said(&health.hear(&FromHelper::Unstuck)), ["nvml Ok -"]);
        assert_eq!(
            said(&health.silent(5.0)),
            ["nvml Slow no readings for 5.0 s"]
        );
        let failed = health.gone();
        assert_eq!(failed.len(), 1);
        assert!(health.gone().is_empty());
        assert!(health.silent(9.0).is_empty());
        assert!(health.gone().is_empty());
    }
}
