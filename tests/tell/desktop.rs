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
