//! Ranks that nobody launches but the test.

use serde_json::{Value, json};

use super::harness::{Ranks, TOLD, alert, hang_and_go_on, kinds};
use super::support::http_server::{Answer, Server};
use super::support::{Job, Live, files_below, wait_until};

/// As a launcher starts this rank of two.
fn rank(ranks: &Ranks, options: &[&str], number: u32) -> Job {
    let words = ranks.watched(options);
    let job = ranks.sandbox.direct(&words);
    job.env("RANK", number.to_string())
        .env("WORLD_SIZE", "2")
        .env("LOCAL_RANK", number.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", "1")
}

fn both(ranks: &Ranks, url: &str) -> [Live; 2] {
    let options = ["--stall-after", "5s", "--notify", url];
    [0, 1].map(|number| rank(ranks, &options, number).start())
}

#[test]
fn a_hang_of_one_rank_is_told_once() {
    let server = Server::start(&[Answer::status(204)]);
    let ranks = Ranks::new();
    let live = both(&ranks, &server.url("/x"));
    hang_and_go_on(&ranks, &server);
    for (number, live) in live.into_iter().enumerate() {
        let ended = live.end();
        let own = ended.assert_ok().own_lines();
        let label = format!("gpuwatch: rank {number}: ");
        assert!(!own.is_empty());
        assert!(own.iter().all(|line| line.starts_with(&label)), "{own:?}");
    }
    assert_eq!(kinds(&server), TOLD);
    ranks.assert_nothing_shared_is_left();
}

#[test]
fn what_rank_1_alone_has_is_told_by_rank_0() {
    let server = Server::start(&[Answer::status(204)]);
    let ranks = Ranks::new();
    let live = both(&ranks, &server.url("/x"));
    ranks.wait_for_progress(2);
    ranks.say("oom");
    wait_until("rank 1 is out of memory", || ranks.is_done("oom"));
    let raised = alert(&server, "job.oom", &json!("raised"));
    assert_eq!(raised["rank"], 1, "{raised:#}");
    assert_eq!(raised["run"]["job"]["rank"], 0, "{raised:#}");
    ranks.say("end");
    for live in live {
        live.end().assert_ok();
    }
    assert_eq!(kinds(&server), ["job.oom raised", "run.finished -"]);
}

#[test]
fn when_the_speaker_is_killed_the_next_speaks_and_repeats_nothing() {
    let server = Server::start(&[Answer::status(204)]);
    let ranks = Ranks::new();
    let [zero, one] = both(&ranks, &server.url("/x"));
    ranks.wait_for_progress(2);
    ranks.say("hang");
    let raised = alert(&server, "job.stalled", &json!("raised"));
    assert_eq!(raised["run"]["job"]["rank"], 0, "{raised:#}");
    zero.signal(9);
    assert_eq!(zero.end().signal(), Some(9));
    ranks.say("alone");
    ranks.say("on");
    let cleared = alert(&server, "job.stalled", &json!("cleared"));
    assert_eq!(cleared["run"]["job"]["rank"], 1, "{cleared:#}");
    one.signal(15);
    assert_eq!(one.end().signal(), Some(15));
    let finished = alert(&server, "run.finished", &Value::Null);
    assert_eq!(finished["run"]["job"]["rank"], 1, "{finished:#}");
    assert_eq!(kinds(&server), TOLD);
}

#[test]
fn the_end_is_told_once_and_names_the_rank_that_failed() {
    let server = Server::start(&[Answer::status(204)]);
    let ranks = Ranks::new();
    let [zero, one] = both(&ranks, &server.url("/x"));
    ranks.wait_for_progress(2);
    ranks.say("fail");
    assert_eq!(one.end().code(), Some(7));
    zero.signal(15); // as launchers do
    assert_eq!(zero.end().signal(), Some(15));
    let finished = alert(&server, "run.finished", &Value::Null);
    assert_eq!(finished["rank"], 1, "{finished:#}");
    assert_eq!(finished["exit"]["code"], 7, "{finished:#}");
    assert_eq!(finished["ranks"][0]["exit"]["code"], 7, "{finished:#}");
    assert_eq!(finished["ranks"][1]["exit"]["signal"], 15, "{finished:#}");
    assert_eq!(kinds(&server), ["run.finished -"]);
}

#[test]
fn without_a_place_to_share_each_rank_tells() {
    let server = Server::start(&[Answer::status(204)]);
    let ranks = Ranks::new();
    std::fs::write(ranks.shared(), "in the way").unwrap();
    let live = both(&ranks, &server.url("/x"));
    ranks.wait_for_progress(2);
    ranks.say("end");
    for live in live {
        live.end().assert_ok();
    }
    assert_eq!(kinds(&server), ["run.finished -", "run.finished -"]);
}

#[test]
fn a_book_that_somebody_keeps_costs_only_the_sharing() {
    let server = Server::start(&[Answer::status(204)]);
    let ranks = Ranks::new();
    let live = both(&ranks, &server.url("/x"));
    ranks.wait_for_progress(2);
    let files = files_below(&ranks.shared());
    let turn = files.iter().find(|path| path.ends_with("turn")).unwrap();
    let turn = std::fs::File::open(turn).unwrap();
    turn.lock().unwrap();
    ranks.say("hang");
    wait_until("both tell", || kinds(&server).len() == 2);
    ranks.say("end");
    ranks.say("on");
    for live in live {
        live.end().assert_ok();
    }
    let mut told = kinds(&server);
    told.retain(|kind| kind != "job.stalled cleared");
    told.sort();
    let each = ["job.stalled raised", "run.finished -"];
    assert_eq!(told, [each[0], each[0], each[1], each[1]]);
}
