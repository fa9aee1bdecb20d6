//! A scrape as bytes: Prometheus' text format 0.0.4, or OpenMetrics 1.0.
//!
//! The two differ in what a family is called (`_total` and `_info` belong to the samples alone
//! in OpenMetrics), in the kinds that they know, in units, and in the last line.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::format::Format;
use super::label::{self, Labels};
use super::scrape::{Gpu, Scrape, Share, Who};
use super::table::{Kind, METRICS, Metric, Of};

/// The bytes. No series comes twice, whatever was fed: its first value counts.
pub fn render(scrape: &Scrape, format: Format) -> String {
    let mut out = String::new();
    for metric in METRICS {
        let mut seen = HashSet::new();
        for (labels, value) in series(scrape, metric) {
            let counts = metric.kind != Kind::Counter || (value.is_finite() && value >= 0.0);
            let labels = label::written(&labels);
            if !counts || seen.contains(&labels) {
                continue;
            }
            if seen.is_empty() {
                head(&mut out, metric, format);
            }
            // Writing to a String can't fail.
            let _ = writeln!(out, "{}{labels} {}", metric.name, number(value));
            seen.insert(labels);
        }
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn head(out: &mut String, metric: &Metric, format: Format) {
    let (family, kind) = match (format, metric.kind) {
        (_, Kind::Gauge) | (Format::Text, Kind::Info) => (metric.name, "gauge"),
        (Format::Text, Kind::Counter) => (metric.name, "counter"),
        (Format::OpenMetrics, Kind::Info) => (metric.name.trim_end_matches("_info"), "info"),
        (Format::OpenMetrics, Kind::Counter) => (metric.name.trim_end_matches("_total"), "counter"),
    };
    let _ = writeln!(
        out,
        "# HELP {family} {}\n# TYPE {family} {kind}",
        metric.help
    );
    if format == Format::OpenMetrics && !metric.unit.is_empty() {
        let _ = writeln!(out, "# UNIT {family} {}", metric.unit);
    }
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else {
        value.to_string()
    }
}

fn series(scrape: &Scrape, metric: &Metric) -> Vec<(Labels, f64)> {
    let jobs = scrape.jobs.iter();
    let gpus = scrape.gpus.iter();
    match &metric.of {
        Of::Job(of) => jobs
            .filter_map(|job| Some((of_job(&job.who), of(job)?)))
            .collect(),
        Of::JobEach(of) => jobs
            .flat_map(|job| with(&of_job(&job.who), of(job)))
            .collect(),
        Of::Share(of) => jobs
            .flat_map(|job| job.shares.iter().map(|share| (&job.who, share)))
            .filter_map(|(who, share)| Some((of_share(who, share), of(share)?)))
            .collect(),
        Of::Gpu(of) => gpus
            .filter_map(|gpu| Some((of_gpu(gpu), of(gpu)?)))
            .collect(),
        Of::GpuEach(of) => gpus.flat_map(|gpu| with(&of_gpu(gpu), of(gpu))).collect(),
    }
}

fn with(labels: &Labels, more: Vec<(Labels, f64)>) -> Vec<(Labels, f64)> {
    let joined = |(own, value)| (labels.iter().cloned().chain::<Labels>(own).collect(), value);
    more.into_iter().map(joined).collect()
}

fn of_job(who: &Who) -> Labels {
    let labels = [
        ("run", Some(who.run.clone())),
        ("name", who.name.clone()),
        ("user", who.user.clone()),
        ("job_id", who.job_id.clone()),
        ("rank", who.rank.map(|rank| rank.to_string())),
    ];
    labels
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn of_device(index: u32, uuid: Option<&str>) -> Labels {
    let mut labels = vec![("gpu", index.to_string())];
    labels.extend(uuid.map(|uuid| ("uuid", uuid.to_owned())));
    labels
}

fn of_share(who: &Who, share: &Share) -> Labels {
    let mut labels = of_job(who);
    labels.extend(of_device(share.index, share.uuid.as_deref()));
    labels
}

fn of_gpu(gpu: &Gpu) -> Labels {
    let run = gpu.run.iter().map(|run| ("run", run.clone()));
    run.chain(of_device(gpu.info.index, gpu.info.uuid.as_deref()))
        .collect()
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
