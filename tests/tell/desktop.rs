//! The desktop: a real bus with a notification service, a bus without one, and one that never
//! answers.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use super::support::bus::{Bus, desktop_on};
use super::support::{PATIENCE, Sandbox};

fn test_on(address: &str) -> (super::support::Ended, Duration) {
    let sandbox = Sandbox::new();
    let begun = Instant::now();
    let ended = sandbox
        .gpuwatch(&["alert", "test", "--desktop"])
        .env("DBUS_SESSION_BUS_ADDRESS", address)
        .run();
    (ended, begun.elapsed())
}

#[test]
fn a_message_is_shown() {
    let Some(bus) = Bus::start() else { return };
    let shown = desktop_on(&bus);
    let (ended, _) = test_on(&bus.address);
    assert_eq!(
        ended.out(),
        "desktop (desktop), test: ok\n",
        "{}",
        ended.err()
    );
    let (summary, body, urgency) = shown.recv_timeout(PATIENCE).unwrap();
    assert!(
        summary.starts_with("test: gpuwatch alert test"),
        "{summary}"
    );
    assert!(body.contains("This is a test"), "{body}");
    assert_eq!(urgency, Some(1));
}

#[test]
fn no_service_and_no_bus_fail_at_once() {
    let mut addresses = vec!["unix:path=/no/such/bus".to_owned()];
    let bus = Bus::start();
    addresses.extend(bus.iter().map(|bus| bus.address.clone()));
    for address in addresses {
        let (ended, took) = test_on(&address);
        assert_eq!(ended.code(), Some(1));
        assert!(
            ended.out().contains("no notification service"),
            "{}",
            ended.out()
        );
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
}

#[test]
fn a_bus_that_never_answers_is_left_after_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            held.push(stream);
        }
    });
    let (ended, took) = test_on(&format!("unix:path={}", path.display()));
    assert!(
        ended.out().contains("did not answer within 1 s"),
        "{}",
        ended.out()
    );
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// A run whose alarm nobody shows ends a second later at the most, and says so in one line.
#[test]
fn a_run_is_not_held_up_by_its_desktop() {
    const JOB: &str = r#"until grep -q '"high"' "$GPUWATCH_RUN_DIR/events.jsonl"; do
        i=$((i+1)); echo step $i/1000 loss 9.0; sleep 0.1; done; echo over; exit 7"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bus");
    let _silent = UnixListener::bind(&path).unwrap();
    for address in [
        "unix:path=/no/such/bus",
        &format!("unix:path={}", path.display()),
    ] {
        let sandbox = Sandbox::new();
        let rules = "rules: [{name: high, when: progress.loss > 1, for: 0s, severity: critical}]\n";
        std::fs::write(sandbox.path("p.yaml"), rules).unwrap();
        let options = ["--desktop", "--profile", "p.yaml", "--interval", "200ms"];
        let mut live = sandbox
            .watched(&options, &["sh", "-c", JOB])
            .env("DBUS_SESSION_BUS_ADDRESS", address)
            .start();
        live.wait_for_out("over");
        let since = Instant::now();
        live.wait();
        // Five are allowed for all channels together; one it is on a quiet machine.
        assert!(
            since.elapsed() < Duration::from_secs(4),
            "{:?}",
            since.elapsed()
        );
        let ended = live.end();
        assert_eq!(ended.code(), Some(7));
        let own = ended.own_lines();
        let notes = own.iter().filter(|line| line.contains("not sent"));
        assert_eq!(notes.count(), 1, "{own:?}");
    }
}
