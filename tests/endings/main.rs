//! How runs end, and what a careful person says of each end: `expect.json` of recordings,
//! `texts.json` of a few lines from elsewhere, `healthy.txt` of lines that only look like
//! failures. All were written before the judge saw them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[allow(dead_code, reason = "other tests look at the numbers")]
#[path = "../corpus_reader/mod.rs"]
mod corpus_reader;
#[path = "../support/mod.rs"]
mod support;

mod healthy;
mod judged;
mod replayed;
mod texts;
mod told;

use serde_json::{Map, Value};

/// Whether a verdict says what is expected; else how it differs.
fn differences(expect: &Map<String, Value>, verdict: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for field in ["outcome", "cause"] {
        if verdict[field] != expect[field] {
            wrong.push(format!(
                "{field} {} and not {}",
                verdict[field], expect[field]
            ));
        }
    }
    let rank = expect.get("rank").unwrap_or(&Value::Null);
    if *rank != "any" && verdict["rank"] != *rank {
        wrong.push(format!("rank {} and not {rank}", verdict["rank"]));
    }
    let around = verdict["around"].as_array().into_iter().flatten();
    let around: Vec<&str> = around.filter_map(Value::as_str).collect();
    let text = |field: &str| match field {
        "around" => around.join("\n"),
        field => verdict[field].as_str().unwrap_or_default().to_owned(),
    };
    for field in ["line", "advice", "around"] {
        let wanted = expect.get(field).and_then(Value::as_str);
        if wanted.is_some_and(|wanted| !text(field).contains(wanted)) {
            let found = text(field);
            wrong.push(format!("{field} {found:?} lacks {}", expect[field]));
        }
    }
    wrong
}

/// Says which of them are wrong, and how many are right.
fn report(what: &str, of: usize, wrong: &[String]) {
    let right = of - wrong.len();
    println!("{what}: {right} of {of} as expected");
    assert!(
        wrong.is_empty(),
        "{what}: {right} of {of}\n{}",
        wrong.join("\n")
    );
}
