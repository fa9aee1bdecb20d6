//! What is written is read again by a small parser of the two formats.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::export::{Board, Job, Raised};
use crate::model::{
    Event, FindingState, GpuInfo, GpuSample, JobSample, Logged, Metric as Shown, ProgressState,
    Reading, RunRecord, Sample, Severity, Stamp, Throttle,
};

/// A family as it was read: kind, unit, and its samples by name and labels.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    unit: Option<String>,
    samples: BTreeMap<(String, BTreeMap<String, String>), String>,
}

/// Reads a text by the grammar of its format; what breaks it is an error.
fn parse(text: &str, format: Format) -> Result<BTreeMap<String, Family>, String> {
    let body = match format {
        Format::OpenMetrics => text.strip_suffix("# EOF\n").ok_or("no EOF")?,
        Format::Text => text,
    };
    if !body.is_empty() && !body.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in body.lines() {
        let fail = |what: &str| format!("{what}: {line}");
        if let Some(meta) = line.strip_prefix("# ") {
            let mut words = meta.splitn(3, ' ');
            let (word, name) = (words.next(), words.next().ok_or_else(|| fail("no name"))?);
            let rest = words.next().ok_or_else(|| fail("nothing said"))?;
            match word {
                Some("HELP") => {
                    if families
                        .insert(name.to_owned(), Family::default())
                        .is_some()
                    {
                        return Err(fail("a family comes twice"));
                    }
                    name.clone_into(&mut current);
                    if rest.contains(['\\', '"']) {
                        return Err(fail("help that would have to be escaped"));
                    }
                }
                Some("TYPE") if name == current => {
                    rest.clone_into(&mut families.entry(current.clone()).or_default().kind);
                }
                Some("UNIT") if name == current && format == Format::OpenMetrics => {
                    if !name.ends_with(&format!("_{rest}")) {
                        return Err(fail("a unit that isn't the name's end"));
                    }
                    families.entry(current.clone()).or_default().unit = Some(rest.to_owned());
                }
                _ => return Err(fail("what is this")),
            }
            continue;
        }
        let (name, labels, value) = sample(line).ok_or_else(|| fail("no sample"))?;
        let family = families.entry(current.clone()).or_default();
        let belongs = match (format, family.kind.as_str()) {
            (Format::OpenMetrics, "counter") => name == format!("{current}_total"),
            (Format::OpenMetrics, "info") => name == format!("{current}_info"),
            _ => name == current,
        };
        if !belongs {
            return Err(fail("another family's"));
        }
        if family.samples.insert((name, labels), value).is_some() {
            return Err(fail("a series comes twice"));
        }
    }
    Ok(families)
}

fn sample(line: &str) -> Option<(String, BTreeMap<String, String>, String)> {
    let is_name = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let end = line.bytes().position(|b| !is_name(b))?;
    let (name, mut rest) = line.split_at_checked(end)?;
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            if !label.bytes().all(is_name) || labels.insert(label.to_owned(), value).is_some() {
                return None;
            }
            match after.split_at_checked(1)? {
                (",", more) => rest = more,
                ("}", more) => {
                    rest = more;
                    break;
                }
                _ => return None,
            }
        }
    }
    let value = rest.strip_prefix(' ')?;
    let is_number = value.parse::<f64>().is_ok() && !value.contains(' ');
    is_number.then(|| (name.to_owned(), labels, value.to_owned()))
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

fn record() -> RunRecord {
    RunRecord {
        id: "20261130-091502-train-7f3a".to_owned(),
        name: "train".to_owned(),
        user: Some("ada".to_owned()),
        started: "2026-11-30T09:15:02.500+08:00".to_owned(),
        gpus: vec![GpuInfo {
            index: 0,
            uuid: Some("GPU-1".to_owned()),
            ..GpuInfo::default()
        }],
        ..RunRecord::default()
    }
}

fn tick(elapsed_s: f64, step: Option<u64>, util: Reading<f64>) -> Sample {
    Sample {
        stamp: Stamp {
            time: "2026-11-30T09:16:02.250+08:00".to_owned(),
            elapsed_s,
        },
        gpus: vec![GpuSample {
            util_pct: util,
            ..GpuSample::default()
        }],
        job_mem_mib: vec![Reading::Value(6144.5)],
        job_sm_pct: vec![Reading::default()],
        energy_j: vec![Reading::Value(12.5)],
        ecc_uncorrected: vec![Reading::default()],
        progress: ProgressState {
            step,
            overall_pct: Some(16.7),
            ..ProgressState::default()
        },
        ..Sample::default()
    }
}

fn finding(name: &str, state: FindingState) -> Logged {
    Logged {
        stamp: Stamp::default(),
        event: Event::Finding {
            name: name.to_owned(),
            cause: Some("asleep".to_owned()),
            severity: Severity::Critical,
            state,
            because: None,
            since_s: 1.0,
            evidence: serde_json::Map::new(),
            advice: None,
        },
    }
}

