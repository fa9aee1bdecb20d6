//! What is on disk: modes, locks, torn files, and what a killed supervisor leaves.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use gpuwatch::model::{
    Event, Exit, FindingState, Logged, Outcome, RunRecord, RunState, Sample, Severity,
};
use gpuwatch::record::{
    EventReader, EventWriter, FindingFold, IndexEntry, OutputLog, RecordError, RunDir,
    SampleReader, SampleWriter, SummaryBuilder, find, index, list, load, output_log, run_dir,
};

use super::{ID, example, helped, helper, record, root_with_example, sample};

#[test]
fn torn_files_and_a_broken_index_lose_nothing_that_is_whole() {
    let root = root_with_example();
    let run = root.path().join(ID);
    for name in ["samples.csv", "events.jsonl"] {
        let whole = fs::read(run.join(name)).unwrap();
        let lines = whole.split(|b| *b == b'\n').count() - 1;
        fs::write(run.join(name), &whole[..whole.len() - 3]).unwrap();
        let kept = match name {
            "samples.csv" => SampleReader::open(&run, &[]).unwrap().flatten().count() + 1,
            _ => EventReader::open(&run).unwrap().flatten().count(),
        };
        assert_eq!(kept, lines - 1, "{name}");
    }
    assert_eq!(load(&run).unwrap().findings.len(), 1);
    let runs = |content: &[u8]| {
        fs::write(root.path().join("index.jsonl"), content).unwrap();
        let listing = list(root.path(), None, |_| true).unwrap();
        assert!(listing.unreadable.is_empty());
        listing.runs.len()
    };
    let entry = list(root.path(), None, |_| true).unwrap().runs.remove(0);
    let line = serde_json::to_string(&entry).unwrap() + "\n";
    let gone = line.replace(ID, "20200101-000000-gone-0000");
    for content in [
        "",
        "\n\n",
        "garbage\n",
        "\u{0}\u{0}\u{0}",
        &line,
        &line[..line.len() - 1],
        &line[..50],
        &format!("{}\n{line}{line}{}", &line[..40], &line[..40]),
        &format!("{gone}{line}"),
        &gone,
    ] {
        assert_eq!(runs(content.as_bytes()), 1, "{content}");
    }
    fs::remove_file(root.path().join("index.jsonl")).unwrap();
    fs::create_dir(root.path().join("index.jsonl")).unwrap();
    assert_eq!(list(root.path(), Some(20), |_| true).unwrap().runs.len(), 1);
}

#[test]
fn helper_supervisor() {
    let Some((root, word)) = helped() else { return };
    let run = RunDir::create(&root, ID).unwrap();
    let mut of_run = record(ID, RunState::Running);
    if word == "cancelled" {
        of_run.state = RunState::Cancelled;
    }
    run.write_run(&of_run).unwrap();
    let mut samples = SampleWriter::create(run.path()).unwrap();
    let mut events = EventWriter::create(run.path()).unwrap();
    let mut log = OutputLog::create(run.path()).unwrap();
    for tick in 0_u32.. {
        let elapsed_s = f64::from(tick) / 10.0;
        samples.append(&sample(elapsed_s)).unwrap();
        events
            .append(&Logged {
                stamp: sample(elapsed_s).stamp,
                event: Event::Started { pid: tick },
            })
            .unwrap();
        log.write(&vec![b'x'; 100_000]).unwrap();
        run.write_run(&of_run).unwrap();
        if tick == 300 {
            println!("\nready");
        }
    }
}

