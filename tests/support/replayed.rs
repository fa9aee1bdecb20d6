//! Replay equality: what is found in a record is what was found when it ran.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Record, files_below};

/// What a finding consists of, besides the wall time.
const PARTS: [&str; 9] = [
    "elapsed_s",
    "name",
    "cause",
    "severity",
    "state",
    "because",
    "since_s",
    "evidence",
    "advice",
];

/// Judges every finished run below a folder again, by one command. Says where what is found
/// differs from what was recorded.
pub fn differences(folder: &Path) -> Result<(), String> {
    let records: Vec<Record> = files_below(folder)
        .into_iter()
        .filter(|path| path.ends_with("run.json"))
        .map(|path| Record {
            folder: path.parent().unwrap().to_owned(),
        })
        .filter(is_complete)
        .collect();
    if records.is_empty() {
        return Ok(());
    }
    let replayed = replay(&records);
    let mut ids: Vec<Value> = records.iter().map(|r| r.json()["id"].clone()).collect();
    ids.dedup();
    let mut said = String::new();
    for id in ids {
        let of_it = records.iter().filter(|r| r.json()["id"] == id);
        let live: Vec<String> = of_it
            .flat_map(|r| r.events_of("finding"))
            .map(|f| parts(&f))
            .collect();
        let again = replayed.iter().filter(|f| f["run"] == id);
        let again: Vec<String> = again.map(parts).collect();
        if live != again {
            said += &[
                format!("{id}: what was found then (-) and what is found now (+):\n"),
                diff(&live, &again),
            ]
            .concat();
        }
    }
    if said.is_empty() { Ok(()) } else { Err(said) }
}

/// Ended in order, and nothing of what the judge saw is missing.
fn is_complete(record: &Record) -> bool {
    let has = |name: &str| record.folder.join(name).exists();
    let read = |name| std::fs::read_to_string(record.folder.join(name)).unwrap_or_default();
    let Ok(run) = serde_json::from_str::<Value>(&read("run.json")) else {
        return false;
    };
    let is_whole = |event: &Value| match event["kind"].as_str() {
        Some("dropped") => event["what"] == "output" || event["what"] == "process events",
        Some("source") => event["name"] != "samples.csv" && event["name"] != "events.jsonl",
        _ => true,
    };
    let events = read("events.jsonl");
    let mut events = events.lines().map(serde_json::from_str::<Value>);
    !run["ended"].is_null()
        && has("samples.csv")
        && has("events.jsonl")
        && events.all(|event| event.is_ok_and(|event| is_whole(&event)))
}

fn replay(records: &[Record]) -> Vec<Value> {
    let ended = Command::new(env!("CARGO_BIN_EXE_gpuwatch"))
        .args(["replay", "--json"])
        .args(records.iter().map(|r| &r.folder))
        .env_clear()
        .output()
        .unwrap();
    let complaints = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "replay: {complaints}");
    let text = String::from_utf8(ended.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn parts(finding: &Value) -> String {
    let parts = PARTS.map(|name| match &finding[name] {
        // 1 and 1.0 are the same second.
        Value::Number(number) => format!("{name} {}", number.as_f64().unwrap()),
        other => format!("{name} {other}"),
    });
    parts.join(", ")
}

/// Common lines as they are, others under the sign of their side.
fn diff(before: &[String], after: &[String]) -> String {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let ends = before[start..]
        .iter()
        .rev()
        .zip(after[start..].iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let mut said = String::new();
    let mut say = |sign: &str, lines: &[String]| {
        for line in lines {
            said.extend([sign, " ", line.as_str(), "\n"]);
        }
    };
    say(" ", &before[..start]);
    say("-", &before[start..before.len() - end]);
    say("+", &after[start..after.len() - end]);
    say(" ", &before[before.len() - end..]);
    said
}
