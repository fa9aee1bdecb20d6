//! A driver that isn't there, doesn't answer, and comes back.

use serde_json::json;

use super::machine::{Machine, end, fast, said, wait_for};
use super::support::{Live, descendants, wait_until};

#[test]
fn a_driver_that_hangs_is_said_once_and_waited_for() {
    let machine = Machine::new(1);
    let idle = machine.mine("train sleep 3600", (0, 7000, 0));
    let hang = json!([{"call": "nvmlDeviceGetMemoryInfo*", "hang": "until_removed"}]);
    let patrol = machine.patrol(&fast(), &["--json"]);
    wait_for(&patrol, "idle-holding", "raised", &user());
    machine.driver.set(&json!({"gpus": [{}], "faults": hang}));
    patrol.wait_for_err("the driver doesn't answer");
    machine.driver.set(&json!({"gpus": [{}]}));
    patrol.wait_for_err("the GPUs are watched again");
    machine.driver.hold(idle.pid() as u32, 0, 7000, 95);
    wait_for(&patrol, "idle-holding", "cleared", &user());
    let err = patrol.err_so_far();
    assert_eq!(err.matches("doesn't answer").count(), 1, "{err}");
    end(patrol);
}

#[test]
fn a_driver_that_comes_later_is_found() {
    let machine = Machine::new(1);
    let _idle = machine.mine("train sleep 3600", (0, 7000, 0));
    let absent = json!([{"call": "nvmlInit*", "code": 9}]);
    machine.driver.set(&json!({"gpus": [{}], "faults": absent}));
    let patrol = machine.patrol(&fast(), &["--json"]);
    patrol.wait_for_err("no GPU is watched");
    assert!(said(&patrol).is_empty());
    // Each try is a process of its own, and none stays behind.
    let mut first = None;
    wait_until("the driver is asked", || {
        first = helpers(&patrol).first().copied();
        first.is_some()
    });
    wait_until(
        "it is asked by another process, and the first one is gone",
        || {
            let now = helpers(&patrol);
            !now.is_empty() && !now.contains(&first.unwrap())
        },
    );
    machine.driver.set(&json!({"gpus": [{}]}));
    wait_for(&patrol, "idle-holding", "raised", &user());
    assert_eq!(patrol.err_so_far().matches("no GPU is watched").count(), 1);
    end(patrol);
}

#[test]
fn it_ends_when_asked_to_whatever_the_driver_does() {
    let machine = Machine::new(1);
    let hang = json!([{"call": "nvmlInit*", "hang": "forever"}]);
    machine.driver.set(&json!({"gpus": [{}], "faults": hang}));
    for signal in [2, 15] {
        let patrol = machine.patrol(&fast(), &[]);
        patrol.wait_for_err("the driver doesn't answer");
        patrol.signal(signal);
        let ended = patrol.end();
        assert_eq!(ended.code(), Some(0));
        assert_eq!(ended.out(), "");
    }
}

#[test]
fn a_job_that_ends_is_over() {
    let machine = Machine::new(1);
    let idle = machine.mine("train sleep 3600", (0, 7000, 0));
    let patrol = machine.patrol(&fast(), &[]);
    patrol.wait_for_out("warning: idle-holding for ");
    idle.signal(9);
    idle.end();
    patrol.wait_for_out("over: idle-holding (it lasted ");
    wait_until("the record is finished", || {
        machine.jobs().iter().any(|job| !job["ended"].is_null())
    });
    end(patrol);
}

/// The processes in which this patrol asks the driver, those that have ended and are not reaped too.
fn helpers(patrol: &Live) -> Vec<i32> {
    let mut all = descendants(patrol.pid().try_into().unwrap());
    all.retain(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == "nvml-sentinel")
    });
    all
}

/// Who runs this.
fn user() -> String {
    let uid = nix::unistd::Uid::effective();
    let user = nix::unistd::User::from_uid(uid).unwrap();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}