#[test]
fn a_killed_supervisor_s_run_is_lost_and_its_files_are_whole() {
    for (word, state, outcome) in [
        ("", RunState::Lost, Outcome::Lost),
        ("cancelled", RunState::Cancelled, Outcome::Cancelled),
    ] {
        let root = tempfile::tempdir().unwrap();
        let mut child = helper("disk::helper_supervisor", root.path(), word);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "ready"));
        let run = find(Some(root.path()), "last").unwrap();
        let alive = load(&run).unwrap();
        assert_ne!(alive.record.state, RunState::Lost);
        assert_eq!(alive.record.verdict.outcome, None);
        assert_eq!(alive.record.ended, None);
        assert!(alive.record.summary.duration_s.unwrap() >= 30.0);
        child.kill().unwrap();
        child.wait().unwrap();
        let before = snapshot(&run);
        let dead = load(&run).unwrap();
        assert_eq!(
            (dead.record.state, dead.record.verdict.outcome),
            (state, Some(outcome))
        );
        let last = SampleReader::open(&run, &[])
            .unwrap()
            .flatten()
            .last()
            .unwrap();
        assert_eq!(dead.record.ended, Some(last.stamp.time));
        assert_eq!(dead.record.summary.duration_s, Some(last.stamp.elapsed_s));
        assert_eq!(dead.record.summary.gpu_util_pct_mean, Some(50.0));
        assert_eq!(dead.record.summary.power_w_mean, None);
        let listed = list(root.path(), None, |_| true).unwrap().runs;
        assert_eq!(listed[0].outcome, Some(outcome));
        assert_eq!(snapshot(&run), before, "reading never writes");
        let parts = output_log::parts(&run).unwrap();
        let kept: u64 = parts.iter().map(|p| fs::metadata(p).unwrap().len()).sum();
        assert!(kept >= 17 << 20);
    }
}

/// Names, sizes and times of change.
fn snapshot(dir: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    let mut all: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let m = fs::metadata(&path).unwrap();
            (path, m.len(), m.mtime(), m.mtime_nsec())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn helper_with_umask() {
    let Some((root, word)) = helped() else { return };
    let mask = u32::from_str_radix(&word, 8).unwrap();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
    let root = root.join("made/runs");
    let run = RunDir::create(&root, ID).unwrap();
    run.write_run(&record(ID, RunState::Finished)).unwrap();
    run_dir::write_evidence(run.path(), "stacks-18.txt", b"x").unwrap();
    SampleWriter::create(run.path()).unwrap();
    EventWriter::create(run.path()).unwrap();
    let mut log = OutputLog::create(run.path()).unwrap();
    for _ in 0..200 {
        log.write(&vec![b'x'; 100_000]).unwrap();
    }
    assert!(log.finish().is_ok());
    let mut log = OutputLog::create(&run.path().join("evidence")).unwrap();
    for _ in 0..200 {
        log.write(&vec![b'x'; 100_000]).unwrap();
    }
    drop(log);
    let entry = IndexEntry::new(&record(ID, RunState::Finished), Vec::new(), run.path());
    index::append(&root, &entry).unwrap();
}

#[test]
fn everything_is_private_whatever_the_umask() {
    for mask in ["000", "022", "777"] {
        let root = tempfile::tempdir().unwrap();
        let helped = helper("disk::helper_with_umask", root.path(), mask);
        assert!(helped.wait_with_output().unwrap().status.success());
        let mut seen = Vec::new();
        let mut todo = vec![root.path().join("made")];
        while let Some(path) = todo.pop() {
            let m = fs::symlink_metadata(&path).unwrap();
            let mode = m.permissions().mode() & 0o7777;
            let expected = if m.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode, expected, "{} under {mask}", path.display());
            seen.push(path.file_name().unwrap().to_string_lossy().into_owned());
            if m.is_dir() {
                todo.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
            }
        }
        for name in [
            "index.jsonl",
            "lock",
            "run.json",
            "samples.csv",
            "events.jsonl",
            "output.log",
            "stacks-18.txt",
            "output.tail.000001",
        ] {
            assert!(seen.iter().any(|s| s == name), "{name} in {seen:?}");
        }
    }
}

#[test]
fn helper_appends_to_the_index() {
    let Some((root, word)) = helped() else { return };
    for n in 0..25 {
        let id = format!("20261130-0000{n:02}-{word}-0000");
        let mut of_run = record(&id, RunState::Finished);
        of_run.started = format!("2026-11-30T00:00:{n:02}.000Z");
        of_run.argv = vec!["x".repeat(3000)];
        let run = RunDir::create(&root, &id).unwrap();
        run.write_run(&of_run).unwrap();
        index::append(&root, &IndexEntry::new(&of_run, Vec::new(), run.path())).unwrap();
    }
}

