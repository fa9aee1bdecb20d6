//! The history: which runs are listed, in which order, and how they are read to have ended.

use gpuwatch::model::{Event, Exit, Logged, Outcome, RunState};
use gpuwatch::record::{EventWriter, IndexEntry, RunDir, find, index, list, load};

use super::{ID, record, sample};

#[test]
fn runs_of_one_second_are_in_the_order_of_their_starts() {
    let ids = [
        ("20261130-091502-z-0000", "2026-11-30T09:15:02.100+08:00"),
        ("20261130-091502-a-0000", "2026-11-30T09:15:02.900+08:00"),
        ("20261130-091502-m-0000", "2026-11-30T09:15:02.500+08:00"),
        // Later, by a clock that was set back.
        ("20261130-083000-b-0000", "2026-11-30T08:30:00.000+07:00"),
    ];
    for indexed in 0..1 << ids.len() {
        let root = tempfile::tempdir().unwrap();
        for (n, (id, started)) in ids.iter().enumerate() {
            let mut of_run = record(id, RunState::Finished);
            of_run.started = (*started).to_owned();
            let run = RunDir::create(root.path(), id).unwrap();
            run.write_run(&of_run).unwrap();
            if indexed >> n & 1 == 1 {
                let entry = IndexEntry::new(&of_run, Vec::new(), run.path());
                index::append(root.path(), &entry).unwrap();
            }
        }
        for limit in [None, Some(1), Some(2), Some(3)] {
            let listed = list(root.path(), limit, |_| true).unwrap().runs;
            let found: Vec<_> = listed.iter().map(|run| run.id.as_str()).collect();
            let wanted = [ids[3].0, ids[1].0, ids[2].0, ids[0].0];
            assert_eq!(found, wanted[..limit.unwrap_or(4)], "{indexed:b} {limit:?}");
        }
        assert!(find(Some(root.path()), "@-2").unwrap().ends_with(ids[1].0));
    }
}

#[test]
fn a_run_whose_record_was_never_written_is_not_listed() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDir::create(root.path(), ID).unwrap();
    let entry = IndexEntry::new(&record(ID, RunState::Finished), Vec::new(), run.path());
    index::append(root.path(), &entry).unwrap();
    for limit in [None, Some(5)] {
        let listing = list(root.path(), limit, |_| true).unwrap();
        assert!(listing.runs.is_empty() && listing.unreadable.is_empty());
    }
}

#[test]
fn an_end_that_only_the_events_hold_is_an_end() {
    use Outcome::{Failed, Killed, Ok};
    use RunState::{Cancelled, Finished, Running};
    let exit = |code, signal| Exit { code, signal };
    for (written, exit, state, outcome) in [
        (Running, exit(Some(0), None), Finished, Ok),
        (Running, exit(Some(3), None), Finished, Failed),
        (Running, exit(None, Some(9)), Finished, Killed),
        (
            Cancelled,
            exit(None, Some(15)),
            Cancelled,
            Outcome::Cancelled,
        ),
        (Cancelled, exit(Some(0), None), Finished, Ok),
    ] {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), ID).unwrap();
        run.write_run(&record(ID, written)).unwrap();
        let mut events = EventWriter::create(run.path()).unwrap();
        let event = Event::Exited {
            code: exit.code,
            signal: exit.signal,
        };
        let stamp = sample(7.0).stamp;
        events
            .append(&Logged {
                stamp: stamp.clone(),
                event,
            })
            .unwrap();
        let dir = run.path().to_owned();
        // While its supervisor lives it may yet write the end itself.
        assert_eq!(load(&dir).unwrap().record.state, written);
        drop(run);
        let read = load(&dir).unwrap().record;
        assert_eq!((read.state, read.exit), (state, exit));
        assert_eq!(read.verdict.outcome, Some(outcome));
        assert_eq!(read.ended, Some(stamp.time));
        assert_eq!(read.summary.duration_s, Some(7.0));
        let listed = list(root.path(), None, |_| true).unwrap().runs;
        assert_eq!((listed[0].state, listed[0].exit), (state, exit));
    }
}
