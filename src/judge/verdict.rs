//! The verdict at a run's end: the first cause and what to do about it.
//!
//! Owns which of several things that were said was the first to go wrong. The earliest
//! initiating event wins; a timeout of a collective or a lost peer follows from something as a
//! rule; a traceback is a cause only where nothing better is known. What the program went on
//! from is none.

use crate::model::{Exit, Outcome, Severity, Verdict};
use crate::read::fingerprint::Kind;
use crate::read::fingerprint::ranks::{Ended, xid};

use super::again::RESTARTED;
use super::causes::{of_machine, of_program};
use super::ended::{self, Held};
use super::finding::Finding;
use super::hardware;
use super::leftovers::ORPHANS;
use super::processes::Gone;
use super::story::{Story, Told, is_consequence, survived};
use super::tracebacks::Traceback;

/// What a program goes on from for so long, with progress, has not ended it where something
/// else is known to have, seconds.
const WENT_ON_S: f64 = 10.0;
/// The kernel's count of the processes that it killed is looked at so much later at the most, and
/// so much before the program notices that one is missing, seconds.
const COUNTED_S: f64 = 5.0;
const NOTICED_S: f64 = 10.0;
/// A crash so soon after an exception is one of tearing down, seconds.
const TEARING_DOWN_S: f64 = 30.0;

/// A cause with its advice.
#[derive(Clone, Debug, Default)]
struct Cause {
    /// None: there is advice, and no name for it.
    name: Option<String>,
    advice: Option<String>,
    at_s: f64,
    line: Option<String>,
    rank: Option<u32>,
}

impl Cause {
    fn new(name: &str, at_s: f64, advice: impl Into<String>) -> Self {
        Self {
            name: Some(name.to_owned()),
            advice: Some(advice.into()),
            at_s,
            ..Self::default()
        }
    }

    /// Told by this line.
    fn by(name: &str, line: &Told, advice: impl Into<String>) -> Self {
        Self {
            line: Some(line.text.clone()),
            rank: line.rank(),
            ..Self::new(name, line.at_s, advice)
        }
    }
}

/// What is known at the end.
pub struct Known<'a> {
    /// What the output said.
    pub story: &'a Story,
    /// The alarms that were raised, in their order.
    pub alarms: &'a [Finding],
    /// Which of them still hold.
    pub open: &'a dyn Fn(&str) -> bool,
    /// When progress was last made, in seconds of the run.
    pub moved_s: Option<f64>,
    /// The first rank that ended while the main process lived.
    pub first_gone: Option<&'a Gone>,
    /// What the job held of main memory.
    pub held: Held,
}

/// What a run's end means, from how it ended, what was printed and what was found.
pub fn verdict(outcome: Outcome, exit: Exit, known: &Known<'_>) -> Verdict {
    let cause = match outcome {
        // A success may have its flaw, too.
        Outcome::Ok => known.standing(|_| true),
        // Somebody ended it: if it was stuck, that is why. What it left behind is not.
        Outcome::Cancelled => known.standing(|f| f.name != ORPHANS).or_else(|| {
            let advice = known.story.asked.as_ref().map(ended::asked);
            only(advice)
        }),
        Outcome::Stopped => known.standing(|f| f.name != ORPHANS),
        Outcome::TimedOut => known
            .standing(|f| f.name != ORPHANS)
            .or_else(|| only(Some(ended::TIME_LIMIT.to_owned()))),
        Outcome::Failed | Outcome::Killed | Outcome::Lost => {
            Some(known.first_cause().unwrap_or_else(|| known.of_exit(exit)))
        }
    };
    let failed = matches!(outcome, Outcome::Failed | Outcome::Killed | Outcome::Lost);
    let guilty = || known.guilty().filter(|_| failed);
    let cause = cause.unwrap_or_default();
    Verdict {
        outcome: Some(outcome),
        rank: cause
            .rank
            .or_else(|| cause.name.as_ref().and_then(|_| guilty())),
        cause: cause.name,
        advice: cause.advice,
        line: cause.line,
        around: Vec::new(),
    }
}

