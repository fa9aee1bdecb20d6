//! From what was seen to what it means: findings with evidence, advice, a beginning and an end.
//!
//! Owns every rule of DETECTION, one file a family. Pure: no clock, no file, no thread; the
//! same inputs give the same findings, live and replayed. May use `model`, and `read` for
//! fingerprints. Must not know where inputs come from or who is told.
//!
//! ```text
//! events ──> story, processes ─┐
//! samples ─> signals ──────────┴─> families ─> book ─> findings
//! ```
//!
//! **What the caller feeds**, one input at a time and in the order of `record::replay`:
//!
//! - [`Input::Sample`]: every tick as it will be read back (`record::rounded`), after all
//!   events whose `elapsed_s` isn't later.
//! - [`Input::Event`]: every event that is recorded, in the file's order. Findings, alerts and
//!   actions are ignored, so it does no harm to feed them. `line` events are what
//!   `read::fingerprint::Lines` picked out of the output; `exited` is fed when the main process
//!   has ended, before the last sample.
//! - [`Judge::finish`] once, with the stamp of the last input, after the last sample: the one that is taken when the streams are
//!   at their end, with the process events of that look, so that what was left over is known.
//!
//! Each call returns what changed; the caller records these findings with the stamp of the
//! input (for `finish`, of the last one). Facts may come late ([`Judge::learn`]): the driver answers
//! after the start, and no decision is made from them before its GPUs have rows.

mod advance;
mod again;
mod bound;
mod causes;
mod ended;
mod facts;
mod finding;
mod gauge;
mod hardware;
mod heat;
mod idle;
mod leak;
mod leftovers;
mod load;
mod loops;
mod loss;
mod mean;
mod memory;
mod near_oom;
mod pace;
mod phases;
mod processes;
mod ranks;
mod rules;
mod series;
mod shares;
mod signals;
mod silence;
mod stalled;
mod starved;
mod story;
#[cfg(test)]
mod tests;
mod tracebacks;
mod uneven;
mod unexplained;
mod unused;
mod verdict;
mod view;
mod waiting;
mod window;

use crate::model::{
    Event, Exit, GpuInfo, JudgeSettings, Logged, Outcome, Rule, Sample, TimeSpent, Verdict,
};

pub use facts::JobFacts;
pub use finding::Finding;
pub use verdict::is_alarm;

use bound::Bound;
use finding::Book;
use hardware::Hardware;
use heat::Heat;
use idle::Idle;
use leak::Leak;
use leftovers::Leftovers;
use load::Load;
use loss::Loss;
use memory::Memory;
use near_oom::NearOom;
use pace::Pace;
use phases::Phases;
use processes::Processes;
use rules::Rules;
use shares::Shares;
use signals::Signals;
use stalled::Stalled;
use starved::Starved;
use story::Story;
use uneven::Uneven;
use unexplained::Unexplained;
use unused::Unused;
use view::View;
use waiting::Waiting;
use window::Window;

