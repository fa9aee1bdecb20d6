//! A job of two ranks, and what was told of it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::support::http_server::{Request, Server};
use super::support::{Record, Sandbox, python, script, wait_until};

/// The folder in which ranks meet, and in which a test says a word.
pub struct Ranks {
    pub sandbox: Sandbox,
}

impl Ranks {
    pub fn new() -> Self {
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.path("meeting")).unwrap();
        Self { sandbox }
    }

    /// A rank without gpuwatch.
    pub fn command(&self) -> Vec<String> {
        vec![
            python().into(),
            script("rank.py"),
            self.sandbox.arg("meeting"),
        ]
    }

    /// A rank with gpuwatch.
    pub fn watched(&self, options: &[&str]) -> Vec<String> {
        watched(options, self.command())
    }

    pub fn say(&self, word: &str) {
        std::fs::write(self.sandbox.path("meeting").join(word), "").unwrap();
    }

    /// Whether the word was heard: a rank that does it takes it away.
    pub fn is_done(&self, word: &str) -> bool {
        !self.sandbox.path("meeting").join(word).exists()
    }

    /// Waits until gpuwatch has seen each rank make progress.
    pub fn wait_for_progress(&self, ranks: usize) {
        wait_until("progress of every rank is seen", || {
            let records = self.records();
            let moved = records.iter().filter(|record| {
                let file = record.folder.join("samples.csv");
                let text = std::fs::read_to_string(file).unwrap_or_default();
                let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
                let Some(at) = lines
                    .next()
                    .and_then(|l| l.iter().position(|n| *n == "step"))
                else {
                    return false;
                };
                let told = lines.filter(|line| line.get(at).is_some_and(|s| !s.is_empty()));
                told.count() >= 3
            });
            moved.count() == ranks
        });
    }

    pub fn records(&self) -> Vec<Record> {
        Record::all_in(&self.sandbox.runs())
    }

    /// The records' `job`, by rank.
    pub fn jobs(&self) -> Vec<Value> {
        let records = self.records();
        let mut jobs: Vec<Value> = records.iter().map(|r| r.json()["job"].clone()).collect();
        jobs.sort_by_key(|job| job["rank"].as_u64());
        jobs
    }

    /// Where the ranks share what they found.
    pub fn shared(&self) -> PathBuf {
        self.sandbox.jobs()
    }

    /// Nothing stays when all ranks have ended.
    pub fn assert_nothing_shared_is_left(&self) {
        let left = super::support::files_below(&self.shared());
        assert!(left.is_empty(), "{left:?}");
    }
}

/// `gpuwatch run OPTIONS -- COMMAND`.
pub fn watched(options: &[&str], command: Vec<String>) -> Vec<String> {
    let mut words = vec![env!("CARGO_BIN_EXE_gpuwatch").to_owned(), "run".to_owned()];
    words.extend(options.iter().map(|o| (*o).to_owned()));
    words.push("--".to_owned());
    words.extend(command);
    words
}

/// Waits for an alert of this type and state.
pub fn alert(server: &Server, kind: &str, state: &Value) -> Value {
    let is = |request: &Request| {
        let body = request.json();
        body["type"] == kind && body["data"]["state"] == *state
    };
    wait_until(&format!("{kind} is {state}"), || {
        server.requests().iter().any(is)
    });
    let found = server.requests().into_iter().find(is).unwrap();
    found.json()["data"].clone()
}

/// `type state` of all alerts.
pub fn kinds(server: &Server) -> Vec<String> {
    let word = |v: &Value| v.as_str().unwrap_or("-").to_owned();
    let kind = |r: &Request| {
        let body = r.json();
        format!("{} {}", word(&body["type"]), word(&body["data"]["state"]))
    };
    server.requests().iter().map(kind).collect()
}

/// Rank 1 of a running job hangs, goes on, and the job ends: all that is told of it.
pub fn hang_and_go_on(ranks: &Ranks, server: &Server) {
    ranks.wait_for_progress(2);
    ranks.say("hang");
    let raised = alert(server, "job.stalled", &json!("raised"));
    assert_eq!(raised["rank"], 1, "{raised:#}");
    assert_eq!(
        raised["run"]["job"]["rank"], 0,
        "the lowest speaks: {raised:#}"
    );
    assert_eq!(raised["ranks"][0]["rank"], 1, "{raised:#}");
    assert_eq!(raised["ranks"][0]["finding"], "stalled", "{raised:#}");
    ranks.say("on");
    alert(server, "job.stalled", &json!("cleared"));
    ranks.say("end");
    alert(server, "run.finished", &Value::Null);
}

/// What [`hang_and_go_on`] should have told.
pub const TOLD: [&str; 3] = [
    "job.stalled raised",
    "job.stalled cleared",
    "run.finished -",
];
