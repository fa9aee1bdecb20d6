//! Whatever processes do meanwhile, the ladder keeps its promises and ends.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn id(pid: u32, start: u64) -> ProcessId {
    ProcessId { pid, start }
}

fn alive(ids: &[ProcessId]) -> BTreeSet<ProcessId> {
    ids.iter().copied().collect()
}

fn term(who: ProcessId) -> Order {
    Order {
        who,
        rung: Rung::Term,
    }
}

fn kill(who: ProcessId) -> Order {
    Order {
        who,
        rung: Rung::Kill,
    }
}

#[test]
fn one_rung_after_the_other() {
    let (a, b) = (id(5, 1), id(6, 1));
    let mut ladder = Ladder::new(Some(ms(1000)));
    assert_eq!(ladder.look(&alive(&[a, b]), ms(50)), [term(a), term(b)]);
    assert_eq!(ladder.next(), Some(ms(1050)));
    assert_eq!(ladder.look(&alive(&[b]), ms(900)), []);
    assert_eq!(ladder.look(&alive(&[b]), ms(1050)), [kill(b)]);
    assert!(!ladder.is_over());
    assert_eq!(ladder.look(&alive(&[]), ms(1051)), []);
    assert!(ladder.is_over());
}

#[test]
fn a_pid_that_is_somebody_else_s_by_now_is_a_newcomer() {
    let (old, new) = (id(5, 1), id(5, 2));
    let mut ladder = Ladder::new(Some(ms(1000)));
    assert_eq!(ladder.look(&alive(&[old]), ms(0)), [term(old)]);
    assert_eq!(ladder.look(&alive(&[new]), ms(1000)), [term(new)]);
}

#[test]
fn what_a_handler_starts_is_left_alone_during_its_grace() {
    let (worker, saver) = (id(5, 1), id(6, 9));
    let mut ladder = Ladder::new(Some(ms(1000)));
    ladder.look(&alive(&[worker]), ms(0));
    assert_eq!(ladder.look(&alive(&[worker, saver]), ms(500)), []);
    let orders = ladder.look(&alive(&[worker, saver]), ms(1000));
    assert_eq!(orders, [kill(worker), term(saver)]);
    assert_eq!(ladder.look(&alive(&[saver]), ms(2000)), [kill(saver)]);
}

#[test]
fn who_may_not_be_signalled_or_does_not_vanish_is_given_up() {
    let (other_uid, in_kernel) = (id(5, 1), id(6, 1));
    let both = alive(&[other_uid, in_kernel]);
    let mut ladder = Ladder::new(Some(ms(10)));
    ladder.look(&both, ms(0));
    ladder.refused(other_uid);
    assert_eq!(ladder.look(&both, ms(10)), [kill(in_kernel)]);
    assert!(!ladder.is_over());
    assert_eq!(ladder.next(), Some(ms(10) + VANISHES_WITHIN));
    assert_eq!(ladder.look(&both, ms(10) + VANISHES_WITHIN), []);
    assert!(ladder.is_over());
    assert_eq!(ladder.left().collect::<Vec<_>>(), [other_uid, in_kernel]);
}

#[test]
fn somebody_else_s_request_counts_where_a_kill_was_asked_for() {
    let main = id(5, 1);
    let mut ladder = Ladder::new(Some(ms(1000)));
    ladder.asked(main, ms(10));
    ladder.asked(main, ms(900));
    assert_eq!(ladder.look(&alive(&[main]), ms(900)), []);
    assert_eq!(ladder.look(&alive(&[main]), ms(1010)), [kill(main)]);

    let mut patient = Ladder::new(None);
    patient.asked(main, ms(10));
    assert_eq!(patient.next(), None);
    assert_eq!(patient.look(&alive(&[main]), ms(1_000_000)), []);
}

#[test]
fn a_time_limit_terms_whom_somebody_asked_before() {
    let main = id(5, 1);
    // With a grace of the user's own the first request counts.
    let mut ladder = Ladder::new(Some(ms(1000)));
    ladder.asked(main, ms(0));
    ladder.insist(main, ms(30_000));
    assert_eq!(ladder.look(&alive(&[main]), ms(400)), [term(main)]);
    assert_eq!(ladder.look(&alive(&[main]), ms(1000)), [kill(main)]);
    // Without one the limit's counts, from its own TERM.
    let mut ladder = Ladder::new(None);
    ladder.asked(main, ms(0));
    ladder.insist(main, ms(30_000));
    assert_eq!(ladder.look(&alive(&[main]), ms(50_000)), [term(main)]);
    assert_eq!(ladder.next(), Some(ms(80_000)));
    assert_eq!(ladder.look(&alive(&[main]), ms(80_000)), [kill(main)]);
}

#[test]
fn who_can_not_wait_ends_the_grace() {
    let a = id(5, 1);
    let mut ladder = Ladder::new(Some(ms(1000)));
    ladder.look(&alive(&[a]), ms(0));
    ladder.hurry(ms(100));
    assert_eq!(ladder.look(&alive(&[a]), ms(100)), [kill(a)]);
}