impl Known<'_> {
    fn standing(&self, is_meant: impl Fn(&Finding) -> bool) -> Option<Cause> {
        let holds = |f: &&Finding| (self.open)(&f.name) && f.name != RESTARTED;
        let mut open = self.alarms.iter().filter(holds);
        open.find(|f| is_meant(f)).map(|f| self.of_finding(f))
    }

    fn first_cause(&self) -> Option<Cause> {
        let lines = self.story.lines.iter().filter(|l| self.counts(l));
        let lines = lines.filter_map(|line| self.initiating(line));
        // What explains a failure: not that a GPU was unused, nor what is left over after it.
        let fatal = |f: &&Finding| {
            let names = ["hardware", "host-oom", "oom", "program-fault"];
            names.contains(&f.name.as_str()) && !self.went_on(f.since_s)
        };
        let found = self.alarms.iter().filter(fatal);
        let found = found.map(|finding| self.of_finding(finding));
        let first = lines
            .chain(found)
            .reduce(|a, b| if b.at_s < a.at_s { b } else { a });
        let nan = || self.alarms.iter().find(|f| f.name == "nan");
        first
            .or_else(|| nan().map(|f| self.of_finding(f)))
            .or_else(|| self.of_ranks())
            .or_else(|| self.standing(|f| f.name == "stalled"))
            .or_else(|| self.traceback().map(of_traceback))
    }

    /// Whether a line may be what the run failed of.
    fn counts(&self, line: &Told) -> bool {
        !self.went_on(line.at_s) && !self.is_explained(line)
    }

    /// Whether a worker was killed by whom the kernel counts.
    fn is_explained(&self, line: &Told) -> bool {
        let near = -NOTICED_S..=COUNTED_S;
        let soon = |f: &Finding| f.name == "host-oom" && near.contains(&(f.since_s - line.at_s));
        let of_worker = matches!(line.kind, Kind::LoaderOom | Kind::LoaderKilled);
        of_worker && self.alarms.iter().any(soon)
    }

    /// Whether the program went on from what happened then.
    fn went_on(&self, at_s: f64) -> bool {
        let moved = self.moved_s.is_some_and(|moved| moved - at_s > WENT_ON_S);
        let later = |t: &Traceback| t.at_s - at_s > WENT_ON_S;
        survived(at_s, self.moved_s) || moved && self.traceback().is_some_and(later)
    }

    fn of_finding(&self, finding: &Finding) -> Cause {
        let line = self.story.first(|kind| match finding.name.as_str() {
            "oom" => kind.is_oom() || kind == Kind::HostMemory,
            "host-oom" => {
                matches!(kind, Kind::KernelOom | Kind::LoaderOom | Kind::LoaderKilled)
            }
            "nan" => kind == Kind::LossNan,
            _ => false,
        });
        Cause {
            name: Some(finding.name.clone()),
            advice: finding.advice.clone(),
            at_s: finding.since_s,
            line: line.map(|line| line.text.clone()),
            rank: line.and_then(Told::rank),
        }
    }

    /// What goes wrong by itself.
    fn initiating(&self, line: &Told) -> Option<Cause> {
        if line.kind == Kind::Xid {
            let meaning = hardware::meaning(xid(&line.text)?);
            return meaning
                .is_alarm()
                .then(|| Cause::by(meaning.name, line, meaning.advice));
        }
        if let Some(before) = self.torn_down_after(line) {
            return Some(of_traceback(before));
        }
        let (name, advice) =
            of_machine(line.kind, &line.text, self.story).or_else(|| of_program(line.kind))?;
        Some(Cause::by(name, line, advice))
    }

    /// Native code that crashes as an exception tears the program down.
    fn torn_down_after(&self, line: &Told) -> Option<&Traceback> {
        let crashes = matches!(line.kind, Kind::Segfault | Kind::BusError);
        let of_rank = |t: &&Traceback| line.rank().is_none_or(|rank| t.rank == Some(rank));
        let before = self.traceback().filter(of_rank).filter(|_| crashes)?;
        let soon = before.order < line.order && line.at_s - before.at_s < TEARING_DOWN_S;
        soon.then_some(before)
    }

    /// Ranks that waited, or ended: the exception of the one that it began with, else what is
    /// known of its end.
    fn of_ranks(&self) -> Option<Cause> {
        let lines = || self.story.lines.iter().filter(|l| self.counts(l));
        let first = lines().find(|l| is_consequence(l.kind))?;
        let guilty = self.guilty();
        let own = self.story.tracebacks.first_own();
        let of_guilty = self.traceback().filter(|t| {
            let before = own.is_some_and(|own| own.order < first.order);
            before || t.rank.is_some() && t.rank == guilty
        });
        if let Some(traceback) = of_guilty {
            return Some(of_traceback(traceback));
        }
        let of_kind = |kind| lines().find(|l| l.kind == kind);
        let end = self.story.ranks.first_end();
        let ended = of_kind(Kind::RankEnded).zip(end);
        let waits = of_kind(Kind::CollectiveTimeout);
        // A signal ends a rank by itself, and is why others wait.
        let killed = ended.filter(|(_, end)| end.code.is_some_and(|code| code < 0));
        if let Some((line, end)) = killed {
            return Some(of_end(line, end));
        }
        if let Some(line) = waits {
            return Some(of_another("collective-timeout", line, TIMED_OUT));
        }
        if let Some((line, end)) = ended {
            return Some(of_end(line, end));
        }
        Some(of_another("rank-lost", first, LOST))
    }

    fn traceback(&self) -> Option<&Traceback> {
        let rank = self.story.ranks.first_end().and_then(|end| end.rank);
        self.story.tracebacks.final_one(rank)
    }

    fn guilty(&self) -> Option<u32> {
        let first = self.story.first(is_consequence).map(|line| line.at_s);
        // The system is looked at once a second.
        let before = |gone: &&Gone| first.is_none_or(|at| gone.at_s <= at + 2.0);
        let gone = self.first_gone.filter(before).map(|gone| gone.rank);
        let waited = self.story.ranks.any_waited();
        self.story.ranks.guilty(gone.filter(|_| waited))
    }

    /// What the end alone tells.
    fn of_exit(&self, exit: Exit) -> Cause {
        if let Some((name, advice)) = ended::named(exit) {
            return Cause::new(name, 0.0, advice);
        }
        let exit = match self.story.tracebacks.signal() {
            signal @ Some(_) => Exit { code: None, signal },
            None => exit,
        };
        let quoted = [Kind::Scheduler, Kind::Usage, Kind::Aborted];
        let line = self.story.first(|kind| quoted.contains(&kind));
        let advice = line
            .and_then(|line| ended::by_line(line.kind, &line.text))
            .or_else(|| ended::advice(exit, &self.held, self.story.told(Kind::KernelOom)));
        Cause {
            advice,
            line: line.map(|line| line.text.clone()),
            rank: line.and_then(Told::rank),
            ..Cause::default()
        }
    }
}

