//! Bytes to screen to progress: nothing panics, and what is read doesn't depend on how the
//! bytes were cut into reads. The input says how: its first byte chooses the layout, its
//! second how many sizes follow, each of them one byte; the rest is output.
#![no_main]

use gpuwatch::model::{Mark, Phase, Stream};
use gpuwatch::read::fingerprint::{Lines, Quote};
use gpuwatch::read::{Layout, ProgressReader};
use libfuzzer_sys::fuzz_target;

const LAYOUTS: [Layout; 4] = [
    Layout::Plain,
    Layout::Terminal { cols: 80, rows: 24 },
    Layout::Terminal { cols: 10, rows: 3 },
    Layout::Terminal { cols: 1, rows: 1 },
];

/// All that must not depend on the cutting, and the marks.
#[derive(Debug, PartialEq)]
struct Read {
    screen: (Vec<String>, (usize, usize)),
    state: String,
    state_at_the_end: String,
    lines: Vec<String>,
    quotes: Vec<Vec<String>>,
}

fn read(layout: Layout, bytes: &[u8], sizes: &[u8]) -> (Read, Vec<Mark>) {
    let mut reader = ProgressReader::new(layout, layout);
    let mut lines = Lines::new();
    let mut told = Vec::new();
    let mut marks: Vec<Mark> = Vec::new();
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes
            .next()
            .map_or(rest.len(), |size| usize::from(*size) + 1);
        let (now, later) = rest.split_at(size.min(rest.len()));
        marks.extend(reader.feed(Stream::Out, Some(1.0), now));
        told.extend(lines.feed(Stream::Out, now));
        rest = later;
    }
    told.extend(lines.finish().into_iter().map(|(_, text)| text));
    let quotes = lines.quotes().iter().map(Quote::lines).collect();
    let screen = reader.drawn(Stream::Out);
    let state = format!("{:?}", reader.state());
    marks.extend(reader.finish(Some(1.0)));
    let read = Read {
        screen,
        state,
        state_at_the_end: format!("{:?}", reader.state()),
        lines: told,
        quotes,
    };
    (read, marks)
}

/// Whose mark it is.
fn who(mark: &Mark) -> (Phase, Option<u32>) {
    (mark.phase, mark.rank.filter(|rank| *rank > 0))
}

/// Its numbers.
fn shown(mark: &Mark) -> String {
    let count = (mark.epoch, mark.epochs, mark.step, mark.steps, mark.percent);
    format!(
        "{:?} {count:?} {:?} {:?}",
        who(mark),
        mark.loss,
        mark.metrics
    )
}

fuzz_target!(|data: &[u8]| {
    let [layout, count, rest @ ..] = data else {
        return;
    };
    let layout = LAYOUTS[usize::from(*layout) % LAYOUTS.len()];
    let (sizes, bytes) = rest.split_at(usize::from(count % 16).min(rest.len()));
    let (whole, in_one) = read(layout, bytes, &[]);
    let (cut, in_many) = read(layout, bytes, sizes);
    assert_eq!(whole, cut);
    // Smaller pieces may show more in between, and never less.
    for one in &in_one {
        let mine = |mark: &&Mark| who(mark) == who(one);
        let mut many = in_many.iter().filter(mine).map(shown);
        for mark in in_one.iter().filter(mine).map(shown) {
            assert!(many.any(|m| m == mark), "{mark} is missing in {in_many:?}");
        }
    }
    let (rows, (row, col)) = &whole.screen;
    let (most_rows, most_cols) = match layout {
        Layout::Plain => (64, 4096),
        Layout::Terminal { cols, rows } => (usize::from(rows), usize::from(cols).max(2)),
    };
    assert!(rows.len() <= most_rows && *row < rows.len());
    assert!(*col <= most_cols);
    assert!(rows.iter().all(|text| text.chars().count() <= most_cols));
});
