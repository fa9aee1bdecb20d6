//! Signals that are sent in odd ways: by a name that fits several of us, while a helper is dead
//! or stopped, while the caller ignores them; and what a debugger does to the end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use support::{Listener, Live, Sandbox, Terminal, for_each, group, kill, python, wait_until};

/// The process beside gpuwatch, once it shows whose it is.
fn helper_of(gpuwatch: i32) -> i32 {
    let mut found = None;
    wait_until("the helper is there", || {
        found = group(group_of(gpuwatch))
            .into_iter()
            .find(|pid| command_line(*pid).starts_with("nvml-sentinel "));
        found.is_some()
    });
    found.unwrap()
}

fn group_of(pid: i32) -> i32 {
    let pid = nix::unistd::Pid::from_raw(pid);
    nix::unistd::getpgid(Some(pid)).unwrap().as_raw()
}

fn command_line(pid: i32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Whether a signal waits in a process.
fn waits(pid: i32, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal - 1)) != 0
}

fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// One shell sends it to all that fit, as `pkill` and `killall` do.
fn send_to_those_that_fit(job: i32, signal: i32, fits: impl Fn(i32) -> bool) -> usize {
    let pids: Vec<String> = group(group_of(job))
        .into_iter()
        .filter(|pid| fits(*pid))
        .map(|pid| pid.to_string())
        .collect();
    let mut sender = Command::new("sh");
    sender.args(["-c", "kill -\"$@\"", "sh", &signal.to_string()]);
    assert!(sender.args(&pids).status().unwrap().success());
    pids.len()
}

type Fits = fn(i32) -> bool;

/// `pkill gpuwatch`, `pkill -f gpuwatch`, `pkill -f train.py`, `pkill -f LOG`.
const PATTERNS: [(&str, Fits); 4] = [
    ("our name", |pid| name(pid).contains("gpuwatch")),
    ("our command line", |pid| {
        command_line(pid).contains("gpuwatch run")
    }),
    ("its script", |pid| {
        command_line(pid).contains("signal_log.py")
    }),
    ("its arguments", |pid| {
        command_line(pid).contains("work/log")
    }),
];

#[test]
fn a_signal_to_all_that_are_called_so_arrives_once() {
    let options: [&[&str]; 2] = [&["-q"], &["-q", "--gpus", "none"]];
    let cases: Vec<_> = PATTERNS
        .iter()
        .flat_map(|pattern| options.map(|options| (pattern, options)))
        .collect();
    for_each(&cases, |((what, fits), options)| {
        let sandbox = Sandbox::new();
        let argv = Listener::argv(&sandbox.arg("log"), "0");
        let listener = Listener::start(&sandbox, &sandbox.watched(options, &argv));
        let pid = listener.live.pid();
        helper_of(pid);
        for signal in [libc::SIGINT, libc::SIGUSR1, libc::SIGINT, libc::SIGTERM] {
            assert!(send_to_those_that_fit(pid, signal, fits) > 0);
            listener.wait_for(signal);
        }
        let (arrived, _) = listener.end();
        let wanted = [libc::SIGINT, libc::SIGUSR1, libc::SIGINT, libc::SIGTERM].map(|s| s as u8);
        assert_eq!(arrived, wanted, "by {what}, {options:?}");
    });
}

#[test]
fn what_the_caller_ignored_reaches_a_command_that_has_set_a_handler() {
    for_each(&["HUP", "INT", "QUIT", "USR1"], |name| {
        let sandbox = Sandbox::new();
        let ignore = format!("--ignore-signal={name}");
        for job in sandbox.both(&Listener::argv(&sandbox.arg("log"), "3")) {
            let listener = Listener::start(&sandbox, &job.under(&["env", &ignore]));
            let signal: nix::sys::signal::Signal = format!("SIG{name}").parse().unwrap();
            kill(listener.live.pid(), signal as i32);
            listener.wait_for(signal as i32);
            let (arrived, ended) = listener.end();
            assert_eq!((arrived, ended.code()), (vec![signal as u8], Some(3)));
            for file in ["log", "log.end"] {
                std::fs::remove_file(sandbox.path(file)).unwrap();
            }
        }
    });
}

#[test]
fn what_the_caller_ignored_cancels_nothing() {
    let sandbox = Sandbox::new();
    let argv = Listener::argv(&sandbox.arg("log"), "3");
    let job = sandbox.watched(&["-q"], &argv).under(&["nohup"]);
    let listener = Listener::start(&sandbox, &job);
    for _ in 0..2 {
        let before = listener.arrived().len();
        kill(listener.live.pid(), libc::SIGHUP);
        wait_until("it arrives", || listener.arrived().len() > before);
    }
    listener.end();
    let run = sandbox.record().json();
    assert_eq!(run["state"], "finished");
    assert_eq!(run["verdict"]["outcome"], "failed");
}

#[test]
fn a_key_arrives_once_though_the_helper_is_dead() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::new(24, 80);
    let job = sandbox.watched(&["-q"], &Listener::argv(&sandbox.arg("log"), "0"));
    let listener = Listener::start_on(&mut terminal, &sandbox, &job);
    let pid = listener.live.pid();
    let helper = helper_of(pid);
    kill(helper, libc::SIGKILL);
    wait_until("it is dead", || !support::alive(helper));
    terminal.send("\x03");
    listener.wait_for(libc::SIGINT);
    kill(pid, libc::SIGUSR1);
    listener.wait_for(libc::SIGUSR1);
    let (arrived, _) = listener.end();
    assert_eq!(arrived, [libc::SIGINT as u8, libc::SIGUSR1 as u8]);
}

