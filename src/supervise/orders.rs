//! What a profile wants done to the job because of a finding, on its way from the scribe to the
//! main thread, which alone may signal (it reaps, so that no PID is another's by then).
//!
//! Owns that evidence comes first: what stands behind `stacks` waits for them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::act::stacks;
use crate::model::{ActSettings, Action, Restart};

use super::state::{Deed, Order};

/// Evidence that still hasn't come this much after its own limit is waited for no more.
const LATE: Duration = Duration::from_secs(3);

/// Orders, and the bell that calls the main thread.
pub struct Orders {
    /// Findings after which a stop is followed by another start.
    again: Vec<String>,
    held: Mutex<Held>,
    bell: EventFd,
}

/// What the command ended of; None: nobody knows.
pub struct Answer(pub Option<String>);

#[derive(Default)]
struct Held {
    /// To be carried out.
    ready: Vec<Order>,
    /// To be carried out when the finding's evidence is there, or at that time.
    waiting: Vec<(Order, Instant)>,
    /// What the command ended of, once that is asked and known.
    answer: Option<Answer>,
}

impl Orders {
    /// None where nothing may ever be ordered. To be had before there is a child.
    pub fn wanted(act: &ActSettings, restart: &Restart) -> io::Result<Option<Arc<Self>>> {
        if !act.reach_the_job() && restart.on.is_empty() {
            return Ok(None);
        }
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Some(Arc::new(Self {
            again: restart.on.clone(),
            held: Mutex::default(),
            bell: EventFd::from_value_and_flags(0, flags)?,
        })))
    }

    /// This finding calls for this action. `after_evidence`: its stacks are being taken.
    pub fn give(&self, finding: &str, action: &Action, after_evidence: bool) {
        let deed = match action {
            Action::Signal(name) => Deed::Signal(name),
            Action::Stop if self.again.iter().any(|name| name == finding) => Deed::Restart,
            Action::Stop => Deed::Stop,
            Action::Restart => Deed::Restart,
            Action::Stacks | Action::Command(_) => return,
        };
        let order = Order {
            deed,
            finding: finding.to_owned(),
        };
        self.with(|held| {
            if after_evidence {
                let until = Instant::now() + stacks::WITHIN + LATE;
                held.waiting.push((order, until));
            } else {
                held.ready.push(order);
            }
        });
    }

    /// The finding's evidence is kept.
    pub fn evidence_is_there(&self, finding: &str) {
        self.release(|order, _| order.finding == finding);
    }

    /// The finding no longer holds: what nobody has begun isn't done.
    pub fn cleared(&self, finding: &str) {
        self.with(|held| {
            held.waiting.retain(|(order, _)| order.finding != finding);
            held.ready.retain(|order| order.finding != finding);
        });
    }

    /// Some time has passed.
    pub fn look(&self) {
        let now = Instant::now();
        self.release(|_, until| now >= until);
    }

    /// The command ended of this, as the judge sees it.
    pub fn answer(&self, cause: Option<String>) {
        self.with(|held| held.answer = Some(Answer(cause)));
    }

    /// What it ended of, if that is known by now.
    pub fn take_answer(&self) -> Option<Answer> {
        self.with(|held| held.answer.take())
    }

    /// What is to be done now.
    pub fn take(&self) -> Vec<Order> {
        // Nothing to read: this was a look without a cause.
        let _ = self.bell.read();
        self.with(|held| std::mem::take(&mut held.ready))
    }

    fn release(&self, is_meant: impl Fn(&Order, Instant) -> bool) {
        self.with(|held| {
            let (go, stay) = std::mem::take(&mut held.waiting)
                .into_iter()
                .partition(|(order, until)| is_meant(order, *until));
            held.waiting = stay;
            let go: Vec<_> = go;
            held.ready.extend(go.into_iter().map(|(order, _)| order));
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let done = change(&mut held);
        if !held.ready.is_empty() || held.answer.is_some() {
            // Can only fail if the counter is full, and then it is readable anyway.
            let _ = self.bell.write(1);
        }
        done
    }
}

impl AsFd for Orders {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
