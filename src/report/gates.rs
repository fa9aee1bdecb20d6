//! The gates of a run: which hold, and how that is said.
//!
//! Owns the values behind the names of `model::names::SUMMARY_NAMES`. Pure.

use std::collections::BTreeMap;

use crate::model::names::{SUMMARY_NAMES, Unit};
use crate::model::{Gate, GateVerdict, Summary};

/// Findings that nobody can raise where no GPU is watched.
const ABOUT_GPUS: [&str; 12] = [
    "gpu_unused",
    "idle_holding",
    "data_starved",
    "low_use",
    "small_batch",
    "memory_bound",
    "hardware",
    "program_fault",
    "xid_info",
    "throttled",
    "overheating",
    "imbalanced",
];

/// What gates are held against.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// The run in numbers.
    pub summary: &'a Summary,
    /// The findings that were raised, by their names with hyphens; None: nobody has judged.
    pub findings: Option<&'a [String]>,
    /// Whether any GPU was watched: else nothing is known of how it was used.
    pub watched: bool,
    /// Processes were left behind and ended by us, before they could be a finding.
    pub left_behind: bool,
}

impl Whole<'_> {
    /// The value of this name, in its base unit.
    fn value(&self, name: &str) -> Option<f64> {
        let summary = self.summary;
        if let Some(finding) = name.strip_prefix("finding.") {
            if finding == "orphans" && self.left_behind {
                return Some(1.0);
            }
            let raised = self
                .findings?
                .iter()
                .any(|f| f.replace('-', "_") == finding);
            if !raised && !self.watched && ABOUT_GPUS.contains(&finding) {
                return None;
            }
            return Some(f64::from(u8::from(raised)));
        }
        match name {
            "gpu.util.mean" => summary.gpu_util_pct_mean,
            "gpu.util.p95" => summary.gpu_util_pct_p95,
            "job.mem.peak" => summary.job_mem_mib_max,
            "power.mean" => summary.power_w_mean,
            "duration" => summary.duration_s,
            "progress.overall" => summary.overall_pct,
            _ => None,
        }
    }
}

/// Each gate's verdict.
pub fn judge(gates: &[Gate], whole: Whole<'_>) -> Vec<GateVerdict> {
    let verdict = |gate: &Gate| {
        let terms = gate.condition.terms().into_iter();
        let found = terms.map(|term| (term.name.clone(), whole.value(&term.name)));
        let found: BTreeMap<_, _> = found.collect();
        GateVerdict {
            when: gate.text.split_whitespace().collect::<Vec<_>>().join(" "),
            holds: gate.condition.holds(&|term| whole.value(&term.name)),
            found,
        }
    };
    gates.iter().map(verdict).collect()
}

/// `gate failed: gpu.util.mean < 30 (gpu.util.mean was 4.2 %)`; None of one that passed.
pub fn words(gate: &GateVerdict) -> Option<String> {
    let (found, missing): (Vec<_>, Vec<_>) =
        gate.found.iter().partition(|(_, value)| value.is_some());
    match gate.holds {
        Some(false) => None,
        Some(true) => {
            let found = found.iter().filter_map(|(name, value)| was(name, **value));
            let found: Vec<_> = found.collect();
            Some(format!("gate failed: {} ({})", gate.when, found.join(", ")))
        }
        None => {
            let missing: Vec<_> = missing.iter().map(|(name, _)| name.as_str()).collect();
            let why = if missing.iter().any(|name| name.starts_with("finding.")) {
                "nobody can tell"
            } else {
                "there is no reading of"
            };
            let missing = missing.join(", ");
            Some(format!("gate not checked: {} ({why} {missing})", gate.when))
        }
    }
}

