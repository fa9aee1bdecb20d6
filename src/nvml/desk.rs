//! What the helper's two threads share: orders, the call in progress, the way out.
//!
//! Owns the locks, each held for moments only: never during an NVML call, so that the main
//! thread can't be caught by one that hangs.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{FromHelper, Watched};
use super::wire::Outbox;

/// How long a call may take before it is reported.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// What to watch, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Which GPUs.
    pub gpus: Watched,
    /// From tick to tick.
    pub interval: Duration,
}

/// Orders as they stand; the number changes with each.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// None: no ticks.
    pub watch: Option<Watch>,
    /// Tells new orders from old ones.
    pub number: u64,
}

#[derive(Debug)]
struct InCall {
    call: &'static str,
    gpu: Option<u32>,
    since: Instant,
    told: bool,
}

/// The shared state.
#[derive(Debug)]
pub struct Desk {
    orders: Mutex<Orders>,
    ordered: Condvar,
    in_call: Mutex<Option<InCall>>,
    out: Mutex<Outbox>,
}

/// A poisoned lock guards nothing that a panic could have left half done here.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    /// A desk without orders that speaks over this socket.
    pub fn new(socket: Arc<OwnedFd>) -> Self {
        Self {
            orders: Mutex::default(),
            ordered: Condvar::new(),
            in_call: Mutex::default(),
            out: Mutex::new(Outbox::new(socket)),
        }
    }

    /// Says something to the supervisor. One that has gone or doesn't read misses it.
    pub fn say(&self, message: &FromHelper) {
        let _ = hold(&self.out).send(message);
    }

    /// Sends what a full socket kept back; true if some still waits.
    pub fn flush(&self) -> bool {
        let mut out = hold(&self.out);
        let _ = out.flush();
        out.is_waiting()
    }

    /// Gives new orders.
    pub fn order(&self, watch: Option<Watch>) {
        let mut orders = hold(&self.orders);
        orders.watch = watch;
        orders.number += 1;
        self.ordered.notify_all();
    }

    /// Waits until the orders are other ones than `seen`, or it is `until`; the orders as they stand.
    pub fn wait(&self, seen: u64, until: Option<Instant>) -> Orders {
        let mut orders = hold(&self.orders);
        while orders.number == seen {
            let Some(until) = until else {
                orders = self
                    .ordered
                    .wait(orders)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            orders = self
                .ordered
                .wait_timeout(orders, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        orders.clone()
    }

    /// Makes an NVML call under the eyes of the main thread.
    pub fn during<T>(&self, call: &'static str, gpu: Option<u32>, f: impl FnOnce() -> T) -> T {
        *hold(&self.in_call) = Some(InCall {
            call,
            gpu,
            since: Instant::now(),
            told: false,
        });
        // A call that panics has ended as well.
        let _ends = CallEnds(self);
        f()
    }

    /// Reports a call that takes too long, once; when to look again.
    ///
    /// A call that begins after this look can't be overdue before the time given here.
    pub fn look(&self, now: Instant) -> Instant {
        let mut in_call = hold(&self.in_call);
        let Some(call) = in_call.as_mut().filter(|c| !c.told) else {
            return now + PATIENCE;
        };
        let for_ = now.saturating_duration_since(call.since);
        if for_ <= PATIENCE {
            return call.since + PATIENCE + Duration::from_millis(1);
        }
        call.told = true;
        // Said under the lock: the call's own end can't overtake the report.
        self.say(&FromHelper::Stuck {
            call: call.call.to_owned(),
            gpu: call.gpu,
            for_s: for_.as_secs_f64(),
        });
        now + PATIENCE
    }
}

/// Notes the end of a call when it is dropped.
struct CallEnds<'d>(&'d Desk);

impl Drop for CallEnds<'_> {
    fn drop(&mut self) {
        let told = hold(&self.0.in_call).take().is_some_and(|c| c.told);
        if told {
            self.0.say(&FromHelper::Unstuck);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::nvml::wire::Inbox;

    fn desk() -> (Desk, Inbox) {
        let (a, b) = UnixStream::pair().unwrap();
        (
            Desk::new(Arc::new(a.into())),
            Inbox::new(Arc::new(b.into())),
        )
    }

    #[test]
    fn a_call_that_hangs_is_reported_once_and_so_is_its_end() {
        let (desk, mut heard) = desk();
        let start = Instant::now();
        assert_eq!(desk.look(start), start + PATIENCE);
        desk.during("nvmlDeviceGetName", Some(1), || {
            let soon = Instant::now() + Duration::from_secs(1);
            assert!(desk.look(soon) < soon + PATIENCE);
            assert_eq!(heard.receive::<FromHelper>(), Ok(vec![]));
            desk.look(soon + PATIENCE);
            desk.look(soon + PATIENCE * 2);
        });
        let messages = heard.receive::<FromHelper>().unwrap();
        assert_eq!(messages.len(), 2);
        assert!(matches!(
            &messages[0],
            FromHelper::Stuck { call, gpu: Some(1), for_s } if call == "nvmlDeviceGetName" && *for_s > 3.0
        ));
        assert_eq!(messages[1], FromHelper::Unstuck);
    }

    #[test]
    fn waiting_ends_with_new_orders_or_in_time() {
        let (desk, _heard) = desk();
        let orders = desk.wait(0, Some(Instant::now()));
        assert_eq!((orders.number, orders.watch), (0, None));
        let watch = Watch {
            gpus: Watched::All,
            interval: Duration::from_secs(1),
        };
        desk.order(Some(watch.clone()));
        let orders = desk.wait(0, None);
        assert_eq!((orders.number, orders.watch), (1, Some(watch)));
    }
}
