//! Servers that don't take an alert at once.

use std::time::{Duration, Instant, SystemTime};

use gpuwatch::model::Channel;

use super::harness::{Run, ended, secret, webhook};
use super::support::http_server::{Answer, Server, closed_url};

/// The pause between the first two requests.
fn pause(server: &Server) -> Duration {
    let requests = server.wait_for(2);
    requests[1].at - requests[0].at
}

#[test]
fn a_wait_that_the_server_asks_for_is_kept_and_the_id_stays() {
    for (wait, least_s) in [("2", 2.0), ("0.4", 0.4), ("a date", 0.0)] {
        let date = SystemTime::now() + Duration::from_secs(3);
        // A date has whole seconds: it may be almost one earlier.
        let not_before = Instant::now() + Duration::from_secs(2);
        let asked = if wait == "a date" {
            httpdate::fmt_http_date(date)
        } else {
            wait.to_owned()
        };
        let server = Server::start(&[Answer::with(429, "Retry-After", asked), Answer::status(200)]);
        let run = Run::with(vec![webhook(&server.url("/t0ken"))]);
        run.raise("stalled");
        assert!(pause(&server).as_secs_f64() >= least_s, "{wait}");
        let again = server.wait_for(2)[1].at;
        assert!(wait != "a date" || again >= not_before, "{wait}");
        assert_eq!(run.wait_for_fates(1), ["c0 stalled sent"]);
        run.end();
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "delivered once");
        assert_eq!(
            requests[0].header("webhook-id"),
            requests[1].header("webhook-id")
        );
        assert_eq!(requests[0].body, requests[1].body);
    }
}

#[test]
fn an_error_of_the_server_is_tried_again() {
    let server = Server::start(&[Answer::status(500), Answer::HangUp, Answer::status(202)]);
    let run = Run::with(vec![webhook(&server.url("/t0ken"))]);
    run.raise("stalled");
    assert_eq!(run.wait_for_fates(1), ["c0 stalled sent"]);
    assert_eq!(server.requests().len(), 3);
    run.end();
}

#[test]
fn a_refusal_is_final_and_410_closes_the_channel() {
    let gone = Server::start(&[Answer::status(410)]);
    let refusing = Server::start(&[Answer::status(400)]);
    let run = Run::with(vec![
        webhook(&gone.url("/t0ken")),
        webhook(&refusing.url("/t0ken")),
    ]);
    run.raise("stalled");
    run.wait_for_fates(2);
    run.raise("oom");
    let mut fates = run.wait_for_fates(4);
    fates.sort();
    assert_eq!(
        fates,
        [
            "c0 oom failed",
            "c0 stalled failed",
            "c1 oom failed",
            "c1 stalled failed"
        ]
    );
    assert!(run.whys().iter().any(|why| why.contains("410")));
    assert_eq!(gone.requests().len(), 1);
    assert_eq!(refusing.requests().len(), 2);
    let end = run.end();
    assert!(end.kept.is_empty());
    assert!(
        end.told
            .problem()
            .unwrap()
            .starts_with("4 alerts not sent (c")
    );
}

#[test]
fn a_long_wait_is_kept_for_later_at_the_end() {
    let server = Server::start(&[Answer::with(429, "Retry-After", "999999")]);
    let run = Run::with(vec![webhook(&server.url("/t0ken"))]);
    run.raise("stalled");
    server.wait_for(1);
    run.tell(ended(1));
    let end = run.end();
    assert!(end.took < Duration::from_secs(2), "{:?}", end.took);
    assert_eq!(end.told.kept, 2);
    assert_eq!(end.kept.len(), 2);
    let problem = end.told.problem().unwrap();
    assert!(problem.contains("gpuwatch alert flush"), "{problem}");
}

/// The status says that it was taken: whatever becomes of the body, it isn't sent again. A service
/// that says in the body whether it took it is another matter.
#[test]
fn an_answer_whose_body_never_ends_is_an_answer() {
    let server = Server::start(&[Answer::SlowBody]);
    let bot = Server::start(&[Answer::SlowBody]);
    let run = Run::with(vec![
        webhook(&server.url("/t0ken")),
        Channel::WeCom {
            url: secret(&bot.url("/t0ken")),
        },
    ]);
    run.raise("stalled");
    assert_eq!(run.wait_for_fates(1), ["c0 stalled sent"]);
    bot.wait_for(2);
    let end = run.end();
    assert_eq!(server.requests().len(), 1);
    assert_eq!(end.fates(), ["c0 stalled sent", "c1 stalled kept"]);
    assert!(end.took < Duration::from_millis(5500), "{:?}", end.took);
}

#[test]
fn nobody_listens_for_a_while() {
    let url = closed_url();
    let run = Run::with(vec![webhook(&url)]);
    run.raise("stalled");
    std::thread::sleep(Duration::from_millis(300));
    let end = run.end();
    assert_eq!(end.told.kept, 1);
    assert!(end.told.first_why.unwrap().contains("connection refused"));
}

#[test]
fn a_storm_is_a_few_messages() {
    let server = Server::start(&[Answer::status(200)]);
    let run = Run::with(vec![webhook(&server.url("/t0ken"))]);
    for i in 0..50 {
        run.raise(&format!("rule-{i}"));
    }
    server.wait_for(3);
    run.tell(ended(0));
    run.end();
    let requests = server.requests();
    assert_eq!(requests.len(), 5, "three, the rest together, and the end");
    assert_eq!(requests[3].json()["data"]["more"], 46);
}

/// Slack takes one message a second.
#[test]
fn a_service_gets_no_more_than_it_takes() {
    let server = Server::start(&[Answer::status(200)]);
    let url = secret(&server.url("/services/T/B/t0ken"));
    let run = Run::with(vec![Channel::Slack { url }]);
    for name in ["stalled", "oom", "nan"] {
        run.raise(name);
    }
    run.wait_for_fates(3);
    run.end();
    let requests = server.requests();
    let pauses = requests.windows(2).map(|pair| pair[1].at - pair[0].at);
    // What a message takes on its way differs.
    let least = pauses.take(2).min().unwrap();
    assert!(least >= Duration::from_millis(800), "{least:?}");
}
