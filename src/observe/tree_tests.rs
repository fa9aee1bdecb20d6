//! The job's tree over fake process file systems.

use std::collections::BTreeSet;

use super::super::fake::FakeProc;
use super::*;

const US: u32 = 10;

/// Us (10) with a helper (11) and a main process (20), which has two children (21, 22).
fn house() -> FakeProc {
    let fake = FakeProc::new();
    fake.process(US, 1).children(&[11, 20]).write();
    fake.process(11, US).children(&[12]).write();
    fake.process(12, 11).write();
    fake.process(20, US).children(&[21, 22]).write();
    fake.process(21, 20).state('R').write();
    fake.process(22, 20).state('D').write();
    fake.process(99, 1).write();
    fake.last_pid(99);
    fake
}

fn tree(fake: &FakeProc) -> JobTree {
    let main = ProcessId {
        pid: 20,
        start: 100,
    };
    JobTree::new(fake.fs(), US, BTreeSet::from([11]), Some(main))
}

fn told(tick: &JobTick) -> Vec<(u32, ProcessChange)> {
    tick.changes.iter().map(|c| (c.id.pid, c.change)).collect()
}

fn missing<T: Clone>(reading: &Reading<T>) -> Why {
    reading.why().cloned().unwrap()
}

#[test]
fn the_first_tick_counts_and_compares_nothing() {
    let fake = house();
    let tick = tree(&fake).tick(0.5);
    assert_eq!(tick.pids, BTreeSet::from([20, 21, 22]));
    let job = &tick.sample;
    assert_eq!(job.procs, Reading::Value(3));
    assert_eq!(
        (job.n_run.get(), job.n_sleep.get(), job.n_disk.get()),
        (Some(1), Some(1), Some(1))
    );
    assert_eq!(job.rss_mib, Reading::Value(6.0));
    assert_eq!(job.anon_mib, Reading::Value(3.0));
    assert_eq!(job.shmem_mib, Reading::Value(1.5));
    for reading in [
        &job.cpu_cores,
        &job.main_cores,
        &job.read_mb_s,
        &job.write_mb_s,
        &job.majflt_s,
    ] {
        assert_eq!(missing(reading), Why::NotYet);
    }
    assert_eq!(missing(&job.forks), Why::NotYet);
    assert_eq!(missing(&job.n_busy), Why::NotYet);
    assert_eq!(
        told(&tick),
        [20, 21, 22].map(|pid| (pid, ProcessChange::Started))
    );
}

#[test]
fn an_empty_job_has_no_rates_at_first_and_zero_afterwards() {
    let fake = FakeProc::new();
    fake.process(US, 1).write();
    let mut tree = JobTree::new(fake.fs(), US, BTreeSet::new(), None);
    let first = tree.tick(1.0).sample;
    assert_eq!(first.procs, Reading::Value(0));
    assert_eq!(missing(&first.cpu_cores), Why::NotYet);
    let second = tree.tick(1.0).sample;
    assert_eq!(second.cpu_cores, Reading::Value(0.0));
    assert_eq!(missing(&second.main_cores), Why::NotYet);
}

#[test]
fn rates_are_of_the_time_that_passed() {
    let fake = house();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.process(20, US)
        .cpu(20)
        .io(Some([1, 2, 3_000_000, 8_000_000]))
        .children(&[21, 22])
        .write();
    fake.process(21, 20).cpu(180).write();
    let job = tree.tick(2.0).sample;
    assert_eq!(job.cpu_cores, Reading::Value(1.0));
    assert_eq!(job.main_cores, Reading::Value(0.1));
    assert_eq!(job.n_busy, Reading::Value(1));
    assert_eq!(job.read_mb_s, Reading::Value(1.5));
    assert_eq!(job.write_mb_s, Reading::Value(4.0));
    assert_eq!(job.forks, Reading::Value(0));
}