/// What a process does when it is signalled, and else.
#[derive(Clone, Copy, Debug)]
struct Nature {
    /// It dies so long after TERM; never if None.
    heeds_term: Option<u64>,
    /// It dies of KILL.
    heeds_kill: bool,
    /// It may not be signalled.
    is_foreign: bool,
    /// It forks (a process like itself) at every look.
    forks: bool,
    /// Its PID is given to somebody else when it dies.
    is_reused: bool,
}

fn nature() -> impl Strategy<Value = Nature> {
    let heeds = prop::option::of(0_u64..3000);
    (heeds, any::<[bool; 2]>(), 0_u8..5, 0_u8..5).prop_map(
        |(heeds_term, [heeds_kill, is_reused], foreign, forks)| Nature {
            heeds_term,
            heeds_kill,
            is_foreign: foreign == 0,
            forks: forks == 0,
            is_reused,
        },
    )
}

#[derive(Default)]
struct World {
    living: BTreeMap<ProcessId, (Nature, Option<u64>)>,
    pids: u32,
}

impl World {
    fn born(&mut self, nature: Nature) {
        self.pids += 1;
        self.living.insert(id(self.pids, 1), (nature, None));
    }

    fn pass(&mut self, now: u64) {
        let due = |dies: Option<u64>| dies.is_some_and(|at| at <= now);
        let dead: Vec<_> = self
            .living
            .iter()
            .filter(|(_, (_, dies))| due(*dies))
            .map(|(who, (nature, _))| (*who, *nature))
            .collect();
        for (who, nature) in dead {
            self.living.remove(&who);
            if nature.is_reused {
                let other = id(who.pid, who.start + 1);
                self.living.insert(other, (nature, None));
            }
        }
        let parents: Vec<_> = self.living.values().map(|(nature, _)| *nature).collect();
        // A bounded bomb: the real one ends with the machine.
        for nature in parents.into_iter().filter(|n| n.forks).take(2) {
            self.born(nature);
        }
    }

    /// False where it is refused.
    fn send(&mut self, order: Order, now: u64) -> bool {
        let Some((nature, dies)) = self.living.get_mut(&order.who) else {
            panic!("a signal to {:?}, who is not there", order.who);
        };
        let at = match order.rung {
            Rung::Term => nature.heeds_term.map(|after| now + after),
            Rung::Kill => nature.heeds_kill.then_some(now),
        };
        if !nature.is_foreign {
            *dies = dies.map_or(at, |known| Some(at.map_or(known, |at| at.min(known))));
        }
        !nature.is_foreign
    }
}

proptest! {
    #[test]
    fn it_keeps_its_promises_and_ends(
        natures in prop::collection::vec(nature(), 0..8),
        grace in prop::option::of(0_u64..5000),
        steps in prop::collection::vec(1_u64..1500, 1..200),
        hurried in prop::option::of(0_usize..200),
        asked in 0_usize..3,
    ) {
        let mut world = World::default();
        for nature in natures {
            world.born(nature);
        }
        let mut ladder = Ladder::new(grace.map(ms));
        let mut first: BTreeMap<ProcessId, u64> = BTreeMap::new();
        for who in world.living.keys().take(asked) {
            ladder.asked(*who, ms(0));
            first.insert(*who, 0);
        }
        let mut sent: BTreeMap<(ProcessId, bool), u32> = BTreeMap::new();
        let (mut now, mut is_hurried) = (0, false);
        for (n, step) in steps.into_iter().chain(std::iter::repeat_n(1500, 60)).enumerate() {
            now += step;
            if hurried == Some(n) {
                ladder.hurry(ms(now));
                is_hurried = true;
            }
            world.pass(now);
            let here: BTreeSet<_> = world.living.keys().copied().collect();
            for order in ladder.look(&here, ms(now)) {
                let is_kill = order.rung == Rung::Kill;
                let times = sent.entry((order.who, is_kill)).or_default();
                *times += 1;
                prop_assert_eq!(*times, 1, "{:?} twice", order);
                if is_kill {
                    let since = first.get(&order.who).copied();
                    prop_assert!(since.is_some(), "killed unasked: {:?}", order);
                    let waited = now - since.unwrap_or(now);
                    prop_assert!(grace.is_some(), "nobody is to be killed");
                    prop_assert!(is_hurried || Some(waited) >= grace, "killed early");
                } else {
                    first.entry(order.who).or_insert(now);
                }
                if !world.send(order, now) {
                    ladder.refused(order.who);
                }
            }
            if let Some(next) = ladder.next() {
                // Or whoever waits for it would spin.
                prop_assert!(next > ms(now) || grace == Some(0) || is_hurried);
            }
        }
        // Without a second rung it is over when everybody was asked.
        prop_assert!(ladder.is_over() || grace.is_none());
    }
}
