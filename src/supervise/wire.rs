//! One run, from the request to the end: joins the rooms and carries out what `state` decides.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::launch::child::{Child, reap_orphans};
use crate::launch::relay::Relays;
use crate::launch::sentinel::Sentinel;
use crate::launch::signals::{self, Arrivals};
use crate::launch::streams::Streams;
use crate::launch::terminal::in_foreground;
use crate::model::{Exit, Leftovers, Tap};
use crate::place::claims::Claim;
use crate::plan::resolve::Resolved;
use crate::sys::defect::{caught, quiet, sentence};
use crate::sys::signals::{Mask, take};
use crate::sys::spawn::Unspawned;
use crate::sys::{fault, process};

use again::Again;

use super::beside::Beside;
use super::clock::RunClock;
use super::metrics;
use super::orders::Orders;
use super::prepare::{self, Asked, Prepared};
use super::ring::Ring;
use super::say::say;
use super::state::{Action, Happening, State};
use super::stopper::Stopper;
use super::watchers::{Bells, Watchers, Watching};

pub use super::prepare::dry_run;
pub use super::request::{Ending, Refused, Request, Runner};

#[path = "aftermath.rs"]
mod aftermath;
#[path = "again.rs"]
mod again;
#[path = "deeds.rs"]
mod deeds;
#[path = "whose.rs"]
mod whose;

/// How long our line at the start may hold back the command's output.
const ANNOUNCING: Duration = Duration::from_millis(200);
/// When orphans are looked for again that could not be told from processes of ours.
const REAP_AGAIN: Duration = Duration::from_millis(50);

/// Runs the command and returns how to leave.
pub fn run(request: Request) -> Result<Ending, Refused> {
    quiet();
    caught(|| run_guarded(request))
        .unwrap_or_else(|why| Err(Refused::own(sentence("can't start", &why))))
}

fn run_guarded(request: Request) -> Result<Ending, Refused> {
    fault::at("start");
    let inherited = Mask::current();
    let taken = signals::taken();
    taken.set();
    process::keep_children_waitable();
    let mut notes = Vec::new();
    if let Err(error) = process::become_subreaper() {
        notes.push(format!("orphans of the command can't be followed: {error}"));
    }
    // SIGTTOU acts on the relays (tostop) and must not be taken away from them.
    let arrivals = Arrivals::new(&taken.without(libc::SIGTTOU), inherited)
        .map_err(|e| Refused::own(format!("can't read signals: {e}; close some descriptors")))?;

    let channels = prepare::channels(&request)?;
    let listener = metrics::listen(&request.settings.metrics, &mut notes);
    let heard = prepare::is_heard(&request, &channels);
    let streams = if heard {
        Streams::arrange(&request.argv)
    } else {
        Streams::inherited()
    };
    notes.extend(streams.unwatched.clone());
    let kept: Vec<RawFd> = streams.sources.iter().map(|s| s.read.as_raw_fd()).collect();
    let beside = Sentinel::start(&kept, &request.argv)
        .ok()
        .map(|sentinel| Arc::new(Beside::new(sentinel)));

    let launch = Launch::ready(streams, beside, &request.settings, &mut notes)
        .map_err(|e| Refused::own(format!("can't start: {e}; close some descriptors")))?;
    let beside = launch.beside.as_deref();
    let asked = Asked {
        request,
        channels,
        listener,
        heard,
        notes,
    };
    match prepare::prepare(asked, &launch.streams, beside, &arrivals) {
        Ok(prepared) => launch.start(prepared, arrivals, inherited),
        Err(prepare::Unstarted::Refused(refused)) => Err(refused),
        Err(prepare::Unstarted::Signal(signal)) => Ok(Ending::Signal(signal)),
    }
}

/// All that a run needs of the system and might not get, had before there is a child: what
/// can't be had afterwards would leave one without a supervisor.
struct Launch {
    streams: Streams,
    beside: Option<Arc<Beside>>,
    ring: Arc<Ring>,
    relays: Relays,
    bells: Bells,
    orders: Option<Arc<Orders>>,
}

