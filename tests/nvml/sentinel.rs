//! The helper as the one that every signal to the group reaches, and how it ends.

use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use gpuwatch::nvml::client::{Closed, HelperLink};
use gpuwatch::nvml::protocol::{FromHelper, ToHelper};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::harness::{Helper, at_work, fault, gpuwatch, wait_until};
use crate::support::fake_driver::FakeDriver;

fn pending(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("ShdPnd:"));
    u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
}

#[test]
fn signals_show_as_pending_until_they_are_consumed() {
    let driver = FakeDriver::new(&at_work());
    let mut helper = Helper::start_with(&driver, &[], &[], Stdio::null());
    let pid = helper.child.id();
    wait_until("all signals are blocked", || {
        fs::read_to_string(format!("/proc/{pid}/status"))
            .unwrap()
            .contains("SigBlk:\tfffffffe7ffbfeff")
    });
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        kill(Pid::from_raw(pid as i32), signal).unwrap();
        let bit = 1 << (signal as i32 - 1);
        wait_until("it is pending", || pending(pid) & bit != 0);
        helper.say(&ToHelper::Consume {
            signal: signal as i32,
        });
        wait_until("it is consumed", || pending(pid) & bit == 0);
    }
    helper.say(&ToHelper::Bye);
    helper.ends();
}

#[test]
fn what_is_kept_stays_open_after_the_supervisor_and_not_for_ever() {
    let driver = FakeDriver::new(&at_work());
    let (read_end, write_end) = std::io::pipe().unwrap();
    let mut helper = Helper::start_with(&driver, &[], &["--keep", "1"], read_end.into());
    helper.inventory();
    helper.link = None;
    let left = Instant::now();
    // Only the helper has the other end. Where this process was stopped for that long,
    // nothing is learnt.
    let kept = (&write_end).write(b"x").is_ok();
    assert!(kept || left.elapsed() >= Duration::from_secs(1));
    wait_until("the pipe is closed", || (&write_end).write(b"x").is_err());
    helper.ends();
}

#[test]
fn the_link_says_when_the_helper_is_gone() {
    let driver = FakeDriver::new(&at_work());
    let mut helper = Helper::start(&driver);
    helper.inventory();
    helper.say(&ToHelper::Bye);
    let link = helper.link.as_mut().unwrap();
    wait_until("the link is closed", || link.receive() == Err(Closed));
}

#[test]
fn nothing_is_printed() {
    let driver = FakeDriver::new(&fault(
        &at_work(),
        &json!({"call": "nvmlInit_v2", "code": 18}),
    ));
    let (ours, theirs) = UnixStream::pair().unwrap();
    let child = gpuwatch(&driver)
        .args(["helper", "--socket", "0"])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut link = HelperLink::from_fd(ours.into());
    let mut heard = Vec::new();
    wait_until("it fails", || {
        heard.extend(link.receive().unwrap());
        !heard.is_empty()
    });
    assert!(matches!(&heard[0], FromHelper::Failed { why } if why.contains("different versions")));
    link.send(&ToHelper::Bye).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.len(), output.stderr.len()), (0, 0));
}
