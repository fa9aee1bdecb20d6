//! What the command writes is what comes out: the same bytes in the same order, as soon as
//! they are written, however they are read.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use support::{Live, Sandbox, Terminal, alive, for_each, kill, prompt, python, wait_until};

/// Every byte value on stdout, every one in reverse on stderr, in pieces that split nothing
/// where it would be convenient.
const ALL_BYTES: &str = "
import os
every = bytes(range(256))
for i in range(0, 256, 7):
    os.write(1, every[i:i + 7])
for i in range(0, 256, 5):
    os.write(2, every[::-1][i:i + 5])
";

#[test]
fn all_bytes_pass_through_pipes() {
    let sandbox = Sandbox::new();
    let [direct, watched] = sandbox.both(&[python(), "-c", ALL_BYTES]);
    let (direct, watched) = (direct.run(), watched.run());
    assert_eq!(direct.out, (0..=255).collect::<Vec<u8>>());
    assert_eq!(direct.err, (0..=255).rev().collect::<Vec<u8>>());
    assert_eq!(watched.code(), Some(0));
    assert_eq!(watched.out, direct.out);
    assert_eq!(watched.err, direct.err);
    let log = sandbox.record().output();
    assert_eq!(log.len(), 512);
    let mut sorted = log;
    sorted.sort_unstable();
    let twice: Vec<u8> = (0..=255).flat_map(|b| [b, b]).collect();
    assert_eq!(sorted, twice, "the log has the bytes of both streams");
}

#[test]
fn all_bytes_pass_through_a_terminal() {
    let sandbox = Sandbox::new();
    let [direct, watched] = sandbox.both(&[python(), "-c", ALL_BYTES]);
    let (direct, watched) = (direct.run_on_terminal(), watched.run_on_terminal());
    assert_eq!(direct.out.len(), 514, "two line feeds became CR LF");
    assert_eq!(watched.code(), Some(0));
    assert_eq!(watched.out, direct.out);
    let written: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    assert_eq!(
        sandbox.record().output(),
        written,
        "the log has what was written"
    );
}

