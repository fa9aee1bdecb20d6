//! A stall on the desktop of whoever sits there.

use super::support::PATIENCE;
use super::support::bus::{Bus, desktop_on};
use super::training::{Training, end};

#[test]
fn a_stall_and_its_end_are_shown() {
    let Some(bus) = Bus::start() else { return };
    let shown = desktop_on(&bus);
    let training = Training::new("asleep");
    let job = training.job(&["--stall-after", "5s", "--desktop"], 0);
    let live = job.env("DBUS_SESSION_BUS_ADDRESS", &bus.address).start();
    let (_, step) = training.hang();
    let (summary, body, urgency) = shown.recv_timeout(PATIENCE).unwrap();
    assert!(summary.contains("stalled"), "{summary}");
    assert!(body.contains(&format!("step {step}")), "{body}");
    assert_eq!(urgency, Some(2), "{summary}");
    training.go_on();
    let (summary, ..) = shown.recv_timeout(PATIENCE).unwrap();
    assert!(summary.starts_with("over: stalled"), "{summary}");
    training.say("end");
    let ended = end(live, 0);
    assert!(!ended.err().contains("not sent"), "{}", ended.err());
}
