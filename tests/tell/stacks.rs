//! The stack of a real Python process, as py-spy tells it.
//!
//! `GPUWATCH_TEST_PYSPY_PYTHON` is an interpreter with py-spy beside it (`tests/run` makes one).

use std::path::Path;

use gpuwatch::act::stacks::{Request, Subject, collect};
use gpuwatch::model::{OwnProcesses, Stamp};

use super::support::{Live, provided, wait_until};

const SCRIPT: &str = "
import time
SECRET = 't0ken'
def read_batch():
    print('here', flush=True)
    while True:
        time.sleep(0.1)
def train():
    read_batch()
train()
";

fn start_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(19).unwrap().parse().unwrap()
}

/// What is said of a script that hangs, run by this interpreter.
fn evidence_of(python: &str) -> (String, Vec<String>) {
    let job =
        Live::in_pipes(std::process::Command::new(python).args(["-c", SCRIPT, "--key=t0ken"]));
    job.wait_for_out("here");
    let pid = u32::try_from(job.pid()).unwrap();
    let subject = Subject {
        pid,
        start: start_of(pid),
        rank: None,
    };
    let own = OwnProcesses::default();
    let request = Request::new(Stamp::default(), "stalled", vec![subject]);
    let evidence = collect(&request, &own);
    assert!(own.list().is_empty(), "no process of ours is left");
    let text = String::from_utf8(evidence.files[0].1.clone()).unwrap();
    assert!(!text.contains("t0ken"), "arguments stay out: {text}");
    (text, evidence.digest)
}

#[test]
fn the_function_in_which_it_sits() {
    let Some(python) = provided("GPUWATCH_TEST_PYSPY_PYTHON") else {
        return;
    };
    assert!(Path::new(&python).with_file_name("py-spy").exists());
    // A busy machine may leave py-spy too little of its time.
    let mut seen = (String::new(), Vec::new());
    wait_until("py-spy answers in time", || {
        seen = evidence_of(&python);
        !seen.1[0].contains("did not answer")
    });
    let (text, digest) = seen;
    assert_eq!(digest.len(), 1, "{digest:?}");
    assert!(digest[0].contains("read_batch ("), "{digest:?}");
    assert!(
        text.contains("train (") && text.contains("threads: "),
        "{text}"
    );
}

#[test]
fn without_py_spy_it_is_still_known_what_it_waits_for() {
    let python = super::support::python();
    if Path::new(python).with_file_name("py-spy").exists() {
        return eprintln!("not tried: py-spy is installed beside {python}");
    }
    let (_, digest) = evidence_of(python);
    assert!(digest[0].contains("sleeps"), "{digest:?}");
    assert!(digest[1].contains("pip install py-spy"), "{digest:?}");
}
