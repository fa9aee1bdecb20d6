//! A run as it stands: fed with what is recorded and judged, it gives what there is to export.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::scrape::{Gpu, Job, Raised, Scrape, Share, Who};
use crate::model::{Event, FindingState, GpuInfo, GpuSample, Logged, RunRecord, Sample};

/// The place of training: what changes when there is progress.
type Place = (Option<f64>, Option<u64>, Option<f64>);

/// The board.
#[derive(Clone, Debug, Default)]
pub struct Board {
    job: Job,
    gpus: Vec<Gpu>,
    findings: BTreeMap<String, Raised>,
    place: Option<Place>,
    moved_s: Option<f64>,
}

impl Board {
    /// More is known of the run.
    pub fn know(&mut self, record: &RunRecord) {
        self.job.who = Who {
            run: record.id.clone(),
            name: Some(record.name.clone()),
            user: record.user.clone(),
            job_id: record.job.id.clone(),
            rank: record.job.rank,
        };
        self.job.host.clone_from(&record.host);
        self.job.framework.clone_from(&record.framework);
        self.job.profile.clone_from(&record.profile);
        self.job.started = seconds(&record.started);
        self.gpus = record.gpus.iter().map(|info| self.gpu(info)).collect();
    }

    fn gpu(&self, info: &GpuInfo) -> Gpu {
        let known = self.gpus.iter().find(|gpu| gpu.info == *info);
        known.cloned().unwrap_or_else(|| Gpu {
            run: Some(self.job.who.run.clone()),
            info: info.clone(),
            ..Gpu::default()
        })
    }

    /// One tick, rounded as it is recorded.
    pub fn sample(&mut self, sample: &Sample) {
        let sampled = seconds(&sample.stamp.time);
        self.progress(sample);
        let job = &mut self.job;
        job.sampled = sampled;
        job.elapsed_s = Some(sample.stamp.elapsed_s);
        job.now.clone_from(&sample.job);
        job.mem_limit_mib = sample.host.mem_limit_mib.get();
        job.out_bytes = Some(sample.out_bytes);
        job.shares.clear();
        for gpu in &mut self.gpus {
            let at = sample.gpus.iter().position(|now| now.is_of(&gpu.info));
            // What isn't in it can't be read now.
            let now = at
                .and_then(|at| sample.gpus.get(at).cloned())
                .unwrap_or_default();
            let of = |list: &[crate::model::Reading<f64>]| list.get(at?)?.get();
            gpu.energy_j = of(&sample.energy_j);
            gpu.ecc_uncorrected = at.and_then(|at| sample.ecc_uncorrected.get(at)?.get());
            if answers(&now) {
                gpu.read = sampled;
            }
            gpu.now = now;
            job.shares.push(Share {
                index: gpu.info.index,
                uuid: gpu.info.uuid.clone(),
                mem_mib: of(&sample.job_mem_mib),
                sm_pct: of(&sample.job_sm_pct),
            });
        }
    }

    fn progress(&mut self, sample: &Sample) {
        let progress = &sample.progress;
        let place = (progress.epoch, progress.step, progress.percent);
        if place != (None, None, None) && self.place != Some(place) {
            self.place = Some(place);
            self.moved_s = Some(sample.stamp.elapsed_s);
        }
        self.job.progress.clone_from(progress);
        self.job.progress_age_s = self
            .moved_s
            .map(|at| (sample.stamp.elapsed_s - at).max(0.0));
    }

    /// Something that was recorded.
    pub fn event(&mut self, logged: &Logged) {
        let Event::Finding {
            name,
            cause,
            severity,
            state,
            ..
        } = &logged.event
        else {
            return;
        };
        if *state == FindingState::Cleared {
            self.findings.remove(name);
            return;
        }
        let raised = Raised {
            name: name.clone(),
            severity: *severity,
            cause: cause.clone(),
        };
        self.findings.insert(name.clone(), raised);
    }

    /// What there is to export.
    pub fn scrape(&self) -> Scrape {
        let findings = self.findings.values().cloned().collect();
        Scrape {
            jobs: vec![Job {
                findings,
                ..self.job.clone()
            }],
            gpus: self.gpus.clone(),
        }
    }
}

/// Whether anything of a GPU could be read at this tick.
pub fn answers(gpu: &GpuSample) -> bool {
    let readings = [
        &gpu.util_pct,
        &gpu.mem_used_mib,
        &gpu.temp_c,
        &gpu.power_w,
        &gpu.sm_clock_mhz,
    ];
    readings.iter().any(|reading| reading.value().is_some())
}

/// RFC 3339 as seconds since 1970.
pub fn seconds(time: &str) -> Option<f64> {
    let time: Timestamp = time.parse().ok()?;
    Some(time.as_millisecond() as f64 / 1000.0)
}
