//! A run to its end, although something of ours in the main thread fails: what the child needs
//! of us is done all the same.

use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::model::Exit;
use crate::supervise::last_words::{GATED, Gates, Words};
use crate::supervise::say::say;
use crate::supervise::state::{Happening, Reach};
use crate::sys::defect::caught;
use crate::sys::signals::take;

use super::{Ending, Run};

/// How long the summary may wait for whoever reads it.
const SUMMARY: Duration = Duration::from_secs(1);

/// How long the helper's own end is waited for.
const DISMISSED_WITHIN: Duration = Duration::from_millis(50);

/// How often the child is looked at where nothing else can be relied on.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl Run {
    pub(super) fn until_the_end(mut self) -> Ending {
        let exit = loop {
            match caught(|| self.turn()) {
                Ok(None) => {}
                Ok(Some(exit)) => break exit,
                Err(why) if !self.is_plain => self.go_on_plainly(&why),
                Err(_) => break self.only_wait(),
            }
        };
        // Whatever becomes of the last words, the child's end is ours.
        let is_gated = caught(|| self.take_leave(exit)).unwrap_or(false);
        match exit {
            Exit {
                signal: Some(signal),
                ..
            } => Ending::Signal(signal),
            _ if is_gated => Ending::Code(GATED),
            Exit { code, .. } => Ending::Code(code.and_then(|c| u8::try_from(c).ok()).unwrap_or(1)),
        }
    }

    /// Says the last words; true where a gate fails the run.
    fn take_leave(&self, exit: Exit) -> bool {
        self.watchers.metrics.close();
        let Words {
            summary,
            gates,
            previews,
        } = self.watchers.last_words();
        let checked = gates.clone().unwrap_or_else(Gates::unchecked);
        let is_shown = !self.is_quiet && !summary.is_empty();
        let mut said = if is_shown { summary } else { String::new() };
        // What a caller wouldn't know from the exit code, or not why it is what it is.
        if let Some(text) = self.cut_off.as_ref().filter(|_| !is_shown) {
            said = format!("gpuwatch: {text}\n");
        }
        if self.is_gated && exit.is_success() && (!is_shown || gates.is_none()) {
            said.push_str(&checked.said);
        }
        said.push_str(&previews);
        if !said.is_empty() {
            let newline = if self.relays.mid_line() { "\n" } else { "" };
            say(format!("{newline}{said}"), SUMMARY);
        }
        if let Some(beside) = &self.beside {
            beside.dismiss();
            // Our caller may be a PID 1 that doesn't reap. One that hangs is left behind.
            beside.sentinel().reap_within(DISMISSED_WITHIN);
        }
        checked.failed && exit.is_success()
    }

    /// After a defect. What had happened when it struck may be half done: what has ended is
    /// told again.
    fn go_on_plainly(&mut self, why: &str) {
        self.is_plain = true;
        self.watchers.defect("signals are no longer recorded", why);
        self.state = self.state.afresh();
        if let Some(exit) = self.child.ended().or_else(|| self.child.try_reap()) {
            self.happened.push_back(Happening::ChildEnded(exit));
        }
        if self.relays.all_ended() {
            self.happened.push_back(Happening::RelaysEnded);
        }
    }

    /// After another one. The child gets what is sent to us (what was sent to the group for the
    /// second time), and its output is delivered.
    fn only_wait(&mut self) -> Exit {
        for happening in self.happened.drain(..) {
            if let Happening::Signal {
                signal,
                reach: Reach::UsAlone,
                ..
            } = happening
            {
                self.child.signal(signal);
            }
        }
        let exit = loop {
            if let Some(exit) = self.child.ended().or_else(|| self.child.try_reap()) {
                break exit;
            }
            for signal in self.arrivals.waiting() {
                if take(signal).is_some_and(|a| !a.by_kernel) && signal != libc::SIGCHLD {
                    self.child.signal(signal);
                }
            }
            std::thread::sleep(LOOK_EVERY);
        };
        // Ours would be the last writers.
        self.again = None;
        self.relays.drain();
        while !self.relays.all_ended() {
            std::thread::sleep(LOOK_EVERY);
        }
        let _ = caught(|| {
            let end = self.state.end(exit);
            self.watchers.finish(end, Instant::now(), Vec::new());
            let limit = PollTimeout::try_from(self.watchers.patience());
            let mut done = [PollFd::new(self.watchers.done_fd(), PollFlags::POLLIN)];
            poll(&mut done, limit.unwrap_or(PollTimeout::ZERO))
        });
        self.state.shown(exit)
    }
}
