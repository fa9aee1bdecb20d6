//! What is looked at when a job stands still, or when somebody asks: the job's processes with their
//! ranks, its GPUs, its last lines, what its collectives left.
//!
//! Owns putting that together, for a run of ours and for one that another gpuwatch watches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::act::stacks::{Evidence, Request, Subject, collect};
use crate::model::{OwnProcesses, ProcessId, RunRecord, RunState, Sample, Stamp};
use crate::observe::{JobTick, ProcFs, is_network};
use crate::record::run_dir::{LOCK, write_evidence};
use crate::record::{RecordError, now, output_log};
use crate::report;
use crate::report::html::last_lines;

use super::clock::wall_now;
use super::job_process;

/// Bytes of output of which the last lines are shown, and how many.
pub const TAIL: usize = 64 * 1024;
const LINES: usize = 200;

/// How files in a run's directory begin that tell of collectives: the default profile names them.
const DUMPS: [&str; 2] = ["flight-recorder-", "nccl-"];

/// The job's processes, as the sampler saw them last.
#[derive(Clone, Debug, Default)]
pub struct Members {
    pids: BTreeSet<u32>,
    ranks: BTreeMap<u32, u32>,
}

/// The same, for several threads.
pub type Job = Arc<Mutex<Members>>;

impl From<&JobTick> for Members {
    fn from(tick: &JobTick) -> Self {
        Self {
            pids: tick.pids.clone(),
            ranks: tick.ranks.clone(),
        }
    }
}

/// What is known of the job otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Its main process.
    pub main: u32,
    /// The last sample.
    pub sample: Option<&'a Sample>,
    /// The end of its output, [`TAIL`] bytes of it.
    pub output: &'a [u8],
    /// The run's directory.
    pub dir: Option<&'a Path>,
}

/// What is asked of `act`.
pub fn request(at: Stamp, about: &str, job: &Members, known: Known<'_>) -> Request {
    let mut proc = ProcFs::default();
    let others = job.pids.iter().filter(|pid| **pid != known.main);
    let main_first = [known.main].into_iter().chain(others.copied());
    let subjects = main_first.filter_map(|pid| {
        let id = proc.identity(pid).ok()?;
        Some(Subject {
            pid: id.pid,
            start: id.start,
            rank: job.ranks.get(&pid).copied(),
        })
    });
    let mut request = Request::new(at, about, subjects.collect());
    request.gpus = known.sample.map(report::gpus::lines).unwrap_or_default();
    request.last_lines = last_lines(known.output, LINES);
    let dumps = known.dir.map(|dir| DUMPS.map(|begin| dir.join(begin)));
    request.dumps = dumps.into_iter().flatten().collect();
    request.is_network = is_network;
    request
}

/// Of a run that another gpuwatch on this machine watches: the answer, which was also written, and
/// where. Nobody else is asked; the run doesn't notice.
///
/// # Errors
/// The run isn't in progress here, or the answer can't be written, in a sentence.
pub fn of_run(dir: &Path, record: &RunRecord) -> Result<(Evidence, String), String> {
    if record.origin.is_some() {
        let main = record.pid.unwrap_or_default();
        return Err(format!(
            "gpuwatch didn't launch it: ask 'py-spy dump --pid {main}'"
        ));
    }
    if record.ended.is_some() || record.state == RunState::Lost {
        let dir = dir.join("evidence");
        return Err(format!(
            "the run is over: what was collected meanwhile, if anything, is in {}",
            dir.display()
        ));
    }
    let found = record.pid.and_then(|pid| found(dir, pid));
    let Some((main, supervisor)) = found else {
        return Err("its processes can't be seen from here: ask as the run's user, on its machine and in its container".to_owned());
    };
    let job = job_of(main, supervisor);
    let sample = now::last_sample(dir, &record.gpus).unwrap_or_default();
    let output = output_log::last_bytes(dir, TAIL as u64).unwrap_or_default();
    let at = Stamp {
        time: wall_now(),
        elapsed_s: sample.as_ref().map_or(0.0, |s| s.stamp.elapsed_s),
    };
    let known = Known {
        main: main.pid,
        sample: sample.as_ref(),
        output: &output,
        dir: Some(dir),
    };
    let request = request(at, "asked for", &job, known);
    let answer = collect(&request, &OwnProcesses::default());
    let path = written(dir, &answer).map_err(|e| e.to_string())?;
    Ok((answer, path))
}

/// Writes an answer; the path of its text, relative to the run's directory.
///
/// # Errors
/// What the system refused.
pub fn written(dir: &Path, answer: &Evidence) -> Result<String, RecordError> {
    let mut first = None;
    for (name, bytes) in &answer.files {
        let path = write_evidence(dir, name, bytes)?;
        first.get_or_insert(path);
    }
    Ok(first.unwrap_or_default())
}

/// The main process of a run and its parent, which is the run's gpuwatch if it has the run's lock
/// open: a PID alone may be anybody's by now.
fn found(dir: &Path, main: u32) -> Option<(ProcessId, u32)> {
    let mut proc = ProcFs::default();
    let supervisor = proc.stat(main).ok()?.0.ppid;
    let lock = fs::canonicalize(dir.join(LOCK)).ok()?;
    let open = fs::read_dir(format!("/proc/{supervisor}/fd")).ok()?;
    let mut links = open
        .flatten()
        .filter_map(|fd| fs::read_link(fd.path()).ok());
    links.any(|to| to == lock).then_some(())?;
    Some((proc.identity(main).ok()?, supervisor))
}

/// The processes of its job: its descendants without those that are gpuwatch, too.
fn job_of(main: ProcessId, supervisor: u32) -> Members {
    let mut proc = ProcFs::default();
    let mut exe = |pid: u32| proc.link(format_args!("{pid}/exe")).ok();
    let own = exe(supervisor);
    let mut tree = job_process::tree(ProcFs::default(), supervisor, Some(main));
    let ours = |pid: &u32| *pid != main.pid && own.is_some() && exe(*pid) == own;
    let children = tree.tick(0.0).pids;
    let direct = children.into_iter().filter(|pid| {
        let mut proc = ProcFs::default();
        proc.stat(*pid)
            .is_ok_and(|(stat, _)| stat.ppid == supervisor)
    });
    tree.set_ours(direct.filter(ours).collect());
    Members::from(&tree.tick(0.0))
}
