//! Output of ordinary programs, in which neither training nor its failures are to be seen:
//! tests/ordinary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gpuwatch::judge::{Input, JobFacts, Judge, is_alarm};
use gpuwatch::model::{
    Event, Exit, JudgeSettings, LineSource, Logged, Mark, Outcome, Phase, Stamp, Stream,
};
use gpuwatch::read::fingerprint::{Kind, Lines, fingerprint};
use gpuwatch::read::{Layout, ProgressReader};

/// What is fed at once, as it comes through a pipe.
const PIECE: usize = 8192;

fn recordings() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ordinary");
    let files = dir.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut list: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "zst"))
        .collect();
    list.sort();
    list
}

fn content(path: &Path) -> Vec<u8> {
    let mut file = std::fs::File::open(path).unwrap();
    let mut bytes = Vec::new();
    let mut reader = ruzstd::decoding::StreamingDecoder::new(&mut file).unwrap();
    reader.read_to_end(&mut bytes).unwrap();
    bytes
}

fn marks(path: &Path, bytes: &[u8]) -> Vec<Mark> {
    let on_terminal = path.to_string_lossy().ends_with("-pty.zst");
    let layout = if on_terminal {
        Layout::Terminal {
            cols: 120,
            rows: 40,
        }
    } else {
        Layout::Plain
    };
    let mut reader = ProgressReader::new(layout, layout);
    let mut marks = Vec::new();
    for piece in bytes.chunks(PIECE) {
        marks.extend(reader.feed(Stream::Out, None, piece));
    }
    marks.extend(reader.finish(None));
    marks
}

/// What was read off all of it.
#[derive(Default)]
struct Total {
    bytes: usize,
    lines: usize,
    /// By recording: marks of training or a look at its result.
    wrong: BTreeMap<String, Vec<Mark>>,
}

#[test]
fn ordinary_programs_train_nothing() {
    let (total, list) = (Mutex::new(Total::default()), Mutex::new(recordings()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(path) = { list.lock().unwrap().pop() } {
                    let bytes = content(&path);
                    let mut wrong = marks(&path, &bytes);
                    // Bars of downloads and builds are what they are.
                    wrong.retain(|mark| mark.phase != Phase::Other);
                    let mut total = total.lock().unwrap();
                    total.bytes += bytes.len();
                    total.lines += bytes.iter().filter(|b| matches!(b, b'\n' | b'\r')).count();
                    if !wrong.is_empty() {
                        total.wrong.insert(path.display().to_string(), wrong);
                    }
                }
            });
        }
    });
    let total = total.into_inner().unwrap();
    assert!(total.bytes > 20 << 20, "only {} bytes", total.bytes);
    let all: Vec<&Mark> = total.wrong.values().flatten().collect();
    assert!(
        all.iter().all(|m| m.phase != Phase::Train),
        "{:?}",
        total.wrong
    );
    assert!(all.len() * 10_000 <= total.lines, "{:?}", total.wrong);
}

/// The alarms on a run that prints this and ends well, or the cause that its verdict names, and
/// the lines that were told.
fn judged(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    let mut judge = Judge::new(JudgeSettings::default(), Vec::new(), JobFacts::default());
    let mut lines = Lines::new();
    let mut told = Vec::new();
    for piece in bytes.chunks(PIECE) {
        told.extend(lines.feed(Stream::Out, piece));
    }
    told.extend(lines.finish().into_iter().map(|(_, text)| text));
    let mut wrong = Vec::new();
    for text in &told {
        let logged = Logged {
            stamp: Stamp::default(),
            event: Event::Line {
                stream: LineSource::Out,
                text: text.clone(),
                file: None,
            },
        };
        let found = judge.step(Input::Event(&logged)).into_iter();
        wrong.extend(found.filter(|f| is_alarm(f.severity)).map(|f| f.name));
    }
    let well = Exit {
        code: Some(0),
        signal: None,
    };
    wrong.extend(judge.verdict(Outcome::Ok, well).cause);
    (wrong, told)
}

#[test]
fn ordinary_programs_fail_of_nothing() {
    let (total, list) = (
        Mutex::new((0, 0, BTreeMap::new(), BTreeMap::new())),
        Mutex::new(recordings()),
    );
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(path) = { list.lock().unwrap().pop() } {
                    let bytes = content(&path);
                    let (wrong, told) = judged(&bytes);
                    let mut total = total.lock().unwrap();
                    total.0 += memchr::memchr_iter(b'\n', &bytes).count();
                    let kinds = told.iter().filter_map(|text| fingerprint(text));
                    for kind in kinds.filter(|kind| kind.is_failure()) {
                        *total.3.entry(kind).or_insert(0) += 1;
                        total.1 += usize::from(kind != Kind::Exception);
                    }
                    if !wrong.is_empty() {
                        total.2.insert(path.display().to_string(), (wrong, told));
                    }
                }
            });
        }
    });
    let (lines, failures, wrong, kinds): (usize, usize, BTreeMap<_, _>, BTreeMap<Kind, usize>) =
        total.into_inner().unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(
        failures * 10_000 <= lines,
        "{failures} of {lines} lines look like failures: {kinds:?}"
    );
}
