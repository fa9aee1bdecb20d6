//! Who tells: this run by itself, or the ranks of its job together.
//!
//! Owns the joining of the policy with the job's book. A folder that doesn't answer is given up
//! after a moment, and from then on the run tells for itself: better told twice than lost.

use std::io;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::model::{Seat, Stamp};

use super::folder::{Folder, Turn, machine_s};
use super::policy::{Happening, Policy, Send};
use super::ranks::Ranks;

/// How long the folder may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the book is looked into, seconds.
const LOOK_S: f64 = 1.0;

/// The ranks of our job.
struct Job {
    ranks: Ranks,
    folder: Folder,
    look_s: f64,
}

/// Decides, alone or with others.
pub struct Speaker {
    policy: Policy,
    job: Option<Job>,
}

impl Speaker {
    /// With the ranks of this seat's job, if it has one and they can be joined.
    pub async fn new(policy: Policy, seat: Option<Seat>, run: &str, now: &Stamp) -> Self {
        let mut job = None;
        if let Some(seat) = seat {
            let rank = seat.rank;
            let joined = patiently(move || Folder::join(&seat)).await;
            job = joined.ok().map(|folder| Job {
                ranks: Ranks::new(rank, run, machine_s() - now.elapsed_s),
                folder,
                look_s: now.elapsed_s,
            });
        }
        Self { policy, job }
    }

    /// When time alone makes something due, in `elapsed_s`.
    pub fn due_s(&self) -> Option<f64> {
        let looks = self.job.as_ref().map(|job| job.look_s);
        let due = [self.policy.due_s(), looks].into_iter().flatten();
        due.min_by(f64::total_cmp)
    }

    /// What is to be sent now.
    pub async fn handle(&mut self, at: &Stamp, happening: Happening) -> Vec<Send> {
        let Some(mut job) = self.job.take() else {
            return self.policy.handle(at, happening);
        };
        let news = !matches!(happening, Happening::Progress { .. } | Happening::Tick);
        let rest = job.ranks.hear(happening);
        if !news
            && self.due_s().is_none_or(|due_s| due_s > at.elapsed_s)
            && job.look_s > at.elapsed_s
        {
            self.job = Some(job);
            let quiet = rest.into_iter();
            return quiet.flat_map(|h| self.policy.handle(at, h)).collect();
        }
        let Job {
            mut ranks, folder, ..
        } = job;
        let opened = patiently(move || folder.turn().map(|turn| (folder, turn))).await;
        let Ok((folder, mut turn)) = opened else {
            return self.alone(at, &ranks, rest);
        };
        let leaves = matches!(rest, Some(Happening::Ended(_)));
        let (mut sends, is_last) = self.decide(at, &mut ranks, &mut turn, rest);
        if is_last {
            // What stays is swept by the next job.
            let _ = patiently(move || {
                folder.take_away(turn);
                Ok(())
            })
            .await;
            return sends;
        }
        let closed = patiently(move || folder.put_back(&turn).map(|()| folder)).await;
        match closed {
            // Nobody may find us there any more.
            _ if leaves => {}
            Ok(folder) => {
                let look_s = at.elapsed_s + LOOK_S;
                self.job = Some(Job {
                    ranks,
                    folder,
                    look_s,
                });
            }
            Err(_) => sends.extend(self.alone(at, &ranks, None)),
        }
        sends
    }

    /// What would be sent if this were the end.
    pub fn waiting(&self, at: &Stamp) -> Vec<Send> {
        self.policy.waiting(at)
    }

    /// With the book in our hands; whether we were the last to hold it.
    fn decide(
        &mut self,
        at: &Stamp,
        ranks: &mut Ranks,
        turn: &mut Turn,
        rest: Option<Happening>,
    ) -> (Vec<Send>, bool) {
        let mut heard = ranks.visit(&mut turn.book, &turn.present, machine_s());
        let mut is_last = false;
        let mut sends = Vec::new();
        let end = match rest {
            Some(Happening::Ended(end)) => Some(end),
            Some(Happening::Started) => {
                heard.extend(ranks.starts(&mut turn.book));
                None
            }
            other => {
                heard.extend(other);
                None
            }
        };
        for happening in heard {
            sends.extend(self.policy.handle(at, happening));
        }
        if let Some(end) = end {
            let (last, only_we) = ranks.leave(&mut turn.book, &turn.present, end);
            is_last = only_we;
            for happening in last {
                sends.extend(self.policy.handle(at, happening));
            }
        }
        ranks.told(&mut turn.book, self.policy.known());
        (sends, is_last)
    }

    /// Without the others, for good.
    fn alone(&mut self, at: &Stamp, ranks: &Ranks, rest: Option<Happening>) -> Vec<Send> {
        let heard = ranks.alone().into_iter().chain(rest);
        heard.flat_map(|h| self.policy.handle(at, h)).collect()
    }
}

/// Off this thread, which goes on if it takes too long.
async fn patiently<T: std::marker::Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + std::marker::Send + 'static,
) -> io::Result<T> {
    match timeout(PATIENCE, spawn_blocking(work)).await {
        Ok(Ok(done)) => done,
        Ok(Err(panicked)) => Err(io::Error::other(panicked)),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