/// One thing that was seen.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// One tick, as it will be read back.
    Sample(&'a Sample),
    /// One event, as it is recorded.
    Event(&'a Logged),
}

/// The judge of one run.
#[derive(Clone, Debug)]
pub struct Judge {
    facts: JobFacts,
    book: Book,
    signals: Signals,
    processes: Processes,
    story: Story,
    waiting: Waiting,
    memory: Memory,
    leak: Leak,
    near_oom: NearOom,
    heat: Heat,
    uneven: Uneven,
    bound: Bound,
    hardware: Hardware,
    leftovers: Leftovers,
    stalled: Stalled,
    idle: Idle,
    unused: Unused,
    unexplained: Unexplained,
    loss: Loss,
    phases: Phases,
    window: Window,
    starved: Starved,
    load: Load,
    pace: Pace,
    shares: Shares,
    rules: Rules,
    /// When the attempt that is judged began, in seconds of the run.
    origin_s: f64,
}

impl Judge {
    /// A judge that has seen nothing yet.
    pub fn new(settings: JudgeSettings, rules: Vec<Rule>, facts: JobFacts) -> Self {
        let book = Book::new(settings);
        let notebook = facts.is_interactive();
        Self {
            processes: Processes::of(facts.pid, notebook),
            signals: Signals::default(),
            story: Story::default(),
            waiting: Waiting::default(),
            memory: Memory::default(),
            leak: Leak::new(&book),
            near_oom: NearOom::new(&book),
            heat: Heat::new(&book),
            uneven: Uneven::new(&book),
            bound: Bound::new(&book),
            hardware: Hardware::default(),
            leftovers: Leftovers::new(&book),
            stalled: Stalled::new(&book),
            idle: Idle::new(&book),
            unused: Unused::default(),
            unexplained: Unexplained::new(&book),
            loss: Loss::default(),
            phases: Phases::default(),
            window: Window::default(),
            starved: Starved::default(),
            load: Load::default(),
            pace: Pace::default(),
            shares: Shares::default(),
            rules: Rules::new(rules),
            origin_s: 0.0,
            facts,
            book,
        }
    }

    /// The driver has told which GPUs are watched.
    pub fn learn(&mut self, gpus: Vec<GpuInfo>) {
        self.facts.gpus = gpus;
    }

    /// Takes in one input; what changed.
    pub fn step(&mut self, input: Input<'_>) -> Vec<Finding> {
        if let Input::Event(logged) = input
            && let Event::Restarted { .. } = logged.event
        {
            return self.begin_again(logged);
        }
        if self.origin_s > 0.0 {
            self.later(input);
        } else {
            self.take_in(input);
        }
        self.said()
    }

    fn take_in(&mut self, input: Input<'_>) {
        match input {
            Input::Sample(sample) => self.sample(sample),
            Input::Event(logged) => self.event(logged),
        }
    }

    /// Whether the job is at work and nothing was ever the matter: then a word about the next
    /// sample can wait for the one after it.
    pub fn is_calm(&self) -> bool {
        self.signals.active && self.book.alarms().is_empty()
    }

    /// The run is over: the main process ended so, `elapsed_s` seconds after the start.
    pub fn finish(&mut self, exit: &Exit, elapsed_s: f64) -> Vec<Finding> {
        let elapsed_s = elapsed_s - self.origin_s;
        let v = View {
            s: &self.signals,
            p: &self.processes,
            story: &self.story,
            facts: &self.facts,
        };
        self.unused.finish(elapsed_s, &v, &mut self.book);
        self.load.finish(&v, &mut self.book);
        // Without a known end nothing is left over from it.
        if exit.code.is_some() || exit.signal.is_some() || self.processes.main_ended_s.is_some() {
            self.leftovers.finish(elapsed_s, &v, &mut self.book);
        }
        self.said()
    }

    /// What the end means.
    pub fn verdict(&self, outcome: Outcome, exit: Exit) -> Verdict {
        let open = |name: &str| self.book.holds(name);
        let known = verdict::Known {
            story: &self.story,
            alarms: self.book.alarms(),
            open: &open,
            moved_s: self.signals.moved_s(),
            first_gone: self.processes.first_gone(),
            held: self.memory.held(),
        };
        verdict::verdict(outcome, exit, &known)
    }

    /// What the time of the run was spent on, so far.
    pub fn spent(&self) -> TimeSpent {
        let v = View {
            s: &self.signals,
            p: &self.processes,
            story: &self.story,
            facts: &self.facts,
        };
        self.shares.spent(&v)
    }

    fn event(&mut self, logged: &Logged) {
        if logged.event.is_judged() {
            return;
        }
        if let Event::Clock { .. } = logged.event {
            self.signals.jumped();
        }
        self.processes.event(logged);
        let kind = self.story.event(logged, self.signals.moved_s());
        let v = View {
            s: &self.signals,
            p: &self.processes,
            story: &self.story,
            facts: &self.facts,
        };
        Hardware::event(logged, &mut self.book);
        self.memory.event(logged, kind, &v, &mut self.book);
        self.loss.event(logged, kind, &mut self.book);
        self.leak.event(logged);
    }

    fn sample(&mut self, sample: &Sample) {
        if self.facts.machine {
            return self.unexplained.sample(sample, &mut self.book);
        }
        self.processes.sample(sample);
        let passed_s = sample.stamp.elapsed_s - self.signals.now.elapsed_s;
        let frozen =
            Waiting::is_stopped(sample, &self.processes) || self.book.holds(waiting::WAITING);
        self.signals.sample(sample, &self.facts, frozen);
        let v = View {
            s: &self.signals,
            p: &self.processes,
            story: &self.story,
            facts: &self.facts,
        };
        let book = &mut self.book;
        let (job, host) = (&sample.job, &sample.host);
        // First what explains others.
        let prompt_gone = self.waiting.sample(sample, &v, book);
        self.hardware.sample(sample, book);
        self.memory
            .sample(job.rss_mib.get(), host.mem_limit_mib.get(), &v, book);
        self.leak.sample(sample, &v, book);
        self.near_oom.sample(sample, &v, book);
        self.heat.sample(sample, &v, book);
        self.uneven.sample(sample, &v, book);
        self.bound.sample(sample, &v, book);
        self.leftovers.sample(sample, &v, book);
        let asks = self.waiting.asks();
        self.stalled.sample(sample, &v, asks, book);
        self.idle.sample(&v, self.stalled.is_literal(), book);
        let loss = sample.progress.loss.map(|loss| loss.0);
        self.unused.sample(loss, &v, book);
        self.loss.sample(&sample.progress, &v, book);
        self.phases.sample(&v, book);
        let steady = self.window.push(sample, &v);
        if steady.is_some() {
            self.starved.sample(sample, &self.window, &v, book);
        }
        self.load.sample(sample, steady, &v, book);
        self.pace.sample(sample, &v, book);
        let written = job.write_mb_s.get().unwrap_or_default();
        self.shares
            .sample(passed_s.max(0.0), written, &self.phases, &v, book);
        self.rules.sample(sample, &v, book);
        if prompt_gone {
            self.story.prompt_s = None;
        }
    }
}
