//! How the judge is set: one entry a finding, the same few keys for each.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Severity, units};

/// A limit that adapts to the run, or one that a person gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Learnt from the run itself, or the finding's own default.
    #[default]
    Auto,
    /// Exactly this long.
    After(Duration),
}

/// Settings of one finding. In `run.json` and profiles durations are text (`10m`, `auto`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FindingSettings {
    /// Whether it is looked for.
    pub on: bool,
    /// How serious; the finding's own severity where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// How long its condition must hold.
    #[serde(with = "limit")]
    pub after: Limit,
    /// A threshold in percent, where the finding has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// The window of that threshold.
    #[serde(
        rename = "for",
        with = "optional_duration",
        skip_serializing_if = "Option::is_none"
    )]
    pub lasting: Option<Duration>,
}

impl Default for FindingSettings {
    fn default() -> Self {
        Self {
            on: true,
            severity: None,
            after: Limit::Auto,
            below: None,
            lasting: None,
        }
    }
}

/// All findings by name, with underscores (`idle_holding`); one that isn't here has the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JudgeSettings(pub BTreeMap<String, FindingSettings>);

impl JudgeSettings {
    /// The settings of a finding, by its name with hyphens or underscores.
    pub fn of(&self, finding: &str) -> FindingSettings {
        self.0
            .get(&finding.replace('-', "_"))
            .cloned()
            .unwrap_or_default()
    }
}

/// A duration as people write it.
pub fn duration_text(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0 => "0s".to_owned(),
        _ if !ms.is_multiple_of(1000) => format!("{ms}ms"),
        _ if ms.is_multiple_of(86_400_000) => format!("{}d", ms / 86_400_000),
        _ if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        _ if ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        _ => format!("{}s", ms / 1000),
    }
}

mod limit {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{Limit, duration_text, units};

    pub fn serialize<S: Serializer>(limit: &Limit, s: S) -> Result<S::Ok, S::Error> {
        match limit {
            Limit::Auto => s.serialize_str("auto"),
            Limit::After(duration) => s.serialize_str(&duration_text(*duration)),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Limit, D::Error> {
        let text = String::deserialize(d)?;
        if text == "auto" {
            return Ok(Limit::Auto);
        }
        units::duration(&text)
            .map(Limit::After)
            .map_err(D::Error::custom)
    }
}

mod optional_duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{duration_text, units};

    #[allow(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub fn serialize<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        match d {
            Some(duration) => s.serialize_str(&duration_text(*duration)),
            None => s.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(d)?;
        text.map(|text| units::duration(&text).map_err(D::Error::custom))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_run_json() {
        let text = r#"{"stalled":{"on":true,"after":"5s"},"idle_holding":{"on":false,"severity":"note","after":"auto","below":20.0,"for":"10m"}}"#;
        let settings: JudgeSettings = serde_json::from_str(text).unwrap();
        assert_eq!(
            settings.of("stalled").after,
            Limit::After(Duration::from_secs(5))
        );
        let idle = settings.of("idle-holding");
        assert_eq!(
            (idle.on, idle.below, idle.lasting),
            (false, Some(20.0), Some(Duration::from_secs(600)))
        );
        assert!(settings.of("oom").on);
        let back = serde_json::to_string(&settings).unwrap();
        assert_eq!(
            serde_json::from_str::<JudgeSettings>(&back).unwrap(),
            settings
        );
        assert!(serde_json::from_str::<JudgeSettings>(r#"{"stalled":{"afer":"5s"}}"#).is_err());
    }
}
