//! Processes and the jobs that they are.

use proptest::prelude::*;

use super::*;

/// `pid parent pgrp session uid name`.
fn scene(procs: &[(u32, u32, u32, u32, u32, &str)], holders: &[(u32, Marks)]) -> Scene {
    let seen = |&(pid, ppid, pgrp, session, uid, name): &(u32, u32, u32, u32, u32, &str)| Seen {
        id: ProcessId {
            pid,
            start: u64::from(pid),
        },
        ppid,
        pgrp,
        session,
        uid,
        name: name.to_owned(),
    };
    let procs: BTreeMap<u32, Seen> = procs.iter().map(|p| (p.0, seen(p))).collect();
    let leaders = procs.keys().copied().collect();
    Scene {
        procs,
        holders: holders.iter().cloned().collect(),
        leaders,
    }
}

const INIT: (u32, u32, u32, u32, u32, &str) = (1, 0, 1, 1, 0, "systemd");
const SHELL: (u32, u32, u32, u32, u32, &str) = (10, 1, 10, 10, 1000, "bash");

fn plain(pid: u32) -> (u32, Marks) {
    (pid, Marks::default())
}

/// Each job as its main process, its kind and who holds.
fn told(scene: &Scene) -> Vec<(u32, Kind, Vec<u32>)> {
    let tell = |g: Group| (g.main.pid, g.kind, g.holders.into_iter().collect());
    scene.groups().into_iter().map(tell).collect()
}

#[test]
fn two_trainings_from_one_shell_are_two_jobs_and_workers_are_part_of_theirs() {
    let found = scene(
        &[
            INIT,
            SHELL,
            (20, 10, 20, 10, 1000, "python"),
            (21, 20, 20, 10, 1000, "python"),
            (22, 20, 20, 10, 1000, "python"),
            (30, 10, 30, 10, 1000, "python"),
        ],
        &[plain(21), plain(22), plain(30)],
    );
    assert_eq!(
        told(&found),
        [(20, Kind::Tree, vec![21, 22]), (30, Kind::Tree, vec![30])]
    );
}

#[test]
fn a_script_s_trainings_are_apart_and_ranks_belong_to_their_launcher() {
    let rank = |pid| {
        let marks = Marks {
            rank: true,
            ..Marks::default()
        };
        (pid, marks)
    };
    let found = scene(
        &[
            INIT,
            SHELL,
            (20, 10, 20, 10, 1000, "bash"),
            (21, 20, 20, 10, 1000, "python"),
            (22, 20, 20, 10, 1000, "python"),
            (30, 10, 30, 10, 1000, "torchrun"),
            (31, 30, 31, 31, 1000, "python"),
            (32, 30, 32, 32, 1000, "python"),
            // A notebook's kernels are nobody's ranks.
            (40, 1, 40, 40, 1000, "jupyter-lab"),
            (41, 40, 41, 41, 1000, "python"),
            (42, 40, 42, 42, 1000, "python"),
        ],
        &[
            plain(21),
            plain(22),
            rank(31),
            rank(32),
            plain(41),
            plain(42),
        ],
    );
    assert_eq!(
        told(&found),
        [
            (21, Kind::Tree, vec![21]),
            (22, Kind::Tree, vec![22]),
            (30, Kind::Tree, vec![31, 32]),
            (41, Kind::Tree, vec![41]),
            (42, Kind::Tree, vec![42])
        ]
    );
}

#[test]
fn a_run_is_one_where_a_gpuwatch_watches_it_and_a_unit_holds_together() {
    let run = |pid| {
        let marks = Marks {
            run: Some("r".into()),
            ..Marks::default()
        };
        (pid, marks)
    };
    let unit = |pid| {
        let marks = Marks {
            unit: Some("slurm job 7".into()),
            ..Marks::default()
        };
        (pid, marks)
    };
    let found = scene(
        &[
            INIT,
            SHELL,
            (20, 10, 20, 10, 1000, "gpuwatch"),
            (21, 20, 20, 10, 1000, "python"),
            (22, 20, 20, 10, 1000, "python"),
            (30, 1, 30, 30, 1000, "python"),
            (40, 1, 40, 40, 1000, "python"),
            (50, 1, 50, 50, 1000, "python"),
            (60, 1, 60, 60, 1001, "python"),
        ],
        &[run(21), run(22), run(30), unit(40), unit(50), unit(60)],
    );
    assert_eq!(
        told(&found),
        [
            (21, Kind::Run("r".into()), vec![21, 22]),
            (30, Kind::Tree, vec![30]),
            (40, Kind::Unit("slurm job 7".into()), vec![40, 50]),
            (60, Kind::Unit("slurm job 7".into()), vec![60])
        ]
    );
}

