//! The patrol: one look after another, until it is asked to end.
//!
//! Owns the loop, its signals and its end.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::model::{JudgeSettings, Limit, PatrolSettings, Rule};
use crate::plan::profile::{Metrics, Record};
use crate::serve::{Listener, Outlets, Report};
use crate::supervise::RunClock;
use crate::sys::process::keep_children_waitable;
use crate::sys::signals::{Mask, SignalFd};
use crate::tell::Channels;

use super::driver::{Driver, Heard};
use super::present::Present;
use super::rounds::{Patrol, complain};
use super::tellers::Tellers;

/// What a single look waits for a driver beyond its window.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the file with metrics is named by: `gpuwatch-patrol.prom`.
const FILE: &str = "patrol";

/// What a patrol is told.
pub struct Request {
    /// The profile's name, for records.
    pub profile: String,
    /// Time between two looks.
    pub interval: Duration,
    /// How findings are set.
    pub judge: JudgeSettings,
    /// The administrator's own findings.
    pub rules: Vec<Rule>,
    /// Whom to leave alone, how to reach owners.
    pub patrol: PatrolSettings,
    /// How many records stay.
    pub keep: Record,
    /// Where records are written; None: nowhere.
    pub root: Option<PathBuf>,
    /// Where those who scrape find metrics.
    pub metrics: Metrics,
    /// Print findings as JSON lines.
    pub json: bool,
}

/// Watches until INT, TERM, HUP or QUIT.
///
/// # Errors
/// Why it can't begin.
pub fn watch(request: Request, channels: Channels) -> Result<(), String> {
    let outlets = outlets(&request.metrics)?;
    let signals = take_signals()?;
    let clock = RunClock::start();
    let mut driver = Driver::new(request.interval);
    let tellers = Tellers::new(channels, request.patrol.clone(), clock.clone());
    let mut patrol = Patrol::new(request, clock, Some(tellers));
    if !outlets.is_empty() {
        let report: Report = Arc::new(|text: String| complain(&text));
        patrol.show(outlets.start(&report));
    }
    loop {
        wait(&signals, &driver, driver.due());
        if signals.next().is_some() || patrol.is_unheard() {
            break;
        }
        patrol.listen(driver.listen(false));
        patrol.settle();
    }
    drop(driver);
    patrol.finish();
    Ok(())
}

/// Ways to those who scrape. There is one patrol a machine, so an address that is taken is an
/// error; a directory may come later.
fn outlets(metrics: &Metrics) -> Result<Outlets, String> {
    let listener = metrics.listen.map(Listener::bind).transpose()?;
    let (outlets, problem) = Outlets::new(listener, metrics.textfile.as_deref(), FILE);
    if let Some(listener) = outlets.listener() {
        complain(&format!("metrics at http://{}/metrics", listener.address()));
    }
    if let Some(why) = problem {
        complain(&why);
    }
    Ok(outlets)
}

/// Looks for this long, tells nobody and writes nothing but the answer.
///
/// # Errors
/// Why there is nothing to look at.
pub fn look_once(mut request: Request, window: Duration) -> Result<Present, String> {
    let signals = take_signals()?;
    let clock = RunClock::start();
    let mut driver = Driver::new(request.interval);
    // What holds for all of the window is all that can be known.
    let quiet = window.saturating_sub(request.interval * 2);
    for name in ["idle_holding", "orphans", "unexplained_memory"] {
        let finding = request.judge.0.entry(name.to_owned()).or_default();
        finding.after = match finding.after {
            Limit::After(after) => Limit::After(after.min(quiet)),
            Limit::Auto => Limit::After(quiet),
        };
        finding.lasting = finding.lasting.map(|lasting| lasting.min(quiet));
    }
    request.root = None;
    let mut patrol = Patrol::new(request, clock, None);
    let begun = Instant::now();
    let mut first = None;
    loop {
        let until = first.map_or(begun + PATIENCE, |at: Instant| at + window);
        if Instant::now() >= until {
            break;
        }
        wait(&signals, &driver, driver.due().min(until));
        if signals.next().is_some() {
            return Err("interrupted before the look was over".to_owned());
        }
        for heard in driver.listen(true) {
            if let Heard::Trouble(why) = heard {
                return Err(why);
            }
            if matches!(heard, Heard::Tick(_)) {
                first.get_or_insert_with(Instant::now);
            }
            patrol.listen(vec![heard]);
        }
    }
    if first.is_none() {
        return Err("the NVIDIA driver doesn't answer: no readings".to_owned());
    }
    Ok(patrol.present().clone())
}

/// Signals that end a patrol come by a descriptor. Before there is any thread.
fn take_signals() -> Result<SignalFd, String> {
    let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
    let mask = ends.into_iter().fold(Mask::empty(), Mask::with);
    let blocked = ends.into_iter().fold(Mask::current(), Mask::with);
    blocked.set();
    keep_children_waitable();
    SignalFd::new(&mask).map_err(|e| format!("signals can't be taken: {e}"))
}

fn wait(signals: &SignalFd, driver: &Driver, until: Instant) {
    let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    fds.extend(driver.fd().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
    // Rounded up, or the last millisecond would be spent spinning.
    let left = until.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
    // Interrupted or not, everything is looked at again.
    let _ = poll(
        &mut fds,
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX),
    );
}
