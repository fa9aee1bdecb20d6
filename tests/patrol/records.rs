//! What a patrol leaves on disk. Every sandbox judges its records again when it is dropped.

use serde_json::{Value, json};

use super::machine::{Machine, end, fast};
use super::support::http_server::{Answer, Server};
use super::support::{Record, wait_until};

impl Machine {
    /// Waits until so many jobs are being recorded.
    pub fn wait_for_records(&self, n: usize) {
        wait_until("jobs are recorded", || self.jobs().len() >= n);
    }

    /// The records of jobs, as far as they are written.
    pub fn jobs(&self) -> Vec<Value> {
        let all = Record::all_in(&self.sandbox.runs());
        let read = |r: Record| std::fs::read(r.folder.join("run.json"));
        all.into_iter()
            .filter_map(|r| serde_json::from_slice(&read(r).ok()?).ok())
            .filter(|r: &Value| r["origin"] == "found")
            .collect()
    }
}

#[test]
fn a_job_has_a_record_as_a_run_has_and_its_secrets_are_masked() {
    let machine = Machine::new(1);
    let idle = machine.mine(
        "train bash -c 'sleep 3600; :' --api-key=s3cr3t",
        (0, 7000, 0),
    );
    let patrol = machine.patrol(&fast(), &["--json"]);
    patrol.wait_for_out("idle-holding");
    // Beside the job's record there is the machine's, which isn't in progress.
    let all = Record::all_in(&machine.sandbox.runs());
    assert_eq!(all.len(), 2);
    let now = machine.sandbox.gpuwatch(&["ps", "--json"]).run();
    let now: Value = serde_json::from_str(&now.out()).unwrap();
    let pids: Vec<&Value> = now["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["pid"])
        .collect();
    assert_eq!(pids, [&json!(idle.pid())]);
    end(patrol);
    let all = Record::all_in(&machine.sandbox.runs());
    for record in &all {
        for file in ["run.json", "samples.csv", "events.jsonl"] {
            assert!(!record.text(file).contains("s3cr3t"), "{file}");
        }
        assert_eq!(record.json()["state"], "finished");
    }
    let jobs = machine.jobs();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0]["pid"], idle.pid());
    assert_eq!(jobs[0]["argv"][3], "--api-key=***");
    let id = jobs[0]["id"].as_str().unwrap();
    // The commands for runs read it.
    let listed = machine.sandbox.gpuwatch(&["runs", "--json"]).run();
    assert!(listed.out().contains(id), "{}", listed.out());
    let shown = machine.sandbox.gpuwatch(&["show", id]).run();
    assert!(shown.out().contains("idle-holding"), "{}", shown.out());
}

#[test]
fn what_was_told_is_not_told_again_after_a_restart() {
    let machine = Machine::new(1);
    let idle = machine.mine("train sleep 3600", (0, 7000, 0));
    let heard = Server::start(&[Answer::status(200)]);
    let url = heard.url("/hook");
    let patrol = machine.patrol(&fast(), &["--notify", &url]);
    heard.wait_for(1);
    end(patrol);
    let patrol = machine.patrol(&fast(), &["--notify", &url]);
    patrol.wait_for_out("idle-holding");
    let second = machine.mine("second sleep 3600", (0, 500, 0));
    let requests = heard.wait_for(2);
    end(patrol);
    let told: Vec<Value> = requests
        .iter()
        .map(|r| r.json()["data"]["run"]["id"].clone())
        .collect();
    let by_pid = |pid: i32| {
        let jobs = machine.jobs();
        let of: Vec<Value> = jobs
            .iter()
            .filter(|j| j["pid"] == json!(pid))
            .map(|j| j["id"].clone())
            .collect();
        told.iter().filter(|id| of.contains(id)).count()
    };
    assert_eq!((by_pid(idle.pid()), by_pid(second.pid())), (1, 1));
}
