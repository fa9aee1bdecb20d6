//! A few lines each of many frameworks, and what a person reads off them as the state of training.
//!
//! `styles.json` was written before the reader saw it, from sources or from memory (`from`).
//! What isn't read right yet is marked `missed`: whoever mends it takes the mark away.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../corpus_reader/expected.rs"]
mod expected;

use expected::Expected;
use gpuwatch::model::{Mark, Phase, Stream};
use gpuwatch::read::{Layout, ProgressReader};
use serde_json::{Map, Value};

/// The last mark of training.
fn read(style: &Value) -> Option<Mark> {
    let text = style["text"].as_str().unwrap();
    let on_terminal = style["terminal"] == true;
    let (layout, text) = if on_terminal {
        let layout = Layout::Terminal {
            cols: 120,
            rows: 40,
        };
        (layout, text.replace("\r\n", "\n").replace('\n', "\r\n"))
    } else {
        (Layout::Plain, text.to_owned())
    };
    let mut reader = ProgressReader::new(layout, layout);
    let mut marks = reader.feed(Stream::Out, None, text.as_bytes());
    marks.extend(reader.finish(None));
    marks.into_iter().rfind(|mark| mark.phase == Phase::Train)
}

fn is_right(expect: Option<&Map<String, Value>>, mark: Option<&Mark>) -> bool {
    let Some(expect) = expect else {
        let shows = |m: &Mark| m.epoch.is_some() || m.step.is_some() || m.percent.is_some();
        return !mark.is_some_and(shows);
    };
    let mut fields = expect.iter();
    fields.all(|(field, want)| Expected::of(want).is_met(mark, field))
}

#[test]
fn each_is_read_as_it_is_marked() {
    let styles: Vec<Value> = serde_json::from_str(include_str!("styles.json")).unwrap();
    let mut wrong = Vec::new();
    for style in &styles {
        let mark = read(style);
        let right = is_right(style["expect"].as_object(), mark.as_ref());
        let missed = style["missed"] == true;
        if right == missed {
            let what = if missed { "is right now" } else { "is wrong" };
            wrong.push(format!("{} {what}: {mark:?}", style["name"]));
        }
    }
    assert!(styles.len() > 250, "only {} styles", styles.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
