//! What an end alone tells: exit codes, signals, and who sent them.
//!
//! Owns the words for each.

use nix::sys::signal::Signal;

use crate::model::Exit;
use crate::model::units::mib_text;
use crate::read::fingerprint::Kind;

use super::causes::{BUS, SEGFAULT};
use super::story::Asked;

/// A job that held so much of what it may is likely to have been killed for it.
const NEARLY_ALL: f64 = 0.9;

/// What the job held of main memory when it was last seen, and what it may, MiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Resident.
    pub rss_mib: Option<f64>,
    /// The limit of its control group, else what the machine has.
    pub limit_mib: Option<f64>,
}

/// `--time-limit` ended it.
pub const TIME_LIMIT: &str = "The run's own time limit (--time-limit) ended it: raise it, or save checkpoints and go on from the last one.";

/// SIGINT, and none came through us.
const INTERRUPTED: &str = "SIGINT ended it (as Ctrl-C or `kill -INT` sends it), and it didn't come through gpuwatch: somebody sent it to the command itself.";

/// The signal behind an end; a shell gives 128 + n for one.
fn signal(exit: Exit) -> Option<Signal> {
    let by_shell = exit.code.filter(|code| (129..=192).contains(code));
    let number = exit.signal.or(by_shell.map(|code| code - 128))?;
    Signal::try_from(number).ok()
}

/// An end that has a name of its own.
pub fn named(exit: Exit) -> Option<(&'static str, &'static str)> {
    match signal(exit)? {
        Signal::SIGSEGV => Some(("segfault", SEGFAULT)),
        Signal::SIGBUS => Some(("shared-memory", BUS)),
        _ => None,
    }
}

/// Who asked the run to end.
pub fn asked(asked: &Asked) -> String {
    let Asked { name, from, sender } = asked;
    let key = match name.as_str() {
        "INT" => "Ctrl-C",
        "QUIT" => "Ctrl-\\",
        _ => "a key",
    };
    match (from.as_str(), sender.as_deref()) {
        ("terminal", _) if name == "HUP" => {
            "Its terminal was closed: `nohup`, `setsid` or tmux keep a run alive without one."
                .to_owned()
        }
        ("terminal", _) => format!("It was stopped at the terminal ({key})."),
        (_, Some("slurmstepd" | "slurmd")) => format!(
            "Slurm ended it (SIG{name} from slurmstepd): scancel, the job's time limit, or preemption; `sacct -j JOBID` says which."
        ),
        (_, Some("systemd" | "(sd-pam)" | "systemd-logind")) => format!(
            "systemd ended it (SIG{name}): its unit was stopped, or the session that started it was closed."
        ),
        (_, Some("timeout")) => format!("timeout(1) ended it (SIG{name}): its time was up."),
        (_, Some("dockerd" | "containerd-shim" | "conmon" | "kubelet")) | ("0", None) => format!(
            "SIG{name} came from outside this container: it was stopped, or its pod was evicted or deleted."
        ),
        ("group", Some(sender)) => format!("{sender} sent SIG{name} to the whole job."),
        ("group", None) => format!("Somebody sent SIG{name} to the whole job."),
        (pid, Some(sender)) => format!("{sender} (PID {pid}) sent SIG{name}."),
        (pid, None) => format!("PID {pid}, which is gone, sent SIG{name}."),
    }
}

/// What a line says of an end that has no name.
pub fn by_line(kind: Kind, text: &str) -> Option<String> {
    let advice = match kind {
        Kind::Usage => "The command doesn't take these arguments: `--help` shows which it does.",
        Kind::Aborted => "Native code gave up: the line says why, and a stack below it where.",
        Kind::Scheduler if text.contains("PREEMPT") => {
            "The scheduler ended the job, which was preempted by another: save checkpoints, and let it be queued again (`--requeue`)."
        }
        Kind::Scheduler if text.contains("NODE FAIL") => {
            "The scheduler ended the job because its node failed: start it again from the last checkpoint."
        }
        Kind::Scheduler if is_about_time(text) => {
            "The scheduler ended the job because its time limit was reached: ask for more time, or save checkpoints and go on from the last one."
        }
        Kind::Scheduler => "The scheduler ended the job: scancel, or an administrator.",
        _ => return None,
    };
    Some(advice.to_owned())
}

