//! A job that falls sick when it is told to, and what was found of it.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::fake_driver::python_path;
use super::support::{FakeDriver, Job, Live, Sandbox, content, script, wait_longer, wait_until};

/// A stall is told after a minute at the latest; a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(240);

/// A limit that nobody has to wait for, where the default would be two minutes.
pub const LIMIT: [&str; 2] = ["--stall-after", "15s"];

/// A job on a machine with so many GPUs.
pub struct Patient {
    pub sandbox: Sandbox,
    gpus: usize,
    driver: FakeDriver,
    /// When it fell sick, in seconds of the run.
    fell: Cell<f64>,
}

impl Patient {
    pub fn new(gpus: usize) -> Self {
        Self {
            sandbox: Sandbox::new(),
            gpus,
            driver: FakeDriver::new(&machine(gpus, 300, 2000)),
            fell: Cell::new(f64::NAN),
        }
    }

    /// `gpuwatch run OPTIONS -- ARGV` on that machine.
    pub fn watched(&self, options: &[&str], argv: &[&str]) -> Job {
        self.sandbox
            .watched(options, argv)
            .with(&self.driver)
            .env("PYTHONPATH", python_path())
            .env("OMP_NUM_THREADS", "1")
    }

    pub fn say(&self, word: &str) {
        std::fs::write(self.sandbox.path(word), "").unwrap();
    }

    /// Waits until gpuwatch has seen it make progress for a while.
    pub fn wait_for_progress(&self) {
        wait_longer(PATIENCE, "progress is seen", || {
            let rows = self.sandbox.samples_so_far();
            let seen = rows.iter().filter(|r| !r["step"].is_empty()).count() >= 10;
            let ended = self
                .sandbox
                .so_far("events.jsonl")
                .contains("\"kind\":\"exited\"");
            let said = || self.sandbox.so_far("output.log");
            assert!(seen || !ended, "it ended: {}", said());
            seen
        });
    }

    /// Has it fall sick.
    pub fn hang(&self) {
        // What waits draws little and moves nothing, however busy the GPU says that it is.
        self.driver.set(&machine(self.gpus, 80, 0));
        self.say("hang");
    }

    /// The same, and waits for its word that it did.
    pub fn fall_sick(&self, word: &str) {
        self.hang();
        content(&self.sandbox.path(word));
        self.fell.set(self.now());
    }

    /// It is well again.
    pub fn go_on(&self) {
        self.driver.set(&machine(self.gpus, 300, 2000));
        self.say("on");
    }

    /// When the last sample was taken, in seconds of the run.
    pub fn now(&self) -> f64 {
        let rows = self.sandbox.samples_so_far();
        rows.last()
            .map_or(0.0, |row| row["elapsed_s"].parse().unwrap())
    }

    /// Waits for a finding of this name to be in this state.
    pub fn found(&self, name: &str, state: &str) -> Value {
        let mut found = None;
        wait_longer(PATIENCE, &format!("{name} is {state}"), || {
            let mut findings = self.findings().into_iter();
            found = findings.find(|f| f["name"] == name && f["state"] == state);
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits for a stall with this cause, so many seconds after the job fell sick.
    pub fn stalled(&self, cause: &str, after_s: RangeInclusive<f64>) -> Value {
        let found = self.found("stalled", "raised");
        assert_eq!(found["cause"], cause, "{found:#}");
        assert_eq!(found["severity"], "critical", "{found:#}");
        let late = found["elapsed_s"].as_f64().unwrap() - self.fell.get();
        eprintln!("stalled ({cause}) {late:.1} s after the job fell sick");
        assert!(after_s.contains(&late), "after {late} s: {found:#}");
        found
    }

    /// `name severity state` of all findings so far that are more than notes. A busy machine needs
    /// seconds to end all processes of a job that was told to end: who is left meanwhile is no
    /// matter of these tests.
    pub fn alarms(&self) -> Vec<String> {
        let alarms = self.findings().into_iter();
        let alarms = alarms.filter(|f| f["severity"] != "note" && f["name"] != "orphans");
        let word = |v: &Value| v.as_str().unwrap().to_owned();
        alarms
            .map(|f| ["name", "severity", "state"].map(|k| word(&f[k])).join(" "))
            .collect()
    }

    /// Asks it to end. Its verdict.
    pub fn cancel(&self, live: Live) -> Value {
        live.signal(libc::SIGTERM);
        live.end();
        self.verdict()
    }

    pub fn verdict(&self) -> Value {
        self.sandbox.record().json()["verdict"].clone()
    }

    /// The main process of the job.
    pub fn main(&self) -> i32 {
        let started = self.sandbox.record().events_of("started");
        started[0]["pid"].as_i64().unwrap().try_into().unwrap()
    }

    fn findings(&self) -> Vec<Value> {
        let text = self.sandbox.so_far("events.jsonl");
        let events = text.lines().filter_map(|l| serde_json::from_str(l).ok());
        events.filter(|e: &Value| e["kind"] == "finding").collect()
    }
}

/// Waits until the run has been sampled for so much longer.
pub fn pass(patient: &Patient, seconds: f64) {
    let until = patient.now() + seconds;
    wait_until("the run has gone on", || patient.now() >= until);
}

/// The path of a script for sick jobs.
pub fn sick(name: &str) -> String {
    script(&format!("sick/{name}"))
}

fn machine(gpus: usize, power_w: u32, pcie_mb_s: u32) -> Value {
    let gpu = json!({"power_w": power_w, "power_limit_w": 400, "pcie_mb_s": pcie_mb_s});
    json!({"gpus": vec![gpu; gpus]})
}
