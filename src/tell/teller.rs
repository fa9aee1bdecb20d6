//! The thread that tells: it hears what happens, asks the policy, and has the channels send.
//!
//! Owns the inbox and the end. Whoever hands something over never waits, and the end waits no
//! longer than it is told; a thread that hangs is left behind.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel as std_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};

use crate::model::{AlertState, Event, Programs, Seat, Stamp};

use super::alert::RunFacts;
use super::channel::Channels;
use super::http::Http;
use super::keeper::Keeper;
use super::outbox::Outbox;
use super::policy::{Happening, Policy, Pulse};
use super::post::Post;
use super::preview::Previews;
use super::speaker::Speaker;
use super::texts::Style;
use super::worker::{Fate, Shared};

/// Happenings that may wait for the policy.
const INBOX: usize = 1024;
/// Of the time for the end, what is left for keeping what was not sent.
const RESERVE: Duration = Duration::from_millis(500);

/// The run as the teller needs it.
pub struct Edges {
    /// The run's clock.
    pub clock: Box<dyn Fn() -> Stamp + Send>,
    /// Gets an `alert` event for what became of each alert on each channel, and `dropped` for
    /// what was lost before. Called from the teller's thread; must not wait.
    pub report: Box<dyn Fn(Event) + Send>,
    /// Who runs programs that are no part of the job.
    pub programs: Arc<dyn Programs>,
    /// Where what can't be sent is kept.
    pub outbox: Option<Outbox>,
    /// Our rank among those of a job, which tell together.
    pub seat: Option<Seat>,
}

/// What became of all alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Delivered.
    pub sent: u32,
    /// Given up.
    pub failed: u32,
    /// Kept for the next run, or `gpuwatch alert flush`.
    pub kept: u32,
    /// The first that did not arrive: `team: no answer`.
    pub first_why: Option<String>,
    /// Whether the teller was still at work when the time was up.
    pub late: bool,
    /// Whether a panic has ended it.
    pub broken: bool,
    /// What would have been sent, in a dry run.
    pub previews: String,
}

impl Told {
    /// One sentence for the summary, if not everything arrived.
    pub fn problem(&self) -> Option<String> {
        let lost = self.failed + self.kept;
        if self.broken {
            let text = "alerts may be missing: a defect in gpuwatch has ended the thread that sends them; please report it";
            return Some(text.to_owned());
        }
        let why = self.first_why.as_deref().unwrap_or("no time was left");
        if self.late && lost == 0 {
            return Some("alerts may be missing: sending them took too long".to_owned());
        }
        let noun = if lost == 1 { "alert" } else { "alerts" };
        match (lost, self.kept) {
            (0, _) => None,
            (lost, 0) => Some(format!("{lost} {noun} not sent ({why})")),
            (lost, _) => Some(format!(
                "{lost} {noun} not sent ({why}): the next run, or 'gpuwatch alert flush', sends what is kept"
            )),
        }
    }
}

enum Word {
    Happened(Happening),
    Facts(Box<RunFacts>),
}

/// A way to the teller; copies are cheap. The default leads nowhere.
#[derive(Clone, Default)]
pub struct Inlet {
    words: Option<mpsc::Sender<Word>>,
    lost: Arc<AtomicU64>,
}

impl Inlet {
    /// Something happened. Never waits: what finds the inbox full is counted.
    pub fn tell(&self, happening: Happening) {
        self.put(Word::Happened(happening));
    }

    /// More is known of the run.
    pub fn know(&self, run: RunFacts) {
        self.put(Word::Facts(Box::new(run)));
    }

    fn put(&self, word: Word) {
        let Some(words) = &self.words else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = words.try_send(word) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The teller of one run.
pub struct Teller {
    inlet: Inlet,
    end: watch::Sender<Option<Instant>>,
    done: Option<Receiver<()>>,
    told: Arc<Mutex<Told>>,
    previews: Option<Previews>,
}

impl Teller {
    /// Starts its thread; without a channel there is none, and nothing is ever told.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(channels: Channels, run: RunFacts, edges: Edges) -> std::io::Result<Self> {
        let (end, until) = watch::channel(None);
        let told = Arc::new(Mutex::new(Told::default()));
        let lost = Arc::new(AtomicU64::new(0));
        let previews = channels.previews.clone();
        if channels.is_empty() {
            let inlet = Inlet { words: None, lost };
            return Ok(Self {
                inlet,
                end,
                done: None,
                told,
                previews,
            });
        }
        let (words, inbox) = mpsc::channel(INBOX);
        let (finished, done) = std_channel();
        let desk = Desk {
            inbox,
            run,
            end: until,
            lost: Arc::clone(&lost),
            told: Arc::clone(&told),
        };
        thread::Builder::new()
            .name("teller".to_owned())
            .spawn(move || {
                desk.work(channels, edges);
                // Nobody waits any more if the time was up.
                let _ = finished.send(());
            })?;
        Ok(Self {
            inlet: Inlet {
                words: Some(words),
                lost,
            },
            end,
            done: Some(done),
            told,
            previews,
        })
    }

    /// A way to it for another thread.
    pub fn inlet(&self) -> Inlet {
        self.inlet.clone()
    }

    /// Something happened. Never waits.
    pub fn tell(&self, happening: Happening) {
        self.inlet.tell(happening);
    }

    /// The end: what was handed over before is still sent, within this time in all (DESIGN
    /// gives it 5 s). `Happening::Ended` comes before.
    pub fn finish(self, within: Duration) -> Told {
        let deadline = Instant::now() + within;
        let reserve = RESERVE.min(within / 4);
        self.end.send_replace(Some(deadline - reserve));
        let ended = self.done.map_or(Ok(()), |done| {
            done.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        });
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        Told {
            late: ended == Err(RecvTimeoutError::Timeout),
            broken: ended == Err(RecvTimeoutError::Disconnected),
            previews: self.previews.map_or_else(String::new, |p| p.take()),
            ..told.clone()
        }
    }
}

/// What the thread works with.
struct Desk {
    inbox: mpsc::Receiver<Word>,
    run: RunFacts,
    end: watch::Receiver<Option<Instant>>,
    lost: Arc<AtomicU64>,
    told: Arc<Mutex<Told>>,
}

impl Desk {
    fn work(self, channels: Channels, edges: Edges) {
        let made = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = made else {
            (edges.report)(Event::Dropped {
                what: "alerts".to_owned(),
                n: 1,
            });
            return;
        };
        LocalSet::new().block_on(&runtime, self.listen(channels, edges));
        // A name that is being looked up, or a program that hangs, holds nothing up.
        runtime.shutdown_background();
    }