#[test]
fn twenty_processes_append_to_the_index_at_once() {
    let root = tempfile::tempdir().unwrap();
    let children: Vec<Child> = (0..20)
        .map(|n| {
            helper(
                "disk::helper_appends_to_the_index",
                root.path(),
                &format!("p{n}"),
            )
        })
        .collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let text = fs::read_to_string(root.path().join("index.jsonl")).unwrap();
    assert!(
        text.lines()
            .all(|line| serde_json::from_str::<IndexEntry>(line).is_ok())
    );
    assert_eq!(text.lines().count(), 500);
    assert_eq!(index::newest_first(root.path()).count(), 500);
    let newest = list(root.path(), Some(3), |_| true).unwrap().runs;
    let ids: Vec<&str> = newest.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "20261130-000024-p9-0000",
            "20261130-000024-p8-0000",
            "20261130-000024-p7-0000"
        ]
    );
}

#[test]
fn a_lock_that_is_never_given_back_is_said_and_not_waited_for() {
    let root = root_with_example();
    let path = root.path().join("index.jsonl");
    let held = File::create(&path).unwrap();
    held.lock().unwrap();
    let entry = IndexEntry::new(&record(ID, RunState::Finished), Vec::new(), root.path());
    let start = Instant::now();
    let error = index::append(root.path(), &entry).unwrap_err();
    assert!(matches!(error, RecordError::IndexBusy { .. }));
    // Two seconds, and a generous rest for a busy machine.
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(error.to_string().contains("locked for over 2 s"), "{error}");
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    // Readers take no lock on the index, and find the run.
    assert_eq!(list(root.path(), Some(20), |_| true).unwrap().runs.len(), 1);
    drop(held);
    index::append(root.path(), &entry).unwrap();
}

#[test]
fn run_json_is_whole_at_every_instant() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDir::create(root.path(), ID).unwrap();
    let mut of_run = record(ID, RunState::Running);
    of_run.argv = vec!["x".repeat(100_000)];
    run.write_run(&of_run).unwrap();
    let path = run.path().join("run.json");
    let reader = std::thread::spawn(move || {
        (0..300).all(|_| serde_json::from_slice::<RunRecord>(&fs::read(&path).unwrap()).is_ok())
    });
    while !reader.is_finished() {
        run.write_run(&of_run).unwrap();
    }
    assert!(reader.join().unwrap());
}

#[test]
fn the_summary_is_what_the_csv_gives() {
    let mut builder = SummaryBuilder::default();
    let samples: Vec<Sample> = SampleReader::open(&example(), &[])
        .unwrap()
        .flatten()
        .collect();
    for sample in &samples {
        builder.absorb(sample);
    }
    let text = fs::read_to_string(example().join("samples.csv")).unwrap();
    let column = |name: &str| -> Vec<f64> {
        let mut lines = text.lines();
        let place = lines
            .next()
            .unwrap()
            .split(',')
            .position(|c| c == name)
            .unwrap();
        lines
            .filter_map(|line| line.split(',').nth(place)?.parse().ok())
            .collect()
    };
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    let mut util = column("gpu_util_pct");
    util.sort_by(f64::total_cmp);
    let p95 = util[(util.len() * 95).div_ceil(100) - 1];
    let summary = builder.finish(Some(31.4), &samples.last().unwrap().progress);
    let close = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() <= b.abs() * 0.001;
    assert!(close(summary.gpu_util_pct_mean, mean(&util)));
    assert!(close(summary.gpu_util_pct_p95, p95));
    assert!(close(summary.power_w_mean, mean(&column("power_w"))));
    assert!(close(
        summary.job_mem_mib_max,
        column("job_mem_mib").into_iter().fold(0.0, f64::max)
    ));
    assert!(close(summary.energy_j, *column("energy_j").last().unwrap()));
    assert_eq!((summary.step, summary.steps), (Some(200), Some(200)));
}

