//! PyTorch's `DataLoader`, whose workers wait for a lock that nobody holds there.

use super::patient::{LIMIT, Patient, sick};
use super::support::provided;

pub fn its_workers_wait_for_a_lock() {
    let Some(torch) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let patient = Patient::new(1);
    // Such workers can't be ended otherwise.
    let options = ["--leftovers", "kill", LIMIT[0], LIMIT[1]];
    let live = patient
        .watched(&options, &[&torch, &sick("loader.py")])
        .start();
    patient.wait_for_progress();
    patient.fall_sick("hung");
    let found = patient.stalled("asleep", 14.0..=60.0);
    let advice = found["advice"].as_str().unwrap();
    assert!(advice.contains("DataLoader worker"), "{found:#}");
    let verdict = patient.cancel(live);
    assert_eq!(verdict["cause"], "stalled", "{verdict:#}");
    let alarms = patient.alarms();
    assert_eq!(alarms[0], "stalled critical raised", "{alarms:?}");
}
