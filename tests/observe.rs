//! The job's tree over real processes: shells, orphans, zombies.
#![allow(
    clippy::unwrap_used,
    reason = "where a test's own helper fails, the test does"
)]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gpuwatch::model::{ProcessChange, Reading};
use gpuwatch::observe::{
    HostReader, JobTick, JobTree, ProcFs, ProcessChangeFact, ProcessId, ProcessState, cgroup_root,
};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Far more than any condition takes on a busy machine.
const CEILING: Duration = Duration::from_secs(60);

/// All tests share this process, and each takes all its descendants for its job.
static ALONE: Mutex<()> = Mutex::new(());

/// This test's job, ended when dropped.
struct Job {
    tree: JobTree,
    main: Child,
    main_id: ProcessId,
    helper: Child,
    changes: Vec<ProcessChangeFact>,
    ticked: Instant,
    _alone: MutexGuard<'static, ()>,
}

impl Job {
    /// `script` under `sh` as the main process of a supervisor that has one helper.
    fn start(script: &str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let us = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(us)).unwrap();
        let helper = Command::new("sleep").arg("1000").spawn().unwrap();
        let main = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let main_id = ProcFs::default().identity(main.id()).unwrap();
        let ours = BTreeSet::from([helper.id()]);
        Self {
            tree: JobTree::new(ProcFs::default(), std::process::id(), ours, Some(main_id)),
            main,
            main_id,
            helper,
            changes: Vec::new(),
            ticked: Instant::now(),
            _alone: alone,
        }
    }

    fn tick(&mut self) -> JobTick {
        let elapsed = self.ticked.elapsed();
        self.ticked = Instant::now();
        let tick = self.tree.tick(elapsed.as_secs_f64());
        self.changes.extend(tick.changes.iter().cloned());
        tick
    }

    /// Ticks until the tick is as wanted.
    fn until(&mut self, what: &str, wanted: impl Fn(&JobTick) -> bool) -> JobTick {
        let end = Instant::now() + CEILING;
        loop {
            let tick = self.tick();
            if wanted(&tick) {
                return tick;
            }
            assert!(Instant::now() < end, "never {what}: {tick:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets the main process read a line.
    fn say(&mut self) {
        self.main.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn has(&self, pid: u32, change: ProcessChange) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|told| told.id.pid == pid && told.change == change)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.main.kill();
        let _ = self.main.wait();
        let _ = self.helper.kill();
        let _ = self.helper.wait();
        // All that is left becomes ours, zombies too: the next test starts without children.
        let end = Instant::now() + CEILING;
        while Instant::now() < end {
            for left in self.tree.leftovers() {
                let _ = kill(pid(left.id.pid), Signal::SIGKILL);
            }
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Err(_) => return,
                Ok(WaitStatus::StillAlive) => std::thread::sleep(Duration::from_millis(5)),
                Ok(_) => {}
            }
        }
    }
}

fn pid(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed())
}

fn count(reading: &Reading<u32>) -> u32 {
    reading.get().unwrap()
}

/// Who runs at this tick: a fork is named like its parent until it executes something.
fn names(tick: &JobTick) -> Vec<String> {
    let mut fs = ProcFs::default();
    let mut names: Vec<_> = tick
        .pids
        .iter()
        .filter_map(|pid| Some(String::from_utf8_lossy(fs.stat(*pid).ok()?.1).into_owned()))
        .collect();
    names.sort();
    names
}

#[test]
fn children_orphans_and_daemons_are_the_job_and_helpers_are_not() {
    let mut job = Job::start("sleep 1000 & sleep 1000 & (setsid sleep 1000 &) ; read x");
    let tick = job.until("three that sleep", |t| {
        names(t) == ["sh", "sleep", "sleep", "sleep"]
    });
    assert_eq!(tick.sample.procs, Reading::Value(4));
    assert!(tick.pids.contains(&job.main_id.pid));
    assert!(!tick.pids.contains(&job.helper.id()));
    assert!(!tick.pids.contains(&std::process::id()));
    assert!(tick.sample.rss_mib.get().unwrap() > 0.0);
    assert!(tick.sample.anon_mib.get().unwrap() > 0.0);
    assert!(job.has(job.main_id.pid, ProcessChange::Started));
    let before = tick.pids;
    // Nothing new happens: the same processes, and nothing to tell.
    let again = job.tick();
    assert_eq!(again.pids, before);
    assert!(again.changes.is_empty(), "{:?}", again.changes);
}

#[test]
fn a_newcomer_is_seen_at_the_next_tick() {
    let mut job = Job::start("read x; sleep 1000 & read x");
    job.until("one process", |t| count(&t.sample.procs) == 1);
    job.say();
    let tick = job.until("two processes", |t| count(&t.sample.procs) == 2);
    assert_eq!(tick.sample.forks, Reading::Value(1));
    let newcomer = *tick
        .pids
        .iter()
        .find(|pid| **pid != job.main_id.pid)
        .unwrap();
    assert!(job.has(newcomer, ProcessChange::Started));
}

