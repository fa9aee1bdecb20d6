//! What is said of made-up processes.

use super::*;
use crate::act::proc_files::{Identity, Standing};
use crate::act::pyspy::{Dump, parse};

fn seen(pid: u32, name: &str, dump: Option<Result<Dump, String>>) -> Seen {
    Seen {
        pid,
        rank: None,
        standing: Standing {
            name: name.to_owned(),
            state: 'S',
            wchan: Some("futex_wait_queue".to_owned()),
            ..Standing::default()
        },
        identity: Identity::default(),
        dump,
    }
}

fn stack(frames: &[&str]) -> Dump {
    let text = format!(
        "Python v3\n\nThread 1 (idle): \"MainThread\"\n    {}\n",
        frames.join("\n    ")
    );
    parse(&text, 1).unwrap()
}

#[test]
fn it_names_functions_and_groups_processes() {
    let wait = [
        "wait (/usr/lib/python3.11/threading.py:324)",
        "hang (/w/train.py:7)",
    ];
    let mut all = vec![
        seen(1, "python", Some(Ok(stack(&wait)))),
        seen(2, "ffmpeg", None),
        seen(3, "python", Some(Ok(stack(&["step (/w/train.py:9)"])))),
    ];
    all.extend((10..14).map(|pid| seen(pid, "loader", None)));
    assert_eq!(
        digest(&all),
        [
            "1 python: hang (train.py:7) in wait (threading.py:324)",
            "3 python: step (train.py:9)",
            "2 ffmpeg: sleeps in futex_wait_queue",
            "4 processes (10, ...) loader: sleeps in futex_wait_queue",
        ]
    );
    all.extend((20..30).map(|pid| seen(pid, &format!("p{pid}"), None)));
    all.push(seen(
        40,
        "python",
        Some(Err("pip install py-spy".to_owned())),
    ));
    let lines = digest(&all);
    assert_eq!(lines.len(), LINES);
    assert!(lines[3].starts_with("and "), "{lines:?}");
    assert!(lines[4].contains("pip install py-spy"), "{lines:?}");
    let odd = digest(&[seen(1, &"\x1b训练".repeat(200), None)]);
    assert_eq!(odd[0].chars().count(), WIDTH);
    assert!(!odd[0].contains('\x1b'));
}

const REDUCE: &[&str] = &[
    "all_reduce (/env/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py:2810)",
    "wrapper (/env/lib/python3.12/site-packages/torch/distributed/c10d_logger.py:81)",
    "meet (/w/train.py:7)",
];
const LOAD: &[&str] = &["wait (/w/queue.py:3)", "next_batch (/w/train.py:40)"];

fn rank(n: u32, frames: &[&str]) -> Seen {
    Seen {
        rank: Some(n),
        ..seen(100 + n, "python", Some(Ok(stack(frames))))
    }
}

#[test]
fn of_two_ranks_the_one_that_does_not_wait_for_the_other_differs() {
    let launcher = || seen(99, "torchrun", None);
    assert_eq!(
        digest(&[launcher(), rank(0, REDUCE), rank(1, LOAD)]),
        [
            "rank 1 (101) differs: wait (queue.py:3)",
            "rank 0 (100) python: meet (train.py:7) in all_reduce (distributed_c10d.py:2810)",
            "99 torchrun: sleeps in futex_wait_queue",
        ]
    );
    let mut stopped = rank(1, REDUCE);
    stopped.standing.state = 'T';
    let lines = digest(&[rank(0, REDUCE), stopped]);
    assert!(
        lines[0].starts_with("rank 1 (101) differs: is stopped at meet (train.py:7) in"),
        "{lines:?}"
    );
    // It could be either of them.
    let lines = digest(&[rank(0, &["step (/w/train.py:9)"]), rank(1, LOAD)]);
    assert!(
        lines.iter().all(|line| !line.contains("differ")),
        "{lines:?}"
    );
}

#[test]
fn of_many_ranks_the_few_differ() {
    let mut all: Vec<Seen> = (0..8).map(|n| rank(n, REDUCE)).collect();
    assert_eq!(
        digest(&all),
        ["ranks 0-7 python: meet (train.py:7) in all_reduce (distributed_c10d.py:2810)"]
    );
    all[3] = rank(3, LOAD);
    all[6] = rank(6, LOAD);
    let lines = digest(&all);
    assert_eq!(lines[0], "ranks 3, 6 differ: wait (queue.py:3)");
    assert!(
        lines[1].starts_with("ranks 0-2, 4-5, 7 python: meet"),
        "{lines:?}"
    );
    // Where nobody says that they wait for others, the most do.
    for one in &mut all {
        if one.rank < Some(6) {
            *one = rank(one.rank.unwrap(), &["step (/w/train.py:9)"]);
        }
    }
    all[7] = rank(7, LOAD);
    let lines = digest(&all);
    assert_eq!(lines[0], "ranks 6-7 differ: wait (queue.py:3)");
    // What differs in nothing but the line is at the same place.
    let lines = [1, 2, 3].map(|n| rank(n, &[&format!("step (/w/train.py:{n})")]));
    assert!(digest(&lines).iter().all(|line| !line.contains("differ")));
}
