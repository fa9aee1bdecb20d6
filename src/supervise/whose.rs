//! A signal that came to us: who else has it, and a stop that is passed on.

use std::time::Instant;

use crate::launch::signals::{self, Origin};
use crate::supervise::beside::Beside;
use crate::supervise::state::{Happening, Reach};
use crate::sys::process;
use crate::sys::signals::{Mask, stop_if};

use super::Run;

impl Run {
    /// Who else has this signal.
    pub(super) fn place(&mut self, signal: i32) -> Option<Happening> {
        if signal == libc::SIGCONT {
            // Who goes on may look at its size while we still find out who else has this.
            self.relays.copy_sizes();
        }
        let beside = self.beside.as_deref();
        let forget = || {
            if let Some(beside) = beside {
                beside.consume(signal);
            }
        };
        let placed = signals::take_placed(signal, beside.map(Beside::sentinel), &forget)?;
        let (reach, from) = match placed.origin {
            Origin::Terminal => (Reach::Child, "terminal".to_owned()),
            Origin::Group => (Reach::Child, "group".to_owned()),
            Origin::Job(pid) => (Reach::FromJob, pid.to_string()),
            Origin::Alone(pid) => (Reach::UsAlone, pid.to_string()),
        };
        if let (true, Some(beside)) = (signal == libc::SIGCONT && reach != Reach::Child, beside) {
            beside.go_on();
        }
        let reach = if self.early.has(signal) {
            Reach::UsAlone
        } else {
            reach
        };
        self.early = self.early.without(signal);
        Some(Happening::Signal {
            signal,
            name: signals::name(signal),
            reach,
            from,
            sender: placed.sender,
            ignored: signals::was_ignored(signal),
        })
    }

    /// Stops as the child was stopped, unless it goes on by now: whoever has continued the job
    /// won't do it again. A relay may have been stopped before us, and the shell have noticed.
    pub(super) fn stop(&mut self, signal: i32) {
        let (main, lives) = (self.child.pid(), !self.child.has_ended());
        // One that has ended is followed by nobody.
        let beside = self.beside.clone().filter(|_| lives);
        beside.as_ref().inspect(|b| b.stopping(main));
        self.relays.settle();
        self.relays.mirror();
        // A stop signal takes away a continuation that waits, which may be the child's as well.
        if Mask::pending().has(libc::SIGCONT)
            && let Some(continued) = self.place(libc::SIGCONT)
        {
            for action in self.state.handle(continued) {
                self.carry_out(action);
            }
        }
        let since = Instant::now();
        stop_if(signal, || {
            !lives || process::is_stopped(main) != Some(false)
        });
        self.stopper.was_stopped(since.elapsed());
        beside.inspect(|b| b.going_on());
        // Somebody has continued us, perhaps in a window of another size.
        self.relays.copy_sizes();
    }
}
