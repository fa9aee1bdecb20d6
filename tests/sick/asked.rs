//! Where a run stands, asked by somebody while it goes on.

use std::path::Path;

use serde_json::Value;

use super::patient::{Patient, sick};
use super::support::{Job, Live, provided, python, wait_until};

/// With py-spy on PATH, where `tests/run` has provided it.
pub fn with_pyspy(job: Job) -> Option<Job> {
    let python = provided("GPUWATCH_TEST_PYSPY_PYTHON")?;
    let folder = Path::new(&python).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    Some(job.env("PATH", std::env::join_paths(all).unwrap()))
}

/// What `gpuwatch stacks --json` answers.
fn asked(patient: &Patient) -> Value {
    let job = patient.sandbox.gpuwatch(&["stacks", "--json", "last"]);
    let ended = with_pyspy(job).unwrap().run();
    ended.assert_ok();
    serde_json::from_str(&ended.out()).unwrap()
}

fn train(patient: &Patient) -> Live {
    let argv = [python(), &sick("spin.py")];
    let live = patient.watched(&[], &argv).start();
    patient.wait_for_progress();
    live
}

#[test]
fn a_run_in_progress_tells_where_it_stands_and_goes_on() {
    if provided("GPUWATCH_TEST_PYSPY_PYTHON").is_none() {
        return;
    }
    let patient = Patient::new(2);
    let live = train(&patient);
    wait_until("it has printed more than an alert shows", || {
        patient.sandbox.so_far("output.log").lines().count() > 60
    });
    let record = patient.sandbox.record();
    std::fs::write(record.folder.join("flight-recorder-0"), "collectives").unwrap();
    // A busy machine may leave py-spy too little of its time.
    let mut answer = Value::Null;
    wait_until("py-spy answers in time", || {
        answer = asked(&patient);
        answer["stacks"].to_string().contains("train (spin.py:")
    });
    let main = patient.main();
    let file = answer["file"].as_str().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let said = [
        format!("\n== {main} python"),
        "\nVmRSS ".to_owned(),
        "\nopen:\n".to_owned(),
        "writes pipe ".to_owned(),
        "\n== GPUs\nGPU 0: use 97 %".to_owned(),
        "\n== the last lines of output\n".to_owned(),
        "/100000 loss ".to_owned(),
        "flight-recorder-0: 11 bytes".to_owned(),
    ];
    for part in said {
        assert!(text.contains(&part), "{part}\n{text}");
    }
    let (_, lines) = text.split_once("\n== the last lines of output\n").unwrap();
    assert!(lines.lines().count() > 50, "{lines}");
    // Neither gpuwatch nor its helper is one of the job's processes.
    assert_eq!(text.matches("\n== ").count(), 2 + 3, "{text}");
    let copy = file.replace(".txt", "-flight-recorder-0");
    assert_eq!(std::fs::read_to_string(copy).unwrap(), "collectives");

    patient.hang();
    patient.go_on();
    live.end().assert_ok();
    let ended = patient.sandbox.gpuwatch(&["stacks"]).run();
    assert_eq!(ended.code(), Some(1));
    assert!(ended.err().contains("the run is over"), "{}", ended.err());
}
