//! Alerts as data, for programs.
//!
//! Owns the object that webhooks and commands get: `{"type", "timestamp", "data"}`. Pure.

use serde_json::{Map, Value, json};

use super::alert::{About, Alert, Progress, RunFacts, State};
use super::cut::{Budget, cut};

/// Standard Webhooks asks for payloads under 20 kB.
pub const MOST: usize = 20_000;

/// How long texts and lists may be, tried in turn until the whole is short enough.
const STEPS: [(usize, usize); 5] = [(4096, 64), (1024, 32), (256, 16), (80, 8), (20, 4)];

/// The whole object; its text has [`MOST`] bytes at most.
pub fn payload(alert: &Alert, run: &RunFacts) -> Value {
    let whole = json!({
        "type": alert.kind(),
        "timestamp": alert.time,
        "data": data(alert, run),
    });
    STEPS
        .iter()
        .map(|(text, list)| shorten(&whole, *text, *list))
        .find(|short| short.to_string().len() <= MOST)
        .unwrap_or_else(|| json!({"type": alert.kind(), "timestamp": alert.time, "data": {}}))
}

fn data(alert: &Alert, run: &RunFacts) -> Value {
    let (mut finding, mut end) = (None, None);
    match &alert.about {
        About::Finding(it) => finding = Some(it),
        About::Finished(it) => end = Some(it),
        About::Started | About::Test => {}
    }
    let verdict = end.map(|end| &end.verdict);
    let first = |a: Option<&String>, b: Option<&String>| json!(a.or(b));
    let gpus: Vec<Value> = run
        .gpus
        .iter()
        .map(|gpu| json!({"index": gpu.index, "uuid": gpu.uuid, "name": gpu.name}))
        .collect();
    json!({
        "state": state(alert),
        "severity": alert.severity,
        "finding": finding.map(|f| &f.name),
        "cause": first(
            finding.and_then(|f| f.cause.as_ref()),
            verdict.and_then(|v| v.cause.as_ref()),
        ),
        "because": finding.and_then(|f| f.because.as_ref()),
        "since_s": finding.map(|f| number(f.since_s)),
        "elapsed_s": number(alert.elapsed_s),
        "times": alert.times,
        "run": {
            "id": run.id,
            "name": run.name,
            "argv": run.argv,
            "user": run.user,
            "host": run.host,
            "job": run.job,
        },
        "rank": alert.of_ranks.rank.or(verdict.and_then(|v| v.rank)),
        "ranks": alert.of_ranks.ranks,
        "gpus": gpus,
        "progress": progress(&alert.progress),
        "evidence": finding.map_or_else(Map::new, |f| f.evidence.clone()),
        "advice": first(
            finding.and_then(|f| f.advice.as_ref()),
            verdict.and_then(|v| v.advice.as_ref()),
        ),
        "stacks": alert.stacks,
        "outcome": verdict.and_then(|v| v.outcome),
        "line": verdict.and_then(|v| v.line.as_ref()),
        "exit": end.map(|end| end.exit),
        "others": alert.others,
        "more": alert.more,
    })
}

/// A run's own news have no state.
fn state(alert: &Alert) -> Option<State> {
    match alert.about {
        About::Finding(_) | About::Test => Some(alert.state),
        About::Started | About::Finished(_) => None,
    }
}

fn progress(progress: &Progress) -> Value {
    json!({
        "epoch": progress.epoch.map(number),
        "epochs": progress.epochs.map(number),
        "step": progress.step,
        "steps": progress.steps,
        "overall_pct": progress.overall_pct.map(number),
        "eta_s": progress.eta_s.map(number),
        "age_s": progress.age_s.map(|age| number((age * 1000.0).round() / 1000.0)),
    })
}

/// A whole number is written without a fraction, as in records.
fn number(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 9e15 {
        json!(x as i64)
    } else {
        json!(x)
    }
}

/// With texts of so many bytes and lists and objects of so many entries at most. The first and
/// the last entries of a list are kept.
fn shorten(value: &Value, text: usize, list: usize) -> Value {
    match value {
        Value::String(s) => Value::String(cut(s, Budget::Bytes(text))),
        Value::Array(items) if items.len() > list => {
            let (head, tail) = (list - list / 2, list / 2);
            let kept = items
                .iter()
                .take(head)
                .chain(items.iter().skip(items.len() - tail));
            kept.map(|item| shorten(item, text, list)).collect()
        }
        Value::Array(items) => items.iter().map(|v| shorten(v, text, list)).collect(),
        Value::Object(entries) => entries
            .iter()
            // Our own objects are small; evidence is what a rule makes of it.
            .take(list.max(32))
            .map(|(name, value)| {
                let name = cut(name, Budget::Bytes(text.max(64)));
                (name, shorten(value, text, list))
            })
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{failed, run, stalled};
    use super::*;

    #[test]
    fn a_stall_as_data() {
        let payload = payload(&stalled(), &run());
        assert_eq!(payload["type"], "job.stalled");
        let data = &payload["data"];
        assert_eq!(data["state"], "raised");
        assert_eq!(data["severity"], "critical");
        assert_eq!(data["finding"], "stalled");
        assert_eq!(data["run"]["argv"], json!(["python", "train.py"]));
        assert_eq!(data["progress"]["step"], 512);
        assert_eq!(data["progress"]["epoch"], json!(3));
        assert_eq!(data["progress"]["age_s"], json!(725));
        assert_eq!(data["evidence"]["gpu_util_pct"], 0);
        assert_eq!(data["exit"], Value::Null);
    }

    #[test]
    fn an_end_as_data() {
        let payload = payload(&failed(), &run());
        assert_eq!(payload["type"], "run.finished");
        let data = &payload["data"];
        assert_eq!(data["state"], Value::Null);
        assert_eq!(data["exit"], json!({"code": 1, "signal": null}));
        assert_eq!(
            (&data["outcome"], &data["cause"]),
            (&json!("failed"), &json!("oom"))
        );
        assert_eq!(
            (&data["rank"], &data["line"]),
            (
                &json!(3),
                &json!("torch.OutOfMemoryError: CUDA out of memory")
            )
        );
    }

    #[test]
    fn whatever_a_run_is_called_it_is_short_enough() {
        let mut big = run();
        big.argv = vec!["训\"\n\u{1}".repeat(5000); 500];
        big.name = "\u{1}".repeat(1 << 20);
        let mut alert = stalled();
        alert.stacks = vec!["\u{7}".repeat(9000); 40];
        if let About::Finding(finding) = &mut alert.about {
            finding.advice = Some("a\n".repeat(1 << 19));
            for i in 0..1000 {
                finding.evidence.insert(
                    format!("{i}{}", "k".repeat(300)),
                    json!("\u{2}".repeat(999)),
                );
            }
        }
        let payload = payload(&alert, &big);
        assert!(payload.to_string().len() <= MOST);
        assert_eq!(payload["data"]["finding"], "stalled");
    }
}
