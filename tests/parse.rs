//! Progress read off real output: the corpus, through the program and through the library.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on should say so and stop"
)]

mod corpus_reader;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use corpus_reader::expected::value;
use corpus_reader::{Recording, recordings};
use gpuwatch::model::{Mark, Phase, ProgressChange, ProgressState};
use gpuwatch::read::{Milestones, ProgressReader};

/// Recordings whose every field has to be right, whatever else is traded for it.
const CERTAIN: [&str; 24] = [
    "keras_fit_v1",
    "keras_fit_v2",
    "keras_callbacks",
    "fail_tf_missing_cuda",
    "fail_oom_tf_gpu",
    "tqdm_plain",
    "tqdm_slow",
    "tqdm_no_total",
    "tqdm_ascii_units",
    "pt_tqdm_nested",
    "pt_tqdm_postfix",
    "pt_yunjey",
    "pt_plain_logging",
    "fail_nan",
    "fail_segfault",
    "fail_sigkill",
    "fail_traceback",
    "jax_optax",
    "style_crlf",
    "style_zh",
    "style_flood",
    "style_silent",
    "fail_disk_full_import",
    "fail_numpy_mismatch",
];

fn gpuwatch(args: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gpuwatch"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let bytes = stdin.to_vec();
    let feeder = std::thread::spawn(move || {
        let _ = input.write_all(&bytes);
    });
    let output = child.wait_with_output().expect("it ends");
    feeder.join().expect("the feeder ends");
    output
}

fn parsed(recording: &Recording) -> Vec<Mark> {
    let path = recording.path.to_str().expect("a UTF-8 path");
    let output = gpuwatch(&["parse", path, "--json"], b"");
    assert!(output.status.success(), "{path}: {output:?}");
    String::from_utf8(output.stdout)
        .expect("UTF-8")
        .lines()
        .map(|l| serde_json::from_str(l).expect("a mark"))
        .collect()
}

/// What is wrong with the last mark, one entry a field.
fn wrong_at_the_end(recording: &Recording, marks: &[Mark]) -> Vec<String> {
    let name = &recording.name;
    let train: Vec<&Mark> = marks.iter().filter(|m| m.phase == Phase::Train).collect();
    let Some(expected) = &recording.expected else {
        let read = train
            .iter()
            .find(|m| m.epoch.is_some() || m.step.is_some() || m.percent.is_some());
        return read
            .map(|m| format!("{name}: read where nothing is shown: {m:?}"))
            .into_iter()
            .collect();
    };
    let last = train.last();
    let mut wrong = Vec::new();
    for (field, want) in expected {
        if !want.is_met(last.copied(), field) {
            let got = last.and_then(|m| value(m, field));
            wrong.push(format!("{name}: {field} is {got:?}, should be {want:?}"));
        }
    }
    wrong
}

/// Marks in the middle against the script's own log: how many were checked, and which are off.
fn wrong_in_the_middle(recording: &Recording, marks: &[Mark]) -> (usize, Vec<String>) {
    let mut checked = 0;
    let mut wrong = Vec::new();
    for truth in &recording.truth {
        let near: Vec<f64> = marks
            .iter()
            .filter(|m| m.phase == Phase::Train)
            .filter(|m| {
                m.t.is_some_and(|t| (truth.t - 1.5..=truth.t + 1.0).contains(&t))
            })
            .filter_map(|m| m.step)
            .map(|s| s as f64)
            .collect();
        checked += 1;
        // The display may be a few steps behind.
        let lag = (0.12 * truth.steps).max(4.0);
        if !near.is_empty() && !near.iter().any(|s| (s - truth.step).abs() <= lag) {
            wrong.push(format!(
                "{}: at {} {near:?}, not {}",
                recording.name, truth.t, truth.step
            ));
        }
    }
    (checked, wrong)
}

#[test]
fn the_corpus_is_read_right() {
    let mut wrong = Vec::new();
    let (mut checked, mut off) = (0, Vec::new());
    for recording in recordings() {
        let marks = parsed(&recording);
        wrong.extend(wrong_at_the_end(&recording, &marks));
        let (n, bad) = wrong_in_the_middle(&recording, &marks);
        checked += n;
        off.extend(bad);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 1800, "only {checked} marks were checked");
    assert!(off.len() * 100 <= checked * 3, "{}", off.join("\n"));
}

#[test]
fn the_certain_ones_are_in_the_corpus() {
    let names: Vec<String> = recordings().into_iter().map(|r| r.name).collect();
    for certain in CERTAIN {
        assert!(
            names.iter().any(|n| n.starts_with(&format!("{certain}."))),
            "{certain} is missing"
        );
    }
}

/// Feeds a recording cut into pieces of these sizes, in turn.
fn fed(recording: &Recording, sizes: &[usize]) -> (ProgressState, Vec<Mark>) {
    let mut reader = ProgressReader::new(recording.layout, recording.layout);
    let mut marks = Vec::new();
    let mut sizes = sizes.iter().cycle();
    for (stream, bytes) in &recording.streams {
        let mut rest: &[u8] = bytes;
        while !rest.is_empty() {
            let n = (*sizes.next().expect("cycles")).min(rest.len());
            marks.extend(reader.feed(*stream, None, &rest[..n]));
            rest = &rest[n..];
        }
    }
    marks.extend(reader.finish(None));
    (reader.state(), marks)
}