#[test]
fn a_full_disk_costs_rows_and_nothing_else() {
    // A limit on the size of files fails writes as a full disk does.
    if let Some((dir, _)) = helped() {
        return write_until_full(&dir);
    }
    let dir = tempfile::tempdir().unwrap();
    let child = helper(
        "disk::a_full_disk_costs_rows_and_nothing_else",
        dir.path(),
        "",
    );
    assert!(child.wait_with_output().unwrap().status.success());
    let ticks: Vec<f64> = SampleReader::open(dir.path(), &[])
        .unwrap()
        .map(|sample| sample.unwrap().stamp.elapsed_s)
        .collect();
    assert!(!ticks.is_empty());
    assert_eq!(
        ticks.last().copied(),
        Some(1e6),
        "written again once there is room"
    );
    let text = fs::read_to_string(dir.path().join("samples.csv")).unwrap();
    let width = text.lines().next().unwrap().matches(',').count();
    assert!(text.lines().all(|line| line.matches(',').count() == width));
    let log = fs::read_to_string(dir.path().join("output.log")).unwrap();
    assert!(
        log.ends_with("bytes left out here]\nafter"),
        "{}",
        &log[log.len() - 90..]
    );
}

fn write_until_full(dir: &Path) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // SIGXFSZ would end us before the write could fail.
    let mut mask = nix::sys::signal::SigSet::empty();
    mask.add(nix::sys::signal::Signal::SIGXFSZ);
    mask.thread_block().unwrap();
    let mut samples = SampleWriter::create(dir).unwrap();
    let mut log = OutputLog::create(dir).unwrap();
    let before = getrlimit(Resource::Fsize);
    let full = Rlimit {
        current: Some(5000),
        ..before
    };
    setrlimit(Resource::Fsize, full).unwrap();
    let failed = (0..200_u32)
        .filter(|n| samples.append(&sample(f64::from(*n))).is_err())
        .count();
    assert!(failed > 0);
    assert!(log.write(&[b'x'; 9000]).is_err());
    assert!(log.write(b"lost").is_err());
    setrlimit(Resource::Fsize, before).unwrap();
    samples.append(&sample(1e6)).unwrap();
    log.write(b"after").unwrap();
    log.finish().unwrap();
}

#[test]
fn a_run_from_its_start_to_the_history() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDir::create(root.path(), ID).unwrap();
    let mut of_run = record(ID, RunState::Running);
    run.write_run(&of_run).unwrap();
    let mut events = EventWriter::create(run.path()).unwrap();
    let mut fold = FindingFold::default();
    let raised = Logged {
        stamp: sample(3.0).stamp,
        event: Event::Finding {
            name: "stalled".into(),
            cause: None,
            severity: Severity::Critical,
            state: FindingState::Raised,
            because: None,
            since_s: 1.0,
            evidence: serde_json::Map::new(),
            advice: None,
        },
    };
    events.append(&raised).unwrap();
    fold.absorb(&raised);
    let running = list(root.path(), Some(1), |run| run.state == RunState::Running).unwrap();
    assert_eq!(running.runs[0].findings, ["stalled"]);
    of_run = RunRecord {
        exit: Exit {
            code: Some(0),
            signal: None,
        },
        ..record(ID, RunState::Finished)
    };
    of_run.verdict.outcome = Some(Outcome::Ok);
    run.write_run(&of_run).unwrap();
    let entry = IndexEntry::new(&of_run, fold.names(), run.path());
    assert_eq!(index::append(root.path(), &entry).unwrap(), None);
    let from_index = list(root.path(), None, |_| true).unwrap().runs;
    fs::remove_file(root.path().join("index.jsonl")).unwrap();
    let from_directory = list(root.path(), None, |_| true).unwrap().runs;
    assert_eq!(from_index, from_directory);
    assert_eq!(from_index[0].findings, ["stalled"]);
}
