//! Lines that only look like failures.

use serde_json::json;

use super::judged::Told;
use super::report;

fn lines() -> Vec<&'static str> {
    let lines: Vec<&str> = include_str!("healthy.txt").lines().collect();
    assert!(lines.len() >= 60, "{}", lines.len());
    lines
}

#[test]
fn a_run_that_ends_well_has_no_flaw_by_them() {
    let lines = lines();
    let mut wrong = Vec::new();
    for line in &lines {
        let mut told = Told::new();
        told.train(3).print(&format!("{line}\n")).train(3);
        let (verdict, alarms) = told.end(&json!(0));
        if !verdict["cause"].is_null() || !alarms.is_empty() {
            wrong.push(format!("{line}: {verdict} {alarms:?}"));
        }
    }
    report("healthy lines in a run that ends well", lines.len(), &wrong);
    let mut told = Told::new();
    told.train(3).print(&lines.join("\n")).train(3);
    let (verdict, alarms) = told.end(&json!(0));
    assert!(
        verdict["cause"].is_null() && alarms.is_empty(),
        "{verdict} {alarms:?}"
    );
}

#[test]
fn a_failure_after_them_has_its_own_cause() {
    let failures = [
        (
            "Traceback (most recent call last):\n  File \"train.py\", line 5\nKeyError: 'lr'\n",
            json!(1),
            json!("traceback"),
        ),
        ("", json!("KILL"), json!(null)),
        ("", json!(3), json!(null)),
        (
            "OSError: [Errno 122] Disk quota exceeded\n",
            json!(1),
            json!("quota"),
        ),
    ];
    let lines = lines();
    let mut wrong = Vec::new();
    for line in &lines {
        for (text, end, cause) in &failures {
            let mut told = Told::new();
            told.train(3).print(&format!("{line}\n{text}"));
            let (verdict, _) = told.end(end);
            if verdict["cause"] != *cause {
                wrong.push(format!("{line} before {text:?}: {verdict}"));
            }
        }
    }
    report(
        "healthy lines before a failure",
        lines.len() * failures.len(),
        &wrong,
    );
}