#[test]
fn the_state_does_not_depend_on_the_cutting() {
    for recording in recordings() {
        let (whole, whole_marks) = fed(&recording, &[usize::MAX]);
        for sizes in [&[1][..], &[7, 1, 64, 3], &[4096]] {
            let (state, marks) = fed(&recording, sizes);
            assert_eq!(
                format!("{state:?}"),
                format!("{whole:?}"),
                "{} in {sizes:?}",
                recording.name
            );
            let last = |marks: &[Mark]| {
                marks
                    .iter()
                    .rfind(|m| m.phase == Phase::Train)
                    .map(|m| (m.epoch, m.step, m.steps))
            };
            assert_eq!(
                last(&marks),
                last(&whole_marks),
                "{} in {sizes:?}",
                recording.name
            );
        }
    }
}

fn milestones(recording: &Recording) -> Vec<ProgressChange> {
    let mut milestones = Milestones::new();
    parsed(recording)
        .iter()
        .filter_map(|m| milestones.absorb(m))
        .collect()
}

#[test]
fn milestones_of_real_runs() {
    let expected = [
        ("keras_fit_v1", 5),
        ("keras_fit_v2", 8),
        ("pt_tqdm_postfix", 4),
        ("pt_tqdm_nested", 5),
        ("pt_yunjey", 5),
        ("pt_plain_logging", 5),
        ("pl_tqdm", 4),
        ("pt_ddp_torchrun", 3),
        ("style_zh", 6),
        ("ignite_trainer", 3),
    ];
    for recording in recordings() {
        let Some((name, epochs)) = expected
            .iter()
            .find(|(n, _)| recording.name.starts_with(&format!("{n}.")))
        else {
            continue;
        };
        let changes = milestones(&recording);
        let count = |c| changes.iter().filter(|x| **x == c).count();
        assert_eq!(changes.first(), Some(&ProgressChange::First), "{name}");
        assert_eq!(count(ProgressChange::First), 1, "{name}");
        assert_eq!(
            count(ProgressChange::EpochEnd),
            *epochs,
            "{}: {changes:?}",
            recording.name
        );
        assert_eq!(
            count(ProgressChange::Reset),
            0,
            "{}: {changes:?}",
            recording.name
        );
    }
}

#[test]
fn overall_progress_never_falls_within_a_run() {
    for recording in recordings() {
        let mut milestones = Milestones::new();
        // Each rank goes its own way.
        let mut reached: BTreeMap<u32, f64> = BTreeMap::new();
        for mark in parsed(&recording) {
            if milestones.absorb(&mark) == Some(ProgressChange::Reset) {
                reached.clear();
            }
            let most = reached.entry(mark.rank.unwrap_or(0)).or_default();
            if let Some(now) = mark.overall_pct.filter(|_| mark.phase == Phase::Train) {
                assert!(
                    now >= *most && now <= 100.0,
                    "{}: {now} after {most}: {mark:?}",
                    recording.name
                );
                *most = now;
            }
        }
    }
}

#[test]
fn raw_bytes_from_standard_input() {
    let output = gpuwatch(&["parse", "-", "--json"], b"Epoch 1/2 loss: nan\n");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success());
    assert!(
        text.starts_with(r#"{"t":null,"stream":"out","source":"epoch-counter","phase":"train","#),
        "{text}"
    );
    assert!(text.contains(r#""loss":"nan""#), "{text}");
    let output = gpuwatch(&["parse", "-"], b"Epoch 1/2 loss: 0.5\n");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        text.contains("epoch 1/2") && text.contains("loss 0.5"),
        "{text}"
    );
}

#[test]
fn a_recording_with_bytes_that_are_no_utf8() {
    let cast = "{\"version\": 2, \"width\": 80, \"height\": 24, \"x_encoding\": \"latin-1\"}\n\
                [0.5, \"o\", \"\u{e7}\u{ac}\u{ac} 4/6 \u{e8}\u{bd}\u{ae}\\r\\n\"]\ntorn";
    let output = gpuwatch(&["parse", "-", "--json"], cast.as_bytes());
    let mark: Mark = serde_json::from_slice(&output.stdout).expect("one mark");
    assert_eq!(
        (mark.t, mark.epoch, mark.epochs),
        (Some(0.5), Some(4.0), Some(6.0))
    );
}

#[test]
fn a_file_that_cannot_be_read() {
    let output = gpuwatch(&["parse", "/nowhere/train.log"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "gpuwatch: cannot read '/nowhere/train.log': no such file or directory; check the path\n"
    );
}

#[test]
fn a_reader_that_has_seen_enough() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gpuwatch"))
        .args(["parse", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut input = child.stdin.take().expect("a pipe");
    for step in 0..1000 {
        if writeln!(input, "step {step}/1000 loss 1.0").is_err() {
            break;
        }
    }
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_sequence_that_never_ends_takes_no_memory() {
    // The title of a window, 128 MiB long, with less memory than that.
    let script = "{ printf '\\033]'; head -c 134217728 /dev/zero | tr '\\0' x; printf '\\nstep 1/2\\n'; } | \
                  { ulimit -v 120000; exec \"$0\" parse; }";
    let out = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_gpuwatch")])
        .output()
        .expect("sh");
    let said = String::from_utf8_lossy(&out.stderr);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.starts_with("train  step 1/2"), "{text} {said}");
}
