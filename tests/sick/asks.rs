//! A breakpoint that was forgotten in the training's loop.

use super::patient::{Patient, pass, sick};
use super::support::{Terminal, python};

fn falls_sick(patient: &Patient) {
    patient.wait_for_progress();
    patient.fall_sick("hung");
    let found = patient.found("waiting-for-input", "raised");
    assert_eq!(found["severity"], "note");
    let late = found["elapsed_s"].as_f64().unwrap() - found["since_s"].as_f64().unwrap();
    assert!(late <= 15.0, "after {late} s: {found:#}");
    // However long it waits, and whatever the limit is.
    pass(patient, 10.0);
    assert!(patient.alarms().is_empty(), "{:?}", patient.alarms());
}

fn is_well(patient: &Patient) {
    patient.found("waiting-for-input", "cleared");
    assert!(patient.alarms().is_empty(), "{:?}", patient.alarms());
}

const OPTIONS: [&str; 2] = ["--stall-after", "5s"];

#[test]
fn a_debugger_at_a_terminal_waits_for_somebody() {
    let patient = Patient::new(1);
    let job = patient.watched(&OPTIONS, &[python(), &sick("asks.py")]);
    let mut terminal = Terminal::new(24, 80);
    let mut live = job.start_on(&mut terminal);
    falls_sick(&patient);
    assert!(terminal.so_far().contains("(Pdb) "));
    terminal.send("c\n");
    is_well(&patient);
    patient.say("end");
    assert!(live.wait().success(), "{}", terminal.so_far());
    assert_eq!(patient.verdict()["outcome"], "ok");
}

#[test]
fn a_debugger_in_a_pipe_waits_for_somebody() {
    let patient = Patient::new(1);
    let mut live = patient
        .watched(&OPTIONS, &[python(), &sick("asks.py")])
        .start();
    falls_sick(&patient);
    live.send("c\n");
    is_well(&patient);
    patient.say("end");
    live.end().assert_ok();
    assert_eq!(patient.verdict()["outcome"], "ok");
}
