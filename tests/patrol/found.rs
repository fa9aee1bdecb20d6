//! What is found, and what is left in peace.

use serde_json::json;

use super::machine::{ANA, BOB, Machine, end, fast, is_root, process, said, wait_for};

/// What was said of a user, each once.
fn of(said: &[(String, String, String)], user: &str) -> Vec<String> {
    let mut names: Vec<String> = said
        .iter()
        .filter(|s| s.2 == user)
        .map(|s| s.0.clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn idle_orphaned_and_defunct_jobs_are_found_and_nobody_is_ended() {
    if !is_root() {
        return;
    }
    let mut machine = Machine::new(4);
    let mut idle = machine.job(ANA.1, "python sleep 3600", (0, 8000, 0));
    let orphan = machine.orphan(BOB.1, (1, 4000));
    // A child that has ended and isn't reaped; the driver still lists it.
    let script = "sleep 0.1 & exec -a parent sleep 3600";
    let mut parent = process(ANA.1, script, std::process::Stdio::null());
    let zombie = zombie_of(parent.pid());
    machine.set(
        2,
        json!({"processes": [{"pid": zombie, "mem_mib": 3000, "sm": 0}]}),
    );
    let patrol = machine.patrol(&fast(), &["--json"]);
    wait_for(&patrol, "idle-holding", "raised", ANA.0);
    wait_for(&patrol, "orphans", "raised", BOB.0);
    wait_for(&patrol, "defunct", "raised", ANA.0);
    wait_for(&patrol, "idle-holding", "raised", BOB.0);
    assert!(idle.running() && parent.running() && orphan.lives());
    // Explained by the orphans: no alarm of its own.
    let lines = end(patrol);
    let bobs_idle: Vec<&str> = lines
        .lines()
        .filter(|l| l.contains("idle-holding") && l.contains(BOB.0))
        .collect();
    assert!(
        bobs_idle
            .iter()
            .all(|l| l.contains("\"severity\":\"note\"")),
        "{bobs_idle:?}"
    );
    assert!(idle.running() && parent.running() && orphan.lives());
}

fn zombie_of(parent: i32) -> u32 {
    let mut found = 0;
    super::support::wait_until("a child is a zombie", || {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let children = children.unwrap_or_default();
        found = children
            .split_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok())
            .unwrap_or(0);
        let stat = std::fs::read_to_string(format!("/proc/{found}/stat")).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
    });
    found
}

#[test]
fn trainings_notebooks_servers_and_what_is_exempt_are_left_in_peace() {
    if !is_root() {
        return;
    }
    let machine = Machine::new(6);
    let healthy = [
        machine.job(ANA.1, "python sleep 3600", (0, 30_000, 97)),
        machine.job(
            ANA.1,
            "python3 bash -c 'read -r x; echo' -m ipykernel_launcher",
            (1, 2000, 0),
        ),
        machine.job(ANA.1, "python3 cat", (2, 2000, 0)),
        machine.server(ANA.1, (3, 9000)),
        machine.job(ANA.1, "jax sleep 3600", (4, 2000, 0)),
    ];
    // Last, so that the others have had their time when this one is found.
    let mut profile = fast();
    profile["patrol"] = json!({"exempt": [{"user": ANA.0, "command": "jax *", "why": "a course"}]});
    let patrol = machine.patrol(&profile, &["--json"]);
    machine.wait_for_records(4);
    let idle = machine.job(BOB.1, "python sleep 3600", (5, 8000, 0));
    wait_for(&patrol, "idle-holding", "raised", BOB.0);
    let first = of(&said(&patrol), ANA.0);
    // Busy again, and over: it is cleared.
    machine.driver.hold(idle.pid() as u32, 5, 8000, 90);
    wait_for(&patrol, "idle-holding", "cleared", BOB.0);
    machine.driver.hold(idle.pid() as u32, 5, 8000, 0);
    let raised = || {
        said(&patrol)
            .iter()
            .filter(|s| s.1 == "raised" && s.2 == BOB.0)
            .count()
    };
    super::support::wait_until("it is idle again", || raised() >= 2);
    let later = of(&said(&patrol), ANA.0);
    let alarms: Vec<&String> = first
        .iter()
        .chain(&later)
        .filter(|name| !["idle-interactive", "idle-serving"].contains(&name.as_str()))
        .collect();
    assert!(alarms.is_empty(), "{alarms:?}");
    end(patrol);
    drop(healthy);
}

#[test]
fn memory_that_no_process_holds_is_a_finding_of_the_machine() {
    let mut machine = Machine::new(2);
    machine.set(1, json!({"base_mib": 9000}));
    let patrol = machine.patrol(&fast(), &["--json"]);
    if std::fs::read_link("/proc/self/ns/pid").unwrap().to_str() != Some("pid:[4026531836]") {
        eprintln!("skipped: in a PID namespace processes are hidden");
        return;
    }
    wait_for(&patrol, "unexplained-memory", "raised", "");
    machine.set(1, json!({}));
    wait_for(&patrol, "unexplained-memory", "cleared", "");
    end(patrol);
}