#[test]
fn a_process_that_ends_takes_nothing_back() {
    let fake = house();
    fake.process(21, 20).cpu(5000).write();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.remove(21);
    fake.process(22, 20).cpu(50).write();
    let tick = tree.tick(1.0);
    assert_eq!(tick.sample.cpu_cores, Reading::Value(0.5));
    assert_eq!(told(&tick), [(21, ProcessChange::Exited)]);
    assert_eq!(tick.pids, BTreeSet::from([20, 22]));
}

#[test]
fn what_reaped_children_read_is_not_read_again_by_their_parent() {
    let fake = house();
    fake.process(21, 20)
        .io(Some([0, 0, 9_000_000_000, 0]))
        .children(&[30])
        .write();
    fake.process(30, 21)
        .io(Some([0, 0, 1_000_000_000, 0]))
        .write();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    // Both end; the kernel adds what they read, and 2 MB since the last look, to the parent's.
    fake.remove(30);
    fake.remove(21);
    fake.process(20, US)
        .io(Some([0, 0, 10_002_000_000, 0]))
        .children(&[22])
        .write();
    assert_eq!(tree.tick(1.0).sample.read_mb_s, Reading::Value(2.0));
    assert_eq!(tree.tick(1.0).sample.read_mb_s, Reading::Value(0.0));
}

#[test]
fn newcomers_are_found_by_their_new_pid_without_a_walk() {
    let fake = house();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.uptime(2.0);
    // Forked by a secondary thread: no children file that is read says so.
    fake.process(100, 20).start(150).cpu(40).write();
    fake.process(101, 100).start(150).write();
    fake.process(102, 20).not_a_leader().write();
    fake.process(103, 1).write();
    fake.process(104, 11).write();
    fake.last_pid(104);
    let tick = tree.tick(1.0);
    assert_eq!(
        told(&tick),
        [100, 101].map(|pid| (pid, ProcessChange::Started))
    );
    assert_eq!(tick.sample.forks, Reading::Value(2));
    // All that a newborn did, it did since the last tick.
    assert_eq!(tick.sample.cpu_cores, Reading::Value(0.4));
    assert_eq!(tree.tick(1.0).sample.forks, Reading::Value(0));
}

#[test]
fn a_latecomer_counts_from_its_second_look() {
    let fake = house();
    fake.uptime(50.0);
    let mut tree = tree(&fake);
    tree.tick(0.0);
    // Older than the last tick, and found only now.
    fake.process(100, 20).start(150).cpu(90_000).write();
    fake.last_pid(100);
    assert_eq!(tree.tick(1.0).sample.cpu_cores, Reading::Value(0.0));
    fake.process(100, 20).start(150).cpu(90_100).write();
    assert_eq!(tree.tick(1.0).sample.cpu_cores, Reading::Value(1.0));
}

#[test]
fn wrapped_pids_lead_to_a_walk() {
    let fake = house();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.process(5, 22).start(300).write();
    fake.children_of(22, 22, &[5]);
    fake.last_pid(5);
    assert_eq!(told(&tree.tick(1.0)), [(5, ProcessChange::Started)]);
}

#[test]
fn whoever_was_missed_is_found_within_five_seconds() {
    let fake = house();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.process(50, 21).write();
    fake.children_of(21, 21, &[50]);
    assert_eq!(tree.tick(1.0).pids.len(), 3);
    assert_eq!(tree.tick(4.0).pids.len(), 4);
}

#[test]
fn secondary_threads_take_turns() {
    let fake = house();
    fake.process(20, US)
        .threads(300)
        .children(&[21, 22])
        .write();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.process(50, 20).write();
    fake.children_of(20, 20 * 10 + 290, &[50]);
    let mut walks = 0;
    while !tree.tick(5.0).pids.contains(&50) {
        walks += 1;
        assert!(walks < 4, "never found");
    }
    assert!(walks > 0, "a walk read all threads");
}

