//! One channel at work: alert after alert, each tried until it arrived, can't, or the run ends.
//!
//! Owns retries and their pauses, and that beside what is new the channel gets what was left of
//! earlier: by earlier runs, and by ours while it did not answer. Must not know what is in an
//! alert.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::model::{AlertState, Programs};

use super::channel::Means;
use super::failure::{Failure, Next};
use super::firing::Firing;
use super::http::Http;
use super::keeper::Keeper;
use super::letter::Letter;
use super::outbox::Kept;
use super::texts::Style;
use super::turns::Turns;

/// The first and the longest pause between two tries.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The pause between two tries while the run ends.
const HURRY: Duration = Duration::from_millis(500);
/// After so many tries (about seven minutes) an alert is old news, and is kept.
const TRIES: u32 = 12;
/// How long what is of earlier may go on after the run's end.
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked whether something of earlier waits.
const LOOK: Duration = Duration::from_secs(300);

/// What became of an alert on a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The channel's name.
    pub channel: String,
    /// The finding's name, or `run.finished`.
    pub about: String,
    /// Sent, failed, kept.
    pub state: AlertState,
    /// Why not.
    pub why: Option<String>,
    /// What it was before, if that is known already.
    pub was: Option<AlertState>,
    /// The run that it was about.
    pub of: String,
}

/// What all channels share.
pub struct Shared {
    /// Clients.
    pub http: Http,
    /// Who runs programs.
    pub programs: Arc<dyn Programs>,
    /// Keeps what is on its way.
    pub keeper: Keeper,
    /// How texts are written.
    pub style: Style,
    /// When everything must be over; none before the run ends.
    pub end: watch::Receiver<Option<Instant>>,
    /// Who is told what became of alerts.
    pub report: Box<dyn Fn(Fate)>,
}

/// A channel and its name.
pub struct Worker {
    /// As the profile calls it.
    pub name: String,
    /// How it sends.
    pub means: Means,
    /// Where that leads to, as a hash; `None` where what is late isn't wanted.
    place: Option<String>,
    /// What all channels share.
    shared: Rc<Shared>,
    /// The channel answers again.
    answers: Notify,
    /// Whether something was kept since then.
    left_some: Cell<bool>,
    /// Whether nothing of earlier is to be begun any more.
    leaves: Cell<bool>,
}

impl Worker {
    /// For a channel of this name, which leads to this place.
    pub fn new(name: String, means: Means, place: Option<String>, shared: Rc<Shared>) -> Self {
        Self {
            name,
            means,
            place,
            shared,
            answers: Notify::new(),
            left_some: Cell::default(),
            leaves: Cell::default(),
        }
    }

    /// Whether what doesn't arrive is kept.
    pub fn keeps(&self) -> bool {
        self.place.is_some()
    }

    /// An alert for this channel, as it is kept.
    pub fn kept(&self, letter: Letter, number: u64) -> Kept {
        let mut kept = Kept::new(&self.name, self.means.kind(), "it is on its way", letter);
        (kept.place, kept.number) = (self.place.clone(), number);
        kept
    }

    /// Sends what comes, until nothing more does.
    pub async fn run(self: Rc<Self>, mut inbox: mpsc::Receiver<Kept>) {
        let earlier = tokio::task::spawn_local(Rc::clone(&self).send_earlier());
        let mut closed = None;
        let mut firing = Firing::of(self.means.again());
        let mut turns = Turns::at(self.means.rate());
        loop {
            let kept = tokio::select! {
                kept = inbox.recv() => kept,
                () = firing.due() => {
                    self.say_again(&mut firing).await;
                    continue;
                }
            };
            let Some(kept) = kept else { break };
            for over in firing.hear(&kept.letter) {
                // Nobody has to know: it would go out by itself.
                let _ = self.once(&over).await;
            }
            self.wait_for_turn(&mut turns).await;
            let result = match &closed {
                Some(why) => Err(Failure::never(String::clone(why))),
                None if self.means.is_fleeting() && !kept.letter.is_end() => {
                    self.beat(&kept.letter).await
                }
                None => self.deliver(&kept).await,
            };
            match &result {
                Ok(()) if self.left_some.take() => self.answers.notify_one(),
                Err(failure) if failure.next == Next::Closed => closed = Some(failure.why.clone()),
                _ => {}
            }
            self.settle(kept, result, None).await;
        }
        self.leave(earlier).await;
    }

