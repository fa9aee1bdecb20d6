//! One look at the machine, and what it changes.
//!
//! Owns which jobs there are, and what becomes of what is found. Whatever goes wrong is said
//! once, and the next look is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::judge::{Finding, JobFacts, Judge};
use crate::model::names::FINDINGS;
use crate::model::{
    FindingState, GpuInfo, GpuSample, Inventory, Origin, ProcessId, Reading, RunRecord, Stamp,
};
use crate::observe::{HostReader, ProcFs, cgroup_root, identity};
use crate::report::text::clean;
use crate::serve::Shelf;
use crate::supervise::RunClock;
use crate::tell::RunFacts;

use super::driver::Heard;
use super::group::Group;
use super::job::{Job, Look};
use super::judged::Judged;
use super::metrics::{Board, Machine, raised};
use super::present::{Present, PresentJob};
use super::sight::{Sight, is_namespaced};
use super::tellers::Tellers;
use super::told::Told;
use super::watch::Request;
use super::{keep, machine};

mod meeting;
mod saying;

/// A job whose main process lives may hold no GPU for so many looks.
const ABSENT: u32 = 12;
/// Where nothing is unexplained, the machine is judged every so many looks.
const MACHINE_EVERY: u64 = 12;
/// What is unexplained is looked at each time from here on, MiB.
const WORTH_A_LOOK_MIB: f64 = 1024.0;
/// The machine's record is of a day, seconds.
const DAY_S: f64 = 86_400.0;
/// Old records are looked for so often, seconds.
const PRUNE_S: f64 = 3600.0;
/// What the last alerts may take.
const TELLING: Duration = Duration::from_secs(4);
/// How long the end waits for the file with metrics to be taken away.
const REMOVED_WITHIN: Duration = Duration::from_millis(300);
/// The machine, where a process is asked for.
const MACHINE: ProcessId = ProcessId { pid: 0, start: 0 };
/// Findings that tell something of a job whose output nobody reads.
const JUDGED: [&str; 7] = [
    "idle_holding",
    "orphans",
    "defunct",
    "unexplained_memory",
    "idle_interactive",
    "idle_serving",
    "suspended",
];

/// All that is known.
pub struct Patrol {
    request: Request,
    clock: RunClock,
    host_name: Option<String>,
    sight: Sight,
    host: HostReader,
    inventory: Inventory,
    devices: Vec<GpuInfo>,
    /// Who was on each device when that was last told.
    lists: BTreeMap<String, BTreeSet<ProcessId>>,
    jobs: Vec<Job>,
    machine: Option<Judged>,
    machine_facts: Arc<RunFacts>,
    machine_begun_s: f64,
    /// Whether the driver's lists leave nobody out.
    whole: bool,
    looks: u64,
    last_s: Option<f64>,
    pruned_s: Option<f64>,
    /// None where nobody is told, and nothing said.
    tellers: Option<Tellers>,
    told: Told,
    said: BTreeSet<String>,
    present: Present,
    /// None where nobody scrapes.
    shown: Option<(Board, Arc<Shelf>)>,
    unheard: bool,
}

impl Patrol {
    /// Nothing was seen yet.
    pub fn new(mut request: Request, clock: RunClock, tellers: Option<Tellers>) -> Self {
        for name in FINDINGS.iter().filter(|name| !JUDGED.contains(name)) {
            request.judge.0.entry((*name).to_owned()).or_default().on = false;
        }
        Self {
            told: Told::load(request.root.as_deref()),
            request,
            clock,
            host_name: identity::host(),
            sight: Sight::new(),
            host: HostReader::new(ProcFs::default(), cgroup_root(), None),
            inventory: Inventory::default(),
            devices: Vec::new(),
            lists: BTreeMap::new(),
            jobs: Vec::new(),
            machine: None,
            machine_facts: Arc::default(),
            machine_begun_s: 0.0,
            whole: !is_namespaced(),
            looks: 0,
            last_s: None,
            pruned_s: None,
            tellers,
            said: BTreeSet::new(),
            present: Present::default(),
            shown: None,
            unheard: false,
        }
    }

    /// As it stands now.
    pub fn present(&self) -> &Present {
        &self.present
    }

    /// From now on each look is laid there, too.
    pub fn show(&mut self, place: Arc<Shelf>) {
        self.shown = Some((Board::default(), place));
    }

