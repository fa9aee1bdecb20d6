//! A helper as a supervisor has it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpuwatch::model::{GpuSample, Inventory};
use gpuwatch::nvml::client::HelperLink;
use gpuwatch::nvml::protocol::{FromHelper, ToHelper, Watched};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use crate::support::fake_driver::FakeDriver;

/// Nothing here takes long; a machine that is busy with other things may.
pub const CEILING: Duration = Duration::from_secs(60);

/// A helper as a supervisor has it.
pub struct Helper {
    pub link: Option<HelperLink>,
    pub child: Child,
    pub heard: VecDeque<FromHelper>,
}

impl Helper {
    pub fn start(driver: &FakeDriver) -> Self {
        Self::start_with(driver, &[], &[], Stdio::null())
    }

    pub fn start_with(
        driver: &FakeDriver,
        environment: &[(&str, &Path)],
        more: &[&str],
        stdout: Stdio,
    ) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut command = gpuwatch(driver);
        command
            .args(["helper", "--socket", "0"])
            .args(more)
            .envs(environment.iter().copied())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(stdout);
        Self {
            link: Some(HelperLink::from_fd(ours.into())),
            child: command.spawn().unwrap(),
            heard: VecDeque::new(),
        }
    }

    pub fn watching(driver: &FakeDriver) -> Self {
        let mut helper = Self::start(driver);
        helper.inventory();
        helper.watch(20);
        helper
    }

    pub fn say(&mut self, message: &ToHelper) {
        assert_eq!(self.link.as_mut().unwrap().send(message), Ok(true));
    }

    pub fn watch(&mut self, interval_ms: u64) {
        self.say(&ToHelper::Watch {
            gpus: Watched::All,
            interval_ms,
        });
    }

    pub fn next(&mut self) -> FromHelper {
        let end = Instant::now() + CEILING;
        loop {
            if let Some(message) = self.heard.pop_front() {
                return message;
            }
            assert!(Instant::now() < end, "the helper says nothing");
            let link = self.link.as_mut().unwrap();
            let mut polled = [PollFd::new(link.as_fd(), PollFlags::POLLIN)];
            poll(&mut polled, PollTimeout::from(1000_u16)).unwrap();
            self.heard.extend(link.receive().unwrap());
        }
    }

    /// The first message that this finds something in.
    pub fn until<T>(&mut self, mut find: impl FnMut(&FromHelper) -> Option<T>) -> T {
        let end = Instant::now() + CEILING;
        loop {
            let message = self.next();
            if let Some(found) = find(&message) {
                return found;
            }
            assert!(Instant::now() < end, "never came; last: {message:?}");
        }
    }

    pub fn inventory(&mut self) -> Inventory {
        match self.next() {
            FromHelper::Inventory(inventory) => inventory,
            other => panic!("no inventory but {other:?}"),
        }
    }

    /// The first tick in which the GPUs are like this.
    pub fn tick(&mut self, like: impl Fn(&[GpuSample]) -> bool) -> Vec<GpuSample> {
        self.until(|message| match message {
            FromHelper::Tick { gpus, .. } if like(gpus) => Some(gpus.clone()),
            _ => None,
        })
    }

    /// Waits for its end, which must be its own.
    pub fn ends(mut self) {
        self.link = None;
        wait_until("the helper ends", || {
            self.child.try_wait().unwrap().is_some()
        });
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + CEILING;
    while !is_so() {
        assert!(Instant::now() < end, "never so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn gpuwatch(driver: &FakeDriver) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuwatch"));
    driver.apply(&mut command);
    command
}

pub fn fault(scenario: &Value, fault: &Value) -> Value {
    let mut scenario = scenario.clone();
    scenario["faults"] = json!([fault]);
    scenario
}

/// One GPU at work with one process.
pub fn at_work() -> Value {
    json!({"gpus": [{"util": 50, "mem_util": 20, "processes": [{"pid": 4242, "mem_mib": 1024, "sm": 50}]}]})
}
