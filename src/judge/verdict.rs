//! The verdict at a run's end: the first cause and what to do about it.
//!
//! Owns which of several things that were said was the first to go wrong. The earliest
//! initiating event wins; a timeout of a collective or a lost peer follows from something as a
//! rule; a traceback is a cause only where nothing better is known.

use crate::model::{Exit, Outcome, Severity, Verdict};
use crate::read::fingerprint::Kind;

use super::finding::Finding;
use super::leftovers::ORPHANS;
use super::memory::oom_advice;
use super::story::{Story, Told};

const SEGV: i32 = 11;
const BUS: i32 = 7;
const KILL: i32 = 9;

/// A cause with its advice.
struct Cause {
    /// None: there is advice, and no name for it.
    name: Option<String>,
    advice: Option<String>,
    at_s: f64,
}

impl Cause {
    fn new(name: &str, at_s: f64, advice: impl Into<String>) -> Self {
        Self {
            name: Some(name.to_owned()),
            advice: Some(advice.into()),
            at_s,
        }
    }
}

/// What a run's end means, from how it ended, what was printed and what was found.
/// `alarms` are those that were raised, in their order; `open` tells which still hold.
pub fn verdict(
    outcome: Outcome,
    exit: Exit,
    story: &Story,
    alarms: &[Finding],
    open: &dyn Fn(&str) -> bool,
) -> Verdict {
    let standing = || alarms.iter().find(|f| open(&f.name)).map(of_finding);
    let cause = match outcome {
        // A success may have its flaw, too.
        Outcome::Ok => standing(),
        // Somebody ended it: if it was stuck, that is why. What it left behind is not.
        Outcome::Cancelled | Outcome::TimedOut => alarms
            .iter()
            .find(|f| open(&f.name) && f.name != ORPHANS)
            .map(of_finding),
        Outcome::Failed | Outcome::Killed | Outcome::Lost => {
            first_cause(story, alarms, open).or_else(|| of_exit(exit, story))
        }
    };
    let (name, advice) = cause.map_or((None, None), |c| (c.name, c.advice));
    Verdict {
        outcome: Some(outcome),
        cause: name,
        advice,
    }
}

fn first_cause(story: &Story, alarms: &[Finding], open: &dyn Fn(&str) -> bool) -> Option<Cause> {
    let lines = story.lines.iter().filter_map(initiating);
    // What explains a failure: not that a GPU was unused, nor what is left over after it.
    let fatal =
        |f: &&Finding| ["hardware", "host-oom", "oom", "program-fault"].contains(&f.name.as_str());
    let found = alarms.iter().filter(fatal).map(of_finding);
    let first = lines
        .chain(found)
        .reduce(|a, b| if b.at_s < a.at_s { b } else { a });
    first
        .or_else(|| alarms.iter().find(|f| f.name == "nan").map(of_finding))
        .or_else(|| story.lines.iter().find_map(consequence))
        .or_else(|| {
            alarms
                .iter()
                .find(|f| f.name == "stalled" && open("stalled"))
                .map(of_finding)
        })
        .or_else(|| traceback(story))
}

fn of_finding(finding: &Finding) -> Cause {
    Cause {
        name: Some(finding.name.clone()),
        advice: finding.advice.clone(),
        at_s: finding.since_s,
    }
}

/// What goes wrong by itself.
fn initiating(line: &Told) -> Option<Cause> {
    let (name, advice) = of_machine(line.kind).or_else(|| of_program(line.kind))?;
    Some(Cause::new(name, line.at_s, advice))
}