impl Launch {
    fn ready(
        mut streams: Streams,
        beside: Option<Arc<Beside>>,
        settings: &Resolved,
        notes: &mut Vec<String>,
    ) -> io::Result<Self> {
        let orders = Orders::wanted(&settings.act, &settings.end.restart)?;
        let bells = Bells::new()?;
        let ring = Arc::new(Ring::new(streams.sources.len()));
        let tap: Arc<dyn Tap> = ring.clone();
        match Relays::start(std::mem::take(&mut streams.sources), &tap) {
            Ok(relays) => Ok(Self {
                streams,
                beside,
                ring,
                relays,
                bells,
                orders,
            }),
            // The run goes on as if we weren't there.
            Err(error) => {
                notes.push(format!("output isn't read: {error}"));
                Ok(Self {
                    streams: Streams::inherited(),
                    beside,
                    ring: Arc::new(Ring::new(0)),
                    relays: Relays::start(Vec::new(), &tap)?,
                    bells,
                    orders,
                })
            }
        }
    }

    /// Starts the command; where that lacks a descriptor or a process, without relaying.
    fn child(&mut self, prepared: &mut Prepared, mask: Mask) -> Result<(Child, Mask), Unspawned> {
        let env = prepared.environment();
        match Child::start(&prepared.request.argv, &env, &self.streams, mask) {
            Err(Unspawned::Own(error)) if !self.relays.progress().is_empty() => {
                prepared.notes.push(format!("output isn't read: {error}"));
                self.relays.give_up();
                self.ring = Arc::new(Ring::new(0));
                self.streams = Streams::inherited();
                // The kernel counts a thread a moment longer than we do.
                std::thread::sleep(Duration::from_millis(5));
                Child::start(&prepared.request.argv, &env, &self.streams, mask)
            }
            started => started,
        }
    }

    fn start(
        mut self,
        mut prepared: Prepared,
        arrivals: Arrivals,
        inherited: Mask,
    ) -> Result<Ending, Refused> {
        prepared.begin_record();
        let (child, early) = match self.child(&mut prepared, inherited) {
            Ok(started) => started,
            Err(error) => return Err(prepared.not_started(error)),
        };
        let Self {
            streams,
            beside,
            ring,
            mut relays,
            bells,
            orders,
        } = self;
        let clock = RunClock::start();
        for signal in &prepared.placement.early {
            child.signal(*signal);
        }
        let again = Again::keep(&prepared, streams, inherited, &ring);
        // Before anything of the child's is relayed.
        if let Some(text) = prepared.announcement() {
            say(text, ANNOUNCING);
        }
        let settings = &prepared.request.settings;
        let (is_quiet, is_gated) = (prepared.request.quiet, !settings.gates.is_empty());
        let end = settings.end.clone();
        let state = begun(&relays, end.leftovers, again.as_ref());
        let stopper = Stopper::new(end, child.pid());
        let claims = std::mem::take(&mut prepared.placement.claims);
        let watching = Watching {
            clock,
            child: child.pid(),
            main: Arc::new(AtomicU32::new(child.pid())),
            ring,
            relays: relays.progress(),
            beside: beside.clone(),
            orders: orders.clone(),
        };
        // From here on there is a child, whatever happens.
        let watchers = watch(prepared, watching, bells);
        // What it prints comes after its start in the record too.
        relays.begin();
        Ok(Run {
            child,
            state,
            again,
            stopper,
            watchers,
            relays,
            beside,
            orders,
            arrivals,
            early,
            is_quiet,
            is_gated,
            cut_off: None,
            _claims: claims,
            happened: VecDeque::new(),
            is_plain: false,
            is_reaping_late: false,
            ended: None,
            finishing: None,
        }
        .until_the_end())
    }
}