    /// Whether whoever read our lines is gone.
    pub fn is_unheard(&self) -> bool {
        self.unheard
    }

    /// Takes in what the driver says.
    pub fn listen(&mut self, heard: Vec<Heard>) {
        for one in heard {
            match one {
                Heard::Inventory(inventory) => {
                    self.devices = inventory.devices().cloned().collect();
                    self.inventory = inventory;
                    if let Some(machine) = &mut self.machine {
                        machine.learn(&self.devices);
                    }
                }
                Heard::Tick(gpus) => self.look(&gpus),
                Heard::Trouble(why) => complain(&format!("no GPU is watched: {why}")),
                Heard::Recovered => complain("the GPUs are watched again"),
            }
        }
    }

    /// What came back from those who tell; and old records go.
    pub fn settle(&mut self) {
        let Some(tellers) = &mut self.tellers else {
            return;
        };
        let (events, problems) = (tellers.events(), tellers.problems());
        for event in events {
            if let Some(machine) = &mut self.machine {
                machine.note(event);
            }
        }
        for problem in problems {
            self.complain_once(&problem);
        }
        let now_s = self.clock.now().elapsed_s;
        let due = self.pruned_s.is_none_or(|at| now_s - at >= PRUNE_S);
        if let (true, Some(root)) = (due, &self.request.root) {
            self.pruned_s = Some(now_s);
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = since_1970.unwrap_or_default().as_secs_f64();
            keep::prune(root, &self.request.keep, now);
        }
    }

    /// The end: records are finished, and what was handed to tellers is still sent.
    pub fn finish(mut self) {
        if let Some((_, place)) = self.shown.take() {
            place.close(REMOVED_WITHIN);
        }
        for job in std::mem::take(&mut self.jobs) {
            self.close(job.judged, false);
        }
        let problems = self.tellers.take().map(|t| t.finish(TELLING));
        let machine = self.machine.take();
        self.close(machine, false);
        for problem in problems.unwrap_or_default() {
            complain(&problem);
        }
    }

    fn look(&mut self, gpus: &[GpuSample]) {
        self.looks += 1;
        let stamp = self.clock.now();
        let since_last_s = stamp.elapsed_s - self.last_s.unwrap_or(stamp.elapsed_s);
        self.last_s = Some(stamp.elapsed_s);
        let mut host = self.host.tick(since_last_s).sample;
        // Ours, which says nothing of other users' jobs.
        host.mem_limit_mib = Reading::default();
        host.cpu_throttled_pct = Reading::default();
        self.look_at_machine(&stamp, gpus);
        self.regroup(gpus, &stamp);
        let look = Look {
            stamp: &stamp,
            devices: &self.devices,
            gpus,
            host: &host,
        };
        let mut said = Vec::new();
        for (i, job) in self.jobs.iter_mut().enumerate() {
            let found = job.look(&look, &mut self.sight);
            said.extend(found.into_iter().map(|finding| (i, finding)));
        }
        if let Some((board, place)) = &mut self.shown {
            let findings = self.machine.iter().flat_map(|m| m.open().values());
            let machine = Machine {
                host: self.host_name.clone(),
                profile: self.request.profile.clone(),
                user: identity::user(),
                findings: findings.map(raised).collect(),
            };
            place.put(board.scrape(&look, &self.jobs, machine));
        }
        self.present = self.picture(&stamp, gpus);
        for (i, finding) in said {
            self.say(Some(i), &finding, &stamp);
        }
        let problems: Vec<_> = self
            .jobs
            .iter_mut()
            .filter_map(|job| job.judged.as_mut()?.problem())
            .collect();
        for problem in problems {
            self.complain_once(&format!("a record is incomplete: {problem}"));
        }
    }