    /// What is of earlier gets a moment; one that is on its way gets another, so that it isn't
    /// sent a second time.
    async fn leave(&self, mut earlier: JoinHandle<()>) {
        for _ in 0..2 {
            if timeout(GRACE, &mut earlier).await.is_ok() {
                return;
            }
            self.leaves.set(true);
        }
        earlier.abort();
    }

    /// Sends what was left of earlier, in order and each once: at the start, when the channel
    /// answers again, and now and then. What is new never waits for it.
    async fn send_earlier(self: Rc<Self>) {
        let Some(place) = self.place.clone() else {
            return;
        };
        let keeper = &self.shared.keeper;
        loop {
            let mut pause = LOOK;
            let mut waiting = keeper.adopt(place.clone()).await.into_iter();
            while let Some(mut kept) = waiting.next().filter(|_| !self.leaves.get()) {
                kept.letter.style = self.shared.style.clone();
                let sent = self.try_kept(&kept).await;
                let Some(sent) = sent else { return };
                if let Err(failure) = &sent
                    && let Next::Later(wait) = failure.next
                {
                    pause = pause.max(wait.unwrap_or_default());
                    self.left_some.set(true);
                    for kept in [kept].into_iter().chain(waiting) {
                        keeper.give_back(kept).await;
                    }
                    break;
                }
                self.settle(kept, sent, Some(AlertState::Kept)).await;
            }
            // Not all channels at once.
            let pause = pause + pause.mul_f64(fastrand::f64() * 0.1);
            let mut end = self.shared.end.clone();
            tokio::select! {
                () = self.answers.notified() => {}
                () = sleep(pause) => {}
                _ = end.wait_for(Option::is_some) => return,
            }
        }
    }

    /// Waits until the service takes a message, or the run's end is over.
    async fn wait_for_turn(&self, turns: &mut Turns) {
        if let Some(then) = turns.next(Instant::now()) {
            tokio::select! {
                () = sleep_until(then) => {}
                () = self.over() => {}
            }
        }
        turns.take(Instant::now());
    }

    /// Says again what holds; what isn't heard now is said again soon.
    async fn say_again(&self, firing: &mut Firing) {
        for letter in firing.letters() {
            let _ = self.once(&letter).await;
        }
        firing.said();
    }

    /// One sign of life: a second try would be none.
    async fn beat(&self, letter: &Letter) -> Result<(), Failure> {
        let cut_short = || Failure::never("the run had ended");
        let result = self.once(letter).await.unwrap_or_else(|| Err(cut_short()));
        result.map_err(|failure| match failure.next {
            Next::Later(_) => Failure::never(failure.why),
            _ => failure,
        })
    }

    /// Tells what became of it, and keeps what may arrive another time. `was` is what has been
    /// told of it before.
    pub async fn settle(
        &self,
        mut kept: Kept,
        result: Result<(), Failure>,
        was: Option<AlertState>,
    ) {
        let about = kept.letter.alert.subject().to_owned();
        let of = kept.letter.run.id.clone();
        let keeper = &self.shared.keeper;
        let (state, why) = match result {
            Ok(()) if self.means.is_dry() => (AlertState::Shown, None),
            Ok(()) => {
                self.forget(kept).await;
                (AlertState::Sent, None)
            }
            Err(Failure {
                why,
                next: Next::Later(_),
            }) => {
                kept.why.clone_from(&why);
                if !self.keeps() {
                    (AlertState::Failed, Some(why))
                } else if keeper.give_back(kept).await {
                    self.left_some.set(true);
                    (AlertState::Kept, Some(why))
                } else {
                    let why = format!("{why}; it could not be kept either");
                    (AlertState::Failed, Some(why))
                }
            }
            Err(failure) => {
                self.forget(kept).await;
                (AlertState::Failed, Some(failure.why))
            }
        };
        (self.shared.report)(Fate {
            channel: self.name.clone(),
            about,
            state,
            why,
            was,
            of,
        });
    }

