//! Redirects: which are followed, and what goes along.

use std::collections::BTreeMap;

use super::harness::{Run, secret, webhook_with};
use super::support::http_server::{Answer, Server};

fn channel(url: &str) -> gpuwatch::model::Channel {
    webhook_with(url, |hook| {
        hook.headers = BTreeMap::from([("Authorization".into(), secret("Bearer t0ken"))]);
    })
}

#[test]
fn one_that_would_lose_the_body_is_a_failure() {
    for code in [301, 302, 303] {
        let target = Server::start(&[Answer::status(200)]);
        let server = Server::start(&[Answer::with(code, "Location", target.url("/"))]);
        let run = Run::with(vec![channel(&server.url("/t0ken"))]);
        run.raise("stalled");
        assert_eq!(run.wait_for_fates(1), ["c0 stalled failed"]);
        let why = run.whys().remove(0);
        assert!(
            why.contains(&code.to_string()) && why.contains("127.0.0.1/***"),
            "{why}"
        );
        assert!(target.requests().is_empty());
        assert_eq!(server.requests().len(), 1);
        run.end();
    }
}

#[test]
fn one_that_keeps_it_is_followed_and_secrets_stay_with_their_host() {
    for code in [307, 308] {
        let target = Server::start(&[Answer::status(200)]);
        let server = Server::start(&[
            Answer::with(code, "Location", "/elsewhere"),
            Answer::with(code, "Location", target.url("/abroad")),
        ]);
        let run = Run::with(vec![channel(&server.url("/t0ken"))]);
        run.raise("stalled");
        assert_eq!(run.wait_for_fates(1), ["c0 stalled sent"]);
        run.end();
        let (here, there) = (server.requests(), target.requests());
        assert_eq!(here[1].path, "/elsewhere");
        assert_eq!(here[1].header("authorization"), "Bearer t0ken");
        assert_eq!(there[0].method, "POST");
        assert_eq!(there[0].header("authorization"), "");
        assert_eq!(there[0].header("webhook-id"), here[0].header("webhook-id"));
        assert_eq!(there[0].body, here[0].body);
    }
}

#[test]
fn a_circle_ends() {
    let server = Server::start(&[Answer::with(307, "Location", "/again")]);
    let run = Run::with(vec![channel(&server.url("/t0ken"))]);
    run.raise("stalled");
    assert_eq!(run.wait_for_fates(1), ["c0 stalled failed"]);
    assert!(server.requests().len() <= 5);
    run.end();
}