fn was(name: &str, value: Option<f64>) -> Option<String> {
    let value = value?;
    if name == "finding.orphans" {
        let left = if value == 0.0 {
            "no process was"
        } else {
            "processes were"
        };
        return Some(format!("{left} left behind"));
    }
    if name.starts_with("finding.") {
        let raised = if value == 0.0 { "was not" } else { "was" };
        return Some(format!("{name} {raised} raised"));
    }
    let unit = SUMMARY_NAMES.iter().find(|(known, ..)| *known == name);
    let unit = unit.map_or(Unit::Number, |(_, unit, _)| *unit);
    let text = unit.text(value);
    Some(format!("{name} was {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::expression::{Names, Scope, parse};

    fn gate(text: &str) -> Gate {
        let names = Names {
            scope: Scope::Gates,
            findings: &[],
        };
        Gate {
            text: text.to_owned(),
            condition: parse(text, names).unwrap(),
        }
    }

    fn said(text: &str, summary: &Summary, findings: Option<&[String]>) -> (Option<bool>, String) {
        let whole = Whole {
            summary,
            findings,
            watched: true,
            left_behind: false,
        };
        let verdict = judge(&[gate(text)], whole).remove(0);
        let words = words(&verdict).unwrap_or_default();
        (verdict.holds, words)
    }

    #[test]
    fn every_name_has_a_value() {
        let summary = Summary {
            duration_s: Some(1.0),
            gpu_util_pct_mean: Some(1.0),
            gpu_util_pct_p95: Some(1.0),
            job_mem_mib_max: Some(1.0),
            power_w_mean: Some(1.0),
            overall_pct: Some(1.0),
            ..Summary::default()
        };
        for (name, ..) in SUMMARY_NAMES {
            let (holds, said) = said(&format!("{name} == 1"), &summary, None);
            assert_eq!(holds, Some(true), "{name}");
            assert!(said.contains(&format!("{name} was ")), "{said}");
        }
    }

    #[test]
    fn the_reason_has_the_value_that_was_found() {
        let summary = Summary {
            gpu_util_pct_mean: Some(4.2),
            job_mem_mib_max: Some(24.0 * 1024.0),
            ..Summary::default()
        };
        let orphans = ["orphans".to_owned(), "gpu-unused".to_owned()];
        let all = Some(&orphans[..]);
        let cases = [
            (
                "gpu.util.mean < 30",
                "gate failed: gpu.util.mean < 30 (gpu.util.mean was 4.2 %)",
            ),
            (
                "job.mem.peak > 22GiB",
                "gate failed: job.mem.peak > 22GiB (job.mem.peak was 24.0 GiB)",
            ),
            (
                "finding.gpu_unused",
                "gate failed: finding.gpu_unused (finding.gpu_unused was raised)",
            ),
            (
                "not finding.oom\n and finding.orphans",
                "gate failed: not finding.oom and finding.orphans (finding.oom was not raised, \
                 processes were left behind)",
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(said(text, &summary, all), (Some(true), wanted.to_owned()));
        }
        assert_eq!(
            said("finding.oom", &summary, all),
            (Some(false), String::new())
        );
        assert_eq!(said("gpu.util.mean < 3", &summary, all).0, Some(false));
    }

    #[test]
    fn what_is_missing_neither_holds_nor_passes_in_silence() {
        let nothing = Summary::default();
        let (holds, text) = said("gpu.util.mean < 30", &nothing, Some(&[]));
        assert_eq!(holds, None);
        assert_eq!(
            text,
            "gate not checked: gpu.util.mean < 30 (there is no reading of gpu.util.mean)"
        );
        assert_eq!(said("finding.oom", &nothing, None).0, None);
        let whole = Whole {
            summary: &nothing,
            findings: None,
            watched: true,
            left_behind: true,
        };
        let ended = judge(&[gate("finding.orphans")], whole);
        assert_eq!(ended[0].holds, Some(true));
        let blind = Whole {
            findings: Some(&[]),
            watched: false,
            ..whole
        };
        let told = |text| judge(&[gate(text)], blind)[0].holds;
        assert_eq!(
            (told("finding.gpu_unused"), told("finding.nan")),
            (None, Some(false))
        );
        // Where the rest decides, nothing is missing.
        let short = Summary {
            duration_s: Some(2.0),
            ..nothing
        };
        let either = "duration < 5s or gpu.util.mean < 30";
        let (holds, text) = said(either, &short, None);
        assert_eq!(holds, Some(true));
        assert_eq!(text, format!("gate failed: {either} (duration was 2.0 s)"));
    }
}
