//! What a patrol gives those who scrape it.
//!
//! Owns which jobs are shown and what is said of each. Pure. A job that a gpuwatch run watches
//! is left out: it is that run's to export, and the same series twice in one textfile directory
//! makes the collector refuse both.

use std::collections::BTreeMap;

use crate::export::{Gpu, Job as Shown, Raised, Scrape, Who, answers, seconds};
use crate::judge::Finding;
use crate::model::{GpuInfo, GpuSample};

use super::job::{Job, Look};

/// What the patrol itself is called among jobs; findings of the machine are its own.
const OURSELVES: &str = "patrol";

/// What stays from look to look.
#[derive(Debug, Default)]
pub struct Board {
    /// When anything could be read of a GPU last.
    read: BTreeMap<String, f64>,
}

/// What all series share.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Its name.
    pub host: Option<String>,
    /// The profile by which jobs are judged.
    pub profile: String,
    /// Whose the patrol is.
    pub user: String,
    /// What was found about it and holds.
    pub findings: Vec<Raised>,
}

impl Board {
    /// One look.
    pub fn scrape(&mut self, look: &Look<'_>, jobs: &[Job], machine: Machine) -> Scrape {
        let sampled = seconds(&look.stamp.time);
        let found = jobs.iter().filter(|job| !job.group.is_watched());
        let mut shown: Vec<Shown> = found.map(|job| of_job(job, &machine, sampled)).collect();
        shown.push(Shown {
            who: Who {
                run: OURSELVES.to_owned(),
                name: Some(OURSELVES.to_owned()),
                user: Some(machine.user),
                ..Who::default()
            },
            host: machine.host,
            profile: Some(machine.profile),
            sampled,
            findings: machine.findings,
            ..Shown::default()
        });
        let gpus = look.devices.iter();
        Scrape {
            jobs: shown,
            gpus: gpus
                .map(|info| self.gpu(info, look.gpus, sampled))
                .collect(),
        }
    }

    fn gpu(&mut self, info: &GpuInfo, gpus: &[GpuSample], sampled: Option<f64>) -> Gpu {
        let now = gpus.iter().find(|gpu| gpu.is_of(info)).cloned();
        let now = now.unwrap_or_default();
        if let (true, Some(at)) = (answers(&now), sampled) {
            self.read.insert(info.label(), at);
        }
        Gpu {
            read: self.read.get(&info.label()).copied(),
            info: info.clone(),
            now,
            ..Gpu::default()
        }
    }
}

fn of_job(job: &Job, machine: &Machine, sampled: Option<f64>) -> Shown {
    let open = job.judged.iter().flat_map(|judged| judged.open().values());
    Shown {
        who: Who {
            run: job.facts.id.clone(),
            name: Some(job.who.name.clone()),
            user: Some(job.who.user.clone()),
            ..Who::default()
        },
        host: machine.host.clone(),
        profile: Some(machine.profile.clone()),
        started: seconds(&job.who.since),
        sampled,
        shares: job.shares.clone(),
        findings: open.map(raised).collect(),
        ..Shown::default()
    }
}

/// As a series.
pub fn raised(finding: &Finding) -> Raised {
    Raised {
        name: finding.name.clone(),
        severity: finding.severity,
        cause: finding.cause.clone(),
    }
}
