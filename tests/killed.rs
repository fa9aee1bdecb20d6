//! SIGKILL of gpuwatch, which nobody can catch: the command's fate is the same every time, and
//! the record can be read.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

use support::{Record, Sandbox, Terminal, content, for_each, kill, marked, wait_until};

/// Prints without a pause and writes down what ends it.
const PRINTS: &str = "
for n in HUP INT PIPE TERM; do trap \"echo $n >> $1\" $n; done
echo up >> $1
while [ \"$(wc -l < $1)\" = 1 ] && echo 'a line, and another one, and so on'; do :; done
[ \"$(wc -l < $1)\" != 1 ] || echo 'could not write' >> $1
";

/// A shell between the terminal and gpuwatch, as there always is: it leads the session, and
/// its end would hang up the terminal.
const SHELL: &str = "sh -c 'echo $$ > \"$PID_FILE\"; exec \"$@\"' sh \"$@\"; read end";

/// How `ps` calls what stands beside gpuwatch.
const HELPER: &str = "nvml-sentinel";

struct Killing {
    number: usize,
    on_a_terminal: bool,
    /// Since the command's first line, or since the start.
    since_up: bool,
    after: Duration,
}

impl Killing {
    /// Waits for its moment. The moment itself is what is tried: nothing else is waited for.
    fn wait(&self, log: &str) {
        if self.since_up {
            content(Path::new(log));
        }
        std::thread::sleep(self.after);
    }
}

/// What the command wrote down, once it is over; empty if it never came to that.
fn kill_at(sandbox: &Sandbox, mark: &str, killing: &Killing) -> Vec<String> {
    let log = sandbox.arg(&format!("log{:03}", killing.number));
    let pid_file = sandbox.path(&format!("pid{}", killing.number));
    let argv = ["sh", "-c", PRINTS, "sh", &log];
    let options = ["-q", "--interval", "100ms"];
    let job = sandbox
        .watched(&options, &argv)
        .env("TEST_MARK", mark)
        .env("PID_FILE", &pid_file)
        .under(&["env", &format!("TEST_LOG={log}")]);
    if killing.on_a_terminal {
        let mut terminal = Terminal::new(24, 80);
        let mut live = job
            .under(&["sh", "-c", SHELL, "sh"])
            .start_on(&mut terminal);
        let pid = content(&pid_file).parse().unwrap();
        killing.wait(&log);
        kill(pid, libc::SIGKILL);
        fate_in(&log, || {
            terminal.send("\n");
            live.wait();
        })
    } else {
        let live = job.start();
        killing.wait(&log);
        live.signal(libc::SIGKILL);
        fate_in(&log, || {
            live.end();
        })
    }
}

fn fate_in(log: &str, end: impl FnOnce()) -> Vec<String> {
    let read = || std::fs::read_to_string(log).unwrap_or_default();
    // But for the helper, which stays a second longer.
    let helper = |pid: &i32| {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|comm| comm.trim() == HELPER)
    };
    let ours = format!("TEST_LOG={log}");
    wait_until("the command is over", || marked(&ours).iter().all(helper));
    end();
    read().lines().map(str::to_owned).collect()
}

/// Every whole line can be read; the last may be torn.
fn assert_readable(record: &Record) {
    let whole = |name: &str| -> Vec<String> {
        let text = std::fs::read_to_string(record.folder.join(name)).unwrap_or_default();
        let lines = text.split_inclusive('\n').filter(|l| l.ends_with('\n'));
        lines.map(str::to_owned).collect()
    };
    for line in whole("events.jsonl") {
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(event["kind"].is_string(), "{line}");
    }
    let rows = whole("samples.csv");
    let cells = |line: &String| line.split(',').count();
    for row in &rows {
        assert_eq!(cells(row), cells(&rows[0]), "{row}");
    }
}

#[test]
fn killed_a_hundred_times_the_command_gets_its_term_and_the_run_is_lost() {
    let sandbox = Sandbox::new();
    let mark = sandbox.arg("mark");
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let killings: Vec<Killing> = (0..100)
        .map(|number| Killing {
            number,
            on_a_terminal: number % 2 == 1,
            since_up: number % 4 >= 2,
            after: Duration::from_micros(random.random_range(0..400_000)),
        })
        .collect();
    let fates = std::sync::Mutex::new(BTreeMap::<String, usize>::new());
    for_each(&killings, |killing| {
        let mut fate = kill_at(&sandbox, &mark, killing);
        // The kernel may send it again for each of our threads that it takes down.
        fate.dedup();
        *fates.lock().unwrap().entry(fate.join("+")).or_default() += 1;
    });
    wait_until("nobody is left", || marked(&mark).is_empty());
    let fates = fates.into_inner().unwrap();
    println!("fates: {fates:?}");
    let early = fates.get("").copied().unwrap_or_default();
    let told = fates.get("up+TERM").copied().unwrap_or_default();
    assert_eq!(early + told, 100, "{fates:?}");
    let up = killings.iter().filter(|killing| killing.since_up).count();
    assert!(told >= up, "{fates:?}");

    let shown = sandbox.gpuwatch(&["runs", "--json"]).run();
    let runs: serde_json::Value = serde_json::from_slice(&shown.assert_ok().out).unwrap();
    let runs = runs["runs"].as_array().unwrap();
    assert!(runs.len() >= told, "{} runs, {told} commands", runs.len());
    for run in runs {
        assert_eq!(run["state"], "lost", "{run}");
    }
    let records = Record::all_in(&sandbox.runs());
    for_each(&records, |record| {
        assert_readable(record);
        if record.folder.join("run.json").exists() {
            let folder = record.folder.to_str().unwrap();
            let shown = sandbox.gpuwatch(&["show", folder, "--json"]).run();
            let run: serde_json::Value = serde_json::from_slice(&shown.assert_ok().out).unwrap();
            assert_eq!(run["state"], "lost", "{run}");
        }
    });
}
