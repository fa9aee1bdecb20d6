//! Whatever a command writes in whatever pieces: those bytes come out, and what is read off
//! them is what they say as a whole.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use gpuwatch::model::Stream;
use gpuwatch::read::{Layout, ProgressReader};
use proptest::prelude::*;
use serde_json::json;

use support::{Sandbox, for_each, python};

/// Writes the pieces of a file: a descriptor, bytes, and how long to wait after them, ms.
const WRITER: &str = "
import json, os, sys, time
for fd, text, pause in json.load(open(sys.argv[1])):
    rest = text.encode('latin-1')
    while rest:
        rest = rest[os.write(fd, rest):]
    time.sleep(pause / 1000)
";

#[derive(Clone, Debug)]
struct Piece {
    to_stderr: bool,
    bytes: Vec<u8>,
    pause_ms: u8,
}

/// Progress cut anywhere, arbitrary bytes, more than a pipe or a relay takes at once.
fn piece() -> impl Strategy<Value = Piece> {
    let bytes = prop_oneof![
        4 => (0u8..99, 1u8..99).prop_map(|(a, b)| format!("step {a}/{b} loss 0.{b}\n").into_bytes()),
        2 => (0u8..99, 0u8..99).prop_map(|(a, b)| format!("\r{a:3}%|██▍  | {a}/{b} [00:01<00:02, 9.1it/s]").into_bytes()),
        2 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (any::<u8>(), 1usize..90_000).prop_map(|(byte, n)| vec![byte; n]),
        1 => Just(b"Epoch 2/".to_vec()),
    ];
    (any::<bool>(), bytes, 0u8..15).prop_map(|(to_stderr, bytes, pause_ms)| Piece {
        to_stderr,
        bytes,
        pause_ms,
    })
}

fn written(pieces: &[Piece], to_stderr: Option<bool>) -> Vec<u8> {
    let wanted = pieces
        .iter()
        .filter(|p| to_stderr.is_none_or(|e| p.to_stderr == e));
    wanted.flat_map(|p| p.bytes.clone()).collect()
}

/// As a terminal shows it.
fn with_returns(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in bytes {
        if *byte == b'\n' {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}

fn command(sandbox: &Sandbox, pieces: &[Piece]) -> [String; 4] {
    let latin = |bytes: &[u8]| bytes.iter().map(|b| char::from(*b)).collect::<String>();
    let list: Vec<_> = pieces
        .iter()
        .map(|p| json!([if p.to_stderr { 2 } else { 1 }, latin(&p.bytes), p.pause_ms]))
        .collect();
    let file = sandbox.arg("pieces");
    std::fs::write(&file, json!(list).to_string()).unwrap();
    [python().into(), "-c".into(), WRITER.into(), file]
}

/// What the bytes say as a whole.
fn read_whole(layout: Layout, bytes: &[u8]) -> (Option<u64>, Option<u64>) {
    let mut reader = ProgressReader::new(layout, layout);
    reader.feed(Stream::Out, None, bytes);
    reader.finish(None);
    (reader.state().step, reader.state().steps)
}

fn recorded(sandbox: &Sandbox) -> (Option<u64>, Option<u64>) {
    let summary = &sandbox.record().json()["summary"];
    (summary["step"].as_u64(), summary["steps"].as_u64())
}

/// The machine was too slow to read all of the output in time, and the record says so.
fn lost(sandbox: &Sandbox) -> bool {
    !sandbox.record().events_of("dropped").is_empty()
}

proptest! {
    // Each case is two runs of a process.
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_out_are_bytes_in(pieces in prop::collection::vec(piece(), 1..16)) {
        let sandbox = Sandbox::new();
        let ended = sandbox.watched(&["-q"], &command(&sandbox, &pieces)).run();
        prop_assert_eq!(ended.code(), Some(0));
        prop_assert!(ended.out == written(&pieces, Some(false)), "{} bytes on stdout", ended.out.len());
        prop_assert!(ended.err == written(&pieces, Some(true)), "{} bytes on stderr", ended.err.len());

        let sandbox = Sandbox::new();
        let ended = sandbox.watched(&["-q"], &command(&sandbox, &pieces)).run_on_terminal();
        prop_assert_eq!(ended.code(), Some(0));
        let all = written(&pieces, None);
        prop_assert!(ended.out == with_returns(&all), "{} bytes on the terminal", ended.out.len());
        prop_assert!(sandbox.record().output() == all || lost(&sandbox), "another log");
    }

    #[test]
    fn what_is_read_does_not_depend_on_the_pieces(mut pieces in prop::collection::vec(piece(), 1..16)) {
        for piece in &mut pieces {
            piece.to_stderr = false;
            // At the end of a run less than 256 KiB are always read.
            piece.bytes.truncate(15_000);
        }
        let all = written(&pieces, None);

        let sandbox = Sandbox::new();
        sandbox.watched(&["-q"], &command(&sandbox, &pieces)).run().assert_ok();
        prop_assert!(lost(&sandbox) || recorded(&sandbox) == read_whole(Layout::Plain, &all));

        let sandbox = Sandbox::new();
        sandbox.watched(&["-q"], &command(&sandbox, &pieces)).run_on_terminal().assert_ok();
        let layout = Layout::Terminal { cols: 80, rows: 24 };
        prop_assert!(lost(&sandbox) || recorded(&sandbox) == read_whole(layout, &all));
    }
}

#[test]
fn on_a_terminal_lines_wrap_and_scroll_from_the_first_byte() {
    // The word has left the screen before its line ends: nobody could read it there.
    let script = "echo step 31/64 loss 0.64; printf 'Epoch 2/'; printf '%15000s' | tr ' ' '#'";
    let runs: Vec<u32> = (0..24).collect();
    for_each(&runs, |run| {
        let sandbox = Sandbox::new();
        let job = sandbox.watched(&["-q"], &["sh", "-c", script]);
        job.run_on_terminal().assert_ok();
        let summary = &sandbox.record().json()["summary"];
        assert_eq!(summary["step"], 31, "run {run}: {summary}");
        assert!(summary["epoch"].is_null(), "run {run}: {summary}");
    });
}
