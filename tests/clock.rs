//! The wall clock is set, the zone's offset changes, the zone is nonsense: durations go on,
//! times carry their offset, and nobody calls it a stall. libfaketime plays the clock.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::path::PathBuf;

use jiff::{Timestamp, fmt::temporal::DateTimeParser};

use support::{Job, Live, Record, Sandbox, for_each, wait_until};

/// A command that shows progress and then waits to be told how to go on.
const TRAINS: &str =
    "for i in 1 2 3 4 5; do echo \"step $i/100 loss 0.$i\"; done; read word; echo over; exit 4";

/// The library, wherever the distribution keeps it.
fn library() -> PathBuf {
    let places = std::fs::read_dir("/usr/lib").unwrap();
    let mut folders: Vec<PathBuf> = places.map(|entry| entry.unwrap().path()).collect();
    folders.extend(["/usr/lib64".into(), "/usr/local/lib".into()]);
    let found = folders
        .iter()
        .map(|folder| folder.join("faketime/libfaketime.so.1"))
        .find(|path| path.exists());
    found.expect("these tests need faketime: tests/run installs it")
}

/// From now on the wall clock is so many seconds off.
fn set_clock(sandbox: &Sandbox, seconds: i64) {
    // Whole at every moment: it is read all the time.
    std::fs::write(sandbox.path("clock.new"), format!("{seconds:+}\n")).unwrap();
    std::fs::rename(sandbox.path("clock.new"), sandbox.path("clock")).unwrap();
}

