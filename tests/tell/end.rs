//! The end of a run waits five seconds at most, whatever the other side does.

use std::time::{Duration, Instant};

use gpuwatch::model::Channel;

use super::harness::{Run, ended, run_facts, settings, webhook};
use super::support::for_each;
use super::support::http_server::{Answer, Server, closed_url};

#[test]
fn whatever_the_server_does() {
    let silent = Server::start(&[Answer::Silence]);
    let dripping = Server::start(&[Answer::Drip]);
    let failing = Server::start(&[Answer::status(503)]);
    let urls = [
        closed_url(),
        silent.url("/t0ken"),
        dripping.url("/t0ken"),
        failing.url("/t0ken"),
        "http://nowhere.invalid/t0ken".to_owned(),
    ];
    for_each(&urls, |url| {
        let run = Run::with(vec![webhook(url)]);
        run.raise("stalled");
        run.tell(ended(1));
        let begun = Instant::now();
        let end = run.end();
        assert!(
            begun.elapsed() < Duration::from_millis(5500),
            "{:?}",
            end.took
        );
        assert_eq!(end.told.kept, 2, "{:?}", end.told);
        assert!(!end.told.late);
        assert_eq!(end.kept.len(), 2);
    });
}

#[test]
fn a_program_that_hangs_is_not_waited_for_and_not_run_twice() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ran");
    let script = format!("echo x >> {}; sleep 600", file.display());
    let run = Run::with(vec![Channel::Command {
        argv: ["sh", "-c", &script].map(str::to_owned).into(),
    }]);
    run.raise("stalled");
    super::support::content(&file);
    let end = run.end();
    assert!(end.took < Duration::from_millis(5500), "{:?}", end.took);
    assert_eq!(end.fates(), ["c0 stalled failed"]);
    assert!(end.kept.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
}

#[test]
fn without_a_channel_nothing_is_done_and_nothing_waited_for() {
    let run = Run::of(settings(Vec::new()), run_facts());
    run.raise("stalled");
    let end = run.end();
    assert!(end.took < Duration::from_millis(100));
    assert_eq!(end.told, gpuwatch::tell::Told::default());
}

#[test]
fn telling_never_waits() {
    let silent = Server::start(&[Answer::Silence]);
    let run = Run::with(vec![webhook(&silent.url("/t0ken"))]);
    let begun = Instant::now();
    for i in 0..100_000 {
        run.raise(&format!("rule-{}", i % 7));
    }
    assert!(begun.elapsed() < Duration::from_secs(10));
    let end = run.end();
    assert!(end.took < Duration::from_millis(5500), "{:?}", end.took);
}
