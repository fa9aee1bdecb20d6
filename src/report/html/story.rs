//! A run in sentences.
//!
//! Owns the words. What isn't known isn't said. Pure.

use super::sections::{gpu_title, is_alarm, word};
use crate::model::units::{mib_text, seconds_text};
use crate::model::{Outcome, RunRecord, RunState};
use crate::record::FindingRecord;
use crate::report::text::{exit, progress, short, when};

/// The sentences, in their order.
pub fn story(record: &RunRecord, findings: &[FindingRecord]) -> Vec<String> {
    let mut said = vec![beginning(record), ending(record)];
    said.extend(use_of_gpus(record));
    said.push(what_was_found(findings));
    said
}

fn beginning(record: &RunRecord) -> String {
    let who = record.user.as_deref().unwrap_or("Somebody");
    let place = record.host.as_ref().map(|host| format!(" on {host}"));
    let gpus: Vec<String> = record.gpus.iter().map(gpu_title).collect();
    let with = match gpus.len() {
        0 => "without a watched GPU".to_owned(),
        1..=4 => format!("with {}", gpus.join(", ")),
        n => format!("with {n} GPUs"),
    };
    format!(
        "{who} started it{} at {}, {with}.",
        place.unwrap_or_default(),
        when(&record.started)
    )
}

fn ending(record: &RunRecord) -> String {
    let after = record.summary.duration_s.map(seconds_text);
    let after = after.map_or_else(String::new, |span| format!(" after {span}"));
    let reached = progress(&record.summary).map(|text| format!("; it had come to {text}"));
    let reached = reached.unwrap_or_default();
    let how = match (record.verdict.outcome, record.state) {
        (None, RunState::Running) => return format!("It still runs{after}{reached}."),
        (Some(Outcome::Ok), _) => "It ended well".to_owned(),
        (Some(Outcome::Lost), _) | (None, RunState::Lost) => {
            return format!("Its supervisor was gone{after}, so its end isn't known{reached}.");
        }
        _ => match exit(record.exit) {
            Some(exit) => format!("It {} ({exit})", verb(record)),
            None => format!("It {}", verb(record)),
        },
    };
    format!("{how}{after}{reached}.")
}

fn verb(record: &RunRecord) -> &'static str {
    match record.verdict.outcome {
        Some(Outcome::Failed) => "failed",
        Some(Outcome::Killed) => "was killed",
        Some(Outcome::TimedOut) => "was ended by its time limit",
        Some(Outcome::Stopped) => "was stopped because of a finding",
        Some(Outcome::Cancelled) => "was cancelled",
        _ if word(record) == "cancelled" => "was cancelled",
        _ => "ended",
    }
}

fn use_of_gpus(record: &RunRecord) -> Option<String> {
    if record.gpus.is_empty() {
        return None;
    }
    let Some(mean) = record.summary.gpu_util_pct_mean else {
        return Some("How much the GPUs were used could not be read.".to_owned());
    };
    let memory = record.summary.job_mem_mib_max;
    let memory =
        memory.map(|mib| format!(", and the job held {} of GPU memory at most", mib_text(mib)));
    let which = if record.gpus.len() == 1 {
        "The GPU was"
    } else {
        "The GPUs were"
    };
    Some(format!(
        "{which} used to {} % on average{}.",
        short(mean),
        memory.unwrap_or_default()
    ))
}

fn what_was_found(findings: &[FindingRecord]) -> String {
    let alarms = findings.iter().filter(|finding| is_alarm(finding)).count();
    let notes = findings.len() - alarms;
    let some = |n: usize, one: &str| match n {
        0 => format!("no {one}"),
        1 => format!("one {one}"),
        n => format!("{n} {one}s"),
    };
    match (alarms, notes) {
        (0, 0) => "No finding was raised.".to_owned(),
        (alarms, 0) => format!("The judge raised {}.", some(alarms, "alarm")),
        (alarms, notes) => format!(
            "The judge raised {} and {}.",
            some(alarms, "alarm"),
            some(notes, "note")
        ),
    }
}
