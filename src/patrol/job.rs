//! One job that a patrol watches.
//!
//! Owns its process tree, and what of a look at the machine is this job's. Judges nothing itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::export::Share;
use crate::judge::Finding;
use crate::model::{
    Event, GpuInfo, GpuSample, HostSample, ProcessChange, Reading, Sample, Stamp, Why,
};
use crate::nvml::attribute;
use crate::observe::{JobTick, JobTree, ProcFs};
use crate::tell::RunFacts;

use super::group::Group;
use super::judged::Judged;
use super::sight::Sight;

/// So many changes of processes a look are told one by one.
const MOST_CHANGES: usize = 64;
/// A job that works and never gave cause for a word is looked at less often after so many looks.
const TRUSTED_AFTER: u32 = 60;
/// Then only every so many looks: 50 s at the usual interval, since what is further apart than
/// 60 s counts as not known where hours are summed up.
const TRUSTED_EVERY: u32 = 10;
/// So often it is looked for a socket that listens, while the job does nothing.
const ASK_EVERY: u32 = 6;

/// Who a job is, for people.
#[derive(Clone, Debug, Default)]
pub struct Who {
    /// The owner's login name, else the number.
    pub user: String,
    /// The command as records have it: secrets masked.
    pub argv: Vec<String>,
    /// Its name, from the command.
    pub name: String,
    /// When its main process was started, RFC 3339.
    pub since: String,
    /// Why it is left alone.
    pub exempt: Option<String>,
}

/// One look at the machine, as far as all jobs share it.
pub struct Look<'a> {
    /// When, on the patrol's clock.
    pub stamp: &'a Stamp,
    /// What there is.
    pub devices: &'a [GpuInfo],
    /// What was read of it.
    pub gpus: &'a [GpuSample],
    /// The machine's processors and storage.
    pub host: &'a HostSample,
}

/// One job.
pub struct Job {
    /// Which processes.
    pub group: Group,
    /// Who.
    pub who: Who,
    /// What alerts say of it.
    pub facts: Arc<RunFacts>,
    /// None where it isn't judged: it is exempt, or may not be read.
    pub judged: Option<Judged>,
    /// The patrol's `elapsed_s` when it was found.
    pub begun_s: f64,
    /// GPU memory, MiB; None where a process isn't told.
    pub mem_mib: Option<f64>,
    /// Its use of its GPUs, mean, %.
    pub use_pct: Option<f64>,
    /// What it has of each.
    pub shares: Vec<Share>,
    /// Looks at which none of it held a GPU.
    pub absent: u32,
    tree: JobTree,
    on: Vec<GpuInfo>,
    energy: BTreeMap<String, f64>,
    /// Those of it that ever held a GPU.
    held: BTreeSet<u32>,
    zombies: BTreeSet<u32>,
    listens: Option<u32>,
    /// That what started it is gone was told.
    left_behind: bool,
    looks: u32,
    calm: u32,
    last_s: Option<f64>,
}

impl Job {
    /// A job that was just found.
    pub fn new(group: Group, who: Who, facts: Arc<RunFacts>, begun_s: f64) -> Self {
        Self {
            tree: JobTree::attached(ProcFs::default(), group.main),
            group,
            who,
            facts,
            judged: None,
            begun_s,
            mem_mib: None,
            use_pct: None,
            shares: Vec::new(),
            absent: 0,
            on: Vec::new(),
            energy: BTreeMap::new(),
            held: BTreeSet::new(),
            zombies: BTreeSet::new(),
            listens: None,
            left_behind: false,
            looks: 0,
            calm: 0,
            last_s: None,
        }
    }

    /// The GPUs that it holds or held.
    pub fn gpus(&self) -> &[GpuInfo] {
        &self.on
    }

    /// Looks at it; what the judge says.
    pub fn look(&mut self, look: &Look<'_>, sight: &mut Sight) -> Vec<Finding> {
        self.looks += 1;
        self.meet(look);
        self.measure(look);
        let calm = self.judged.as_ref().is_some_and(Judged::is_calm);
        self.calm = if calm { self.calm + 1 } else { 0 };
        let trusted = self.calm > TRUSTED_AFTER && !self.calm.is_multiple_of(TRUSTED_EVERY);
        if self.judged.is_none() || trusted {
            return Vec::new();
        }
        let at_s = look.stamp.elapsed_s - self.begun_s;
        let since_last_s = at_s - self.last_s.replace(at_s).unwrap_or(at_s);
        for root in &self.group.roots {
            self.tree.add_root(*root);
        }
        let first = self.looks == 1;
        let tick = self.tree.tick(since_last_s);
        let (sample, mut events) = self.sample(look, at_s, tick);
        if !self.left_behind && self.group.is_left_behind() {
            self.left_behind = true;
            events.push(process(
                self.group.main.pid,
                ProcessChange::Reparented,
                None,
            ));
        }
        if !calm && (first || self.looks.is_multiple_of(ASK_EVERY)) {
            events.extend(self.ask_for_sockets(sight));
        }
        let Some(judged) = &mut self.judged else {
            return Vec::new();
        };
        judged.look(events, &sample)
    }

