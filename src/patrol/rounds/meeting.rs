//! A job that wasn't there before: who it is, and the beginning of its record.

use std::sync::Arc;
use std::time::Instant;

use super::super::exempt::exemption;
use super::super::group::{Group, Kind};
use super::super::job::{Job, Who};
use super::super::judged::Judged;
use super::super::recording::Recording;
use super::Patrol;
use crate::judge::{JobFacts, Judge};
use crate::model::{GpuInfo, GpuSample, Origin, ProcessId, RunRecord, RunState, Stamp};
use crate::plan::{argv, rules, run_name};
use crate::record::run_id;
use crate::tell::RunFacts;

impl Patrol {
    /// A job that wasn't there before.
    pub(super) fn meet(&mut self, group: Group, gpus: &[GpuSample], stamp: &Stamp) -> Job {
        let user = self.sight.user(group.uid);
        let first = group.holders.iter().next().copied();
        let holder = first.and_then(|pid| self.sight.identity(pid));
        let fixed = holder.map(|id| self.sight.fixed(id)).unwrap_or_default();
        let argv = argv::recorded(&fixed.argv);
        let exempt = exemption(
            &self.request.patrol.exempt,
            &user,
            group.uid,
            &argv.join(" "),
        );
        let who = Who {
            exempt: exempt.map(|e| e.why.clone().unwrap_or_default()),
            since: self.since(group.main),
            name: run_name(&fixed.argv),
            user,
            argv,
        };
        let judge = who.exempt.is_none() && fixed.readable;
        if who.exempt.is_none() && !fixed.readable {
            self.complain_once("jobs of other users aren't judged: only root may look at them");
        }
        let on: Vec<GpuInfo> = self.devices_of(&group, gpus);
        let mut record = self.record(&who, &group, on, stamp);
        let recording = if judge && !group.is_watched() {
            self.start_record(&mut record)
        } else {
            None
        };
        if record.id.is_empty() {
            // Alerts and metrics tell jobs by it, after a restart of the patrol as well.
            let salt = (group.main.start as u16) ^ (group.main.pid as u16);
            record.id = run_id(&who.since, &who.name, salt);
        }
        if let Kind::Run(id) = &group.kind {
            record.id.clone_from(id);
        }
        let facts = Arc::new(RunFacts::from(&record));
        let judged = judge.then(|| {
            let judge = Judge::new(
                self.request.judge.clone(),
                self.request.rules.clone(),
                JobFacts::of(&record),
            );
            Judged::new(judge, recording)
        });
        let mut job = Job::new(group, who, facts, stamp.elapsed_s);
        job.judged = judged;
        job
    }

    fn devices_of(&self, group: &Group, gpus: &[GpuSample]) -> Vec<GpuInfo> {
        let held = |device: &&GpuInfo| {
            let gpu = gpus.iter().find(|gpu| gpu.is_of(device));
            let list = gpu.and_then(|gpu| gpu.processes.value());
            list.is_some_and(|list| list.iter().any(|p| group.holders.contains(&p.pid)))
        };
        self.devices.iter().filter(held).cloned().collect()
    }

    pub(super) fn record(
        &self,
        who: &Who,
        group: &Group,
        gpus: Vec<GpuInfo>,
        stamp: &Stamp,
    ) -> RunRecord {
        RunRecord {
            name: who.name.clone(),
            argv: who.argv.clone(),
            user: Some(who.user.clone()),
            pid: Some(group.main.pid),
            gpus,
            origin: Some(Origin::Found),
            ..self.blank(stamp)
        }
    }

    /// What all records of a patrol say.
    pub(super) fn blank(&self, stamp: &Stamp) -> RunRecord {
        RunRecord {
            schema: 1,
            host: self.host_name.clone(),
            driver: self.inventory.driver.clone(),
            cuda: self.inventory.cuda.clone(),
            profile: Some(self.request.profile.clone()),
            started: stamp.time.clone(),
            state: RunState::Running,
            judge: rules::judge_to_map(&self.request.judge),
            rules: rules::to_values(&self.request.rules),
            ..RunRecord::default()
        }
    }

    /// Gives the record its id where there is a place for it.
    pub(super) fn start_record(&mut self, record: &mut RunRecord) -> Option<Recording> {
        let root = self.request.root.as_ref()?;
        match Recording::start(root, record.clone()) {
            Ok(recording) => {
                recording.id().clone_into(&mut record.id);
                Some(recording)
            }
            Err(error) => {
                self.complain_once(&format!("a record is missing: {error}"));
                None
            }
        }
    }

    /// When a process was started, as far as the clocks tell.
    fn since(&mut self, main: ProcessId) -> String {
        let age = self.sight.age(main);
        let then = age.and_then(|age| Instant::now().checked_sub(age));
        self.clock.at(then.unwrap_or_else(Instant::now)).time
    }
}
