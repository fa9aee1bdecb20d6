//! A collective that never ends: both GPUs busy at low power, and a core for each.

use super::patient::{Patient, sick};
use super::support::{Live, python};

fn fall_sick(patient: &Patient, options: &[&str]) -> Live {
    let live = patient
        .watched(options, &[python(), &sick("spin.py")])
        .start();
    patient.wait_for_progress();
    patient.fall_sick("hung-0");
    live
}

/// A minute of spinning on all GPUs is enough.
pub fn in_its_time() {
    let patient = Patient::new(2);
    let live = fall_sick(&patient, &[]);
    let found = patient.stalled("spin", 57.0..=90.0);
    assert_eq!(found["evidence"]["spinning_gpus"], 2, "{found:#}");
    assert_eq!(found["evidence"]["gpu_util_pct"], 100, "{found:#}");
    assert_eq!(found["evidence"]["power_w"], 80, "{found:#}");
    let verdict = patient.cancel(live);
    assert_eq!(verdict["cause"], "stalled", "{verdict:#}");
    assert_eq!(patient.alarms(), ["stalled critical raised"]);
}

#[test]
fn a_persons_limit_holds_and_progress_clears_it() {
    let patient = Patient::new(2);
    let live = fall_sick(&patient, &["--stall-after", "3s"]);
    patient.stalled("spin", 2.0..=20.0);
    patient.go_on();
    live.end().assert_ok();
}