fn is_about_time(text: &str) -> bool {
    ["TIME LIMIT", "walltime", "RUNLIMIT"]
        .iter()
        .any(|words| text.contains(words))
}

/// What is known of an end without a name.
pub fn advice(exit: Exit, held: &Held, oom_told: bool) -> Option<String> {
    if let Some(signal) = signal(exit) {
        return by_signal(signal, held, oom_told);
    }
    let words = match exit.code? {
        124 => "Exit code 124 is what timeout(1) gives when the time is up.",
        125 => {
            "Exit code 125 is what a container engine or launcher gives that couldn't start the command."
        }
        126 => {
            "A shell gives exit code 126 for a command that may not be executed: check its permissions (`ls -l`) and its first line."
        }
        127 => {
            "A shell gives exit code 127 for a command that is not found: check its spelling, PATH, and the environment that should be active."
        }
        _ => return None,
    };
    Some(words.to_owned())
}

fn by_signal(signal: Signal, held: &Held, oom_told: bool) -> Option<String> {
    let words = match signal {
        Signal::SIGKILL => return Some(killed(held, oom_told)),
        Signal::SIGTERM => {
            "Somebody sent SIGTERM to the command itself, not through gpuwatch: a scheduler, a container engine, or `kill`."
        }
        Signal::SIGINT => INTERRUPTED,
        Signal::SIGHUP => {
            "SIGHUP ended it: the session that it ran in was closed. `nohup`, `setsid` or tmux keep it alive."
        }
        Signal::SIGQUIT => "SIGQUIT ended it: somebody sent it to the command itself.",
        Signal::SIGABRT => {
            "The program aborted itself (SIGABRT): its last lines say why, and PYTHONFAULTHANDLER=1 shows the Python line."
        }
        Signal::SIGILL => {
            "The program met an instruction that this CPU doesn't know (SIGILL): a library is built for a newer CPU."
        }
        Signal::SIGFPE => {
            "Native code divided by zero (SIGFPE): PYTHONFAULTHANDLER=1 shows the Python line."
        }
        Signal::SIGPIPE => "It died of SIGPIPE: what should read its output had ended.",
        Signal::SIGXCPU => "Its limit of CPU time was reached (SIGXCPU, `ulimit -t`).",
        Signal::SIGXFSZ => "A file reached the limit of its size (SIGXFSZ, `ulimit -f`).",
        Signal::SIGSYS => {
            "It made a system call that a filter forbids (SIGSYS): a container's seccomp profile."
        }
        Signal::SIGUSR1 | Signal::SIGUSR2 | Signal::SIGALRM => {
            return Some(format!(
                "{signal} ended it, which the program doesn't handle: a scheduler sends such a signal before the time limit (`sbatch --signal`), so that a handler can save a checkpoint."
            ));
        }
        _ => return None,
    };
    Some(words.to_owned())
}

/// SIGKILL, which nobody signs.
fn killed(held: &Held, oom_told: bool) -> String {
    if oom_told {
        return "SIGKILL ended it, as the kernel's out-of-memory killer does.".to_owned();
    }
    let full = held
        .rss_mib
        .zip(held.limit_mib)
        .filter(|(rss, limit)| *rss > NEARLY_ALL * limit);
    match full {
        Some((rss, limit)) => format!(
            "SIGKILL ended it, and it held {} of {} when it was last seen: it is likely to have been killed for its memory. Fewer DataLoader workers, a smaller cache or prefetch, or a higher limit.",
            mib_text(rss),
            mib_text(limit)
        ),
        None => {
            "Somebody's SIGKILL ended it: no sign of the kernel's out-of-memory killer was seen."
                .to_owned()
        }
    }
}

/// The end of one of several ranks.
pub fn of_rank(exit: Exit) -> String {
    match (signal(exit), exit.code) {
        (Some(Signal::SIGKILL), _) => "One rank was ended by SIGKILL, the kernel's out-of-memory killer's or somebody's: check main memory (`dmesg`), and its own output.".to_owned(),
        (Some(signal), _) => format!("One rank was ended by {signal}: look at its own output."),
        (None, Some(code)) => format!("One rank ended with exit code {code} and said nothing of why here: look at its own output."),
        (None, None) => "One rank ended: look at its own output.".to_owned(),
    }
}
