//! From the judge's word to people: hands findings to `act` and `tell`, and what they answer
//! back to the scribe. Nothing here waits.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;

use crate::act::stacks::{self, Evidence};
use crate::act::{Commands, command};
use crate::judge;
use crate::model::{
    ActSettings, Action, Event, FindingState, Logged, OwnProcesses, Programs, ProgressState,
    RunRecord, Sample, Seat, Stamp,
};
use crate::plan::seat;
use crate::report::html::last_lines;
use crate::report::text::clean;
use crate::sys::fault;
use crate::sys::process::stat_field;
use crate::tell::{Channels, Edges, Happening, Inlet, Outbox, RunFacts, Teller};

use super::clock::RunClock;
use super::desk::{Desk, Entry};
use super::evidence::{Job, Known, TAIL, request};
use super::orders::Orders;

/// Bytes of output of which a few last lines are shown.
const FEW: usize = 4096;
/// Lines of it.
const LAST_LINES: usize = 12;
/// Lines of it that tell how a run ended of which nothing else is known, and how much of each,
/// characters.
const LAST_DRAWN: usize = 6;
const LONGEST: usize = 240;

/// The teller, where there is a channel. Without a thread for it the run goes on untold.
pub fn start_teller(
    channels: Channels,
    record: &RunRecord,
    desk: &Desk,
    clock: RunClock,
    own: &OwnProcesses,
) -> Option<Teller> {
    if channels.is_empty() {
        return None;
    }
    let (events, stamps) = (desk.clone(), clock.clone());
    let edges = Edges {
        clock: Box::new(move || {
            fault::at("teller");
            clock.now()
        }),
        report: Box::new(move |event| events.event(stamps.now(), event)),
        programs: Arc::new(Commands::new(own.clone())),
        outbox: Outbox::at_home(),
        seat: our_seat(),
    };
    match Teller::start(channels, RunFacts::from(record), edges) {
        Ok(teller) => Some(teller),
        Err(error) => {
            desk.put(Entry::Problem(format!(
                "nobody is told: no thread to be had: {error}"
            )));
            None
        }
    }
}

/// Our rank among those of its job. What no variable names ranks have in common is the process
/// that started them.
fn our_seat() -> Option<Seat> {
    let parent = std::os::unix::process::parent_id();
    let started = stat_field(parent, 22).unwrap_or_default();
    let parent = format!("{parent} {started}");
    seat(&|name| std::env::var(name).ok(), &parent)
}

/// Whom findings are handed to.
pub struct Alarm {
    /// What is done about which finding.
    act: ActSettings,
    /// The way to the teller, if there is a channel.
    inlet: Inlet,
    /// Where answers are laid.
    desk: Desk,
    /// Our own processes.
    own: OwnProcesses,
    /// The job's.
    job: Job,
    /// The main one of them.
    main: Arc<AtomicU32>,
    /// The run's directory.
    dir: Option<PathBuf>,
    /// The way to the main thread, where something may be done to the job.
    orders: Option<Arc<Orders>>,
    tail: VecDeque<u8>,
    sample: Option<Sample>,
    moved_s: Option<f64>,
    stood: Option<ProgressState>,
}

impl Alarm {
    /// Nothing has happened yet.
    pub fn new(
        act: ActSettings,
        inlet: Inlet,
        desk: Desk,
        own: OwnProcesses,
        job: Job,
        (main, dir): (Arc<AtomicU32>, Option<PathBuf>),
        orders: Option<Arc<Orders>>,
    ) -> Self {
        let (tail, sample, moved_s, stood) = (VecDeque::new(), None, None, None);
        Self {
            act,
            inlet,
            desk,
            own,
            job,
            main,
            dir,
            orders,
            tail,
            sample,
            moved_s,
            stood,
        }
    }

    /// This was printed.
    pub fn printed(&mut self, bytes: &[u8]) {
        self.tail.extend(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);
    }

    /// More is known of the run.
    pub fn know(&self, record: &RunRecord) {
        self.inlet.know(RunFacts::from(record));
    }

    /// This was sampled.
    pub fn sampled(&mut self, sample: &Sample) {
        self.progress(&sample.progress, sample.stamp.elapsed_s);
        self.sample = Some(sample.clone());
    }