/// The lines about this metric.
fn lines(board: &Board, metric: &str) -> Vec<String> {
    let text = render(&board.scrape(), Format::Text);
    let is_its = |line: &&str| {
        let rest = line.strip_prefix(metric);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    text.lines().filter(is_its).map(str::to_owned).collect()
}

#[test]
fn a_run_is_written_in_base_units() {
    let mut board = Board::default();
    board.know(&record());
    board.sample(&tick(60.0, Some(3), Reading::Value(87.3)));
    let run = r#"run="20261130-091502-train-7f3a""#;
    let job = format!(r#"{run},name="train",user="ada""#);
    for (metric, line) in [
        (
            "gpuwatch_job_start_timestamp_seconds",
            format!("{{{job}}} 1796001302.5"),
        ),
        (
            "gpuwatch_job_last_sample_timestamp_seconds",
            format!("{{{job}}} 1796001362.25"),
        ),
        ("gpuwatch_job_progress_ratio", format!("{{{job}}} 0.167")),
        ("gpuwatch_job_step", format!("{{{job}}} 3")),
        (
            "gpuwatch_job_gpu_memory_bytes",
            format!(r#"{{{job},gpu="0",uuid="GPU-1"}} 6442975232"#),
        ),
        (
            "gpuwatch_gpu_utilization_ratio",
            format!(r#"{{{run},gpu="0",uuid="GPU-1"}} 0.873"#),
        ),
        (
            "gpuwatch_gpu_energy_joules_total",
            format!(r#"{{{run},gpu="0",uuid="GPU-1"}} 12.5"#),
        ),
    ] {
        assert_eq!(lines(&board, metric), [format!("{metric}{line}")]);
    }
}

#[test]
fn what_is_missing_is_no_series() {
    let mut board = Board::default();
    board.know(&record());
    for metric in [
        "gpuwatch_job_last_sample_timestamp_seconds",
        "gpuwatch_job_output_bytes_total",
    ] {
        assert!(
            lines(&board, metric).is_empty(),
            "{metric} before any sample"
        );
    }
    board.sample(&tick(1.0, None, Reading::Value(0.0)));
    assert_eq!(
        lines(&board, "gpuwatch_gpu_utilization_ratio").len(),
        1,
        "0 is a value"
    );
    let read = lines(&board, "gpuwatch_gpu_last_reading_timestamp_seconds");
    assert_eq!(read.len(), 1);
    for metric in [
        "gpuwatch_job_step",
        "gpuwatch_job_progress_age_seconds",
        "gpuwatch_job_gpu_utilization_ratio",
        "gpuwatch_gpu_power_watts",
        "gpuwatch_gpu_throttle_reason",
        "gpuwatch_gpu_ecc_uncorrected_errors_total",
        "gpuwatch_job_processes",
    ] {
        assert!(lines(&board, metric).is_empty(), "{metric}");
    }
    // The GPU is lost: its numbers go, and when it was read last stays.
    board.sample(&Sample {
        gpus: Vec::new(),
        ..tick(2.0, None, Reading::default())
    });
    for metric in [
        "gpuwatch_gpu_utilization_ratio",
        "gpuwatch_gpu_energy_joules_total",
        "gpuwatch_job_gpu_memory_bytes",
    ] {
        assert!(lines(&board, metric).is_empty(), "{metric} of a lost GPU");
    }
    assert_eq!(
        lines(&board, "gpuwatch_gpu_last_reading_timestamp_seconds"),
        read
    );
}

#[test]
fn progress_grows_old_from_its_last_change() {
    let mut board = Board::default();
    board.know(&record());
    let age = |board: &Board| {
        let lines = lines(board, "gpuwatch_job_progress_age_seconds");
        lines
            .first()
            .and_then(|line| line.rsplit_once(' '))
            .map(|(_, age)| age.to_owned())
    };
    for (elapsed_s, step, said) in [
        (1.0, None, None),
        (5.0, Some(1), Some("0")),
        (9.0, Some(1), Some("4")),
        (10.0, Some(2), Some("0")),
    ] {
        board.sample(&tick(elapsed_s, step, Reading::default()));
        assert_eq!(age(&board).as_deref(), said, "at {elapsed_s}");
    }
}

#[test]
fn a_finding_is_there_while_it_holds() {
    let mut board = Board::default();
    board.know(&record());
    let count = |board: &Board| lines(board, "gpuwatch_job_finding").len();
    assert_eq!(count(&board), 0);
    board.event(&finding("stalled", FindingState::Raised));
    board.event(&finding("stalled", FindingState::Updated));
    board.event(&finding("nan", FindingState::Raised));
    let found = lines(&board, "gpuwatch_job_finding");
    assert!(
        found[1].ends_with(r#",finding="stalled",severity="critical",cause="asleep"} 1"#),
        "{found:?}"
    );
    assert_eq!(count(&board), 2);
    board.event(&finding("stalled", FindingState::Cleared));
    assert_eq!(count(&board), 1);
}

#[test]
fn the_table_keeps_the_conventions() {
    const UNITS: [&str; 7] = [
        "", "seconds", "ratio", "bytes", "celsius", "watts", "joules",
    ];
    let mut names = BTreeSet::new();
    let mut families = BTreeSet::new();
    for metric in METRICS {
        let name = metric.name;
        assert!(names.insert(name), "{name} comes twice");
        assert!(
            name.starts_with("gpuwatch_job_") || name.starts_with("gpuwatch_gpu_"),
            "{name}"
        );
        assert_eq!(
            metric.kind == Kind::Counter,
            name.ends_with("_total"),
            "{name}"
        );
        assert_eq!(metric.kind == Kind::Info, name.ends_with("_info"), "{name}");
        assert!(
            UNITS.contains(&metric.unit) || metric.unit == "hertz",
            "{name}"
        );
        let family = name.trim_end_matches("_total").trim_end_matches("_info");
        assert!(families.insert(family), "{family} comes twice");
        let unit = metric.unit;
        assert!(
            unit.is_empty() || family.ends_with(&format!("_{unit}")),
            "{name}: {unit}"
        );
        assert!(
            metric.help.ends_with('.') && !metric.help.contains(['\\', '"', '\n']),
            "{name}"
        );
    }
}

fn reading() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(prop_oneof![
        -10.0..1e12,
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY)
    ])
}

fn who() -> impl Strategy<Value = Who> {
    let text = || prop::option::of(any::<String>());
    (
        any::<String>(),
        text(),
        text(),
        text(),
        prop::option::of(any::<u32>()),
    )
        .prop_map(|(run, name, user, job_id, rank)| Who {
            run,
            name,
            user,
            job_id,
            rank,
        })
}

prop_compose! {
    fn job()(
        who in who(),
        numbers in prop::collection::vec(reading(), 6),
        share in (any::<u32>(), prop::option::of(any::<String>())),
        findings in prop::collection::vec((any::<String>(), prop::option::of(any::<String>())), 0..4),
        out_bytes in prop::option::of(any::<u64>()),
    ) -> Job {
        let raised = |(name, cause)| Raised { name, severity: Severity::Note, cause };
        Job {
            who,
            sampled: numbers[0],
            sample_age_s: numbers[1],
            now: JobSample { cpu_cores: numbers[2].into(), n_run: Reading::Value(3), ..JobSample::default() },
            progress: ProgressState { loss: numbers[3].map(Shown), overall_pct: numbers[4], ..ProgressState::default() },
            shares: vec![Share { index: share.0, uuid: share.1, mem_mib: numbers[5], sm_pct: None }],
            findings: findings.into_iter().map(raised).collect(),
            out_bytes,
            ..Job::default()
        }
    }
}

prop_compose! {
    fn gpu()(
        run in prop::option::of(any::<String>()),
        index in 0..3_u32,
        uuid in prop::option::of(any::<String>()),
        name in prop::option::of(any::<String>()),
        numbers in prop::collection::vec(reading(), 3),
        throttle in prop::option::of(any::<u64>()),
    ) -> Gpu {
        Gpu {
            run,
            info: GpuInfo { index, uuid, name, ..GpuInfo::default() },
            now: GpuSample {
                util_pct: numbers[0].into(),
                power_w: numbers[1].into(),
                throttle: throttle.map(Throttle).into(),
                ..GpuSample::default()
            },
            energy_j: numbers[2],
            ..Gpu::default()
        }
    }
}

proptest! {
    #[test]
    fn whatever_there_is_both_formats_hold_the_same(
        jobs in prop::collection::vec(job(), 0..4),
        gpus in prop::collection::vec(gpu(), 0..4),
    ) {
        let mut scrape = Scrape { jobs, gpus };
        // Whoever feeds it may say everything twice.
        scrape.jobs.extend(scrape.jobs.clone());
        let read = |format| parse(&render(&scrape, format), format).map_err(TestCaseError::fail);
        let (text, open) = (read(Format::Text)?, read(Format::OpenMetrics)?);
        let samples = |families: BTreeMap<String, Family>| -> Vec<_> {
            families.into_values().flat_map(|family| family.samples).collect()
        };
        let kinds: BTreeSet<String> = text.values().map(|family| family.kind.clone()).collect();
        prop_assert!(kinds.iter().all(|kind| kind == "gauge" || kind == "counter"));
        for (name, family) in &open {
            let unit = METRICS.iter().find(|metric| metric.name.starts_with(name.as_str()));
            prop_assert!(unit.is_some());
            prop_assert!(family.unit.is_none() || family.kind != "info");
            if family.kind == "counter" {
                let good = |value: &String| value.parse::<f64>().is_ok_and(|v| v >= 0.0 && v.is_finite());
                prop_assert!(family.samples.values().all(good));
            }
        }
        let (mut text, mut open) = (samples(text), samples(open));
        text.sort();
        open.sort();
        prop_assert_eq!(text, open);
    }
}
