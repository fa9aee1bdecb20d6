//! Jobs as a patrol sees them: five seconds a look, without a word of output.

use super::run::{Run, quiet, spinning, training};
use crate::model::FindingState::{Cleared, Raised};
use crate::model::{Event, ProcessChange, Sample, Severity};

const NONE: [&str; 0] = [];

/// A job whose main process is 7.
fn job() -> Run {
    let mut run = Run::new();
    run.event(Event::Started { pid: 7 });
    run.process(7, ProcessChange::Started, None);
    run
}

/// So many looks, one every five seconds.
fn looks(run: &mut Run, n: u32, sample: &Sample) {
    for _ in 0..n {
        run.t += 5.0;
        run.look(sample.clone());
    }
}

#[test]
fn what_works_is_no_orphan_and_what_does_nothing_is_one_after_two_minutes() {
    let mut run = job();
    run.process(7, ProcessChange::Reparented, None);
    looks(&mut run, 720, &training());
    assert_eq!(run.alarms(), NONE);
    let stopped = run.t;
    looks(&mut run, 200, &quiet());
    assert_eq!(run.alarms(), [format!("orphans {}", stopped + 120.0)]);
    let found = run.first("orphans");
    assert_eq!(found.severity, Severity::Critical);
    assert_eq!(found.cause.as_deref(), Some("left-behind"));
    assert!(found.advice.as_deref().unwrap().contains("`kill 7`"));
    // The same story told once.
    assert_eq!(
        run.first("idle-holding").because.as_deref(),
        Some("orphans")
    );
    let again = run.t + 5.0;
    looks(&mut run, 3, &training());
    assert_eq!(
        run.life("orphans"),
        [(Raised, stopped + 120.0), (Cleared, again)]
    );
}

#[test]
fn without_having_been_left_behind_it_is_idle_after_ten_minutes() {
    let mut run = job();
    looks(&mut run, 100, &training());
    let stopped = run.t;
    looks(&mut run, 150, &quiet());
    assert_eq!(run.alarms(), [format!("idle-holding {}", stopped + 600.0)]);
}

#[test]
fn a_server_waits_for_requests_and_a_rank_that_spins_does_not() {
    for (sample, alarms) in [(quiet(), 0), (spinning(), 1)] {
        let mut run = job();
        run.process(7, ProcessChange::Listening, Some("tcp:8000"));
        looks(&mut run, 200, &sample);
        assert_eq!(run.alarms().len(), alarms, "{:?}", run.alarms());
    }
    let mut run = job();
    run.process(7, ProcessChange::Listening, Some("tcp:8000"));
    looks(&mut run, 200, &quiet());
    assert_eq!(run.first("idle-serving").severity, Severity::Note);
}
