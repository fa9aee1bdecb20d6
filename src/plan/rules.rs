//! The judge's settings and the user's rules as `run.json` holds them, and back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::expression::{self, Names, Scope};
use crate::model::{JudgeSettings, Rule, Severity, duration_text, units};

/// A rule in `run.json`.
#[derive(Serialize, Deserialize)]
struct Recorded {
    name: String,
    when: String,
    #[serde(rename = "for")]
    lasting: String,
    severity: Severity,
    say: Option<String>,
}

/// The judge's settings for the record.
pub fn judge_to_map(judge: &JudgeSettings) -> Map<String, Value> {
    match serde_json::to_value(judge) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// The judge's settings of a record.
///
/// # Errors
/// What can't be read, and why.
pub fn judge_from_map(map: &Map<String, Value>) -> Result<JudgeSettings, String> {
    JudgeSettings::deserialize(map).map_err(|e| format!("judge: {e}"))
}

/// Rules for the record.
pub fn to_values(rules: &[Rule]) -> Vec<Value> {
    let value = |rule: &Rule| {
        serde_json::to_value(Recorded {
            name: rule.name.clone(),
            when: rule.when.clone(),
            lasting: duration_text(rule.lasting),
            severity: rule.severity,
            say: rule.say.clone(),
        })
        .ok()
    };
    rules.iter().filter_map(value).collect()
}

/// Rules of a record.
///
/// # Errors
/// Which rule can't be read, and why.
pub fn from_values(values: &[Value]) -> Result<Vec<Rule>, String> {
    let names = Names {
        scope: Scope::Rules,
        findings: &[],
    };
    let rule = |(i, value): (usize, &Value)| {
        let wrong = |why: String| format!("rules[{i}]: {why}");
        let recorded = Recorded::deserialize(value).map_err(|e| wrong(e.to_string()))?;
        Ok(Rule {
            condition: expression::parse(&recorded.when, names).map_err(|e| wrong(e.what))?,
            lasting: units::duration(&recorded.lasting).map_err(|e| wrong(e.to_string()))?,
            name: recorded.name,
            when: recorded.when,
            severity: recorded.severity,
            say: recorded.say,
        })
    };
    values.iter().enumerate().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::profile::{Layer, profile};

    #[test]
    fn what_is_recorded_is_read_again() {
        let text = "rules:\n- {name: low, when: gpu.util < 20 and not finding.stalled, for: 90s}\n\
                    - {name: hot, when: gpu.temp > 85C, severity: critical, say: hot}\n\
                    - {name: grows, when: 'rise(job.mem, 90m) > 2GiB', say: '{rise(job.mem, 90m)}'}\n\
                    judge: {stalled: {after: 5s}, idle_holding: {below: 20, for: 10m}}\n";
        let read = profile(&Layer::parse(text, "x").unwrap().tree).unwrap();
        let values = to_values(&read.rules);
        assert_eq!(values.len(), 3);
        assert_eq!(from_values(&values), Ok(read.rules));
        let map = judge_to_map(&read.judge);
        assert_eq!(judge_from_map(&map), Ok(read.judge));
        let mut wrong = values;
        wrong[1]["when"] = "gpu.tmp > 85C".into();
        let said = from_values(&wrong).unwrap_err();
        assert!(said.starts_with("rules[1]: there is no value"), "{said}");
    }
}
