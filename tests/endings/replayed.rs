//! Recordings, printed again under `gpuwatch run` and ended as their programs ended.

use std::path::Path;
use std::sync::Mutex;

use gpuwatch::read::Layout;
use serde_json::{Map, Value, json};

use super::corpus_reader::recordings;
use super::support::{Sandbox, content, for_each, kill, python, script, wait_until};
use super::{differences, report};

/// A recording and what is expected of it.
struct Case {
    cast: String,
    on_terminal: bool,
    expect: Map<String, Value>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/endings");
    let all: Map<String, Value> = serde_json::from_str(include_str!("expect.json")).unwrap();
    let mut cases = Vec::new();
    for (name, expect) in &all {
        for form in [".pipe", ".pty", ""] {
            let cast = folder.join(format!("{name}{form}.cast"));
            if cast.exists() {
                cases.push(Case {
                    cast: cast.to_str().unwrap().to_owned(),
                    on_terminal: form == ".pty",
                    expect: expect.as_object().unwrap().clone(),
                });
            }
        }
    }
    assert!(cases.len() > all.len(), "a recording is missing");
    cases
}

/// All other recordings are of programs that ended well.
fn sound() -> Vec<Case> {
    let ok = json!({"end": 0, "outcome": "ok", "cause": null});
    recordings()
        .into_iter()
        .filter(|recording| !recording.name.starts_with("fail_"))
        .map(|recording| Case {
            cast: recording.path.to_str().unwrap().to_owned(),
            on_terminal: matches!(recording.layout, Layout::Terminal { .. }),
            expect: ok.as_object().unwrap().clone(),
        })
        .collect()
}

/// What `run.json` says of it.
fn verdict(case: &Case) -> Value {
    let sandbox = Sandbox::new();
    let end = match &case.expect["end"] {
        Value::String(signal) => signal.clone(),
        code => code.to_string(),
    };
    let mut argv = vec![
        python().to_owned(),
        script("replay_cast.py"),
        case.cast.clone(),
        end,
    ];
    let Some(sent) = case.expect.get("sent").and_then(Value::as_str) else {
        sandbox.watched(&[], &argv).run_either_way(case.on_terminal);
        return sandbox.record().json()["verdict"].clone();
    };
    let printed = sandbox.path("printed");
    argv.push(printed.to_str().unwrap().to_owned());
    let hangs = case.expect.contains_key("hangs");
    let options = ["--stall-after", "2s", "--interval", "100ms"];
    let job = sandbox.watched(if hangs { &options[..] } else { &[] }, &argv);
    let live = job.start();
    let child: i32 = content(&printed).parse().unwrap();
    if hangs {
        wait_until("it is called stalled", || {
            sandbox.so_far("events.jsonl").contains("\"stalled\"")
        });
    }
    match sent {
        "KILL" => kill(child, 9),
        "TERM" => kill(live.pid(), 15),
        _ => kill(live.pid(), 2),
    }
    live.end();
    sandbox.record().json()["verdict"].clone()
}

fn check(what: &str, cases: &[Case]) {
    let wrong = Mutex::new(Vec::new());
    for_each(cases, |case| {
        let verdict = verdict(case);
        let differs = differences(&case.expect, &verdict);
        if !differs.is_empty() {
            let name = Path::new(&case.cast).file_name().unwrap().to_string_lossy();
            let text = format!("{name}: {}", differs.join(", "));
            wrong.lock().unwrap().push(text);
        }
    });
    report(what, cases.len(), &wrong.into_inner().unwrap());
}

#[test]
fn every_failure_has_its_verdict() {
    check("recorded endings", &cases());
}

#[test]
fn every_success_has_none() {
    let cases = sound();
    assert!(cases.len() > 150, "{}", cases.len());
    check("recordings that end well", &cases);
}