/// With a wall clock that a test sets; the monotonic one is the machine's.
fn with_clock(sandbox: &Sandbox, seconds: i64, job: Job) -> Job {
    set_clock(sandbox, seconds);
    job.env("LD_PRELOAD", library())
        .env("FAKETIME_TIMESTAMP_FILE", sandbox.path("clock"))
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

/// Waits for so many more samples.
fn wait_for_samples(sandbox: &Sandbox, more: usize) {
    let taken = || sandbox.samples_so_far().len();
    let before = taken();
    wait_until("samples are taken", || taken() >= before + more);
}

/// Every time of the record, with its monotonic seconds, in the order of the files.
fn stamps(record: &Record) -> Vec<(String, f64)> {
    let mut stamps: Vec<(String, f64)> = record
        .samples()
        .iter()
        .map(|row| (row["time"].clone(), row["elapsed_s"].parse().unwrap()))
        .collect();
    stamps.extend(record.events().iter().map(|event| {
        let time = event["time"].as_str().unwrap().to_owned();
        (time, event["elapsed_s"].as_f64().unwrap())
    }));
    stamps
}

/// An RFC 3339 time with its offset.
fn parsed(time: &str) -> Timestamp {
    assert!(
        time.len() == 29 && matches!(time.as_bytes()[23], b'+' | b'-'),
        "{time:?} has no offset"
    );
    DateTimeParser::new().parse_timestamp(time).unwrap()
}

fn assert_goes_on(record: &Record) {
    let rows = record.samples();
    let elapsed: Vec<f64> = rows
        .iter()
        .map(|r| r["elapsed_s"].parse().unwrap())
        .collect();
    assert!(elapsed.is_sorted(), "{elapsed:?}");
    for (time, elapsed_s) in stamps(record) {
        parsed(&time);
        assert!((0.0..120.0).contains(&elapsed_s), "{time} {elapsed_s}");
    }
    let run = record.json();
    let duration = run["summary"]["duration_s"].as_f64().unwrap();
    assert!((0.0..120.0).contains(&duration), "{duration}");
    parsed(run["started"].as_str().unwrap());
    parsed(run["ended"].as_str().unwrap());
    let stalls = record.events_of("finding");
    assert!(stalls.iter().all(|f| f["name"] != "stalled"), "{stalls:?}");
}

fn end(mut live: Live) {
    live.send("on\n");
    let ended = live.end();
    assert_eq!(ended.code(), Some(4), "{}", ended.err());
    assert!(ended.out().ends_with("over\n"));
}

#[test]
fn a_clock_that_is_set_by_an_hour_changes_no_duration_and_is_no_stall() {
    for_each(&[3600_i64, -3600], |step| {
        let sandbox = Sandbox::new();
        // A stall by the wall clock would be due twice over.
        let options = ["--interval", "100ms", "--stall-after", "20m"];
        let job = sandbox.watched(&options, &["sh", "-c", TRAINS]);
        let live = with_clock(&sandbox, 0, job).start();
        live.wait_for_out("step 5/100");
        wait_for_samples(&sandbox, 3);
        set_clock(&sandbox, *step);
        wait_until("the step is seen", || {
            sandbox.so_far("events.jsonl").contains("step_s")
        });
        wait_for_samples(&sandbox, 5);
        end(live);
        let record = sandbox.record();
        assert_goes_on(&record);
        let clocks = record.events_of("clock");
        assert_eq!(clocks.len(), 1, "{clocks:?}");
        let seen = clocks[0]["step_s"].as_f64().unwrap();
        assert!((seen - *step as f64).abs() < 30.0, "{seen}");
        assert!(clocks[0]["suspended_s"].is_null(), "{clocks:?}");
        // The rows' own times have moved by it.
        let rows = record.samples();
        let first = parsed(&rows[0]["time"]).as_second();
        let last = parsed(&rows[rows.len() - 1]["time"]).as_second();
        assert!((last - first - step).abs() < 120, "{first} {last}");
        // Commands read it as any other.
        sandbox.gpuwatch(&["show", "last"]).run().assert_ok();
    });
}

#[test]
fn the_end_of_summer_time_is_no_step_and_times_carry_their_offset() {
    // The rule, and the name that people have in TZ.
    let zones = ["CET-1CEST,M3.5.0,M10.5.0/3", "Europe/Berlin"];
    for_each(&zones, |zone| {
        let sandbox = Sandbox::new();
        let edge: Timestamp = "2026-10-25T01:00:00Z".parse().unwrap();
        let before_it = edge.as_second() - Timestamp::now().as_second() - 3;
        let options = ["--interval", "100ms"];
        let job = sandbox
            .watched(&options, &["sh", "-c", TRAINS])
            .env("TZ", zone);
        let live = with_clock(&sandbox, before_it, job).start();
        wait_until("the clocks go back", || {
            sandbox.so_far("samples.csv").contains("T02:00:01")
        });
        end(live);
        let record = sandbox.record();
        assert_goes_on(&record);
        assert_eq!(record.events_of("clock").len(), 0, "{zone}");
        let times: Vec<String> = record
            .samples()
            .iter()
            .map(|row| row["time"].clone())
            .collect();
        assert!(times[0].starts_with("2026-10-25T02:59:5"), "{times:?}");
        assert!(times[0].ends_with("+02:00"), "{zone}: {times:?}");
        assert!(times[times.len() - 1].ends_with("+01:00"), "{times:?}");
        let moments: Vec<Timestamp> = times.iter().map(|time| parsed(time)).collect();
        assert!(moments.is_sorted(), "{zone}: {times:?}");
    });
}

#[test]
fn a_zone_that_is_nonsense_costs_nothing_but_the_zone() {
    for_each(&["Nowhere/Atall", ":::", "", "+99", "\u{fffd}"], |zone| {
        let sandbox = Sandbox::new();
        let job = sandbox.watched(&[], &["sh", "-c", "echo hi; exit 6"]);
        let ended = job.env("TZ", zone).run();
        assert_eq!(ended.code(), Some(6), "{zone:?}: {}", ended.err());
        assert_eq!(ended.out(), "hi\n");
        assert_goes_on(&sandbox.record());
        for args in [&["show", "last"][..], &["runs"], &["runs", "--json"]] {
            let job = sandbox.gpuwatch(args);
            job.env("TZ", zone).run().assert_ok();
        }
    });
}