    /// Finds out which jobs there are.
    fn regroup(&mut self, gpus: &[GpuSample], stamp: &Stamp) {
        for gpu in gpus {
            // A moment without an answer says nothing about who is there.
            if let Some(list) = gpu.processes.value() {
                let compute = list.iter().filter(|p| p.compute && !p.mps_server);
                let there = compute.filter_map(|p| self.sight.identity(p.pid));
                self.lists.insert(gpu.label(), there.collect());
            } else if let Some(list) = self.lists.get_mut(&gpu.label()) {
                list.retain(|id| self.sight.is_there(*id));
            }
        }
        let all = self.lists.values().flatten();
        let holders: BTreeSet<u32> = all.map(|id| id.pid).collect();
        let mut groups = self.sight.scene(&holders).groups();
        let mut over = Vec::new();
        for (i, job) in self.jobs.iter_mut().enumerate() {
            let same = |group: &Group| group.is_same(&job.group);
            if let Some(at) = groups.iter().position(same) {
                job.group = groups.swap_remove(at);
                job.absent = 0;
                continue;
            }
            job.absent += 1;
            job.group.holders.clear();
            if job.absent > ABSENT || !self.sight.is_there(job.group.main) {
                over.push(i);
            }
        }
        for i in over.into_iter().rev() {
            let job = self.jobs.remove(i);
            self.over(job, stamp);
        }
        for group in groups {
            let job = self.meet(group, gpus, stamp);
            self.jobs.push(job);
        }
    }

    fn over(&mut self, job: Job, stamp: &Stamp) {
        self.told.over(job.group.main);
        let shown = PresentJob::from(&job);
        if let Some(judged) = &job.judged {
            for finding in judged.open().values() {
                let finding = Finding {
                    state: FindingState::Cleared,
                    ..finding.clone()
                };
                self.print(&finding, Some(&shown), job.begun_s, stamp);
            }
        }
        if let Some(tellers) = &self.tellers {
            tellers.over(&job.facts);
        }
        self.close(job.judged, true);
    }

    fn close(&mut self, judged: Option<Judged>, over: bool) {
        let root = self.request.root.clone();
        if let (Some(judged), Some(root)) = (judged, root)
            && let Err(error) = judged.finish(over, &root)
        {
            self.complain_once(&format!("a record is incomplete: {error}"));
        }
    }

    fn look_at_machine(&mut self, stamp: &Stamp, gpus: &[GpuSample]) {
        let old = stamp.elapsed_s - self.machine_begun_s >= DAY_S;
        let at_rest = self.machine.as_ref().is_some_and(|m| m.open().is_empty());
        if old && at_rest {
            let machine = self.machine.take();
            self.close(machine, false);
        }
        if self.machine.is_none() {
            self.begin_machine(stamp);
        }
        let at = Stamp {
            time: stamp.time.clone(),
            elapsed_s: stamp.elapsed_s - self.machine_begun_s,
        };
        let sample = machine::sample(&at, &self.devices, gpus, self.whole);
        let odd = machine::most_unexplained(&sample) >= WORTH_A_LOOK_MIB;
        let due = (self.looks - 1).is_multiple_of(MACHINE_EVERY);
        let Some(machine) = self.machine.as_mut() else {
            return;
        };
        if !odd && !due && machine.open().is_empty() {
            return;
        }
        let found = machine.look(Vec::new(), &sample);
        if let Some(problem) = machine.problem() {
            self.complain_once(&format!("the patrol's record is incomplete: {problem}"));
        }
        for finding in found {
            self.say(None, &finding, stamp);
        }
    }

    fn begin_machine(&mut self, stamp: &Stamp) {
        self.machine_begun_s = stamp.elapsed_s;
        let mut record = RunRecord {
            name: "patrol".to_owned(),
            argv: vec!["gpuwatch".to_owned(), "patrol".to_owned()],
            user: Some(identity::user()),
            pid: Some(std::process::id()),
            gpus: self.devices.clone(),
            origin: Some(Origin::Machine),
            ..self.blank(stamp)
        };
        let recording = self.start_record(&mut record);
        if record.id.is_empty() {
            "patrol".clone_into(&mut record.id);
        }
        self.machine_facts = Arc::new(RunFacts::from(&record));
        let judge = Judge::new(
            self.request.judge.clone(),
            Vec::new(),
            JobFacts::of(&record),
        );
        self.machine = Some(Judged::new(judge, recording));
    }

    fn complain_once(&mut self, text: &str) {
        // What follows may name another file each time.
        let (what, _) = text.split_once(':').unwrap_or((text, ""));
        if self.said.insert(what.to_owned()) {
            complain(text);
        }
    }
}

pub(super) fn complain(text: &str) {
    // Nobody is left to be told where stderr is closed.
    let _ = writeln!(std::io::stderr(), "gpuwatch: {}", clean(text));
}
