//! The outbox as the teller uses it.
//!
//! Owns that a file system which doesn't answer holds up no alert: the outbox is used off the
//! teller's thread, is given a moment, and is left alone until it has answered after that. Better
//! not kept than not sent.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::outbox::{Kept, Outbox, Sender};

/// How long the outbox may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// A way to the outbox.
#[derive(Debug, Default)]
pub struct Keeper {
    desk: Option<Arc<Desk>>,
    /// What took too long, until it is done.
    stuck: RefCell<Option<JoinHandle<()>>>,
    /// How many alerts had to go for others.
    lost: Cell<u64>,
    number: Cell<u64>,
}

#[derive(Debug)]
struct Desk {
    outbox: Outbox,
    sender: Mutex<Option<Sender>>,
}

impl Desk {
    /// With our place among the senders, which is taken when it is first needed.
    fn with<T>(&self, work: impl FnOnce(&Sender) -> io::Result<T>) -> io::Result<T> {
        let mut place = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = match place.take() {
            Some(sender) => sender,
            None => self.outbox.sender()?,
        };
        work(place.insert(sender))
    }
}

impl Keeper {
    /// Of this outbox; without one nothing is kept.
    pub fn new(outbox: Option<Outbox>) -> Self {
        let desk = outbox.map(|outbox| {
            Arc::new(Desk {
                outbox,
                sender: Mutex::default(),
            })
        });
        Self {
            desk,
            ..Self::default()
        }
    }

    /// The next number.
    pub fn number(&self) -> u64 {
        self.number.replace(self.number.get() + 1)
    }

    /// How many alerts had to go for others.
    pub fn lost(&self) -> u64 {
        self.lost.get()
    }

    /// Keeps alerts before they are tried, and forgets others that they stand for.
    pub async fn take(&self, alerts: Vec<Kept>, instead_of: Vec<Kept>) {
        if alerts.is_empty() && instead_of.is_empty() {
            return;
        }
        let work = move |desk: &Desk| {
            let lost = desk.with(|sender| {
                let kept = alerts.iter().map(|kept| sender.take(kept));
                kept.sum::<io::Result<u64>>()
            });
            for kept in &instead_of {
                desk.outbox.forget(kept)?;
            }
            lost
        };
        if let Ok(lost) = self.patiently(work).await {
            self.lost.set(self.lost.get() + lost);
        }
    }

    /// Keeps one for whoever takes it over; whether that worked.
    pub async fn give_back(&self, kept: Kept) -> bool {
        let given = self.patiently(move |desk| desk.with(|sender| sender.give_back(&kept)));
        match given.await {
            Ok(lost) => {
                self.lost.set(self.lost.get() + lost);
                true
            }
            Err(_) => false,
        }
    }

    /// It arrived, or never will; whether it will not be found again.
    pub async fn forget(&self, kept: Kept) -> bool {
        let forgot = self.patiently(move |desk| desk.outbox.forget(&kept));
        self.desk.is_none() || forgot.await.is_ok()
    }

    /// Takes over what waits for this place.
    pub async fn adopt(&self, place: String) -> Vec<Kept> {
        let work = move |desk: &Desk| {
            // Mostly there is nothing, and nothing to be made.
            let (kept, _) = desk.outbox.list()?;
            let is_ours = |kept: &Kept| kept.place.as_ref() == Some(&place);
            if !kept.iter().any(|(_, kept)| is_ours(kept)) {
                return Ok(Vec::new());
            }
            desk.with(|sender| sender.adopt(is_ours))
        };
        self.patiently(work).await.unwrap_or_default()
    }

    /// Off this thread, which goes on if it takes too long.
    async fn patiently<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Desk) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let is_stuck = |stuck: &JoinHandle<()>| !stuck.is_finished();
        let Some(desk) = self.desk.clone() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if self.stuck.borrow().as_ref().is_some_and(is_stuck) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (answer, answered) = oneshot::channel();
        let working = spawn_blocking(move || {
            // Nobody waits for it any more if it took too long.
            let _ = answer.send(work(&desk));
        });
        match timeout(PATIENCE, answered).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(io::Error::other("it panicked")),
            Err(_) => {
                self.stuck.replace(Some(working));
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }
}
