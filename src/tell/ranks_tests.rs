//! Ranks in every order: each story is told once, and none is lost.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::{
    Channel, Exit, Hidden, Outcome, Repeat, SecretRef, Stamp, TellSettings, Verdict,
};
use crate::tell::alert::{About, Alert, State};
use crate::tell::policy::Policy;

const NAMES: [&str; 2] = ["oom", "stalled"];

fn policy() -> Policy {
    let channel = Channel::Slack {
        url: SecretRef::Literal(Hidden::new("https://example.org")),
    };
    let settings = TellSettings {
        channels: BTreeMap::from([("a".to_owned(), channel)]),
        repeat: Repeat::Never,
        ..TellSettings::default()
    };
    Policy::new(&settings, false)
}

fn end(code: i32) -> End {
    End {
        exit: Exit {
            code: Some(code),
            signal: None,
        },
        verdict: Verdict {
            outcome: Some(if code == 0 {
                Outcome::Ok
            } else {
                Outcome::Failed
            }),
            ..Verdict::default()
        },
    }
}

fn word(
    name: &str,
    state: FindingState,
    cause: &str,
    since_s: f64,
    step: Option<u64>,
) -> Happening {
    let mut evidence = serde_json::Map::new();
    evidence.extend(step.map(|step| ("step".to_owned(), json!(step))));
    Happening::Finding {
        finding: Finding {
            name: name.to_owned(),
            cause: Some(cause.to_owned()),
            because: None,
            since_s,
            evidence,
            advice: None,
        },
        severity: Severity::Critical,
        state,
        awaits_evidence: false,
    }
}

/// A machine with some ranks of one job, each with its own policy, and the book.
struct Machine {
    ranks: BTreeMap<u32, (Ranks, Policy)>,
    book: Book,
    now_s: f64,
    alerts: Vec<Alert>,
}

impl Machine {
    fn new(n: u32) -> Self {
        let rank = |rank| {
            // Rank 1 began 100 s later than the machine's clock, and so on.
            let ranks = Ranks::new(rank, &format!("run-{rank}"), f64::from(rank) * 100.0);
            (rank, (ranks, policy()))
        };
        let mut machine = Self {
            ranks: (0..n).map(rank).collect(),
            book: Book::default(),
            now_s: 1000.0,
            alerts: Vec::new(),
        };
        machine.everybody(0.0);
        machine
    }

    /// As the speaker does it: hear, visit, decide, write down.
    fn happens(&mut self, rank: u32, happening: Happening) {
        let present = self.present(rank);
        let Some((ranks, policy)) = self.ranks.get_mut(&rank) else {
            return;
        };
        let at = Stamp {
            time: String::new(),
            elapsed_s: self.now_s - f64::from(rank) * 100.0,
        };
        let rest = ranks.hear(happening);
        let mut heard = ranks.visit(&mut self.book, &present, self.now_s);
        let leaves = match rest {
            Some(Happening::Ended(end)) => Some(end),
            other => {
                heard.extend(other);
                None
            }
        };
        let mut sends: Vec<_> = heard
            .into_iter()
            .flat_map(|h| policy.handle(&at, h))
            .collect();
        if let Some(end) = leaves {
            let (last, is_last) = ranks.leave(&mut self.book, &present, end);
            sends.extend(last.into_iter().flat_map(|h| policy.handle(&at, h)));
            assert_eq!(is_last, present.alive.is_empty());
            ranks.told(&mut self.book, policy.known());
            self.ranks.remove(&rank);
        } else {
            ranks.told(&mut self.book, policy.known());
        }
        self.alerts.extend(sends.into_iter().map(|send| send.alert));
    }

    fn present(&self, but: u32) -> Present {
        let others: BTreeSet<u32> = self.ranks.keys().copied().filter(|r| *r != but).collect();
        Present {
            alive: others.clone(),
            awake: others,
        }
    }

    /// Time passes, and everybody looks.
    fn everybody(&mut self, passed_s: f64) {
        self.now_s += passed_s;
        for rank in self.ranks.keys().copied().collect::<Vec<_>>() {
            self.happens(rank, Happening::Tick);
        }
    }

