//! Where a person reads of an end: the summary, `show`, the report, an alert.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::support::http_server::{Answer, Server};
use super::support::{Ended, Live, Sandbox, Terminal, kill, python, wait_until};

/// Prints what a training prints that fails over an address with a password in it.
const FAILS: &str = r#"
import sys

print("step 1/10 loss 2.0", flush=True)
def load(url):
    raise ValueError("can't read " + url + " as an image")
load("https://ana:hunter2@data.example/1.jpg?token=hunter2")
"#;

fn verdict(sandbox: &Sandbox) -> Value {
    sandbox.record().json()["verdict"].clone()
}

fn ask(sandbox: &Sandbox, words: &[&str]) -> String {
    let ended: Ended = sandbox.gpuwatch(words).run();
    ended.assert_ok().out()
}

#[test]
fn the_line_and_what_stands_around_it_are_quoted_without_secrets() {
    let server = Server::start(&[Answer::status(204)]);
    let sandbox = Sandbox::new();
    let url = server.url("/x");
    let job = sandbox.watched(&["--notify", &url], &[python(), "-c", FAILS]);
    let ended = job.run();
    assert_eq!(ended.code(), Some(1));
    let said = ended.own_lines().join("\n");
    let line = "ValueError: can't read https://ana:***@data.example/1.jpg?token=*** as an image";
    assert!(said.contains("cause: traceback; "), "{said}");
    assert!(said.contains(&format!("line: {line}")), "{said}");

    let verdict = verdict(&sandbox);
    assert_eq!(
        (&verdict["line"], &verdict["rank"]),
        (&json!(line), &Value::Null)
    );
    let around: Vec<&str> = verdict["around"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l.as_str().unwrap())
        .collect();
    assert!((3..=13).contains(&around.len()), "{around:?}");
    assert_eq!(around.first(), Some(&"Traceback (most recent call last):"));
    assert_eq!(around.last(), Some(&line));

    let shown = ask(&sandbox, &["show"]);
    assert!(shown.contains(&format!("line       {line}\n")), "{shown}");
    assert!(shown.contains("output     Traceback (most"), "{shown}");
    let page = sandbox.arg("page.html");
    ask(&sandbox, &["report", "last", "-o", &page]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("<pre>Traceback (most recent call last):\n"),
        "{page}"
    );

    let data = server.wait_for(1)[0].json()["data"].clone();
    assert_eq!(
        (&data["cause"], &data["line"]),
        (&json!("traceback"), &json!(line))
    );
    // What stands around it stays here.
    assert!(!data.to_string().contains("most recent call"), "{data}");
    for text in [said, verdict.to_string(), shown, data.to_string()] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn the_last_lines_tell_of_an_end_of_which_nothing_else_is_known() {
    let sandbox = Sandbox::new();
    let script = r"printf '\033[31mstep 1\033[0m\n 5%%\r 6%%\r 7%%\nno more data\n'; exit 4";
    let ended = sandbox.watched(&[], &["sh", "-c", script]).run();
    assert_eq!(ended.code(), Some(4));
    let found = verdict(&sandbox);
    assert_eq!(found["around"], json!(["step 1", " 7%", "no more data"]));
    assert_eq!((&found["cause"], found.get("line")), (&Value::Null, None));
    // Nobody asks why a run ended well.
    let sandbox = Sandbox::new();
    sandbox.watched(&[], &["echo", "done"]).run().assert_ok();
    let found = verdict(&sandbox);
    assert_eq!(
        found,
        json!({"outcome": "ok", "cause": null, "advice": null})
    );
}

/// Waits for the command to be there and to be recorded.
fn started(sandbox: &Sandbox, live: &Live) -> i32 {
    live.wait_for_out("ready");
    let mut pid = None;
    wait_until("the command's PID is recorded", || {
        pid = sandbox.record().json()["pid"].as_i64();
        pid.is_some()
    });
    i32::try_from(pid.unwrap()).unwrap()
}

const WAITS: [&str; 3] = ["sh", "-c", "echo ready; sleep 600; :"];

#[test]
fn whoever_ended_it_is_named() {
    let advice = |sandbox: &Sandbox| {
        let verdict = verdict(sandbox);
        assert_eq!(verdict["cause"], Value::Null, "{verdict}");
        let advice = verdict["advice"].as_str();
        advice.unwrap_or_else(|| panic!("{verdict}")).to_owned()
    };
    // A process that is still there when it is looked at.
    let sandbox = Sandbox::new();
    let live = sandbox.watched(&[], &WAITS).start();
    started(&sandbox, &live);
    let pid = live.pid().to_string();
    let script = "kill -TERM $0; echo sent; read x";
    let sender = sandbox.direct(&["sh", "-c", script, &pid]).start();
    sender.wait_for_out("sent");
    let ended = live.end();
    let said = advice(&sandbox);
    assert_eq!(said, format!("sh (PID {}) sent SIGTERM.", sender.pid()));
    assert!(ended.err().contains(&said), "{}", ended.err());
    sender.end();
    let signal = &sandbox.record().events_of("signal")[0];
    assert_eq!(
        (&signal["name"], &signal["sender"]),
        (&json!("TERM"), &json!("sh"))
    );

    // A key.
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::new(24, 80);
    let mut live = sandbox.watched(&[], &WAITS).start_on(&mut terminal);
    terminal.wait_for("ready");
    terminal.send("\x03");
    live.wait();
    assert_eq!(advice(&sandbox), "It was stopped at the terminal (Ctrl-C).");

    // The command itself, past us.
    for (signal, words) in [(9, "Somebody's SIGKILL"), (15, "not through gpuwatch")] {
        let sandbox = Sandbox::new();
        let live = sandbox.watched(&[], &WAITS).start();
        kill(started(&sandbox, &live), signal);
        live.end();
        let said = advice(&sandbox);
        assert!(said.contains(words), "{said}");
    }
    let sandbox = Sandbox::new();
    sandbox.watched(&["--time-limit", "300ms"], &WAITS).run();
    assert!(advice(&sandbox).contains("--time-limit"));
}

/// A control group with a limit of memory, where one can be made.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let name = format!("gpuwatch-test-{}", std::process::id());
        let places = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        places.into_iter().find_map(|(place, limit)| {
            let group = Self(Path::new(place).join(&name));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join(limit), "200M").ok()?;
            // Without it the job swaps before it is killed.
            let _ = std::fs::write(group.0.join("memory.swap.max"), "0");
            Some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        wait_until("the group is empty", || {
            std::fs::remove_dir(&self.0).is_ok() || !self.0.exists()
        });
    }
}

#[test]
fn the_kernel_is_named_where_it_killed_for_memory() {
    let Some(group) = Group::new() else {
        eprintln!("not tried: no control group can be made here");
        return;
    };
    let eats = "import time\nheld = []\nwhile True:\n    held.append(bytearray(10 << 20))\n    time.sleep(0.02)";
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
    for shell in [false, true] {
        let sandbox = Sandbox::new();
        let code = "\"$@\"; exit $?";
        let wrapped = ["sh", "-c", code, "sh", python(), "-c", eats];
        let argv = if shell { &wrapped[..] } else { &wrapped[4..] };
        let job = sandbox.watched(&["--interval", "100ms"], argv);
        let ended = job.under(&["sh", "-c", &enter, "sh"]).run();
        let found = verdict(&sandbox);
        assert_eq!(found["cause"], "host-oom", "{found}: {}", ended.err());
        let outcome = if shell { "failed" } else { "killed" };
        assert_eq!(found["outcome"], outcome);
    }
}
