//! How long output is under way.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::{Job, Live, Sandbox, python};

/// What a relay may take at most; one that waits for something else takes longer.
pub const PROMPT: Duration = Duration::from_millis(200);

/// A command whose lines say when they were written: for about so many seconds, twenty a
/// second, and the last one just before its end.
pub fn clockwork(seconds: u32) -> [String; 3] {
    let code = format!(
        "
import time
for i in range({seconds} * 20):
    print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
    time.sleep(0.05)
print(time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
"
    );
    [python().into(), "-c".into(), code]
}

/// How promptly a run of `clockwork` passed.
#[derive(Debug)]
pub struct Delays {
    /// The longest that a line was under way.
    pub worst: Duration,
    /// From the command's last line to our own end.
    pub end: Duration,
}

/// Runs a `clockwork` command and looks at the clock for every line.
pub fn delays(job: &Job) -> Delays {
    let mut command = job.command();
    let (reader, writer) = std::io::pipe().unwrap();
    command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::null());
    let mut live = Live::apart(&mut command);
    drop(command); // and with it our copy of the pipe's writing end
    let mut worst = Duration::ZERO;
    let mut last = Duration::ZERO;
    for line in BufReader::new(reader).lines() {
        let now = now();
        last = Duration::from_nanos(line.unwrap().parse().unwrap());
        worst = worst.max(now.saturating_sub(last));
    }
    assert!(live.wait().success());
    Delays {
        worst,
        end: now().saturating_sub(last),
    }
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap().into()
}

/// Tries a few times, because a busy machine may be late once; what waits for something that
/// never comes is late every time.
pub fn assert_prompt(what: &str, ending: Duration, start: impl Fn(&Sandbox) -> Job) {
    let mut tries = Vec::new();
    for _ in 0..4 {
        let seen = delays(&start(&Sandbox::new()));
        if seen.worst < PROMPT && seen.end < ending {
            return;
        }
        tries.push(seen);
    }
    panic!("{what}: always late: {tries:?}");
}