#[test]
fn who_lost_parent_and_leader_was_left_behind() {
    // Workers of a main process (20) that was killed, their shell lives or not.
    for shell in [true, false] {
        let mut found = scene(
            &[
                INIT,
                SHELL,
                (21, 1, 20, 10, 1000, "python"),
                (22, 1, 20, 10, 1000, "python"),
            ],
            &[plain(21), plain(22)],
        );
        if !shell {
            found.leaders.remove(&10);
        }
        assert_eq!(told(&found), [(21, Kind::Left(20), vec![21, 22])]);
    }
    let stays = Marks {
        stays: true,
        ..Marks::default()
    };
    for (what, process, marks) in [
        ("a daemon", (20, 1, 20, 20, 1000, "python"), plain(20).1),
        ("nohup", (20, 1, 20, 10, 1000, "python"), stays),
        ("in a shell", (20, 10, 20, 10, 1000, "python"), plain(20).1),
        // Its pipe's first process ended.
        ("of a pipe", (20, 10, 19, 10, 1000, "python"), plain(20).1),
    ] {
        let mut found = scene(&[INIT, SHELL, process], &[(20, marks)]);
        if what == "nohup" {
            found.leaders.remove(&10);
        }
        assert_eq!(told(&found), [(20, Kind::Tree, vec![20])], "{what}");
    }
}

proptest! {
    #[test]
    fn every_holder_is_of_one_job_and_no_job_has_two_users(
        procs in proptest::collection::vec((1_u32..40, 0_u32..40, 1_u32..6, 1_u32..4, 0_u32..3, 0_usize..4), 0..30),
        holders in proptest::collection::btree_set(1_u32..40, 0..12),
    ) {
        let names = ["python", "bash", "gpuwatch", "torchrun"];
        let procs: Vec<_> = procs
            .into_iter()
            .map(|(pid, ppid, pgrp, session, uid, name)| (pid, ppid, pgrp, session, uid, names[name]))
            .collect();
        let holders: Vec<_> = holders
            .into_iter()
            .map(|pid| {
                let marks = Marks {
                    run: (pid % 3 == 0).then(|| "r".to_owned()),
                    unit: (pid % 5 == 0).then(|| "u".to_owned()),
                    rank: pid % 2 == 0,
                    stays: pid % 7 == 0,
                };
                (pid, marks)
            })
            .collect();
        let found = scene(&procs, &holders);
        let groups = found.groups();
        let mut seen = BTreeSet::new();
        for group in &groups {
            prop_assert_eq!(group.roots.first(), Some(&group.main));
            for pid in &group.holders {
                prop_assert!(seen.insert(*pid), "{} is of two jobs", pid);
                prop_assert_eq!(found.procs[pid].uid, group.uid);
            }
        }
        let there: BTreeSet<u32> = holders
            .iter()
            .map(|(pid, _)| *pid)
            .filter(|pid| found.procs.contains_key(pid))
            .collect();
        prop_assert_eq!(seen, there);
        prop_assert_eq!(found.groups(), groups);
    }
}

#[test]
fn a_tree_whose_starter_goes_is_the_same_job() {
    let job = (20, 10, 20, 10, 1000, "python");
    let before = scene(&[INIT, SHELL, job], &[plain(20)]);
    let mut after = scene(&[INIT, (20, 1, 20, 10, 1000, "python")], &[plain(20)]);
    after.leaders.remove(&20);
    let (before, after) = (before.groups(), after.groups());
    assert_eq!((before.len(), after.len()), (1, 1));
    assert!(!before[0].is_left_behind() && after[0].is_left_behind());
    assert!(after[0].is_same(&before[0]) && before[0].is_same(&after[0]));
    let other = scene(
        &[INIT, SHELL, (30, 10, 30, 10, 1000, "python")],
        &[plain(30)],
    );
    assert!(!other.groups()[0].is_same(&before[0]));
}