/// Of a run whose child has just been started.
fn begun(relays: &Relays, leftovers: Leftovers, again: Option<&Again>) -> State {
    let relayed = !relays.progress().is_empty();
    State::new(relayed, relays.has_terminal(), leftovers)
        .with_restarts(again.map_or(0, Again::most))
}

/// Those who watch; after a defect of ours nobody.
fn watch(prepared: Prepared, watching: Watching, bells: Bells) -> Watchers {
    if !prepared.heard {
        return Watchers::none(&watching, bells, None);
    }
    let (known, silent) = (watching.clone(), bells.clone());
    caught(|| Watchers::start(prepared, watching, bells)).unwrap_or_else(|why| {
        let text = sentence("nothing is watched", &why);
        Watchers::none(&known, silent, Some(format!("gpuwatch: {text}\n")))
    })
}

/// A run whose child was started.
struct Run {
    child: Child,
    relays: Relays,
    watchers: Watchers,
    beside: Option<Arc<Beside>>,
    orders: Option<Arc<Orders>>,
    arrivals: Arrivals,
    early: Mask,
    state: State,
    /// What it takes to start the command again, where that may be.
    again: Option<Again>,
    stopper: Stopper,
    is_quiet: bool,
    /// There are gates.
    is_gated: bool,
    /// Output that is lost: said in any case.
    cut_off: Option<String>,
    /// Ours until the end.
    _claims: Vec<Claim>,
    /// What `state` has still to hear of.
    happened: VecDeque<Happening>,
    /// After a defect of ours: what isn't for the child is left undone.
    is_plain: bool,
    /// Orphans could not be looked for, and perhaps no signal will come to remind of them.
    is_reaping_late: bool,
    /// When the child was seen to have ended.
    ended: Option<Instant>,
    finishing: Option<Instant>,
}

impl Run {
    /// What happens next, and what is to be done about it; how to leave, once it is over.
    fn turn(&mut self) -> Option<Exit> {
        fault::at("main");
        if self.happened.is_empty() {
            let happened = self.wait();
            self.happened.extend(happened);
        }
        fault::at("turn");
        while let Some(happening) = self.happened.pop_front() {
            if matches!(happening, Happening::ChildEnded(_)) {
                self.ended = Some(Instant::now());
            }
            for action in self.state.handle(happening) {
                if let Action::Leave(exit) = action {
                    return Some(exit);
                }
                self.carry_out(action);
            }
        }
        None
    }

    /// Waits for something to happen.
    fn wait(&mut self) -> Vec<Happening> {
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let arrivals = self.arrivals.as_fd();
        let mut fds = [
            watch(arrivals),
            watch(self.relays.ended_fd()),
            watch(if self.finishing.is_some() {
                self.watchers.done_fd()
            } else {
                arrivals
            }),
            watch(
                self.orders
                    .as_ref()
                    .map_or(arrivals, |orders| orders.as_fd()),
            ),
        ];
        let patience = self
            .finishing
            .map(|since| self.watchers.patience().saturating_sub(since.elapsed()));
        let reaping = self.is_reaping_late.then_some(REAP_AGAIN);
        let again = self.again.as_ref().and_then(Again::due);
        let due = [patience, self.stopper.due(), reaping, again];
        let next = due.into_iter().flatten().min();
        // Rounded up, or the last millisecond would be spent spinning.
        let limit = next.map_or(PollTimeout::NONE, |left| {
            PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
        });
        // Interrupted or not, what follows looks at everything that was reported.
        let _ = poll(&mut fds, limit);
        let ready = fds.map(|fd| fd.any() == Some(true));
        let mut happened = Vec::new();
        let changed = (ready[0] && self.read_signals(&mut happened)) || ready[1];
        if self.is_reaping_late {
            self.reap_orphans();
        }
        if ready[1] {
            self.relays_changed(&mut happened);
        }
        if ready[2] && self.finishing.is_some() {
            happened.push(Happening::WatchersDone);
        }
        if self
            .finishing
            .is_some_and(|since| since.elapsed() >= self.watchers.patience())
        {
            happened.push(Happening::Overdue);
        }
        if let (true, Some(orders)) = (ready[3], &self.orders) {
            happened.extend(orders.take().into_iter().map(Happening::Ordered));
        }
        happened.extend(self.look_again());
        let (child, relays) = (&self.child, &self.relays);
        happened.extend(self.stopper.look(child, relays, &self.watchers, changed));
        happened
    }

