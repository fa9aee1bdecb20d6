//! The desktop: a real bus with a notification service, a bus without one, and one that never
//! answers.

#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::used_underscore_binding,
    reason = "the notification service's own signature, and what the macro makes of it"
)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use zbus::OwnedVariant;

use super::support::{PATIENCE, Sandbox};

/// A private session bus; `None`, and said, where it can't be had.
struct Bus {
    daemon: Child,
    address: String,
}

impl Bus {
    fn start() -> Option<Self> {
        let started = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut daemon) = started else {
            println!("skipped: dbus-daemon is not installed");
            return None;
        };
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        Some(Self {
            daemon,
            address: address.trim().to_owned(),
        })
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // Gone already is fine.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// What was shown: summary, body, urgency.
type Shown = (String, String, Option<u8>);

/// A desktop.
struct Desktop(Sender<Shown>);

#[zbus::interface(name = "org.freedesktop.Notifications")]
impl Desktop {
    fn notify(
        &self,
        _app: String,
        _replaces: u32,
        _icon: String,
        summary: String,
        body: String,
        _actions: Vec<String>,
        hints: HashMap<String, OwnedVariant>,
        _timeout: i32,
    ) -> u32 {
        let urgency = hints.get("urgency").and_then(|u| u8::try_from(u).ok());
        self.0.send((summary, body, urgency)).unwrap();
        1
    }
}

/// A notification service on this bus.
fn desktop_on(bus: &Bus) -> Receiver<Shown> {
    let (sender, shown) = channel();
    let (ready, is_ready) = channel();
    let address = bus.address.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let _connection = zbus::connection::Builder::address(address.as_str())
                .serve_at("/org/freedesktop/Notifications", Desktop(sender))
                .name("org.freedesktop.Notifications")
                .build()
                .await
                .unwrap();
            ready.send(()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    is_ready.recv_timeout(PATIENCE).unwrap();
    shown
}

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
