//! A command that writes down each signal that it gets.

use std::path::PathBuf;

use super::{Ended, Job, Live, Sandbox, Terminal, python, script, wait_until};

/// A command that writes down each signal that it gets.
pub struct Listener {
    pub live: Live,
    log: PathBuf,
}

impl Listener {
    pub fn argv(log: &str, status: &str) -> [String; 4] {
        [
            python().into(),
            script("signal_log.py"),
            log.into(),
            status.into(),
        ]
    }

    pub fn start(sandbox: &Sandbox, job: &Job) -> Self {
        let live = job.clone().own_group().start();
        live.wait_for_out("ready");
        Self {
            live,
            log: sandbox.path("log"),
        }
    }

    /// On a terminal, as the leader of its session.
    pub fn start_on(terminal: &mut Terminal, sandbox: &Sandbox, job: &Job) -> Self {
        let live = job.start_on(terminal);
        terminal.wait_for("ready");
        Self {
            live,
            log: sandbox.path("log"),
        }
    }

    pub fn arrived(&self) -> Vec<u8> {
        std::fs::read(&self.log).unwrap()
    }

    /// Waits for one signal more than were there before.
    pub fn wait_for(&self, number: i32) {
        let number = u8::try_from(number).unwrap();
        wait_until(&format!("signal {number} arrives"), || {
            self.arrived().last() == Some(&number)
        });
    }

    /// Lets it end; what had arrived by then is all that ever will.
    pub fn end(self) -> (Vec<u8>, Ended) {
        std::fs::write(self.log.with_file_name("log.end"), "").unwrap();
        let ended = self.live.end();
        (std::fs::read(&self.log).unwrap(), ended)
    }
}
