//! What the metrics' client finds in an answer.

use crate::support::{Live, wait_until};

pub use crate::support::http_client::{get, read, send};

/// The metrics of a run at this address.
pub fn metrics(address: &str) -> String {
    let answer = get(address, "/metrics").expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// The values of this metric, wherever its labels hold this text.
pub fn values(text: &str, metric: &str, label: &str) -> Vec<f64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(metric));
    let its = lines.filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(label));
    its.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
        .collect()
}

/// Where a run that was started with `--metrics 0` says that it is.
pub fn address(live: &Live) -> String {
    let mut found = None;
    wait_until("the address is said", || {
        let said = live.err_so_far();
        found = said
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once("/metrics"))
            .map(|(address, _)| address.to_owned());
        found.is_some()
    });
    found.unwrap()
}

/// Waits until the run at this address has been looked at, and gives its metrics.
pub fn sampled(address: &str) -> String {
    let mut text = String::new();
    wait_until("a sample", || {
        text = metrics(address);
        !values(&text, "gpuwatch_job_last_sample_timestamp_seconds", "").is_empty()
    });
    text
}
