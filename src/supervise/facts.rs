//! What the record says of a run from its start on.
//!
//! Owns which of it is at hand, and which has to be looked up (and may take as long as a network
//! takes).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::model::{EnvSetting, GitState, RunRecord, RunState};
use crate::observe::identity;
use crate::plan::{argv, env, job_ids, rules};

use super::clock::wall_now;
use super::prepare::Prepared;

/// What of the record is known at the start.
pub struct Facts {
    id: String,
    name: String,
    tags: Vec<String>,
    argv: Vec<String>,
    env: BTreeMap<String, EnvSetting>,
    profile: String,
    judge: Map<String, Value>,
    rules: Vec<Value>,
    pid: Option<u32>,
    started: String,
}

impl Facts {
    /// Nothing is looked up here.
    pub fn of(prepared: &Prepared, pid: Option<u32>, started: String) -> Self {
        let settings = &prepared.request.settings;
        Self {
            id: prepared.id.clone(),
            name: prepared.name.clone(),
            tags: prepared.request.tags.clone(),
            argv: argv::recorded(&prepared.request.argv),
            env: env::recorded(&prepared.env),
            profile: settings.profile.clone(),
            judge: rules::judge_to_map(&settings.judge),
            rules: rules::to_values(&settings.rules),
            pid,
            started,
        }
    }

    /// The record with what costs nothing to know.
    pub fn brief(self) -> RunRecord {
        RunRecord {
            schema: 1,
            id: self.id,
            name: self.name,
            tags: self.tags,
            argv: self.argv,
            cwd: identity::cwd().map(|path| argv::escape(path.as_os_str())),
            env: self.env,
            profile: Some(self.profile),
            judge: self.judge,
            rules: self.rules,
            job: job_ids(&|name| std::env::var(name).ok()),
            pid: self.pid,
            started: self.started,
            state: RunState::Running,
            ..RunRecord::default()
        }
    }

    /// The record, with what must be looked up.
    pub fn record(self) -> RunRecord {
        let cwd = identity::cwd();
        let tree = cwd.as_deref().and_then(identity::work_tree);
        let git = tree.map(|root| GitState {
            commit: identity::commit(&root),
            dirty: None,
        });
        let project = cwd.as_deref().map(identity::project);
        RunRecord {
            project: project.map(|path| argv::escape(path.as_os_str())),
            user: Some(identity::user()),
            host: identity::host(),
            host_mem_mib: identity::host_mem_mib(),
            git,
            ..self.brief()
        }
    }
}

impl Prepared {
    /// Writes the record's beginning, so that the run can be found whatever becomes of us once
    /// there is a child. What goes wrong here goes wrong again when the scribe does it, and is
    /// said then.
    pub fn begin_record(&self) {
        if let Some(dir) = &self.dir {
            let facts = Facts::of(self, None, wall_now());
            let _ = dir.write_run(&facts.brief());
        }
    }
}
