//! `report`, `waste`, `compare` and `runs --count-by` over runs that were really recorded, with the
//! simulated driver, and over records that were written by hand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::fake_driver::python_path;
use support::{Ended, FakeDriver, Sandbox, in_package, python, script, skipped};

/// Two GPUs, of which the job uses the first.
fn machine() -> FakeDriver {
    FakeDriver::new(&json!({"gpus": [{}, {}]}))
}

fn record(sandbox: &Sandbox, driver: &FakeDriver, name: &str, words: [&str; 3]) -> Ended {
    let script = script("busy_then_idle.py");
    let argv = [python(), &script, words[0], words[1], words[2]];
    sandbox
        .watched(&["--name", name, "--interval", "100ms"], &argv)
        .with(driver)
        .env("PYTHONPATH", python_path())
        .run()
}

fn ask(sandbox: &Sandbox, words: &[&str]) -> Ended {
    let argv: Vec<&str> = std::iter::once(env!("CARGO_BIN_EXE_gpuwatch"))
        .chain(words.iter().copied())
        .collect();
    sandbox.direct(&argv).run()
}

fn answer(sandbox: &Sandbox, words: &[&str]) -> Value {
    let ended = ask(sandbox, words);
    serde_json::from_slice(&ended.assert_ok().out)
        .unwrap_or_else(|e| panic!("{e}: {}", ended.out()))
}

fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = names.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|out| out.status.success())
    });
    if found.is_none() {
        skipped("chromium isn't installed (tests/run installs it)");
    }
    found
}