/// There is no name for it.
fn only(advice: Option<String>) -> Option<Cause> {
    advice.map(|advice| Cause {
        advice: Some(advice),
        ..Cause::default()
    })
}

fn of_traceback(traceback: &Traceback) -> Cause {
    let (name, advice) = traceback.meaning();
    Cause {
        line: traceback.words.as_ref().map(|(_, text)| text.clone()),
        rank: traceback.rank,
        ..Cause::new(name, traceback.at_s, advice)
    }
}

const TIMED_OUT: &str = "A collective timed out: what the rank that isn't there did before is the cause; look at its own output and stacks.";
const LOST: &str = "Another rank ended: the earliest error among all ranks is the cause; look at their own output.";

/// Who says so isn't whom it began with.
fn of_another(name: &str, line: &Told, advice: &str) -> Cause {
    Cause {
        rank: None,
        ..Cause::by(name, line, advice)
    }
}

/// A rank whose end was told, and nothing else of it.
fn of_end(line: &Told, end: Ended) -> Cause {
    let exit = Exit {
        code: end.code.filter(|code| *code >= 0),
        signal: end.code.filter(|code| *code < 0).map(|code| -code),
    };
    let (name, advice) = match ended::named(exit) {
        Some((name, advice)) => (name, advice.to_owned()),
        None => ("rank-lost", ended::of_rank(exit)),
    };
    Cause {
        rank: end.rank,
        ..Cause::by(name, line, advice)
    }
}

/// Whether a finding of this severity is an alarm.
pub fn is_alarm(severity: Severity) -> bool {
    severity > Severity::Note
}