/// Where nobody would hear of what is seen, nothing stands between.
#[test]
fn a_run_that_nobody_hears_about_has_the_very_streams() {
    let sandbox = Sandbox::new();
    let show = "readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2; kill -TERM $$";
    let ends = |options: &[&str]| {
        let file = sandbox.path("out");
        let inner = sandbox.watched(options, &["sh", "-c", show]);
        let words = inner.under(&["sh", "-c", r#"exec "$0" "$@" >"$OUT" 2>&1 </dev/null"#]);
        let ended = words.env("OUT", &file).run();
        let said = std::fs::read_to_string(&file).unwrap();
        (ended.signal(), said, file.to_str().unwrap().to_owned())
    };
    let (signal, said, file) = ends(&["-q", "--no-record", "--gpus", "none"]);
    assert_eq!(said, format!("/dev/null\n{file}\n{file}\n"));
    assert_eq!(signal, Some(libc::SIGTERM));
    let (signal, said, _) = ends(&["-q", "--gpus", "none"]);
    assert!(said.contains("pipe:"), "a record holds the output: {said}");
    assert_eq!(signal, Some(libc::SIGTERM));
}

#[test]
fn each_stream_alone_may_be_a_terminal() {
    let show = "for fd in 0 1 2; do test -t $fd && echo \"$fd tty\" >> kinds || echo \"$fd no\" >> kinds; done; \
                echo out; echo err >&2";
    let variants = [
        "",
        " >file",
        " 2>file",
        " </dev/null",
        " | cat",
        " 2>&1 | cat",
        " >file 2>&1",
    ];
    for_each(&variants, |redirect| {
        let look = |watched: bool| {
            let sandbox = Sandbox::new();
            let prefix = if watched {
                format!("{} run -q -- ", env!("CARGO_BIN_EXE_gpuwatch"))
            } else {
                String::new()
            };
            let line = format!("{prefix}sh -c '{show}'{redirect}");
            let ended = sandbox.direct(&["sh", "-c", &line]).run_on_terminal();
            let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap_or_default();
            let mut shown: Vec<_> = ended.out().lines().map(str::to_owned).collect();
            shown.sort();
            (shown, read("kinds"), read("file"))
        };
        let direct = look(false);
        assert!(direct.1.contains("tty"), "{redirect}: {direct:?}");
        assert_eq!(look(true), direct, "with {redirect:?}");
    });
}

#[test]
fn one_stream_for_both_keeps_their_order() {
    let sandbox = Sandbox::new();
    let alternate = "i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let lines = (0..300).map(|i| format!("out {i}\nerr {i}\n"));
    let wanted = lines.collect::<Vec<_>>().concat();
    for job in sandbox.both(&["sh", "-c", alternate]) {
        let ended = job.under(&["sh", "-c", "exec \"$@\" 2>&1", "sh"]).run();
        assert_eq!(ended.out(), wanted);
        assert_eq!(ended.err(), "");
    }
    for job in sandbox.both(&["sh", "-c", alternate]) {
        let ended = job.run_on_terminal();
        assert_eq!(ended.assert_ok().out(), wanted.replace('\n', "\r\n"));
    }
    // A log that is appended to: `>> log 2>&1` in a job script.
    for job in sandbox.both(&["sh", "-c", alternate]) {
        let log = sandbox.path("log");
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .unwrap();
        let mut command = job.command();
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        assert!(Live::apart(&mut command).wait().success());
        assert_eq!(std::fs::read_to_string(&log).unwrap(), wanted);
        std::fs::remove_file(&log).unwrap();
    }
}

#[test]
fn an_unfinished_line_is_shown_at_once() {
    let ask = "printf 'Go? '; read answer; printf 'then %s' \"$answer\"";
    let sandbox = Sandbox::new();
    for job in sandbox.both(&["sh", "-c", ask]) {
        let mut live = job.start();
        live.wait_for_out("Go? ");
        live.send("on\n");
        assert_eq!(live.end().out(), "Go? then on");
    }
    for job in sandbox.both(&["sh", "-c", ask]) {
        let mut terminal = Terminal::new(24, 80);
        let mut live = job.start_on(&mut terminal);
        terminal.wait_for("Go? ");
        terminal.send("on\n");
        terminal.wait_for("then on");
        assert!(live.wait().success());
    }
}

#[test]
fn output_is_prompt() {
    let end = Duration::from_secs(2);
    prompt::assert_prompt("in a pipe", end, |sandbox| {
        sandbox.watched(&["-q"], &prompt::clockwork(1))
    });
}

#[test]
fn a_reader_that_leaves_ends_the_command() {
    // `yes | head -1`: the shell's PIPESTATUS tells what yes died of.
    let sandbox = Sandbox::new();
    let line = "\"$@\" | head -n 1; echo \"status ${PIPESTATUS[0]}\"";
    for job in sandbox.both(&["yes"]) {
        let ended = job.under(&["bash", "-c", line, "bash"]).run();
        assert_eq!(ended.out(), "y\nstatus 141\n");
        assert_eq!(ended.err(), "", "not a word about it");
    }
    let run = sandbox.record().json();
    assert_eq!(run["exit"]["signal"], libc::SIGPIPE);
    assert_eq!(run["state"], "finished");
}

#[test]
fn a_closed_stdout_changes_nothing() {
    let sandbox = Sandbox::new();
    for closing in [
        ">&-",
        ">&- 2>&-",
        "<&-",
        "<&- >&- 2>&-",
        ">/dev/null",
        ">/dev/full",
    ] {
        for job in sandbox.both(&["sh", "-c", "exit 6"]) {
            let line = format!("exec \"$@\" {closing}");
            let ended = job.under(&["sh", "-c", &line, "sh"]).run();
            assert_eq!(ended.code(), Some(6), "{closing}: {}", ended.err());
        }
    }
    // One that writes finds out as it would direct: dash fails on a closed or full stdout.
    for (closing, code) in [(">&-", 2), (">/dev/null", 0)] {
        for job in sandbox.both(&["sh", "-c", "echo x || exit 2"]) {
            let line = format!("exec \"$@\" {closing}");
            let ended = job.under(&["sh", "-c", &line, "sh"]).run();
            assert_eq!(ended.code(), Some(code), "{closing}: {}", ended.err());
        }
    }
}

#[test]
fn files_are_written_to_where_the_caller_stood() {
    let sandbox = Sandbox::new();
    for job in sandbox.both(&["sh", "-c", "echo middle; echo wrong >&2"]) {
        let line = "{ echo first; \"$@\"; echo last; } > log 2> errors";
        job.under(&["sh", "-c", line, "sh"]).run().assert_ok();
        let read = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap();
        assert_eq!(read("log"), "first\nmiddle\nlast\n");
        assert_eq!(read("errors"), "wrong\n");
    }
    // Another writer appends meanwhile: nothing of it may be overwritten.
    for job in sandbox.both(&["sh", "-c", "echo one; echo theirs >> shared; echo two"]) {
        job.under(&["sh", "-c", "\"$@\" >> shared", "sh"])
            .run()
            .assert_ok();
        let text = std::fs::read_to_string(sandbox.path("shared")).unwrap();
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["one", "theirs", "two"]);
        std::fs::remove_file(sandbox.path("shared")).unwrap();
    }
}

#[test]
fn a_slow_reader_holds_the_command_back_as_it_would_direct() {
    // The command notes how much it has written; nobody reads until it is stuck.
    let pour = "
import os, sys
for i in range(1024):
    os.write(1, bytes([i % 251]) * 65536)
    os.pwrite(3, b'%08d' % (i + 1), 0)
";
    let sandbox = Sandbox::new();
    let wanted: Vec<u8> = (0..1024_u32)
        .flat_map(|i| vec![(i % 251) as u8; 65536])
        .collect();
    for job in sandbox.both(&[python(), "-c", pour]) {
        let count = sandbox.path("count");
        std::fs::write(&count, "00000000").unwrap();
        let job = job.under(&["sh", "-c", "exec \"$@\" 3<>count", "sh"]);
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = job.command();
        command
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::null());
        let mut live = Live::apart(&mut command);
        drop(command);
        let written = || {
            std::fs::read_to_string(&count)
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        let (mut last, mut since) = (0, Instant::now());
        wait_until("the command is stuck", || {
            let now = written();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            now > 0 && since.elapsed() > Duration::from_secs(1)
        });
        assert!(last * 65536 < 4 << 20, "{last} blocks went into nowhere");
        let memory = resident_kib(live.pid());
        assert!(memory < 100 * 1024, "{memory} KiB held");
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        assert!(all == wanted, "{} bytes came", all.len());
        assert!(live.wait().success());
    }
}

fn resident_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_leftover_that_holds_the_pipe_delays_the_end_a_little() {
    let sandbox = Sandbox::new();
    let leave = "sleep 300 & echo hi; echo $! > pid; exit 3";
    let start = Instant::now();
    let ended = sandbox.watched(&[], &["sh", "-c", leave]).run();
    let took = start.elapsed();
    let pid: i32 = support::content(&sandbox.path("pid")).parse().unwrap();
    let survived = alive(pid);
    kill(pid, libc::SIGTERM);
    assert!(survived, "what is left over is reported, not killed");
    assert_eq!(ended.code(), Some(3));
    assert_eq!(ended.out(), "hi\n");
    assert!(
        took < Duration::from_secs(20),
        "it took {took:?}, about 2 s are meant"
    );
    assert!(
        ended.err().contains(&pid.to_string()),
        "it is named: {}",
        ended.err()
    );
}

#[test]
fn what_a_leftover_still_writes_is_delivered() {
    let sandbox = Sandbox::new();
    let leave = "(sleep 0.3; echo late) & echo early";
    for job in sandbox.both(&["sh", "-c", leave]) {
        assert_eq!(job.run().out(), "early\nlate\n");
    }
    assert_eq!(sandbox.record().output(), b"early\nlate\n");
}

#[test]
fn a_terminal_is_read_to_the_end() {
    // Stopping at the command's exit loses the tail now and then: many runs, under load.
    let sandbox = Sandbox::new();
    let lines = (1..=20000).map(|i| format!("{i}\r\n"));
    let whole = lines.collect::<Vec<_>>().concat();
    let _load = [Live::busy(), Live::busy()];
    let runs: Vec<u32> = (0..200).collect();
    for_each(&runs, |run| {
        let options = ["-q", "--no-record"];
        let ended = sandbox
            .watched(&options, &["seq", "1", "20000"])
            .run_on_terminal();
        assert_eq!(ended.code(), Some(0));
        assert!(
            ended.out() == whole,
            "run {run}: {} of {} bytes",
            ended.out.len(),
            whole.len()
        );
    });
}

#[test]
fn much_output_passes_whole_and_so_does_its_log() {
    let sandbox = Sandbox::new();
    let count = "seq 1 2000000"; // 14.9 MB: less than the log keeps
    let direct = sandbox.direct(&["sh", "-c", count]).run();
    let watched = sandbox.watched(&["-q"], &["sh", "-c", count]).run();
    assert!(
        watched.out == direct.out,
        "{} of {}",
        watched.out.len(),
        direct.out.len()
    );
    // Bytes may be lost to the log where the machine is too slow for it, but never silently:
    // a marker stands in their place and counts them.
    let log = String::from_utf8(sandbox.record().output()).unwrap();
    let (mut kept, mut counted) = (String::new(), 0);
    for line in log.split_inclusive('\n') {
        let number = line.strip_prefix("[gpuwatch: ");
        match number.and_then(|l| l.strip_suffix(" bytes left out here]\n")) {
            Some(number) => counted += number.parse::<usize>().unwrap() - 1,
            None => kept.push_str(line),
        }
    }
    assert_eq!(
        kept.len() + counted,
        direct.out.len(),
        "kept, and counted as left out"
    );
    assert!(counted > 0 || kept == direct.out());
}

#[test]
fn stdin_is_the_callers_own() {
    let sandbox = Sandbox::new();
    let text = sandbox.path("text");
    std::fs::write(&text, "one\ntwo\nthree\n").unwrap();
    for job in sandbox.both(&["sh", "-c", "read first; echo got $first"]) {
        // What the command doesn't read is left for whoever comes next.
        let job = job.under(&["sh", "-c", "{ \"$@\"; cat; } < text", "sh"]);
        assert_eq!(job.run().out(), "got one\ntwo\nthree\n");
    }
    let mut command = sandbox.watched(&["-q"], &["cat"]).command();
    command
        .stdin(File::open(&text).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let out = command.output().unwrap();
    assert_eq!(out.stdout, b"one\ntwo\nthree\n");
}

#[test]
fn others_that_write_without_a_pause_hold_up_the_end_for_a_moment_only() {
    let sandbox = Sandbox::new();
    // A reader that is slower than they are never finds nothing to read.
    let script = "yes & echo $! > yes.pid; exit 3";
    let mut command = sandbox.watched(&["-q"], &["sh", "-c", script]).command();
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.stdout(writer);
    let mut live = Live::apart(&mut command);
    drop(command);
    let reading = std::thread::spawn(move || {
        let mut chunk = [0; 16 * 1024];
        while std::io::Read::read(&mut reader, &mut chunk).is_ok_and(|n| n > 0) {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    assert_eq!(live.wait().code(), Some(3));
    reading.join().unwrap();
}

#[test]
fn output_that_cannot_be_written_is_not_lost_in_silence() {
    // The command has ended well before anybody could tell it.
    let sandbox = Sandbox::new();
    let script = "\"$@\" > /dev/full";
    let job = sandbox.watched(&[], &["echo", "hi"]);
    let ended = job.under(&["sh", "-c", script, "sh"]).run();
    let said = ended.own_lines().join("\n");
    assert!(said.contains("stdout is cut off"), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

/// Its last write had succeeded, and nobody else knows that it came to nothing.
#[test]
fn output_that_is_lost_is_said_even_where_nothing_else_is() {
    let sandbox = Sandbox::new();
    let job = sandbox.watched(&["-q", "--gpus", "none"], &["echo", "lost"]);
    let ended = job
        .under(&["sh", "-c", "exec \"$@\" >/dev/full", "sh"])
        .run();
    assert_eq!(ended.code(), Some(0));
    assert!(
        ended
            .err()
            .starts_with("gpuwatch: the command's stdout is cut off"),
        "{}",
        ended.err()
    );
    assert_eq!(ended.err().lines().count(), 1);
}