#[test]
fn a_group_that_was_stopped_and_of_which_only_we_were_continued_gets_signals_as_before() {
    let sandbox = Sandbox::new();
    let job = sandbox.watched(&["-q"], &Listener::argv(&sandbox.arg("log"), "0"));
    let listener = Listener::start(&sandbox, &job);
    let pid = listener.live.pid();
    helper_of(pid);
    kill(-pid, libc::SIGSTOP);
    kill(pid, libc::SIGCONT);
    listener.wait_for(libc::SIGCONT);
    for to in [-pid, pid, pid] {
        let before = listener.arrived().len();
        kill(to, libc::SIGUSR1);
        wait_until("it arrives", || listener.arrived().len() > before);
        // Two of a kind that wait in one process are one, and the command may be first.
        wait_until("we have it too", || !waits(pid, libc::SIGUSR1));
    }
    let (arrived, _) = listener.end();
    let usr1 = libc::SIGUSR1 as u8;
    assert_eq!(arrived, [libc::SIGCONT as u8, usr1, usr1, usr1]);
}

/// It stops itself while what it wrote before can't be delivered yet: so we are still about to
/// stop with it when it is continued.
const STOPS_UNHEARD: &str = "
import os, signal
os.write(1, bytes(100_000))
os.kill(os.getpid(), signal.SIGTSTP)
";

#[test]
fn a_job_that_was_continued_before_we_have_stopped_with_it_goes_on() {
    let sandbox = Sandbox::new();
    let job = sandbox.watched(&["-q"], &[python(), "-c", STOPS_UNHEARD]);
    let mut command = job.own_group().command();
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::null()).stdout(writer);
    let mut live = Live::apart(&mut command);
    drop(command); // and with it our copy of the pipe's writing end
    let pid = live.pid();
    wait_until("the command has stopped", || {
        let mut others = group(pid).into_iter().filter(|one| *one != pid);
        others.any(is_stopped)
    });
    kill(-pid, libc::SIGCONT);
    let delivered = std::thread::spawn(move || {
        wait_until("we have noticed", || !waits(pid, libc::SIGCONT));
        reader.read_exact(&mut vec![0; 100_000]).unwrap();
    });
    // Where a busy machine made it too late, there is no stop after it either.
    let ours = nix::unistd::Pid::from_raw(pid);
    let look = WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let mut next = WaitStatus::StillAlive;
    wait_until("it ends", || {
        let changes = WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED;
        next = waitid(Id::Pid(ours), look | changes).unwrap();
        next != WaitStatus::StillAlive
    });
    assert_eq!(next, WaitStatus::Exited(ours, 0));
    assert!(live.wait().success());
    delivered.join().unwrap();
}

fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Processor time that a process has used, in its clock's ticks (100 a second).
fn ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

const TRACED: &str = "
import ctypes, os, sys
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, anybody
print(os.getpid(), flush=True)
sys.stdin.readline()
";

const TRACER: &str = "
import ctypes, sys
assert ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0  # PTRACE_SEIZE
print('traced', flush=True)
sys.stdin.readline()
";

#[test]
fn a_debugger_that_keeps_the_dead_command_costs_no_processor() {
    let sandbox = Sandbox::new();
    let mut live = sandbox.watched(&["-q"], &[python(), "-c", TRACED]).start();
    live.wait_for_out("\n");
    let child: i32 = live.out_so_far().trim().parse().unwrap();
    let argv = [python(), "-c", TRACER, &child.to_string()];
    let mut tracer = sandbox.direct(&argv).start();
    tracer.wait_for_out("traced");
    live.send("end\n");
    wait_until("it is dead", || !support::alive(child));
    let before = ticks(live.pid());
    // The time itself is what is measured.
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks(live.pid()) - before;
    assert!(used < 30, "{used} hundredths of a second");
    tracer.send("end\n");
    assert_eq!(live.end().code(), Some(0));
    tracer.end();
}

/// The kernel sends a parent-death signal when the thread ends that started the child: that must
/// not be one of those that end in the middle of a run.
#[test]
fn no_signal_comes_when_a_thread_of_ours_ends() {
    let sandbox = Sandbox::new();
    let silent = "
import os, sys
sys.argv = sys.argv[1:]
print('silent', flush=True)
nothing = os.open(os.devnull, os.O_WRONLY)
os.dup2(nothing, 1)
os.dup2(nothing, 2)
print = lambda *_, **__: open('listens', 'w').close()
exec(open(sys.argv[0]).read())
";
    let [python, script, log, status] = Listener::argv(&sandbox.arg("log"), "4");
    let argv = [&python, "-c", silent, &script, &log, &status];
    let live = sandbox.watched(&["-q"], &argv).start();
    live.wait_for_out("silent");
    let threads = || -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", live.pid())).unwrap();
        let name = |path: std::path::PathBuf| std::fs::read_to_string(path.join("comm"));
        tasks
            .filter_map(|task| name(task.unwrap().path()).ok())
            .collect()
    };
    wait_until("its relays have ended", || {
        let names = threads();
        !names.is_empty() && names.iter().all(|name| name.trim() != "relay")
    });
    let arrived = || std::fs::read(sandbox.path("log")).unwrap_or_default();
    wait_until("it listens", || sandbox.path("listens").exists());
    kill(live.pid(), libc::SIGUSR1);
    wait_until("it arrives", || !arrived().is_empty());
    std::fs::write(sandbox.path("log.end"), "").unwrap();
    assert_eq!(live.end().code(), Some(4));
    assert_eq!(arrived(), [libc::SIGUSR1 as u8]);
}
