//! One run read back: what its files say, and whether its supervisor still lives.
//!
//! Owns the difference between "running" on disk and lost. Never writes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::error::{CURE_READ, RecordError};
use super::events::EventReader;
use super::findings::{FindingFold, FindingRecord};
use super::run_dir::{LOCK, RUN_JSON};
use super::samples::{SampleReader, last_tick};
use super::summary::SummaryBuilder;
use super::usage::{GpuUsage, UsageBuilder};
use crate::model::{Event, Exit, Outcome, ProgressState, RunRecord, RunState, Stamp};

/// A run as it stands now.
#[derive(Debug)]
pub struct Run {
    /// Its directory.
    pub dir: PathBuf,
    /// `run.json`, with a dead supervisor's run as lost, and its end and numbers taken from
    /// its samples.
    pub record: RunRecord,
    /// Its findings, in the order in which they were raised.
    pub findings: Vec<FindingRecord>,
    /// What couldn't be read besides.
    pub problems: Vec<RecordError>,
}

/// Reads a run back. Where its end was never written (it still runs, or is lost) the summary
/// is computed from the samples.
///
/// # Errors
/// No `run.json` there, or one that can't be read.
pub fn load(dir: &Path) -> Result<Run, RecordError> {
    let (mut run, was_open) = read(dir)?;
    if was_open && let Err(e) = summarize(&mut run) {
        run.problems.push(e);
    }
    Ok(run)
}

/// Reads a run back without looking at its samples, but for the last one's time where no end
/// was written.
///
/// # Errors
/// As [`load`].
pub fn load_brief(dir: &Path) -> Result<Run, RecordError> {
    read(dir).map(|(run, _)| run)
}

/// The run, and whether its end was never written.
fn read(dir: &Path) -> Result<(Run, bool), RecordError> {
    let mut problems = Vec::new();
    let mut record = read_run(dir)?;
    let lives = is_open(&record) && is_alive(dir);
    if is_open(&record) && !lives {
        // It may have written its end and gone between the two looks.
        record = read_run(dir)?;
    }
    let was_open = is_open(&record);
    let told = read_events(dir, &mut problems);
    if was_open {
        if let Some(end) = told.end.filter(|_| !lives) {
            take_end(&mut record, end);
        }
        settle(dir, &mut record, lives).unwrap_or_else(|e| problems.push(e));
    }
    let run = Run {
        dir: dir.to_owned(),
        record,
        findings: told.findings.into_list(),
        problems,
    };
    Ok((run, was_open))
}

/// What a run's events tell.
#[derive(Default)]
struct Told {
    findings: FindingFold,
    end: Option<(Stamp, Exit)>,
}

/// The command's end stands in the events, and the disk was full when `run.json` was to say so.
fn take_end(record: &mut RunRecord, (stamp, exit): (Stamp, Exit)) {
    let (state, outcome) = match (record.state, exit) {
        _ if exit.is_success() => (RunState::Finished, Outcome::Ok),
        (RunState::Cancelled, _) => (RunState::Cancelled, Outcome::Cancelled),
        (
            _,
            Exit {
                signal: Some(_), ..
            },
        ) => (RunState::Finished, Outcome::Killed),
        _ => (RunState::Finished, Outcome::Failed),
    };
    record.state = state;
    record.exit = exit;
    record.ended = Some(stamp.time);
    record.verdict.outcome = Some(outcome);
    record.summary.duration_s = Some(stamp.elapsed_s);
}

/// Its end was never written.
fn is_open(record: &RunRecord) -> bool {
    record.ended.is_none() && matches!(record.state, RunState::Running | RunState::Cancelled)
        || record.state == RunState::Lost
}

pub(super) fn read_run(dir: &Path) -> Result<RunRecord, RecordError> {
    let path = dir.join(RUN_JSON);
    let text = fs::read(&path).map_err(RecordError::io("read", &path, CURE_READ))?;
    serde_json::from_slice(&text).map_err(|e| RecordError::NotARecord {
        path,
        why: e.to_string(),
    })
}

/// Whether somebody holds the lock of a run. Where that can't be told, `run.json` is
/// believed.
pub fn is_alive(dir: &Path) -> bool {
    match File::open(dir.join(LOCK)) {
        Ok(lock) => matches!(
            lock.try_lock_shared(),
            Err(TryLockError::WouldBlock | TryLockError::Error(_))
        ),
        Err(e) => e.kind() != io::ErrorKind::NotFound,
    }
}

/// Says of a run without an end what can be said.
fn settle(dir: &Path, record: &mut RunRecord, lives: bool) -> Result<(), RecordError> {
    let last = match last_tick(dir) {
        Err(RecordError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
        other => other?,
    };
    let elapsed_s = last.as_ref().map(|tick| tick.elapsed_s);
    record.summary.duration_s = record.summary.duration_s.or(elapsed_s);
    if lives {
        return Ok(());
    }
    record.ended = record.ended.take().or(last.map(|tick| tick.time));
    if record.state == RunState::Finished {
        return Ok(());
    }
    let outcome = match record.state {
        // Somebody's signal came first, and then the supervisor was killed too.
        RunState::Cancelled => Outcome::Cancelled,
        _ => Outcome::Lost,
    };
    record.verdict.outcome.get_or_insert(outcome);
    if record.state == RunState::Running {
        record.state = RunState::Lost;
    }
    Ok(())
}

fn read_events(dir: &Path, problems: &mut Vec<RecordError>) -> Told {
    let mut told = Told::default();
    let mut read = || -> Result<(), RecordError> {
        for event in EventReader::open(dir)? {
            let event = event?;
            told.findings.absorb(&event);
            match event.event {
                Event::Exited { code, signal } => {
                    told.end = Some((event.stamp, Exit { code, signal }));
                }
                Event::Restarted { .. } => told.end = None,
                _ => {}
            }
        }
        Ok(())
    };
    match read() {
        Err(RecordError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        Err(e) => problems.push(e),
        Ok(()) => {}
    }
    told
}

/// What each GPU of a run was used for, computed from its record.
///
/// # Errors
/// What the system refused.
pub fn usage_of(run: &Run) -> Result<Vec<GpuUsage>, RecordError> {
    let mut builder = UsageBuilder::default();
    match SampleReader::open(&run.dir, &run.record.gpus) {
        Err(RecordError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
        Ok(samples) => {
            for sample in samples {
                builder.absorb(&sample?, &run.findings);
            }
        }
    }
    let duration_s = run.record.summary.duration_s;
    Ok(builder.finish(&run.record.gpus, &run.findings, duration_s))
}

fn summarize(run: &mut Run) -> Result<(), RecordError> {
    let samples = match SampleReader::open(&run.dir, &run.record.gpus) {
        Err(RecordError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(());
        }
        other => other?,
    };
    let mut builder = SummaryBuilder::default();
    let mut progress = ProgressState::default();
    for sample in samples {
        let sample = sample?;
        builder.absorb(&sample);
        progress = sample.progress;
    }
    let duration_s = run.record.summary.duration_s;
    run.record.summary = builder.finish(duration_s, &progress);
    Ok(())
}
