//! What each GPU of a run was used for, in seconds. Pure, and a function of what is in
//! `samples.csv`, the findings and the run's duration.
//!
//! Owns the sums that `gpuwatch waste` adds up and the rules by which they are taken. Every second
//! that a run had a GPU is exactly one of: stalled, active, held idle, unused, unknown. A missing
//! reading makes its time unknown, never idle.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::findings::FindingRecord;
use crate::model::{GpuInfo, Reading, Sample};

/// From this use on a GPU counts as active, %.
pub const ACTIVE_PCT: f64 = 5.0;

/// A sample speaks for the time since the one before it, if that is no longer than this: of what
/// was in a longer gap nothing is known.
pub const LONGEST_S: f64 = 60.0;

/// So many stretches a GPU are kept until it is known whether they were stalled, which is said
/// later than it began. A stall holds few stretches, since little changes in it.
const KEPT: usize = 8192;

/// The finding whose time is stalled.
const STALLED: &str = "stalled";

/// One GPU's time in a run, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuUsage {
    /// NVML's index, or `MIG-<uuid>`.
    pub gpu: String,
    /// The device's UUID.
    #[serde(default)]
    pub uuid: Option<String>,
    /// The product's name.
    #[serde(default)]
    pub name: Option<String>,
    /// Seconds by what they were.
    #[serde(default)]
    pub spent: Spent,
}

/// Seconds by what they were; they add up to what was reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// All of it: as long as the run had the GPU.
    pub reserved_s: f64,
    /// The job (where that isn't known, anybody) computed on it.
    pub active_s: f64,
    /// The job held memory on it and didn't compute.
    pub held_s: f64,
    /// Within a `stalled` finding, whatever the GPU did.
    pub stalled_s: f64,
    /// The job held no memory on it.
    pub unused_s: f64,
    /// Nothing is known: a reading is missing, or there was no sample.
    pub unknown_s: f64,
}

impl Spent {
    /// Adds another's seconds.
    pub fn add(&mut self, other: &Self) {
        self.reserved_s += other.reserved_s;
        self.active_s += other.active_s;
        self.held_s += other.held_s;
        self.stalled_s += other.stalled_s;
        self.unused_s += other.unused_s;
        self.unknown_s += other.unknown_s;
    }

    fn of(&mut self, kind: Kind) -> &mut f64 {
        match kind {
            Kind::Active => &mut self.active_s,
            Kind::Held => &mut self.held_s,
            Kind::Unused => &mut self.unused_s,
            Kind::Unknown => &mut self.unknown_s,
        }
    }
}

/// What a GPU did, as far as its readings tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Active,
    Held,
    Unused,
    Unknown,
}

/// Time of one kind.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from_s: f64,
    to_s: f64,
    kind: Kind,
}

#[derive(Clone, Debug, Default)]
struct Track {
    /// What is settled.
    spent: Spent,
    recent: Vec<Stretch>,
    until_s: f64,
}

impl Track {
    fn extend(&mut self, to_s: f64, kind: Kind) {
        let from_s = self.until_s;
        if to_s <= from_s {
            return;
        }
        self.until_s = to_s;
        match self.recent.last_mut() {
            Some(last) if last.kind == kind => last.to_s = to_s,
            _ => self.recent.push(Stretch { from_s, to_s, kind }),
        }
    }

    /// Forgets what comes after the run's end: its last sample may be taken a little later.
    fn cut(&mut self, end_s: f64) {
        self.recent.retain(|stretch| stretch.from_s < end_s);
        if let Some(last) = self.recent.last_mut() {
            last.to_s = last.to_s.min(end_s);
        }
        self.until_s = self.until_s.min(end_s);
    }

    fn settle(&mut self, n: usize, stalls: &[(f64, f64)]) {
        for stretch in self.recent.drain(..n) {
            let Stretch { from_s, to_s, kind } = stretch;
            let within =
                |(since, until): &(f64, f64)| (until.min(to_s) - since.max(from_s)).max(0.0);
            let stalled = stalls.iter().map(within).sum::<f64>();
            self.spent.stalled_s += stalled;
            *self.spent.of(kind) += to_s - from_s - stalled;
        }
    }
}

/// Folds samples into each GPU's [`Spent`], in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct UsageBuilder {
    tracks: BTreeMap<String, Track>,
}

impl UsageBuilder {
    /// Takes in one tick, as read back from `samples.csv`; `findings` are those known by now.
    pub fn absorb(&mut self, sample: &Sample, findings: &[FindingRecord]) {
        let now = sample.stamp.elapsed_s;
        for (position, gpu) in sample.gpus.iter().enumerate() {
            let at = |list: &[Reading<f64>]| list.get(position).and_then(Reading::get);
            let use_pct = at(&sample.job_sm_pct).or(gpu.util_pct.get());
            let track = match self.tracks.get_mut(&gpu.label()) {
                Some(track) => track,
                None => self.tracks.entry(gpu.label()).or_default(),
            };
            let kind = if now - track.until_s > LONGEST_S {
                Kind::Unknown
            } else {
                kind(use_pct, at(&sample.job_mem_mib))
            };
            track.extend(now, kind);
            if track.recent.len() > KEPT {
                track.settle(KEPT / 2, &stalls(findings));
            }
        }
    }

