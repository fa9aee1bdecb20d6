//! Ranks that `srun` starts, under a real Slurm.

use serde_json::json;

use super::cluster::Cluster;
use super::harness::{Ranks, TOLD, hang_and_go_on, kinds, watched};
use super::support::http_server::{Answer, Server};
use super::support::{Job, Live, python, script, wait_until};

/// `srun` with two tasks of this command.
fn srun(cluster: &Cluster, ranks: &Ranks, words: &[String]) -> Job {
    let options = ["srun", "--quiet", "--disable-status", "--ntasks=2", "--"];
    let mut argv: Vec<String> = options.map(str::to_owned).into();
    argv.extend_from_slice(words);
    ranks
        .sandbox
        .direct(&argv)
        .env("SLURM_CONF", cluster.conf())
}

#[test]
fn a_hang_is_told_once_and_both_are_labelled() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let server = Server::start(&[Answer::status(204)]);
    let ranks = Ranks::new();
    let url = server.url("/x");
    let words = ranks.watched(&["--stall-after", "5s", "--notify", &url]);
    let live = srun(&cluster, &ranks, &words).start();
    hang_and_go_on(&ranks, &server);
    let ended = live.end();
    ended.assert_ok();
    for number in [0, 1] {
        let label = format!("gpuwatch: rank {number}: ok after ");
        assert!(ended.err().contains(&label), "{}", ended.err());
    }
    assert_eq!(kinds(&server), TOLD);
    let jobs = ranks.jobs();
    let id = jobs[0]["id"].clone();
    assert!(id.as_str().is_some_and(|id| !id.is_empty()), "{jobs:?}");
    let job = |rank: u32| json!({"id": id, "rank": rank, "world": 2, "local_rank": rank});
    assert_eq!(jobs, [job(0), job(1)]);
    let told = server.requests()[0].json();
    assert_eq!(told["data"]["run"]["job"]["id"], id);
    ranks.assert_nothing_shared_is_left();
}

#[test]
fn a_jobs_end_is_the_same_with_and_without_gpuwatch() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let ends = [
        ("exit 0", Some(0)),
        ("exit $((SLURM_PROCID * 7))", Some(7)),
        ("test $SLURM_PROCID = 0 || kill -9 $$", Some(137)),
        ("test $SLURM_PROCID = 0 || kill -TERM $$", Some(143)),
        ("test $SLURM_PROCID = 0 || exec /nowhere/at-all", Some(127)),
    ];
    for (text, code) in ends {
        let direct: Vec<String> = ["sh", "-c", text].map(str::to_owned).into();
        for words in [direct.clone(), watched(&["-q"], direct)] {
            let ranks = Ranks::new();
            let ended = srun(&cluster, &ranks, &words).run();
            assert_eq!(ended.code(), code, "{words:?}: {}", ended.err());
        }
    }
}

/// What each of two ranks got of the signals that `send` sends, with and without gpuwatch.
fn signals(cluster: &Cluster, send: impl Fn(&Live)) -> [Vec<Vec<u8>>; 2] {
    let log = |ranks: &Ranks| {
        let text = "exec \"$0\" \"$1\" \"$2-$SLURM_PROCID\"".to_owned();
        let words = ["sh".to_owned(), "-c".to_owned(), text, python().to_owned()];
        let mut words: Vec<String> = words.into();
        words.extend([script("signal_log.py"), ranks.sandbox.arg("log")]);
        words
    };
    [false, true].map(|is_watched| {
        let ranks = Ranks::new();
        let direct = log(&ranks);
        let words = if is_watched {
            watched(&["-q"], direct)
        } else {
            direct
        };
        let live = srun(cluster, &ranks, &words).start();
        wait_until("both ranks listen", || {
            live.out_so_far().matches("ready\n").count() == 2
        });
        send(&live);
        let read = |rank| {
            let path = ranks.sandbox.path(&format!("log-{rank}"));
            std::fs::read(path).unwrap_or_default()
        };
        wait_until("both ranks got it", || {
            [0, 1].iter().all(|rank| !read(rank).is_empty())
        });
        // What comes twice has come twice when the next one is there.
        scancel(cluster, "USR2");
        let last = libc::SIGUSR2 as u8;
        wait_until("both ranks got the last signal", || {
            [0, 1].iter().all(|rank| read(rank).contains(&last))
        });
        for rank in [0, 1] {
            std::fs::write(ranks.sandbox.path(&format!("log-{rank}.end")), "").unwrap();
        }
        assert_eq!(live.end().code(), Some(0));
        [0, 1].iter().map(read).collect()
    })
}

fn scancel(cluster: &Cluster, signal: &str) {
    let mut scancel = cluster.command("scancel");
    let status = scancel
        .args(["--state=RUNNING", &format!("--signal={signal}")])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn what_scancel_and_srun_send_reaches_each_rank_once() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let [direct, watched] = signals(&cluster, |_| scancel(&cluster, "USR1"));
    let (one, two) = (libc::SIGUSR1 as u8, libc::SIGUSR2 as u8);
    assert_eq!(direct, [[one, two], [one, two]]);
    assert_eq!(watched, direct);
    // A Ctrl-C comes to srun, which hands it on.
    let [direct, watched] = signals(&cluster, |srun| srun.signal(libc::SIGINT));
    assert_eq!(
        direct,
        [[libc::SIGINT as u8, two], [libc::SIGINT as u8, two]]
    );
    assert_eq!(watched, direct);
}