/// Memory, disks, drivers.
fn of_machine(kind: Kind) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        kind if kind.is_oom() || kind == Kind::HostMemory => ("oom", oom_advice(kind)),
        Kind::KernelOom => (
            "host-oom",
            "A process was killed for its memory: fewer DataLoader workers, a smaller prefetch or cache, or a higher memory limit.",
        ),
        Kind::LoaderOom => (
            "loader-killed",
            "A DataLoader worker was killed, for main memory as a rule: fewer workers, a smaller prefetch_factor, or more memory for the job.",
        ),
        Kind::Disk => (
            "disk",
            "The disk is full: free space (`df -h`), keep fewer checkpoints, or write elsewhere.",
        ),
        Kind::Quota => (
            "quota",
            "The quota is used up (`quota -s`): keep fewer checkpoints or write elsewhere.",
        ),
        Kind::NetworkFs => (
            "network-fs",
            "A network file system went away or replaced a file: copy the data to local disk, and restart from the last checkpoint.",
        ),
        Kind::DriverMismatch => (
            "driver-mismatch",
            "Driver and CUDA don't fit: update the driver, reboot after an upgrade, or install a build for this driver and GPU.",
        ),
        Kind::NoGpu => (
            "no-gpu",
            "The program sees no GPU: check `nvidia-smi`, CUDA_VISIBLE_DEVICES, and `--gpus all` in a container.",
        ),
        Kind::CpuBuild => (
            "cpu-build",
            "The installed PyTorch has no CUDA support: install it from the CUDA index (https://download.pytorch.org/whl/cu126).",
        ),
        Kind::SharedMemory => (
            "shared-memory",
            "/dev/shm is full: in a container --ipc=host or --shm-size=8g; else fewer DataLoader workers, or sharing by file_system.",
        ),
        _ => return None,
    })
}

/// The program's own faults.
fn of_program(kind: Kind) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        Kind::DeviceAssert => (
            "device-assert",
            "An assertion on the GPU failed, usually a label or index out of range: run one batch on the CPU, where the message names the line.",
        ),
        Kind::IllegalAccess => (
            "illegal-access",
            "A kernel touched memory that isn't there: a bug in the program or an extension. CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer finds the operation.",
        ),
        Kind::LoaderKilled => (
            "loader-killed",
            "A DataLoader worker died: num_workers=0 shows its own error; a crash in a decoder or too little memory is the usual cause.",
        ),
        Kind::Segfault => (
            "segfault",
            "The program died of a wrong memory access in native code: PYTHONFAULTHANDLER=1 shows the Python line; check extensions whose versions don't fit.",
        ),
        Kind::LossNan => (
            "nan",
            "The program stopped because its loss is no number: a lower learning rate, gradient clipping, bf16 instead of fp16.",
        ),
        _ => return None,
    })
}

/// What usually follows from something else, of which nothing is known here.
fn consequence(line: &Told) -> Option<Cause> {
    let (name, advice) = match line.kind {
        Kind::CollectiveTimeout => (
            "collective-timeout",
            "A collective timed out: find the rank that isn't at the SeqNum of the message; what it did before is the cause.",
        ),
        Kind::RankLost => (
            "rank-lost",
            "Another rank ended: the earliest error among all ranks is the cause; look at their own output.",
        ),
        _ => return None,
    };
    Some(Cause::new(name, line.at_s, advice))
}

/// The exception that ended the program, unless somebody's Ctrl-C was it.
fn traceback(story: &Story) -> Option<Cause> {
    let begun = story.lines.iter().find(|l| l.kind == Kind::Traceback)?;
    let last = story.lines.iter().rfind(|l| l.kind == Kind::Exception);
    let words: Option<String> = last.map(|l| l.text.chars().take(200).collect());
    if words
        .as_deref()
        .is_some_and(|w| w.contains("KeyboardInterrupt"))
    {
        return None;
    }
    let advice = match words {
        Some(words) => format!("The program ended with {words}"),
        None => "The program ended with an exception: its traceback names the line.".to_owned(),
    };
    Some(Cause::new("traceback", begun.at_s, advice))
}

/// What the end alone tells; a shell gives 128 + n for a signal.
fn of_exit(exit: Exit, story: &Story) -> Option<Cause> {
    let by_shell = exit.code.filter(|c| *c > 128).map(|c| c - 128);
    match exit.signal.or(by_shell)? {
        SEGV => Some(Cause::new("segfault", 0.0, "The program died of a wrong memory access in native code: PYTHONFAULTHANDLER=1 shows the Python line.")),
        BUS => Some(Cause::new("shared-memory", 0.0, "The program died of SIGBUS: a full /dev/shm (in a container --ipc=host or --shm-size) or a file that shrank while it was mapped.")),
        KILL if !story.told(Kind::KernelOom) => Some(Cause {
            name: None,
            advice: Some("Somebody's SIGKILL ended it: no sign of the kernel's out-of-memory killer was seen.".to_owned()),
            at_s: 0.0,
        }),
        _ => None,
    }
}

/// Whether a finding of this severity is an alarm.
pub fn is_alarm(severity: Severity) -> bool {
    severity > Severity::Note
}
