//! Silence that means nothing is nobody's alarm.

use super::support::http_server::{Answer, Server};
use super::support::{Job, Sandbox, Shell, Terminal, content, python};
use super::training::{Training, alarms, end, kinds, latest, notes, sampled_until};

/// Nothing but the end was told, and nothing but notes found.
fn assert_none(what: &str, sandbox: &Sandbox, server: &Server) {
    assert!(alarms(sandbox).is_empty(), "{what}: {:?}", alarms(sandbox));
    assert_eq!(kinds(server), ["run.finished -"], "{what}");
}

fn prompt(argv: &[&str], asks: &str, answer: &str) {
    let (sandbox, server) = (Sandbox::new(), Server::start(&[Answer::status(204)]));
    std::fs::write(sandbox.path("asked.py"), "print('up')\n").unwrap();
    let url = server.url("/x");
    let options = ["--stall-after", "5s", "--notify", &url];
    let job: Job = sandbox.watched(&options, argv);
    let mut terminal = Terminal::new(24, 80);
    let mut live = job.start_on(&mut terminal);
    terminal.wait_for(asks);
    let asked = latest(&sandbox);
    sampled_until(&sandbox, asked + 13.0);
    terminal.send(answer);
    let status = live.wait();
    assert_eq!(status.code(), Some(0), "{}", terminal.so_far());
    assert_none(asks, &sandbox, &server);
    assert_eq!(notes(&sandbox), ["waiting-for-input"], "{asks}");
}

#[test]
fn a_debuggers_prompt() {
    prompt(&[python(), "-m", "pdb", "asked.py"], "(Pdb) ", "q\n");
}

#[test]
fn a_question() {
    // Not a prompt that anybody knows: that the terminal is read tells.
    for (code, shown) in [
        ("input('Overwrite the checkpoint? [y/N] ')", "[y/N] "),
        ("input('What shall the run be called? ')", "called? "),
        (
            "import sys; print('name:', end=' ', flush=True); sys.stdin.readline()",
            "name: ",
        ),
    ] {
        prompt(&[python(), "-c", code], shown, "y\n");
    }
}

#[test]
fn a_suspended_job() {
    let server = Server::start(&[Answer::status(204)]);
    let training = Training::new("asleep");
    let url = server.url("/x");
    let job = training.job(&["--stall-after", "5s", "--notify", &url], 0);
    let live = job.start();
    let sandbox = &training.sandbox;
    super::support::wait_until("progress is seen", || {
        let rows = sandbox.samples_so_far();
        rows.iter().any(|r| !r["step"].is_empty())
    });
    let started = sandbox.record().events_of("started");
    let pid = i32::try_from(started[0]["pid"].as_i64().unwrap()).unwrap();
    super::support::kill(pid, libc::SIGSTOP);
    let stopped = latest(sandbox);
    sampled_until(sandbox, stopped + 12.0);
    super::support::kill(pid, libc::SIGCONT);
    let on = latest(sandbox);
    sampled_until(sandbox, on + 3.0);
    for word in ["hang", "on", "end"] {
        training.say(word);
    }
    end(live, 0);
    assert_none("suspended", sandbox, &server);
    assert_eq!(notes(sandbox), ["suspended"]);
}

#[test]
fn a_job_stopped_at_the_terminal() {
    let (sandbox, server) = (Sandbox::new(), Server::start(&[Answer::status(204)]));
    let count = "
import time
for i in range(1, 100000):
    print(f'step {i}/100000', flush=True)
    time.sleep(0.1)
";
    std::fs::write(sandbox.path("count.py"), count).unwrap();
    let mut shell = Shell::start(&sandbox);
    shell.line(&format!(
        "{} run -q --stall-after 5s --notify {} -- {} count.py",
        env!("CARGO_BIN_EXE_gpuwatch"),
        server.url("/x"),
        python()
    ));
    sampled_until(&sandbox, 3.0);
    shell.stop();
    // Nothing is sampled meanwhile, and nothing else would tell that time passes.
    shell.line("sleep 12; echo slept''long");
    shell.wait_for("sleptlong\r\n");
    shell.prompt();
    shell.line("fg");
    let on = latest(&sandbox);
    sampled_until(&sandbox, on + 3.0);
    shell.send("\x03");
    shell.prompt();
    assert_eq!(shell.status(), "130");
    assert!(shell.exit().success());
    assert!(alarms(&sandbox).is_empty(), "{:?}", alarms(&sandbox));
    let told = kinds(&server);
    assert!(told.iter().all(|kind| kind.starts_with("run.")), "{told:?}");
}

/// One core at work, not a word.
const BUSY: &str = r#"
import os
folder = os.getcwd()
with open("up", "w") as file:
    print("up", file=file)
while not os.path.exists("end") and os.path.isdir(folder):
    for _ in range(1_000_000):
        pass
"#;

#[test]
fn a_silent_phase_on_the_processor() {
    let (sandbox, server) = (Sandbox::new(), Server::start(&[Answer::status(204)]));
    let url = server.url("/x");
    let live = sandbox
        .watched(
            &["--stall-after", "5s", "--notify", &url],
            &[python(), "-c", BUSY],
        )
        .start();
    content(&sandbox.path("up"));
    sampled_until(&sandbox, 16.0);
    std::fs::write(sandbox.path("end"), "").unwrap();
    end(live, 0);
    assert_none("busy", &sandbox, &server);
    assert!(notes(&sandbox).is_empty(), "{:?}", notes(&sandbox));
}