    /// The GPUs of a run that lasted so long; what no sample speaks for is unknown.
    pub fn finish(
        &self,
        gpus: &[GpuInfo],
        findings: &[FindingRecord],
        duration_s: Option<f64>,
    ) -> Vec<GpuUsage> {
        let stalls = stalls(findings);
        let usage = |info: &GpuInfo| {
            let label = info.label();
            let mut track = self.tracks.get(&label).cloned().unwrap_or_default();
            if let Some(end) = duration_s {
                track.extend(end, Kind::Unknown);
                track.cut(end);
            }
            track.settle(track.recent.len(), &stalls);
            track.spent.reserved_s = track.until_s;
            GpuUsage {
                gpu: label,
                uuid: info.uuid.clone(),
                name: info.name.clone(),
                spent: rounded(&track.spent),
            }
        };
        gpus.iter().map(usage).collect()
    }
}

fn kind(use_pct: Option<f64>, job_mem_mib: Option<f64>) -> Kind {
    match (use_pct, job_mem_mib) {
        (Some(pct), _) if pct >= ACTIVE_PCT => Kind::Active,
        (None, _) | (_, None) => Kind::Unknown,
        (_, Some(mib)) if mib > 0.0 => Kind::Held,
        _ => Kind::Unused,
    }
}

/// When the run was stalled, in order and without overlaps.
fn stalls(findings: &[FindingRecord]) -> Vec<(f64, f64)> {
    let stalled = findings.iter().filter(|finding| finding.name == STALLED);
    let mut spans: Vec<(f64, f64)> = stalled
        .map(|finding| (finding.since_s, finding.cleared_s.unwrap_or(f64::INFINITY)))
        .collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (since, until) in spans {
        match merged.last_mut() {
            Some(last) if since <= last.1 => last.1 = last.1.max(until),
            _ => merged.push((since, until)),
        }
    }
    merged
}

fn rounded(spent: &Spent) -> Spent {
    let ms = |x: f64| (x * 1000.0).round() / 1000.0;
    Spent {
        reserved_s: ms(spent.reserved_s),
        active_s: ms(spent.active_s),
        held_s: ms(spent.held_s),
        stalled_s: ms(spent.stalled_s),
        unused_s: ms(spent.unused_s),
        unknown_s: ms(spent.unknown_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FindingState, GpuSample, Severity, Stamp};

    fn tick(elapsed_s: f64, sm: Option<f64>, util: Option<f64>, mem: Option<f64>) -> Sample {
        Sample {
            stamp: Stamp {
                time: String::new(),
                elapsed_s,
            },
            gpus: vec![GpuSample {
                util_pct: util.into(),
                ..GpuSample::default()
            }],
            job_sm_pct: vec![sm.into()],
            job_mem_mib: vec![mem.into()],
            ..Sample::default()
        }
    }

    fn stall(since_s: f64, cleared_s: Option<f64>) -> FindingRecord {
        FindingRecord {
            name: STALLED.into(),
            cause: None,
            severity: Severity::Critical,
            state: FindingState::Raised,
            because: None,
            since_s,
            evidence: serde_json::Map::new(),
            advice: None,
            raised_s: since_s + 5.0,
            cleared_s,
        }
    }

    #[test]
    fn every_second_is_one_thing() {
        let mut builder = UsageBuilder::default();
        let gpus = [GpuInfo::default()];
        for sample in [
            tick(1.0, None, Some(0.0), Some(0.0)),
            tick(2.0, Some(4.9), Some(90.0), Some(100.0)),
            tick(3.0, None, Some(5.0), None),
            tick(4.0, None, Some(1.0), None),
            tick(5.0, None, None, Some(100.0)),
            tick(105.0, Some(90.0), None, Some(100.0)),
            tick(109.0, Some(90.0), None, Some(100.0)),
            tick(119.0, Some(0.0), None, Some(100.0)),
        ] {
            builder.absorb(&sample, &[]);
        }
        let found = [stall(115.0, None), stall(107.0, Some(108.0))];
        let usage = builder.finish(&gpus, &found, Some(120.0));
        assert_eq!(
            usage[0].spent,
            Spent {
                reserved_s: 120.0,
                active_s: 1.0 + 3.0,
                held_s: 1.0 + 6.0,
                stalled_s: 1.0 + 5.0,
                unused_s: 1.0,
                unknown_s: 102.0,
            }
        );
        let sooner = builder.finish(&gpus, &found, Some(116.0));
        assert_eq!(
            (sooner[0].spent.reserved_s, sooner[0].spent.held_s),
            (116.0, 7.0)
        );
        let never = UsageBuilder::default().finish(&gpus, &[], Some(9.0));
        assert_eq!(
            (never[0].spent.reserved_s, never[0].spent.unknown_s),
            (9.0, 9.0)
        );
    }

    #[test]
    fn a_long_run_takes_bounded_memory() {
        let mut builder = UsageBuilder::default();
        let found = [stall(10.0, Some(20.0))];
        let n = 5 * KEPT;
        for i in 1..=n {
            let use_pct = if i % 2 == 0 { 90.0 } else { 0.0 };
            builder.absorb(&tick(i as f64, Some(use_pct), None, Some(1.0)), &found);
        }
        let spent = builder.finish(&[GpuInfo::default()], &found, None)[0].spent;
        assert!(
            builder
                .tracks
                .values()
                .all(|track| track.recent.len() <= KEPT)
        );
        let half = (n / 2 - 5) as f64;
        assert_eq!(
            (spent.active_s, spent.held_s, spent.stalled_s),
            (half, half, 10.0)
        );
    }
}