#[test]
fn the_same_pid_with_another_start_is_another_process() {
    let fake = house();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    // 21 ends, and its PID goes to a stranger; 22's goes to a new child of the job.
    fake.process(21, 1).start(500).cpu(7000).write();
    fake.process(22, 20).start(500).write();
    fake.process(20, US).children(&[22]).write();
    fake.last_pid(22);
    let tick = tree.tick(1.0);
    assert_eq!(tick.pids, BTreeSet::from([20, 22]));
    assert_eq!(
        told(&tick),
        [
            (22, ProcessChange::Exited),
            (21, ProcessChange::Exited),
            (22, ProcessChange::Started)
        ]
    );
    assert_eq!(tick.changes.last().unwrap().id.start, 500);
    assert_eq!(tick.sample.cpu_cores, Reading::Value(0.0));
}

#[test]
fn states_and_parents_that_change_are_told_once() {
    let fake = house();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.process(21, 20).state('T').write();
    fake.process(22, US).state('Z').write();
    let tick = tree.tick(1.0);
    assert_eq!(
        told(&tick),
        [
            (21, ProcessChange::Stopped),
            (22, ProcessChange::Reparented),
            (22, ProcessChange::Zombie)
        ]
    );
    let job = &tick.sample;
    assert_eq!(
        (job.procs.get(), job.n_zombie.get(), job.n_stopped.get()),
        (Some(2), Some(1), Some(1))
    );
    assert!(tree.tick(1.0).changes.is_empty());
    fake.process(21, 20).state('S').write();
    assert_eq!(told(&tree.tick(1.0)), [(21, ProcessChange::Continued)]);
}

#[test]
fn a_main_thread_that_ended_before_the_others_is_no_zombie() {
    let fake = house();
    fake.process(21, 20).state('Z').threads(4).write();
    let job = tree(&fake).tick(0.0).sample;
    assert_eq!((job.n_zombie.get(), job.procs.get()), (Some(0), Some(3)));
}

#[test]
fn what_may_not_be_read_is_missing_and_says_why() {
    let fake = house();
    fake.process(22, 20).io(None).shmem_kib(None).write();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    let job = tree.tick(1.0).sample;
    assert!(matches!(job.read_mb_s.why(), Some(Why::Failed(_))));
    assert_eq!(missing(&job.shmem_mib), Why::NotSupported);
    assert_eq!(job.rss_mib, Reading::Value(6.0));
    assert_eq!(job.cpu_cores, Reading::Value(0.0));
}

#[test]
fn on_a_network_file_system_bytes_count_by_call() {
    let fake = house();
    std::os::unix::fs::symlink("/data/x", fake.path("20/cwd")).unwrap();
    fake.file(
        "20/mountinfo",
        "1 1 8:1 / / rw - ext4 a rw\n2 1 0:1 / /data rw - nfs4 s:/ rw\n",
    );
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.process(20, US)
        .io(Some([7_000_000, 5_000_000, 0, 0]))
        .children(&[21, 22])
        .write();
    let job = tree.tick(1.0).sample;
    assert_eq!(job.read_mb_s, Reading::Value(7.0));
    assert_eq!(job.write_mb_s, Reading::Value(5.0));
}

#[test]
fn without_children_files_all_processes_are_looked_at_now_and_then() {
    let fake = house();
    for pid in [10, 11, 12, 20, 21, 22, 99] {
        std::fs::remove_file(fake.path(&format!("{pid}/task/{pid}/children"))).unwrap();
    }
    let mut tree = tree(&fake);
    assert_eq!(tree.tick(0.0).pids, BTreeSet::from([20, 21, 22]));
    fake.process(50, 21).write();
    fake.process(51, 50).write();
    assert_eq!(tree.tick(1.0).pids.len(), 3);
    assert_eq!(tree.tick(4.0).pids, BTreeSet::from([20, 21, 22, 50, 51]));
}