    /// One try; None if the end of the run cuts it short. A program must not be run twice,
    /// whatever becomes of us: its alert is no longer kept when it starts.
    async fn try_kept(&self, kept: &Kept) -> Option<Result<(), Failure>> {
        if matches!(self.means, Means::Command(_)) {
            self.forget(kept.clone()).await;
        }
        self.once(&kept.letter).await
    }

    async fn forget(&self, kept: Kept) {
        if self.keeps() {
            self.shared.keeper.forget(kept).await;
        }
    }

    async fn deliver(&self, kept: &Kept) -> Result<(), Failure> {
        let mut tries = 0;
        let mut answered = None;
        loop {
            let failure = match self.try_kept(kept).await {
                Some(Ok(())) => return Ok(()),
                Some(Err(failure)) => failure,
                None => return Err(self.cut_short(answered)),
            };
            let Next::Later(wait) = failure.next else {
                return Err(failure);
            };
            tries += 1;
            if tries == TRIES || !self.pause(tries, wait).await {
                return Err(failure);
            }
            answered = Some(failure);
        }
    }

    /// One try; None if the end of the run cuts it short.
    async fn once(&self, letter: &Letter) -> Option<Result<(), Failure>> {
        let Shared { http, programs, .. } = &*self.shared;
        tokio::select! {
            biased;
            result = self.means.send(http, programs, letter) => Some(result),
            () = self.over() => None,
        }
    }

    /// Why a try came to nothing that the end cut short. What was answered to one before it
    /// says more.
    fn cut_short(&self, answered: Option<Failure>) -> Failure {
        match &self.means {
            // It may have done its work: it must not be run twice.
            Means::Command(_) => Failure::never("it was still running when the run had ended"),
            _ => answered
                .unwrap_or_else(|| Failure::later("there was no answer when the run had ended")),
        }
    }

    /// Waits before the next try; false if there will be none, because the run ends before.
    async fn pause(&self, tries: u32, wait: Option<Duration>) -> bool {
        let now = Instant::now();
        let ending = self.shared.end.borrow().is_some();
        let then = match wait {
            // Never early, and not all at once.
            Some(wait) => now + wait + wait.mul_f64(fastrand::f64() * 0.1).min(PAUSE.0),
            None if ending => now + HURRY,
            None => now + backoff(tries, fastrand::f64()),
        };
        let mut end = self.shared.end.clone();
        let too_late = |end: Option<Instant>| end.is_some_and(|end| then >= end);
        if too_late(*end.borrow()) {
            return false;
        }
        tokio::select! {
            () = sleep_until(then) => true,
            end = end.wait_for(Option::is_some), if !ending => {
                // Without an end there is nobody left who could say one.
                let Ok(end) = end.map(|end| *end) else { return false };
                match wait {
                    // Our own pause is cut short: there is little time left.
                    None => true,
                    Some(_) if too_late(end) => false,
                    Some(_) => {
                        sleep_until(then).await;
                        true
                    }
                }
            }
        }
    }

    /// Ends when the time after the run's end is up.
    async fn over(&self) {
        let mut end = self.shared.end.clone();
        let end = end.wait_for(Option::is_some).await.map_or(None, |end| *end);
        match end {
            Some(end) => sleep_until(end).await,
            // Nobody will ever say so.
            None => std::future::pending().await,
        }
    }
}

/// Doubles up to a cap; between half of it and all of it, so that many don't come at once.
/// `random` is from 0 to 1.
fn backoff(tries: u32, random: f64) -> Duration {
    let doubled = PAUSE.0.saturating_mul(2_u32.saturating_pow(tries - 1));
    doubled.min(PAUSE.1).mul_f64(0.5 + random / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_cap_and_differ() {
        assert_eq!(backoff(1, 1.0), Duration::from_secs(1));
        assert_eq!(backoff(1, 0.0), Duration::from_millis(500));
        assert_eq!(backoff(4, 1.0), Duration::from_secs(8));
        assert_eq!(backoff(40, 1.0), Duration::from_secs(60));
    }
}