    async fn listen(mut self, channels: Channels, edges: Edges) {
        let policy = Policy::new(&channels.settings, channels.desktop);
        let mut speaker = Speaker::new(policy, edges.seat, &self.run.id, &(edges.clock)()).await;
        let style = channels.style.clone();
        let report: Rc<dyn Fn(Event)> = Rc::new(edges.report);
        let keeper = Keeper::new(edges.outbox);
        let shared = self.shared(&report, edges.programs, (keeper, style));
        let mut pulse = Pulse::default();
        let mut post = Post::open(channels, &shared);
        while let Some(word) = self.next(&speaker, &edges.clock).await {
            match word {
                Word::Happened(happening) => {
                    let at = (edges.clock)();
                    if let Some(alert) = pulse.hear(&at, &happening) {
                        post.beat(alert, &self.run);
                    }
                    let sends = speaker.handle(&at, happening).await;
                    post.put(&sends, &speaker.waiting(&at), &self.run).await;
                }
                Word::Facts(run) => self.run = *run,
            }
        }
        post.close().await;
        let lost = [
            ("alerts", self.lost.load(Ordering::Relaxed)),
            ("kept alerts", shared.keeper.lost()),
        ];
        for (what, n) in lost.into_iter().filter(|(_, n)| *n > 0) {
            report(Event::Dropped {
                what: what.to_owned(),
                n,
            });
        }
    }

    /// What comes next; `None` when the run has ended and all that was handed over before is
    /// heard.
    async fn next(&mut self, speaker: &Speaker, clock: &dyn Fn() -> Stamp) -> Option<Word> {
        let due = speaker.due_s().map_or_else(far_away, |due_s| {
            let left_s = (due_s - clock().elapsed_s).clamp(0.0, 3600.0);
            Instant::now() + Duration::from_secs_f64(left_s)
        });
        tokio::select! {
            biased;
            word = self.inbox.recv() => word,
            _ = self.end.wait_for(Option::is_some) => self.inbox.try_recv().ok(),
            () = sleep_until(due) => Some(Word::Happened(Happening::Tick)),
        }
    }

    fn shared(
        &self,
        report: &Rc<dyn Fn(Event)>,
        programs: Arc<dyn Programs>,
        (keeper, style): (Keeper, Style),
    ) -> Rc<Shared> {
        let (report, told) = (Rc::clone(report), Arc::clone(&self.told));
        let ours = self.run.id.clone();
        Rc::new(Shared {
            http: Http::default(),
            programs,
            keeper,
            style,
            end: self.end.clone(),
            report: Box::new(move |fate| {
                // Where many jobs are watched there is no run of our own.
                let is_ours = fate.was.is_none() || fate.of == ours || ours.is_empty();
                let about = if is_ours {
                    count(&told, &fate);
                    fate.about
                } else {
                    format!("{} of {}", fate.about, fate.of)
                };
                report(Event::Alert {
                    channel: fate.channel,
                    about,
                    state: fate.state,
                    why: fate.why,
                });
            }),
        })
    }
}

fn count(told: &Mutex<Told>, fate: &Fate) {
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    if fate.was == Some(AlertState::Kept) {
        told.kept = told.kept.saturating_sub(1);
    }
    match fate.state {
        AlertState::Sent => told.sent += 1,
        AlertState::Failed => told.failed += 1,
        AlertState::Kept => told.kept += 1,
        AlertState::Shown => {}
    }
    if let Some(why) = &fate.why {
        told.first_why
            .get_or_insert_with(|| format!("{}: {why}", fate.channel));
    }
}

/// As long as makes no difference.
fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