    /// It may hold GPUs that it didn't.
    fn meet(&mut self, look: &Look<'_>) {
        self.held.extend(&self.group.holders);
        let holds = |gpu: &GpuSample| {
            let list = gpu.processes.value();
            list.is_some_and(|list| list.iter().any(|p| self.group.holders.contains(&p.pid)))
        };
        let mut new = Vec::new();
        for gpu in look.gpus.iter().filter(|gpu| holds(gpu)) {
            let device = look.devices.iter().find(|device| gpu.is_of(device));
            new.extend(device.filter(|d| !self.on.contains(d)).cloned());
        }
        if new.is_empty() {
            return;
        }
        self.on.extend(new);
        self.on.sort_by_key(GpuInfo::label);
        let facts = RunFacts {
            gpus: self.on.clone(),
            ..(*self.facts).clone()
        };
        self.facts = Arc::new(facts);
        if let Some(judged) = &mut self.judged {
            judged.learn(&self.on);
        }
    }

    /// What people see of it at every look.
    fn measure(&mut self, look: &Look<'_>) {
        let shares = self.samples(look);
        let shares: Vec<_> = shares
            .iter()
            .map(|gpu| attribute::share(gpu, &self.group.holders))
            .collect();
        let mem: Option<Vec<f64>> = shares.iter().map(|s| s.mem_mib.get()).collect();
        self.mem_mib = mem.map(|list| list.iter().sum());
        let uses: Vec<f64> = shares.iter().filter_map(|s| s.sm_pct.get()).collect();
        self.use_pct = (!uses.is_empty()).then(|| uses.iter().sum::<f64>() / uses.len() as f64);
        let each = self.on.iter().zip(&shares).map(|(device, share)| Share {
            index: device.index,
            uuid: device.uuid.clone(),
            mem_mib: share.mem_mib.get(),
            sm_pct: share.sm_pct.get(),
        });
        self.shares = each.collect();
    }

    /// What was read of its GPUs; one that wasn't read is there without readings.
    fn samples(&self, look: &Look<'_>) -> Vec<GpuSample> {
        let of = |device: &GpuInfo| {
            let read = look.gpus.iter().find(|gpu| gpu.is_of(device)).cloned();
            read.unwrap_or_else(|| GpuSample {
                index: device.index,
                mig: device.mig().map(str::to_owned),
                ..GpuSample::default()
            })
        };
        self.on.iter().map(of).collect()
    }

    fn sample(&mut self, look: &Look<'_>, at_s: f64, tick: JobTick) -> (Sample, Vec<Event>) {
        let gpus = self.samples(look);
        let pids: BTreeSet<u32> = tick.pids.union(&self.group.holders).copied().collect();
        let shares: Vec<_> = gpus.iter().map(|g| attribute::share(g, &pids)).collect();
        let energy = gpus.iter().map(|gpu| self.energy_of(gpu)).collect();
        let mut job = tick.sample.clone();
        let events = self.changes(tick);
        // A child that nobody reaps is harmless as long as it holds no GPU.
        job.n_zombie = Reading::Value(self.zombies.intersection(&self.held).count() as u32);
        let sample = Sample {
            stamp: Stamp {
                time: look.stamp.time.clone(),
                elapsed_s: at_s,
            },
            job_mem_mib: shares.iter().map(|s| s.mem_mib.clone()).collect(),
            job_sm_pct: shares.into_iter().map(|s| s.sm_pct).collect(),
            energy_j: energy,
            ecc_uncorrected: vec![Reading::Missing(Why::NotSupported); gpus.len()],
            gpus,
            job,
            host: look.host.clone(),
            ..Sample::default()
        };
        (sample, events)
    }

    /// Joules since it was found.
    fn energy_of(&mut self, gpu: &GpuSample) -> Reading<f64> {
        let Some(now) = gpu.energy_total_j.get() else {
            return gpu.energy_total_j.clone();
        };
        let base = self.energy.entry(gpu.label()).or_insert(now);
        Reading::Value((now - *base).max(0.0))
    }

    /// What the judge is told of processes. That one was handed to another parent means nothing
    /// here: `group` decides who was left behind.
    fn changes(&mut self, mut tick: JobTick) -> Vec<Event> {
        for change in &tick.changes {
            match change.change {
                ProcessChange::Zombie => drop(self.zombies.insert(change.id.pid)),
                ProcessChange::Exited => drop(self.zombies.remove(&change.id.pid)),
                _ => {}
            }
        }
        let main = self.group.main.pid;
        tick.changes.retain(|fact| match fact.change {
            ProcessChange::Reparented => false,
            ProcessChange::Zombie => fact.id.pid == main || self.held.contains(&fact.id.pid),
            _ => true,
        });
        tick.events(MOST_CHANGES)
    }

    fn ask_for_sockets(&mut self, sight: &mut Sight) -> Option<Event> {
        if self.listens.is_some() {
            return None;
        }
        let mut pids = self.group.holders.clone();
        pids.insert(self.group.main.pid);
        let (pid, on) = sight.listening(&pids)?;
        self.listens = Some(pid);
        Some(process(pid, ProcessChange::Listening, Some(on)))
    }
}

fn process(pid: u32, change: ProcessChange, on: Option<String>) -> Event {
    Event::Process {
        pid,
        ppid: None,
        name: None,
        rank: None,
        change,
        on,
        code: None,
        signal: None,
    }
}
