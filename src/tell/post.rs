//! The way of an alert from the policy to the channels.
//!
//! Owns the channels' queues, and that an alert is kept before anybody tries to send it: also
//! while the policy still holds it back, since whoever kills us doesn't wait for it.

use std::rc::Rc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::alert::{Alert, RunFacts, State};
use super::channel::{Channels, Means};
use super::failure::Failure;
use super::letter::Letter;
use super::outbox::Kept;
use super::policy::Send as Outgoing;
use super::worker::{Shared, Worker};

/// Alerts that may wait for a channel.
const QUEUE: usize = 64;

/// What tells whether what the policy holds back is kept as it is: a count only roughly.
type Mark = (Vec<String>, String, State, u32);

/// The channels at work.
pub struct Post {
    channels: Vec<(Rc<Worker>, mpsc::Sender<Kept>)>,
    working: Vec<JoinHandle<()>>,
    shared: Rc<Shared>,
    held: Vec<Kept>,
    marks: Vec<Mark>,
}

impl Post {
    /// Sets the channels to work.
    pub fn open(channels: Channels, shared: &Rc<Shared>) -> Self {
        let mut post = Self {
            channels: Vec::new(),
            working: Vec::new(),
            shared: Rc::clone(shared),
            held: Vec::new(),
            marks: Vec::new(),
        };
        for (name, means) in channels.means {
            let place = channels.places.get(&name).cloned();
            let worker = Rc::new(Worker::new(name, means, place, Rc::clone(shared)));
            let (queue, inbox) = mpsc::channel(QUEUE);
            let work = Rc::clone(&worker).run(inbox);
            post.working.push(tokio::task::spawn_local(work));
            post.channels.push((worker, queue));
        }
        post
    }

    /// A sign of life, for the switches.
    pub fn beat(&self, alert: Alert, run: &RunFacts) {
        let letter = Letter::new(alert, run.clone(), self.shared.style.clone());
        let are_switches = |means: &Means| means.is_fleeting();
        for (worker, queue) in self.channels.iter().filter(|(w, _)| are_switches(&w.means)) {
            // A full queue has heard enough.
            let _ = queue.try_send(worker.kept(letter.clone(), 0));
        }
    }

    /// These go to their channels now, and those are held back. One whose queue is full has its
    /// alert kept.
    pub async fn put(&mut self, sends: &[Outgoing], held: &[Outgoing], run: &RunFacts) {
        let sends = self.addressed(sends, run);
        let marks: Vec<Mark> = held.iter().map(mark).collect();
        let (mut kept, mut instead_of) = (Vec::new(), Vec::new());
        let is_kept = |(at, _): &&(usize, Kept)| self.worker(*at).is_some_and(Worker::keeps);
        kept.extend(sends.iter().filter(is_kept).map(|(_, kept)| kept.clone()));
        if marks != self.marks {
            let held = self.addressed(held, run);
            let held: Vec<Kept> = held
                .iter()
                .filter(is_kept)
                .map(|(_, k)| k.clone())
                .collect();
            kept.extend(held.iter().cloned());
            instead_of = std::mem::replace(&mut self.held, held);
            self.marks = marks;
        }
        self.shared.keeper.take(kept, instead_of).await;
        for (at, kept) in sends {
            let Some((worker, queue)) = self.channels.get(at) else {
                continue;
            };
            if let Err(error) = queue.try_send(kept) {
                let why = "too many alerts wait for this channel";
                let result = Err(Failure::later(why));
                worker.settle(error.into_inner(), result, None).await;
            }
        }
    }

    /// Nothing more comes: waits until all is done.
    pub async fn close(self) {
        drop(self.channels);
        for worker in self.working {
            // One that panicked has nothing to say.
            let _ = worker.await;
        }
    }

    fn worker(&self, at: usize) -> Option<&Worker> {
        self.channels.get(at).map(|(worker, _)| worker.as_ref())
    }

    /// For each channel, by its place among them.
    fn addressed(&self, sends: &[Outgoing], run: &RunFacts) -> Vec<(usize, Kept)> {
        let mut all = Vec::new();
        for send in sends {
            let run = send.run.as_deref().unwrap_or(run).clone();
            let letter = Letter::new(send.alert.clone(), run, self.shared.style.clone());
            for (at, (worker, _)) in self.channels.iter().enumerate() {
                if send.to.contains(&worker.name) {
                    let number = self.shared.keeper.number();
                    all.push((at, worker.kept(letter.clone(), number)));
                }
            }
        }
        all
    }
}

fn mark(send: &Outgoing) -> Mark {
    let alert = &send.alert;
    let roughly = (alert.more + 1).ilog2();
    (
        send.to.clone(),
        alert.subject().to_owned(),
        alert.state,
        roughly,
    )
}
