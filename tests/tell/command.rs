//! A program as a channel.

use gpuwatch::model::Channel;

use super::harness::{Run, progress};
use super::support;

#[test]
fn it_gets_the_alert_and_inherits_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out");
    let script = format!(
        "{{ cat; echo \"$GPUWATCH_TYPE|$GPUWATCH_STATE|$GPUWATCH_FINDING|$GPUWATCH_TITLE|$GPUWATCH_RUN_ID\"; \
         ls /proc/self/fd | wc -l; ps -o pgid= -p $$ | tr -d ' '; echo $$; }} > {0}.tmp; mv {0}.tmp {0}",
        file.display()
    );
    let run = Run::with(vec![Channel::Command {
        argv: ["sh", "-c", &script].map(str::to_owned).into(),
    }]);
    run.tell(progress(7, 0.0));
    run.raise("stalled");
    assert_eq!(run.wait_for_fates(1), ["c0 stalled sent"]);
    run.end();
    let text = support::content(&file);
    let lines: Vec<&str> = text.lines().collect();
    let json: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(json["data"]["progress"]["step"], 7);
    assert_eq!(
        lines[1],
        "job.stalled|raised|stalled|stalled: train on gpu-01|20261130-091502-train-7f3a"
    );
    // 0, 1, 2, and the folder that ls reads.
    assert_eq!(lines[2], "4");
    assert_eq!(lines[3], lines[4], "it leads a group of its own");
}

#[test]
fn its_failure_is_told() {
    for (argv, why) in [
        (vec!["sh", "-c", "exit 7"], "exit code 7"),
        (vec!["/no/such/program"], "no such program"),
    ] {
        let run = Run::with(vec![Channel::Command {
            argv: argv.into_iter().map(str::to_owned).collect(),
        }]);
        run.raise("stalled");
        assert_eq!(run.wait_for_fates(1), ["c0 stalled failed"]);
        assert!(run.whys()[0].contains(why));
        run.end();
    }
}
