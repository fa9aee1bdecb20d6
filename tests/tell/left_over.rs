//! What a run could not send is sent by the next one, whatever ended the first.

use std::collections::BTreeSet;

use super::harness::{Run, webhook};
use super::support::http_server::{Answer, Request, Server};
use super::support::{Job, Live, Sandbox, kill, wait_until};

/// Trains for ever.
const FOREVER: &str = "i=0; while :; do i=$((i+1)); echo step $i/100000 loss 9.0; sleep 0.1; done";
/// Trains until the rules have been found to hold.
const A_WHILE: &str = r#"i=0; until grep -q '"rule-4"' "$GPUWATCH_RUN_DIR/events.jsonl"; do
    i=$((i+1)); echo step $i/100000 loss 9.0; sleep 0.1; done"#;

/// What a server says whose alerts are kept, without the end of a run waiting for it.
fn much_later() -> Answer {
    Answer::with(429, "Retry-After", "999999")
}

/// A run whose rules all hold at once: three alarms go at once, the others wait to be gathered.
fn job(sandbox: &Sandbox, url: &str, script: &str) -> Job {
    let rules = (0..5).map(|i| {
        format!("- {{name: rule-{i}, when: progress.loss > {i}, for: 0s, severity: critical}}\n")
    });
    let profile = format!("rules:\n{}", rules.collect::<String>());
    std::fs::write(sandbox.path("p.yaml"), profile).unwrap();
    let options = [
        "--profile",
        "p.yaml",
        "--interval",
        "200ms",
        "--notify",
        url,
    ];
    sandbox.watched(&options, &["sh", "-c", script])
}

/// A run in which nothing happens, with the same channel by another name; of its end nobody is
/// told while it goes well.
fn quiet(sandbox: &Sandbox, url: &str) -> Job {
    let profile = format!(
        "tell: {{channels: {{hook: {{type: webhook, url: '{url}'}}}}, routes: [{{runs: failed, to: [hook]}}]}}\n"
    );
    std::fs::write(sandbox.path("quiet.yaml"), profile).unwrap();
    sandbox.watched(&["--profile", "quiet.yaml"], &["true"])
}

/// What is kept, a line each.
fn kept(sandbox: &Sandbox) -> Vec<String> {
    let listed = sandbox.gpuwatch(&["alert", "list"]).run().out();
    let kept = listed.lines().filter(|line| line.contains("notify-1: "));
    kept.map(str::to_owned).collect()
}

fn killed(mut live: Live) {
    kill(live.pid(), 9);
    live.wait();
}

/// What is said, in the order in which it arrived.
fn subjects(requests: &[Request]) -> Vec<String> {
    let said = |r: &Request| r.json()["type"].as_str().unwrap().to_owned();
    requests.iter().map(said).collect()
}

#[test]
fn a_run_that_is_killed_leaves_its_alarms_to_the_next_one() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[Answer::status(503)]);
    let url = server.url("/t0ken");
    let live = job(&sandbox, &url, FOREVER).start();
    // Two are held back to be gathered, and are kept all the same.
    wait_until("all are kept", || kept(&sandbox).len() == 4);
    server.wait_for(1);
    assert!(kept(&sandbox)[0].starts_with("on its way to notify-1: rule-0"));
    killed(live);
    wait_until("it is gone", || {
        kept(&sandbox)[0].starts_with("kept for notify-1: ")
    });
    server.answer(Answer::status(200));
    let before = server.requests();
    for _ in 0..2 {
        quiet(&sandbox, &url).run().assert_ok();
    }
    let after = server.requests().split_off(before.len());
    let subjects = subjects(&after);
    let expected = ["job.rule-0", "job.rule-1", "job.rule-2", "job.rule-3"];
    assert_eq!(subjects, expected, "once, and in order");
    assert_eq!(after[3].json()["data"]["others"][0]["name"], "rule-4");
    // Whoever got it although we heard of a failure can tell.
    assert_eq!(
        after[0].header("webhook-id"),
        before[0].header("webhook-id")
    );
    assert_eq!(kept(&sandbox), [""; 0]);
    let sent = sandbox.runs();
    let told = super::support::Record::all_in(&sent)
        .iter()
        .flat_map(|record| record.events_of("alert"))
        .filter(|event| event["about"].as_str().unwrap().starts_with("rule-0 of 2"))
        .count();
    assert_eq!(told, 1, "the record says whose alert it was");
}

#[test]
fn runs_at_once_send_each_alert_once() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[much_later()]);
    let url = server.url("/t0ken");
    let ended = job(&sandbox, &url, A_WHILE).run();
    ended.assert_ok();
    let about: Vec<String> = ended.own_lines();
    assert!(
        about.iter().any(|l| l.contains("alerts not sent")),
        "{about:?}"
    );
    let waiting = kept(&sandbox).len();
    assert_eq!(waiting, 5, "{:?}", kept(&sandbox));
    let before = server.requests().len();
    server.answer(Answer::status(200));
    let jobs: Vec<Live> = (0..6).map(|_| quiet(&sandbox, &url).start()).collect();
    let flush = sandbox
        .gpuwatch(&["alert", "flush", "--notify", &url])
        .run();
    assert_eq!(flush.code(), Some(0), "{}{}", flush.out(), flush.err());
    for live in jobs {
        live.end().assert_ok();
    }
    let after = server.requests().split_off(before);
    let ids: BTreeSet<_> = after.iter().map(|r| r.header("webhook-id")).collect();
    assert_eq!((after.len(), ids.len()), (5, 5), "{:?}", subjects(&after));
    assert_eq!(kept(&sandbox), [""; 0]);
}

#[test]
fn what_is_kept_goes_nowhere_else() {
    let sandbox = Sandbox::new();
    let one = Server::start(&[much_later()]);
    let other = Server::start(&[Answer::status(200)]);
    job(&sandbox, &one.url("/t0ken"), A_WHILE).run().assert_ok();
    // The same name, in another run.
    quiet(&sandbox, &other.url("/t0ken")).run().assert_ok();
    assert!(
        other.requests().is_empty(),
        "{:?}",
        subjects(&other.requests())
    );
    assert_eq!(kept(&sandbox).len(), 5);
}

#[test]
fn a_server_that_is_still_away_gets_one_try_and_no_program_is_delayed() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[much_later()]);
    let url = server.url("/t0ken");
    job(&sandbox, &url, A_WHILE).run().assert_ok();
    let before = server.requests().len();
    quiet(&sandbox, &url).run().assert_ok();
    assert_eq!(server.requests().len(), before + 1);
    assert_eq!(kept(&sandbox).len(), 5);
}

#[test]
fn a_server_that_comes_back_gets_what_was_given_up() {
    // It is asked again at once, until that is enough.
    let server = Server::start(&[Answer::with(503, "Retry-After", "0.01")]);
    let run = Run::with(vec![webhook(&server.url("/t0ken"))]);
    run.raise("stalled");
    assert_eq!(run.wait_for_fates(1), ["c0 stalled kept"]);
    server.answer(Answer::status(200));
    run.raise("oom");
    let fates = run.wait_for_fates(3);
    assert_eq!(fates, ["c0 stalled kept", "c0 oom sent", "c0 stalled sent"]);
    let end = run.end();
    assert_eq!((end.told.sent, end.told.kept), (2, 0));
    assert_eq!(end.told.problem(), None, "in the end all arrived");
    assert!(end.kept.is_empty());
    let requests = server.requests();
    let last = requests.len() - 1;
    assert_eq!(
        requests[last].header("webhook-id"),
        requests[0].header("webhook-id")
    );
}