    fn relays_changed(&mut self, happened: &mut Vec<Happening>) {
        let mut is_cut_off = false;
        for relay in self.relays.newly_ended() {
            // With our copies of its writers' ends it ends by a failure alone.
            is_cut_off = true;
            if let Some(beside) = &self.beside {
                beside.release(relay.read_end());
            }
            if let Some(error) = relay.failure() {
                self.cut_off = Some(self.watchers.undelivered(relay.stream(), &error));
            }
            if let Some(why) = relay.defect() {
                let lost = "output is delivered but not read";
                self.watchers.defect(lost, why);
            }
        }
        if is_cut_off {
            self.no_more_starts();
        }
        if self.relays.all_ended() {
            happened.push(Happening::RelaysEnded);
        }
    }

    /// Whether one of our children has changed.
    fn read_signals(&mut self, happened: &mut Vec<Happening>) -> bool {
        let mut changed = false;
        for signal in self.arrivals.waiting() {
            if signal == libc::SIGCHLD {
                // Whatever it says, the children themselves are looked at.
                let _ = take(signal);
                self.children_changed(happened);
                changed = true;
            } else {
                happened.extend(self.place(signal));
            }
        }
        changed
    }

    fn children_changed(&mut self, happened: &mut Vec<Happening>) {
        if !self.child.has_ended() {
            happened.extend(
                self.child
                    .try_stopped()
                    .map(|signal| Happening::ChildStopped {
                        signal,
                        foreground: in_foreground(),
                    }),
            );
            happened.extend(self.child.try_reap().map(Happening::ChildEnded));
        }
        self.reap_orphans();
    }

    /// Those that can't be told from a process of ours, as one is being started, wait a moment.
    fn reap_orphans(&mut self) {
        let main = self.child.pid();
        let reaped = self
            .watchers
            .apart_from_own(|ours| reap_orphans(main, ours));
        self.is_reaping_late = reaped.is_none();
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Forward(signal) => {
                self.child.signal(signal);
            }
            Action::CopySize => self.relays.copy_sizes(),
            Action::Resize { told } => {
                self.relays.copy_sizes();
                if self.relays.take_resized() || !told {
                    self.child.signal(libc::SIGWINCH);
                }
            }
            Action::Stop(signal) => self.stop(signal),
            Action::Cancelling | Action::Log(_) if self.is_plain => {}
            Action::Cancelling => self.watchers.cancelling(),
            Action::Asked => self.stopper.asked(),
            Action::TimeOut => self.stopper.time_out(),
            Action::SendFor(order) => self.send_for(&order),
            Action::StopFor(order) => {
                self.restarts_for(&order);
                self.watchers.stopping_for(order);
                self.stopper.stop();
            }
            Action::AskWhy(exit) => self.ask_why(exit),
            Action::Rest => self.rest(),
            Action::StartAgain => {
                let started = self.start_again();
                self.happened.push_front(started);
            }
            Action::Clear(how) => self.stopper.clear(how),
            Action::Log(event) => self.watchers.log(event),
            Action::Drain => {
                self.stopper.enough();
                // Ours were the last writers, but for leftovers.
                self.again = None;
                self.relays.drain();
            }
            Action::Finish(end) => {
                self.stopper.enough();
                self.finishing = Some(Instant::now());
                let at = self.ended.unwrap_or_else(Instant::now);
                self.watchers.finish(end, at, self.stopper.handled());
            }
            // Taken out before.
            Action::Leave(_) => {}
        }
    }
}