    /// What was told of a story, in order.
    fn told(&self, name: &str) -> Vec<State> {
        let of = |alert: &Alert| {
            let first = (alert.subject() == name).then_some(alert.state);
            let others = alert.others.iter().filter(|other| other.name == name);
            first
                .into_iter()
                .chain(others.map(|other| other.state))
                .collect::<Vec<_>>()
        };
        self.alerts.iter().flat_map(of).collect()
    }

    fn finished(&self) -> Vec<&Alert> {
        let is_end = |alert: &&Alert| matches!(alert.about, About::Finished(_));
        self.alerts.iter().filter(is_end).collect()
    }

    fn holds(&self, name: &str) -> bool {
        self.book
            .pages
            .values()
            .any(|page| page.held.contains_key(name))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Raise(u32, usize),
    Clear(u32, usize),
    Look(u32),
    End(u32, i32),
    Kill(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u32..4, 0_usize..2).prop_map(|(rank, name)| Step::Raise(rank, name)),
        4 => (0_u32..4, 0_usize..2).prop_map(|(rank, name)| Step::Clear(rank, name)),
        4 => (0_u32..4).prop_map(Step::Look),
        1 => (0_u32..4, 0..2).prop_map(|(rank, code)| Step::End(rank, code)),
        1 => (0_u32..4).prop_map(Step::Kill),
    ]
}

proptest! {
    #[test]
    fn each_story_is_told_once_and_none_is_lost(
        steps in prop::collection::vec((step(), 0.0..30.0), 0..24),
        last_is_killed: bool,
    ) {
        let mut machine = Machine::new(4);
        for (step, passed_s) in steps {
            // A storm of alerts is held back by another rule, which has its own tests.
            machine.now_s += 11.0 + passed_s;
            let say = |name: usize, state| word(NAMES[name], state, "asleep", 0.0, None);
            match step {
                Step::Raise(rank, name) => machine.happens(rank, say(name, FindingState::Raised)),
                Step::Clear(rank, name) => machine.happens(rank, say(name, FindingState::Cleared)),
                Step::Look(rank) => machine.happens(rank, Happening::Tick),
                Step::End(rank, code) => machine.happens(rank, Happening::Ended(end(code))),
                Step::Kill(rank) => drop(machine.ranks.remove(&rank)),
            }
        }
        // Longer than what comes and goes is kept back.
        for passed_s in [0.0, 20.0, 4000.0, 4000.0] {
            machine.everybody(passed_s);
        }
        for name in NAMES {
            let told = machine.told(name);
            for (i, state) in told.iter().enumerate() {
                let expected = if i % 2 == 0 { State::Raised } else { State::Cleared };
                prop_assert_eq!(*state, expected, "{}: {:?}", name, told);
            }
            if !machine.ranks.is_empty() {
                prop_assert_eq!(told.len() % 2 == 1, machine.holds(name), "{}: {:?}", name, told);
            }
        }
        let over = machine.ranks.is_empty();
        let n = machine.finished().len();
        prop_assert!(n <= usize::from(over));
        for rank in machine.ranks.keys().copied().collect::<Vec<_>>() {
            let is_last = machine.ranks.len() == 1;
            if is_last && last_is_killed {
                machine.ranks.clear();
            } else {
                machine.happens(rank, Happening::Ended(end(0)));
            }
        }
        if !over {
            prop_assert_eq!(machine.finished().len(), usize::from(!last_is_killed));
        }
    }
}