#[test]
fn leftovers_are_what_lives_besides_the_main_process() {
    let fake = house();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.remove(20);
    fake.process(21, US).state('S').name("worker").write();
    fake.process(22, US).state('Z').write();
    // An orphan that nobody saw start.
    fake.process(60, US).state('T').name("daemon").write();
    fake.process(US, 1).children(&[11, 21, 22, 60]).write();
    let left: Vec<_> = tree
        .leftovers()
        .into_iter()
        .map(|l| (l.id.pid, l.name, l.state))
        .collect();
    assert_eq!(
        left,
        [
            (21, "worker".to_owned(), ProcessState::Sleeping),
            (60, "daemon".to_owned(), ProcessState::Stopped)
        ]
    );
    let tick = tree.tick(1.0);
    assert!(told(&tick).contains(&(20, ProcessChange::Exited)));
    assert!(told(&tick).contains(&(60, ProcessChange::Started)));
    assert!(matches!(tick.sample.main_cores.why(), Some(Why::Failed(_))));
}

#[test]
fn helpers_started_later_are_taken_out_again() {
    let fake = house();
    let mut tree = tree(&fake);
    tree.tick(0.0);
    fake.process(100, US).write();
    fake.last_pid(100);
    tree.set_ours(BTreeSet::from([11, 100]));
    let tick = tree.tick(1.0);
    assert!(tick.changes.is_empty());
    assert_eq!(tick.pids, BTreeSet::from([20, 21, 22]));
}

#[test]
fn attached_to_a_running_process_it_and_its_descendants_are_the_job() {
    let fake = house();
    let root = ProcessId {
        pid: 20,
        start: 100,
    };
    let mut tree = JobTree::attached(fake.fs(), root);
    assert_eq!(tree.tick(0.0).pids, BTreeSet::from([20, 21, 22]));
    // Whoever was a member stays one, also as an orphan of somebody else's.
    fake.remove(20);
    fake.process(21, 1).write();
    assert_eq!(tree.tick(1.0).pids, BTreeSet::from([21, 22]));
    let stranger = ProcessId { start: 7, ..root };
    assert!(
        JobTree::attached(fake.fs(), stranger)
            .tick(0.0)
            .pids
            .is_empty()
    );
}

#[test]
fn a_change_becomes_an_event() {
    let fake = house();
    let fact = tree(&fake).tick(0.0).changes.remove(0);
    let event = crate::model::Event::from(fact);
    let json = serde_json::to_value(event).unwrap();
    assert_eq!(json["kind"], "process");
    assert_eq!(json["pid"], 20);
    assert_eq!(json["ppid"], US);
    assert_eq!(json["name"], "p20");
    assert_eq!(json["change"], "started");
}

#[test]
fn a_rank_is_known_by_its_number_when_it_ends() {
    let rank_of = |environment: &[u8]| {
        let value = environment.strip_prefix(b"RANK=")?.first()?;
        Some(u32::from(value - b'0'))
    };
    let fake = house();
    fake.process(23, 22).write();
    fake.process(22, 20).children(&[23]).write();
    fake.file("20/environ", "A=1\0");
    fake.file("21/environ", "RANK=0\0");
    fake.file("22/environ", "RANK=1\0");
    fake.file("23/environ", "RANK=1\0");
    let mut tree = tree(&fake).tell_ranks(rank_of);
    let ranks = |tick: &JobTick| -> Vec<_> {
        let facts = tick.changes.iter();
        facts.map(|c| (c.id.pid, c.rank)).collect()
    };
    assert_eq!(
        ranks(&tree.tick(0.0)),
        [(20, None), (21, Some(0)), (22, Some(1)), (23, None)]
    );
    tree.tick(1.0);
    fake.process(21, 20).state('Z').write();
    fake.file("21/environ", "");
    fake.remove(23);
    fake.remove(22);
    assert_eq!(
        ranks(&tree.tick(1.0)),
        [(21, Some(0)), (23, None), (22, Some(1))]
    );
}
