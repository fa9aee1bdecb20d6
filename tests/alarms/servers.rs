//! A webhook that misbehaves changes nothing for the job, and no secret goes astray.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use super::support::http_server::{Answer, Server, closed_url};
use super::support::{Ended, files_below, for_each, wait_until};
use super::training::{Training, alert};

/// A word in the address on the command line, and one in the address in a file.
const TOKENS: [&str; 2] = ["t0ken-by-flag", "t0ken-by-file"];

/// A job that stalls, goes on and fails with 7; how long our end took after the job's.
fn run(training: &Training, options: &[&str]) -> (Ended, Duration) {
    let options = [&["--stall-after", "3s"], options].concat();
    let live = training.job(&options, 7).start();
    training.hang();
    wait_until("the stall is found", || {
        training
            .sandbox
            .so_far("events.jsonl")
            .contains(r#""kind":"action""#)
    });
    training.go_on();
    let steps = training.sandbox.samples_so_far().len();
    wait_until("it goes on", || {
        training.sandbox.samples_so_far().len() > steps + 3
    });
    training.say("end");
    live.wait_for_out("over");
    let since = Instant::now();
    let mut live = live;
    live.wait();
    let took = since.elapsed();
    (live.end(), took)
}

/// No file below the test's folder but the user's own, and no word of ours, holds a token.
fn assert_no_token(what: &str, training: &Training, ended: &Ended) {
    let folder = training.sandbox.path("");
    let top = folder.parent().unwrap();
    let kept = files_below(top);
    let names: Vec<_> = kept
        .iter()
        .filter_map(|f| f.file_name()?.to_str())
        .collect();
    for name in ["output.log", "run.json", "events.jsonl", "samples.csv"] {
        assert!(names.contains(&name), "{what}: {names:?}");
    }
    let evidence = |f: &std::path::PathBuf| f.parent().is_some_and(|p| p.ends_with("evidence"));
    assert!(kept.iter().any(evidence), "{what}: {names:?}");
    for token in TOKENS {
        let in_bytes = |bytes: &[u8]| memchr::memmem::find(bytes, token.as_bytes()).is_some();
        assert!(!in_bytes(&ended.out), "{what}: {}", ended.out());
        assert!(!in_bytes(&ended.err), "{what}: {}", ended.err());
        for file in kept.iter().filter(|f| !f.ends_with("hook-address")) {
            let bytes = std::fs::read(file).unwrap();
            assert!(!in_bytes(&bytes), "{what}: {token} in {}", file.display());
        }
    }
}

fn secret_file(training: &Training, url: &str) -> String {
    let path = training.sandbox.path("hook-address");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .unwrap();
    writeln!(file, "{url}").unwrap();
    format!("file:{}", path.display())
}

#[test]
fn a_server_that_misbehaves_delays_no_end_and_learns_no_secret() {
    let plain = Training::new("asleep");
    let (ended, usual) = run(&plain, &[]);
    assert_eq!(ended.code(), Some(7), "{}", ended.err());
    let closed = closed_url();
    let closed = closed.trim_end_matches("/hook/t0ken").to_owned();
    let cases = [
        ("closed", None),
        ("silent", Some(Answer::Silence)),
        ("slow", Some(Answer::Drip)),
        ("429", Some(Answer::with(429, "retry-after", "2"))),
        (
            "301",
            Some(Answer::with(301, "location", "http://127.0.0.1:1/")),
        ),
        ("500", Some(Answer::status(500))),
    ];
    for_each(&cases, |(what, answer)| {
        let server = answer
            .as_ref()
            .map(|a| Server::start(std::slice::from_ref(a)));
        let url = |token: &str| match &server {
            Some(server) => server.url(&format!("/hook/{token}")),
            None => format!("{closed}/hook/{token}"),
        };
        let training = Training::new("asleep");
        let by_file = secret_file(&training, &url(TOKENS[1]));
        let by_flag = url(TOKENS[0]);
        let (ended, took) = run(&training, &["--notify", &by_flag, "--notify", &by_file]);
        assert_eq!(ended.code(), Some(7), "{what}: {}", ended.err());
        let late = took.saturating_sub(usual);
        assert!(late <= Duration::from_millis(5500), "{what}: {late:?} late");
        let own = ended.own_lines();
        let about = own.iter().filter(|l| l.contains("alert")).count();
        assert_eq!(about, 1, "{what}: {own:?}");
        assert_no_token(what, &training, &ended);
        let requests: Vec<_> = server.iter().flat_map(Server::requests).collect();
        assert_eq!(requests.is_empty(), server.is_none(), "{what}");
        for request in requests {
            let leaks = TOKENS.iter().any(|t| request.body.contains(t));
            assert!(!leaks, "{what}: {}", request.body);
        }
    });
}

#[test]
fn a_server_that_asks_for_two_seconds_gets_them() {
    let busy = Answer::with(429, "retry-after", "2");
    let server = Server::start(&[busy, Answer::status(204)]);
    let training = Training::new("asleep");
    let url = server.url(&format!("/hook/{}", TOKENS[0]));
    let (ended, _) = run(&training, &["--notify", &url]);
    assert_eq!(ended.code(), Some(7), "{}", ended.err());
    alert(&server, "job.stalled", "cleared");
    let requests = server.requests();
    let again = requests[1].at.saturating_duration_since(requests[0].at);
    assert!(again >= Duration::from_millis(1900), "{again:?}");
    assert_eq!(requests[0].body, requests[1].body, "the same is said again");
    let own = ended.own_lines();
    assert!(own.iter().all(|l| !l.contains("not sent")), "{own:?}");
    assert_no_token("429 once", &training, &ended);
}
