//! A training that keeps something of each epoch.

use std::time::Duration;

use super::patient::{Patient, sick};
use super::support::{python, wait_longer};

/// Two epochs are left out and eight compared, each of a minute at least: nothing shortens these
/// ten minutes, in which the other tests run.
#[test]
fn memory_that_grows_from_epoch_to_epoch_leaks() {
    let patient = Patient::new(1);
    let live = patient
        .watched(&[], &[python(), &sick("leak.py"), "61"])
        .start();
    wait_longer(Duration::from_secs(1500), "the leak is found", || {
        !patient.alarms().is_empty()
    });
    let found = patient.found("memory-leak", "raised");
    assert_eq!(found["cause"], "gpu", "{found:#}");
    let grows = found["evidence"]["mib_per_epoch"].as_f64().unwrap();
    assert!((200.0..=312.0).contains(&grows), "{found:#}");
    patient.say("end");
    live.end().assert_ok();
    assert_eq!(patient.alarms(), ["memory-leak warning raised"]);
}