#[test]
fn the_rank_that_got_less_far_stands_out() {
    let mut machine = Machine::new(3);
    for (rank, step) in [(0, 8), (2, 8), (1, 7)] {
        let stalled = word("stalled", FindingState::Raised, "asleep", 50.0, Some(step));
        machine.happens(rank, stalled);
        assert!(machine.alerts.is_empty(), "others may have it, too");
    }
    machine.everybody(1.0);
    let [alert] = machine.alerts.as_slice() else {
        panic!("{:?}", machine.alerts);
    };
    let About::Finding(finding) = &alert.about else {
        panic!("{alert:?}");
    };
    assert_eq!(alert.of_ranks.rank, Some(1));
    // 50 s of rank 1 are 150 s of rank 0, which tells.
    assert_eq!(
        (finding.since_s, &finding.evidence["step"]),
        (150.0, &json!(7))
    );
    let ranks: Vec<_> = alert
        .of_ranks
        .ranks
        .iter()
        .map(|note| (note.rank, note.run.as_str()))
        .collect();
    assert_eq!(ranks, [(1, "run-1"), (0, "run-0"), (2, "run-2")]);
}

#[test]
fn who_waits_for_others_does_not_stand_out() {
    let mut machine = Machine::new(2);
    machine.happens(0, word("stalled", FindingState::Raised, "spin", 0.0, None));
    machine.happens(
        1,
        word("stalled", FindingState::Raised, "asleep", 0.0, None),
    );
    machine.everybody(1.0);
    assert_eq!(machine.alerts.len(), 1);
    assert_eq!(machine.alerts[0].of_ranks.rank, Some(1));
}

#[test]
fn one_ranks_finding_is_told_although_it_ended_at_once() {
    let mut machine = Machine::new(2);
    machine.happens(1, word("oom", FindingState::Raised, "gpu", 0.0, None));
    machine.happens(1, Happening::Ended(end(1)));
    machine.everybody(0.0);
    assert!(machine.alerts.is_empty(), "rank 0 may have it, too");
    machine.everybody(GATHER_S);
    assert_eq!(machine.told("oom"), [State::Raised]);
    machine.happens(0, Happening::Ended(end(0)));
    let [finished] = machine.finished()[..] else {
        panic!("{:?}", machine.alerts);
    };
    assert_eq!(
        finished.about,
        About::Finished(end(1)),
        "the first that failed"
    );
    assert_eq!(finished.of_ranks.rank, Some(1));
}

#[test]
fn a_rank_that_sleeps_is_spoken_for() {
    let mut machine = Machine::new(2);
    let stalled = word("stalled", FindingState::Raised, "asleep", 0.0, None);
    let (ranks, policy) = machine.ranks.get_mut(&1).unwrap();
    assert!(ranks.hear(stalled).is_none());
    let mut present = Present::default();
    present.alive.insert(0);
    let heard = ranks.visit(&mut machine.book, &present, 2000.0);
    let at = Stamp {
        time: String::new(),
        elapsed_s: 1900.0,
    };
    let sends: Vec<_> = heard
        .into_iter()
        .flat_map(|h| policy.handle(&at, h))
        .collect();
    ranks.told(&mut machine.book, policy.known());
    assert_eq!(sends.len(), 1);
    machine.everybody(1010.0);
    machine.everybody(2.0 * GATHER_S);
    assert!(machine.alerts.is_empty(), "rank 0 knows that it was told");
}

#[test]
fn without_the_book_each_tells_what_is_its_own() {
    let mut machine = Machine::new(2);
    machine.happens(0, word("stalled", FindingState::Raised, "spin", 0.0, None));
    machine.happens(1, word("oom", FindingState::Raised, "gpu", 0.0, None));
    machine.happens(
        1,
        word("stalled", FindingState::Raised, "asleep", 0.0, None),
    );
    machine.everybody(0.0);
    assert_eq!(machine.told("stalled"), [State::Raised]);
    assert_eq!(machine.told("oom"), [] as [State; 0]);
    let (ranks, mut policy) = machine.ranks.remove(&1).unwrap();
    let at = Stamp {
        time: String::new(),
        elapsed_s: 1000.0,
    };
    let heard = ranks.alone();
    let sends: Vec<_> = heard
        .into_iter()
        .flat_map(|h| policy.handle(&at, h))
        .collect();
    let told: Vec<_> = sends.iter().map(|send| send.alert.subject()).collect();
    assert_eq!(told, ["oom"], "the stall was told by rank 0");
}