    /// Training stands here.
    fn progress(&mut self, now: &ProgressState, elapsed_s: f64) {
        self.orders.iter().for_each(|orders| orders.look());
        let place = |p: &ProgressState| (p.epoch, p.step, p.percent);
        let moved = self
            .stood
            .as_ref()
            .map_or(place(now) != (None, None, None), |before| {
                place(before) != place(now)
            });
        if moved {
            self.moved_s = Some(elapsed_s);
        }
        self.stood = Some(now.clone());
        let (now, moved_s) = (now.clone(), self.moved_s);
        self.inlet.tell(Happening::Progress { now, moved_s });
    }

    /// The judge has said this, and it is recorded so.
    pub fn found(&self, finding: &judge::Finding, logged: &Logged, run_id: &str) {
        // What another finding explains, and what isn't new, is told but not acted on.
        let new = finding.state == FindingState::Raised && finding.because.is_none();
        let actions = if new { self.act.of(&finding.name) } else { &[] };
        let mut awaits_evidence = false;
        for action in actions {
            match action {
                Action::Stacks => awaits_evidence |= self.stacks(&finding.name, &logged.stamp),
                Action::Command(argv) => self.command(argv, logged, run_id),
                Action::Signal(_) | Action::Stop | Action::Restart => {
                    if let Some(orders) = &self.orders {
                        orders.give(&finding.name, action, awaits_evidence);
                    }
                }
            }
        }
        if let (FindingState::Cleared, Some(orders)) = (finding.state, &self.orders) {
            orders.cleared(&finding.name);
        }
        if let Some(happening) = Happening::of_event(&logged.event, awaits_evidence) {
            self.inlet.tell(happening);
        }
    }

    /// The command ended of this.
    pub fn ended_of(&self, cause: Option<String>) {
        if let Some(orders) = &self.orders {
            orders.answer(cause);
        }
    }

    /// Stacks were collected.
    pub fn evidence(&self, finding: &str, digest: Vec<String>) {
        if let Some(orders) = &self.orders {
            orders.evidence_is_there(finding);
        }
        let finding = finding.to_owned();
        self.inlet.tell(Happening::Evidence {
            finding,
            stacks: digest,
        });
    }

    fn stacks(&self, about: &str, at: &Stamp) -> bool {
        let job = self
            .job
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let known = Known {
            main: self.main.load(Ordering::Relaxed),
            sample: self.sample.as_ref(),
            output: &self.end(TAIL),
            dir: self.dir.as_deref(),
        };
        let request = request(at.clone(), about, &job, known);
        let (desk, finding) = (self.desk.clone(), about.to_owned());
        let deliver =
            move |evidence: Evidence| desk.put(Entry::Evidence(Box::new((finding, evidence))));
        stacks::start(request, self.own.clone(), deliver).is_ok()
    }

    fn command(&self, argv: &[String], logged: &Logged, run_id: &str) {
        let Some(program) = command::on_finding(argv, run_id, logged) else {
            return;
        };
        let (own, desk, stamp) = (self.own.clone(), self.desk.clone(), logged.stamp.clone());
        let started = thread::Builder::new()
            .name("command".to_owned())
            .spawn(move || {
                let result = match Commands::new(own).run(&program) {
                    Ok(()) => "ok".to_owned(),
                    Err(why) => why,
                };
                desk.event(
                    stamp,
                    Event::Action {
                        what: "command".to_owned(),
                        result,
                    },
                );
            });
        if let Err(error) = started {
            let text = format!("a command on a finding was not run: {error}");
            self.desk.put(Entry::Problem(text));
        }
    }

    /// The last bytes of the output, at most so many.
    fn end(&self, bytes: usize) -> Vec<u8> {
        let from = self.tail.len().saturating_sub(bytes);
        self.tail.iter().skip(from).copied().collect()
    }

    /// A few last lines of the output, as a terminal would show them.
    pub fn last_drawn(&self) -> Vec<String> {
        let bytes = self.end(FEW);
        let mut lines = last_lines(&bytes, 10 * LAST_DRAWN);
        // Where the kept bytes begin, no line does.
        if bytes.len() == FEW && lines.len() > 1 {
            lines.remove(0);
        }
        lines.retain(|line| !line.trim().is_empty());
        let from = lines.len().saturating_sub(LAST_DRAWN);
        let cut = |line: &String| clean(line).chars().take(LONGEST).collect();
        lines[from..].iter().map(cut).collect()
    }

    /// The last lines of the output, without control characters.
    pub fn last_lines(&self) -> Vec<String> {
        let bytes = self.end(FEW);
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text
            .split(['\n', '\r'])
            .filter(|line| !line.trim().is_empty())
            .collect();
        lines[lines.len().saturating_sub(LAST_LINES)..]
            .iter()
            .map(|line| clean(line))
            .collect()
    }
}
