//! The shelf: one place, on which the newest scrape lies.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::export::Scrape;

/// The shelf.
#[derive(Default)]
pub struct Shelf {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    scrape: Arc<Scrape>,
    /// When it was laid there.
    since: Option<Instant>,
    number: u64,
    closed: bool,
    /// Those who write it somewhere and have to take it away again.
    writers: u32,
}

impl Shelf {
    /// This is the newest.
    pub fn put(&self, scrape: Scrape) {
        let mut state = self.state();
        state.scrape = Arc::new(scrape);
        state.since = Some(Instant::now());
        state.number += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// What lies there, and for how long.
    pub fn look(&self) -> (Arc<Scrape>, Duration) {
        let state = self.state();
        let age = state.since.map(|since| since.elapsed());
        (Arc::clone(&state.scrape), age.unwrap_or_default())
    }

    /// What comes after number `seen`, with its number; waits for it. None: there will be none.
    pub fn next(&self, seen: u64) -> Option<(u64, Arc<Scrape>)> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if state.number > seen {
                return Some((state.number, Arc::clone(&state.scrape)));
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Somebody will write it somewhere, until it is closed.
    pub fn writing(self: &Arc<Self>) -> Writing {
        self.state().writers += 1;
        Writing(Arc::clone(self))
    }

    /// Nothing comes any more. Waits, but not longer than this, until what was written is taken
    /// away again.
    pub fn close(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut state = self.state();
        state.closed = true;
        self.changed.notify_all();
        while state.writers > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As long as this lives, something that was written is still there.
pub struct Writing(Arc<Shelf>);

impl Drop for Writing {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.writers = state.writers.saturating_sub(1);
        drop(state);
        self.0.changed.notify_all();
    }
}
