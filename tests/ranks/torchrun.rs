//! Ranks that `torchrun` starts.

use std::net::TcpListener;
use std::path::Path;

use serde_json::json;

use super::harness::{Ranks, TOLD, hang_and_go_on, kinds, watched};
use super::support::http_server::{Answer, Server};
use super::support::{Ended, Job, Record, provided};

/// `torchrun` with two ranks of this command; `PyTorch`'s Python is the first of its words.
fn torchrun(ranks: &Ranks, torch: &str, words: &[String]) -> Job {
    let program = Path::new(torch).with_file_name("torchrun");
    assert!(program.exists(), "{}", program.display());
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port().to_string();
    let options = [
        "--nnodes=1",
        "--nproc-per-node=2",
        "--master-addr=127.0.0.1",
        "--no-python",
    ];
    let mut argv = vec![program.to_str().unwrap().to_owned()];
    argv.extend(options.map(str::to_owned));
    argv.push(format!("--master-port={port}"));
    argv.extend_from_slice(words);
    ranks.sandbox.direct(&argv).env("OMP_NUM_THREADS", "1")
}

/// A rank that meets the other in a collective.
fn command(ranks: &Ranks, torch: &str) -> Vec<String> {
    let mut words = ranks.command();
    torch.clone_into(&mut words[0]);
    words.push("gloo".to_owned());
    words
}

#[test]
fn a_hang_is_told_once_and_both_are_labelled() {
    let Some(torch) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let server = Server::start(&[Answer::status(204)]);
    let ranks = Ranks::new();
    let url = server.url("/x");
    // PyTorch's import may wait for a busy disk without a sign of life.
    let options = ["--stall-after", "25s", "--notify", &url];
    let words = watched(&options, command(&ranks, &torch));
    let live = torchrun(&ranks, &torch, &words).start();
    hang_and_go_on(&ranks, &server);
    let ended = live.end();
    ended.assert_ok();
    for number in [0, 1] {
        let label = format!("gpuwatch: rank {number}: ok after ");
        assert!(ended.err().contains(&label), "{}", ended.err());
    }
    assert_eq!(kinds(&server), TOLD);
    let job = |rank: u32| json!({"id": null, "rank": rank, "world": 2, "local_rank": rank});
    assert_eq!(ranks.jobs(), [job(0), job(1)]);
    ranks.assert_nothing_shared_is_left();
}

#[test]
fn a_rank_that_fails_fails_the_job_as_without_gpuwatch() {
    let Some(torch) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let ranks = Ranks::new();
    ranks.say("fail");
    let direct = command(&ranks, &torch);
    let codes = [direct.clone(), watched(&[], direct)].map(|words| {
        let ended = torchrun(&ranks, &torch, &words).run();
        let said = ended.err().contains("exitcode  : 7");
        assert!(said, "torchrun names rank 1's code: {}", ended.err());
        ended.code()
    });
    assert_eq!(codes, [Some(1), Some(1)]);
    let exits: Vec<_> = ranks.records().iter().map(Record::json).collect();
    let failed = exits.iter().find(|r| r["job"]["rank"] == 1).unwrap();
    assert_eq!(failed["exit"]["code"], 7);
}

/// One gpuwatch around `torchrun` and its ranks.
fn around_all(ranks: &Ranks, torch: &str) -> Ended {
    let job = torchrun(ranks, torch, &command(ranks, torch));
    let program = Path::new(torch).with_file_name("torchrun");
    let argv = job.command();
    let argv = argv.get_args().map(|word| word.to_str().unwrap());
    let words: Vec<&str> = std::iter::once(program.to_str().unwrap())
        .chain(argv)
        .collect();
    ranks.sandbox.watched(&[], &words).run()
}

#[test]
fn one_gpuwatch_around_all_ranks_names_the_one_that_failed() {
    let Some(torch) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let ranks = Ranks::new();
    ranks.say("fail");
    let ended = around_all(&ranks, &torch);
    assert_eq!(ended.code(), Some(1));
    let verdict = &ranks.sandbox.record().json()["verdict"];
    assert_eq!(
        (&verdict["cause"], &verdict["rank"]),
        (&"rank-lost".into(), &1.into()),
        "{verdict}"
    );
    let line = verdict["line"].as_str().unwrap();
    assert!(line.contains("exitcode: 7"), "{line}");
}

#[test]
fn one_gpuwatch_around_all_ranks_has_one_record() {
    let Some(torch) = provided("GPUWATCH_TEST_TORCH_PYTHON") else {
        return;
    };
    let ranks = Ranks::new();
    ranks.say("end");
    let ended = around_all(&ranks, &torch);
    ended.assert_ok();
    let own = ended.own_lines();
    assert!(
        own.iter()
            .any(|line| line.starts_with("gpuwatch: ok after ")),
        "{own:?}"
    );
    let none = json!({"id": null, "rank": null, "world": null, "local_rank": null});
    assert_eq!(ranks.jobs(), [none]);
}
