//! A read that never comes back: state D, and not a byte.

use std::process::Command;

use super::patient::{Patient, sick};
use super::support::{Live, python};

fn fall_sick(patient: &Patient, options: &[&str]) -> Live {
    let library = patient.sandbox.arg("dead_storage.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", &library, &sick("storage.c")])
        .status()
        .expect("this test needs cc");
    assert!(built.success());
    let live = patient
        .watched(options, &[python(), &sick("storage.py"), &library])
        .start();
    patient.wait_for_progress();
    patient.fall_sick("hung");
    live
}

pub fn a_persons_limit_holds_and_its_end_clears_it() {
    let patient = Patient::new(1);
    let live = fall_sick(&patient, &["--stall-after", "3s"]);
    patient.stalled("storage", 2.0..=20.0);
    patient.go_on();
    patient.found("stalled", "cleared");
    patient.say("end");
    live.end().assert_ok();
    assert_eq!(
        patient.alarms(),
        ["stalled critical raised", "stalled critical cleared"]
    );
}