/// The document as the browser has it after its scripts ran.
fn in_browser(program: &str, page: &Path) -> String {
    let profile = tempfile::tempdir().unwrap();
    let out = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=3000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn a_recorded_run_is_a_page_in_which_foreign_markup_is_text() {
    let (sandbox, driver) = (Sandbox::new(), machine());
    record(&sandbox, &driver, "<b>bold</b>", ["8", "4", "0"]).assert_ok();
    let folder = sandbox.record().folder;
    let said = ask(&sandbox, &["report"]);
    let page = folder.join("report.html");
    assert_eq!(said.assert_ok().out(), format!("{}\n", page.display()));
    let mode = std::fs::metadata(&page).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a page is as private as its record");
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(
        ask(&sandbox, &["report", "last", "-o", "-"])
            .assert_ok()
            .out(),
        html
    );
    assert!(html.contains("Epoch 2/2 step 4/4"), "{html}");

    let Some(browser) = chromium() else { return };
    // A script that is ours and may run shows that scripts do run there.
    let probe = sandbox.path("probe.html");
    std::fs::write(
        &probe,
        "<title>a</title><script>document.title = 'ran'</script>",
    )
    .unwrap();
    assert!(in_browser(browser, &probe).contains("<title>ran</title>"));
    let dom = in_browser(browser, &page);
    assert!(
        dom.contains("<title>&lt;b&gt;bold&lt;/b&gt;: ok - gpuwatch</title>"),
        "{dom}"
    );
    assert!(
        dom.contains("&lt;script&gt;document.title = 'taken over'&lt;/script&gt;\n"),
        "{dom}"
    );
    assert!(dom.contains("\n&lt;img src=x onerror=\"document"), "{dom}");
    assert!(!dom.contains("10 %\n"), "what was drawn over");
    assert_eq!(dom.matches("<script").count(), 1);
    assert_eq!(dom.matches("<img").count(), 0);
    assert!(
        dom.matches("<svg").count() > 8,
        "plots of two GPUs and the job"
    );
}

#[test]
fn a_page_goes_where_it_is_wanted_or_says_why_not() {
    let sandbox = Sandbox::new();
    sandbox.watched(&[], &["true"]).run().assert_ok();
    let wanted = sandbox.arg("page.html");
    ask(&sandbox, &["report", "last", "-o", &wanted]).assert_ok();
    let html = std::fs::read_to_string(&wanted).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    assert!(!sandbox.record().folder.join("report.html").exists());
    let nowhere = ask(&sandbox, &["report", "last", "-o", "/nowhere/page.html"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(
        nowhere
            .err()
            .contains("cannot write /nowhere/page.html: No such file"),
        "{}",
        nowhere.err()
    );
    assert_eq!(
        ask(&sandbox, &["report", "unheard-of"]).status.code(),
        Some(1)
    );
}

const KINDS: [&str; 7] = [
    "reserved_s",
    "active_s",
    "held_s",
    "stalled_s",
    "unused_s",
    "unknown_s",
    "lost_s",
];

/// Holds what `waste` says against a calculation that shares nothing with it.
fn agree(sandbox: &Sandbox, runs: &Path) -> Value {
    let script = script("waste_by_csv.py");
    let counted = sandbox
        .direct(&[python(), &script, runs.to_str().unwrap()])
        .run();
    let counted: Value = serde_json::from_slice(&counted.assert_ok().out).unwrap();
    let said = answer(
        sandbox,
        &["waste", "--json", "--dir", runs.to_str().unwrap()],
    );
    let reserved = counted["reserved_s"].as_f64().unwrap();
    for kind in KINDS {
        let (theirs, ours) = (
            counted[kind].as_f64().unwrap(),
            said["total"][kind].as_f64().unwrap(),
        );
        let apart = (theirs - ours).abs();
        assert!(
            apart <= 0.001 * theirs.max(0.01 * reserved),
            "{kind}: {theirs}, not {ours}"
        );
    }
    said
}

/// A run by hand: a stall, readings that are missing, a gap, a first GPU alone.
fn by_hand(runs: &Path) {
    let folder = runs.join("20261130-091502-hand-0001");
    std::fs::create_dir_all(&folder).unwrap();
    let example = |name: &str| {
        std::fs::read_to_string(in_package(&format!("tests/example-run/{name}"))).unwrap()
    };
    let mut run: Value = serde_json::from_str(&example("run.json")).unwrap();
    run["id"] = json!("20261130-091502-hand-0001");
    run["user"] = json!("by hand");
    run["summary"]["duration_s"] = json!(500);
    run["gpus"] = json!([{"index": 0, "uuid": "GPU-0", "name": "A"}, {"index": 1, "uuid": "GPU-1", "name": "A"}]);
    std::fs::write(folder.join("run.json"), run.to_string()).unwrap();
    let mut rows = "time,elapsed_s,gpu,gpu_util_pct,job_mem_mib,job_sm_pct\n".to_owned();
    for second in (0..300).chain(400..490) {
        let (util, memory, sm) = match second {
            0..20 => ("0", "0", "0"),
            20..100 => ("97", "9000", "90"),
            100..150 => ("97", "9000", ""),
            150..160 => ("", "9000", ""),
            160..170 => ("0", "", "0"),
            170..200 => ("60", "9000", "0"),
            _ => ("0", "9000", "0"),
        };
        let time = format!("2026-11-30T09:15:02.002+08:00,{second}.5");
        rows += &[&time, ",0,", util, ",", memory, ",", sm, "\n"].concat();
        rows += &[&time, ",1,0,0,\n"].concat();
    }
    std::fs::write(folder.join("samples.csv"), rows).unwrap();
    let finding = |state: &str, at: f64| {
        json!({"time": "2026-11-30T09:15:02.002+08:00", "elapsed_s": at, "kind": "finding",
            "name": "stalled", "cause": "asleep", "severity": "critical", "state": state,
            "because": null, "since_s": 230.25, "evidence": {}, "advice": null})
        .to_string()
            + "\n"
    };
    let events = finding("raised", 260.5) + &finding("cleared", 450.75);
    std::fs::write(folder.join("events.jsonl"), events).unwrap();
}

#[test]
fn waste_is_what_the_samples_say() {
    let (sandbox, driver) = (Sandbox::new(), machine());
    record(&sandbox, &driver, "good", ["10", "6", "0"]).assert_ok();
    assert_eq!(
        record(&sandbox, &driver, "bad", ["6", "0", "3"])
            .status
            .code(),
        Some(3)
    );
    let said = agree(&sandbox, &sandbox.runs());
    for kind in ["active_s", "held_s", "unused_s", "lost_s"] {
        assert!(
            said["total"][kind].as_f64().unwrap() > 0.0,
            "{kind}: {said}"
        );
    }
    assert_eq!(said["total"]["runs"], 2);
    let indexed = said["total"].clone();

    // The index tells; without it the records do, and they say the same.
    let index = sandbox.runs().join("index.jsonl");
    let lines = std::fs::read_to_string(&index).unwrap();
    assert_eq!(lines.matches("\"reserved_s\":").count(), 4, "{lines}");
    std::fs::remove_file(&index).unwrap();
    let read = agree(&sandbox, &sandbox.runs())["total"].clone();
    for kind in KINDS {
        let (a, b) = (
            indexed[kind].as_f64().unwrap(),
            read[kind].as_f64().unwrap(),
        );
        assert!(
            (a - b).abs() < 0.01,
            "{kind}: {a} in the index, {b} in the records"
        );
    }

    let by_gpu = answer(
        &sandbox,
        &["waste", "--json", "--by", "gpu", "--since", "1d"],
    );
    assert_eq!(by_gpu["total"], read);
    assert_eq!(by_gpu["groups"].as_array().unwrap().len(), 2);
}

#[test]
fn missing_readings_and_stalls_are_neither_idle_nor_active() {
    let sandbox = Sandbox::new();
    // Not in the sandbox, which would judge it again.
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path();
    by_hand(runs);
    let said = agree(&sandbox, runs);
    assert_eq!(said["groups"][0]["key"], "by hand");
    assert_eq!(said["groups"][0]["stalled_s"], 441.0);
    let dir = runs.to_str().unwrap();
    let table = ask(&sandbox, &["waste", "--by", "command", "--dir", dir]);
    let out = table.assert_ok().out();
    let rows: Vec<&str> = out.lines().map(str::trim_end).collect();
    assert!(
        rows[0].starts_with("COMMAND") && rows[0].ends_with("WASTED"),
        "{out}"
    );
    assert!(
        rows[1].starts_with("python train.py --epochs 2     1   0.278 h"),
        "{out}"
    );
    let old = ask(&sandbox, &["waste", "--since", "1h", "--dir", dir]);
    assert_eq!((old.status.code(), old.out().as_str()), (Some(0), ""));
    assert!(old.err().contains("no such run had a GPU"), "{}", old.err());
}

#[test]
fn runs_are_counted_by_what_was_found() {
    let sandbox = Sandbox::new();
    sandbox.watched(&["--name", "one"], &["sh", "-c", "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB'; exit 1"]).run();
    sandbox
        .watched(&["--name", "two"], &["true"])
        .run()
        .assert_ok();
    sandbox
        .watched(&["--name", "two"], &["true"])
        .run()
        .assert_ok();
    let found = answer(
        &sandbox,
        &["runs", "--json", "--finding", "oom", "--since", "1h"],
    );
    assert_eq!(found["runs"].as_array().unwrap().len(), 1);
    assert_eq!(found["runs"][0]["name"], "one");
    let counted = answer(&sandbox, &["runs", "--json", "--count-by", "outcome"]);
    let counts = counted["counts"].as_array().unwrap();
    assert_eq!(
        (&counts[0]["key"], &counts[0]["runs"]),
        (&json!("ok"), &json!(2))
    );
    assert_eq!(
        (&counts[1]["key"], &counts[1]["runs"]),
        (&json!("failed"), &json!(1))
    );
    let table = ask(
        &sandbox,
        &["runs", "--count-by", "command", "--finding", "oom"],
    );
    let out = table.assert_ok().out();
    assert!(
        out.starts_with("RUNS  COMMAND") && out.contains("\n1     sh -c"),
        "{out}"
    );
    assert_eq!(
        ask(&sandbox, &["runs", "--since", "5"]).status.code(),
        Some(2)
    );
}

#[test]
fn two_runs_are_compared() {
    let (sandbox, driver) = (Sandbox::new(), machine());
    record(&sandbox, &driver, "long", ["10", "6", "0"]).assert_ok();
    sandbox
        .watched(
            &["--name", "short", "--gpus", "none", "--env", "LR=1"],
            &["false"],
        )
        .run();
    let both = answer(&sandbox, &["compare", "long", "short", "--json"]);
    let measure = |name: &str| {
        let all = both["measures"].as_array().unwrap();
        all.iter().find(|m| m["name"] == name).unwrap().clone()
    };
    assert!(measure("duration")["change_pct"].as_f64().unwrap() < 0.0);
    let power = measure("power, mean");
    assert!(power["a"].is_number() && power["b"].is_null() && power["change_pct"].is_null());
    let text = ask(&sandbox, &["compare", "long", "short"])
        .assert_ok()
        .out();
    assert!(
        text.contains("can't be compared")
            && text.contains("set LR differs:\n  A  (none)\n  B  1\n"),
        "{text}"
    );
    assert_eq!(
        ask(&sandbox, &["compare", "long", "unheard-of"])
            .status
            .code(),
        Some(1)
    );
}
