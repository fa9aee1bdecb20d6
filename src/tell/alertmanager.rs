//! Prometheus' Alertmanager: alerts by its own API, kept firing while they hold.
//!
//! Owns labels (which say what an alert is; no number is one) and until when an alert fires.
//! Routing, grouping and silencing are Alertmanager's.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use crate::model::{SecretRef, Severity};

use super::alert::{About, Alert, State};
use super::cut::{Budget, cut};
use super::failure::Failure;
use super::http::{self, Address, Post};
use super::letter::Letter;
use super::secrets;
use super::service::Service;

/// What holds is said again so often...
const EVERY: Duration = Duration::from_secs(60);
/// ...and fires for so long, as Prometheus does with four of its intervals: whoever is killed
/// leaves nothing firing.
const FIRES: Duration = Duration::from_secs(240);
/// News fire for so long: they are never over.
const NEWS: Duration = Duration::from_secs(300);
/// The longest annotation, bytes.
const MOST: Budget = Budget::Bytes(8000);

/// One Alertmanager.
#[derive(Debug)]
pub struct Alertmanager {
    address: Address,
    own: HeaderMap,
}

impl Alertmanager {
    /// Reads its address (the root, or the whole path of the API) and headers.
    ///
    /// # Errors
    /// They can't be used, without repeating them.
    pub fn new(url: &SecretRef, headers: &BTreeMap<String, SecretRef>) -> Result<Self, String> {
        let address = Address::read(url)?;
        let address = if address.path().ends_with("/api/v2/alerts") {
            address
        } else {
            address.below(&["api", "v2", "alerts"])
        };
        let mut own = HeaderMap::new();
        for (name, value) in headers {
            let value = secrets::read(value).map_err(|e| e.to_string())?;
            let (name, value) = http::header(name, &value)?;
            own.insert(name, value);
        }
        Ok(Self { address, own })
    }
}

impl Service for Alertmanager {
    fn kind(&self) -> &'static str {
        "alertmanager"
    }

    fn request(&self, letter: &Letter, now: SystemTime) -> Result<(Address, Post), Failure> {
        let ends = match (&letter.alert.about, letter.alert.state) {
            (_, State::Cleared) => now,
            (About::Finding(_), _) => now + FIRES,
            _ => now + NEWS,
        };
        let mut alert = json!({
            "labels": labels(letter),
            "annotations": annotations(letter),
            "endsAt": rfc3339(ends),
        });
        // Alertmanager wants no end before a beginning; who only takes back knows none.
        if letter.alert.state != State::Cleared
            && let Some(alert) = alert.as_object_mut()
        {
            alert.insert("startsAt".to_owned(), json!(letter.alert.time));
        }
        let mut post = Post::json(&json!([alert]));
        post.own.clone_from(&self.own);
        Ok((self.address.clone(), post))
    }

    fn again(&self) -> Option<Duration> {
        Some(EVERY)
    }
}

fn rfc3339(at: SystemTime) -> Option<String> {
    Some(Timestamp::try_from(at).ok()?.to_string())
}

/// What the alert is: the same as long as it holds, whatever its numbers.
fn labels(letter: &Letter) -> Value {
    let (alert, run) = (&letter.alert, &letter.run);
    let severity = match alert.severity {
        Severity::Note => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    };
    let mut labels = Map::new();
    let mut put = |name: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            labels.insert(name.to_owned(), json!(cut(value, Budget::Bytes(200))));
        }
    };
    put("alertname", Some(&name(alert)));
    put("severity", Some(severity));
    put("run", Some(&run.id));
    put("run_name", Some(&run.name));
    put("user", run.user.as_deref());
    // Ranks on many machines are one job: whoever groups by `job_id` hears of it once.
    put("instance", run.host.as_deref());
    put("job_id", run.job.id.as_deref());
    put("job", Some("gpuwatch"));
    Value::Object(labels)
}

fn name(alert: &Alert) -> String {
    match &alert.about {
        About::Finding(finding) => format!("gpuwatch-{}", finding.name),
        About::Started => "gpuwatch-run-started".to_owned(),
        About::Finished(end) if end.is_well() => "gpuwatch-run-finished".to_owned(),
        About::Finished(_) => "gpuwatch-run-failed".to_owned(),
        About::Test => "gpuwatch-test".to_owned(),
    }
}

fn annotations(letter: &Letter) -> Value {
    json!({
        "summary": letter.title(),
        "description": cut(&letter.body(), MOST),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tell::samples;
    use crate::tell::words::Tongue;

    fn sent(alert: Alert) -> Value {
        let manager = Alertmanager::new(
            &SecretRef::parse("http://am:9093/prefix/"),
            &BTreeMap::new(),
        )
        .unwrap();
        let letter = Letter::new(alert, samples::run(), Tongue::English);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let (address, post) = manager.request(&letter, now).unwrap();
        assert_eq!(address.path(), "/prefix/api/v2/alerts");
        serde_json::from_slice::<Vec<Value>>(&post.body)
            .unwrap()
            .remove(0)
    }

    #[test]
    fn what_is_over_has_the_labels_of_what_held() {
        let held = sent(samples::stalled());
        let mut over = samples::stalled();
        over.state = State::Cleared;
        over.elapsed_s += 100.0;
        over.progress.step = Some(600);
        let over = sent(over);
        assert_eq!(held["labels"], over["labels"]);
        assert_eq!(held["labels"]["alertname"], "gpuwatch-stalled");
        assert_eq!(held["endsAt"], "2026-09-21T14:17:20Z");
        assert_eq!(over["endsAt"], "2026-09-21T14:13:20Z");
        assert!(over.get("startsAt").is_none() && held.get("startsAt").is_some());
        let numbers = held["labels"].to_string();
        assert!(!numbers.contains("512"), "{numbers}");
    }

    #[test]
    fn an_end_that_failed_has_a_name_of_its_own() {
        assert_eq!(
            sent(samples::failed())["labels"]["alertname"],
            "gpuwatch-run-failed"
        );
    }
}