#[test]
fn stopped_continued_and_ended() {
    let mut job = Job::start("sleep 1000 & read x; read x");
    let tick = job.until("two processes", |t| count(&t.sample.procs) == 2);
    let sleeper = *tick
        .pids
        .iter()
        .find(|pid| **pid != job.main_id.pid)
        .unwrap();
    kill(pid(sleeper), Signal::SIGSTOP).unwrap();
    job.until("stopped", |t| count(&t.sample.n_stopped) == 1);
    assert!(job.has(sleeper, ProcessChange::Stopped));
    kill(pid(sleeper), Signal::SIGCONT).unwrap();
    job.until("continued", |t| count(&t.sample.n_stopped) == 0);
    assert!(job.has(sleeper, ProcessChange::Continued));
    kill(pid(sleeper), Signal::SIGKILL).unwrap();
    // The shell reaps it once it runs again.
    job.say();
    let tick = job.until("ended", |t| count(&t.sample.procs) == 1);
    assert!(tick.sample.cpu_cores.get().unwrap() >= 0.0);
    if !tick.pids.contains(&sleeper) {
        assert!(job.has(sleeper, ProcessChange::Exited));
    }
}

#[test]
fn a_zombie_is_counted_apart() {
    // `sleep` never waits for the child that it inherited from the shell.
    let mut job = Job::start("sh -c 'exit 0' & exec sleep 1000");
    let tick = job.until("a zombie", |t| count(&t.sample.n_zombie) == 1);
    assert_eq!(tick.sample.procs, Reading::Value(1));
    assert_eq!(tick.pids.len(), 2);
    let zombie = *tick
        .pids
        .iter()
        .find(|pid| **pid != job.main_id.pid)
        .unwrap();
    assert!(job.has(zombie, ProcessChange::Zombie));
    assert_eq!(job.tree.leftovers(), []);
}

#[test]
fn what_outlives_the_main_process_is_left_over() {
    let mut job = Job::start("sleep 1000 & (setsid sh -c 'kill -STOP $$; :' &) ; read x");
    job.until("a stopped daemon", |t| {
        count(&t.sample.n_stopped) == 1 && names(t) == ["sh", "sh", "sleep"]
    });
    job.say();
    job.main.wait().unwrap();
    let main = job.main_id.pid;
    let tick = job.until("the main process gone", |t| !t.pids.contains(&main));
    assert!(tick.sample.procs.get().is_some());
    let mut left = job.tree.leftovers();
    left.sort_by(|a, b| a.name.cmp(&b.name));
    let seen: Vec<_> = left.iter().map(|l| (l.name.as_str(), l.state)).collect();
    assert_eq!(
        seen,
        [
            ("sh", ProcessState::Stopped),
            ("sleep", ProcessState::Sleeping)
        ]
    );
    for one in &left {
        let now = ProcFs::default().identity(one.id.pid).unwrap();
        assert_eq!(now, one.id);
    }
    job.tick();
    assert!(job.has(main, ProcessChange::Exited));
    let sleeper = left[1].id.pid;
    assert!(job.has(sleeper, ProcessChange::Reparented));
    assert!(job.tick().sample.main_cores.value().is_none());
}

#[test]
fn a_busy_process_uses_a_core_or_what_it_gets_of_one() {
    let mut job = Job::start("while :; do :; done");
    job.tick();
    let tick = job.until("CPU time", |t| {
        t.sample.main_cores.get().is_some_and(|cores| cores > 0.0)
    });
    assert_eq!(tick.sample.cpu_cores, tick.sample.main_cores);
}

#[test]
fn attached_to_a_process_only_its_own_tree_counts() {
    let mut job = Job::start("sh -c 'sleep 1000 & read x; wait' & sleep 1000 & wait");
    job.until("four processes", |t| count(&t.sample.procs) == 4);
    let inner = job
        .changes
        .iter()
        .filter(|c| c.change == ProcessChange::Started && c.ppid == job.main_id.pid)
        .map(|c| c.id)
        .find(|id| {
            let mut children = Vec::new();
            let read = ProcFs::default().children(id.pid, id.pid, &mut children);
            read.is_ok() && !children.is_empty()
        })
        .unwrap();
    let mut tree = JobTree::attached(ProcFs::default(), inner);
    let tick = tree.tick(0.0);
    assert_eq!(tick.pids.len(), 2);
    assert!(tick.pids.contains(&inner.pid));
}

#[test]
fn this_machine_tells_something_about_itself() {
    let mut host = HostReader::new(ProcFs::default(), cgroup_root(), None);
    host.tick(0.0);
    let end = Instant::now() + CEILING;
    loop {
        let tick = host.tick(1.0);
        if let Some(busy) = tick.sample.cpu_pct.get() {
            assert!((0.0..=100.0).contains(&busy), "{busy}");
            assert!(tick.sample.mem_limit_mib.get().unwrap() > 0.0);
            return;
        }
        // Both looks fell into one clock tick.
        assert!(Instant::now() < end, "{tick:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
