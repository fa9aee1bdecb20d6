//! A private session bus, and a desktop on it.

#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::used_underscore_binding,
    reason = "the notification service's own signature, and what the macro makes of it"
)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use zbus::OwnedVariant;

use super::{PATIENCE, skipped};

/// A private session bus; `None`, and said, where it can't be had.
pub struct Bus {
    daemon: Child,
    pub address: String,
}

impl Bus {
    pub fn start() -> Option<Self> {
        Self::with(Command::new("dbus-daemon").arg("--session"))
    }

    /// The session of another user, at this address; whoever is root may join it, too.
    pub fn of_user(uid: u32, address: &str, folder: &Path) -> Option<Self> {
        let config = folder.join("bus.conf");
        let text = r#"<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow user="*"/><allow send_destination="*" eavesdrop="true"/>
            <allow eavesdrop="true"/><allow own="*"/></policy></busconfig>"#;
        std::fs::write(&config, text).unwrap();
        let reuid = format!("--reuid={uid}");
        let mut command = Command::new("setpriv");
        command
            .args([&reuid, "--regid=65534", "--clear-groups", "dbus-daemon"])
            .arg(format!("--config-file={}", config.display()))
            .arg(format!("--address={address}"));
        Self::with(&mut command)
    }

    fn with(command: &mut Command) -> Option<Self> {
        let started = command
            .args(["--nofork", "--nopidfile", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut daemon) = started else {
            skipped("dbus-daemon is not installed");
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
pub type Shown = (String, String, Option<u8>);

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
pub fn desktop_on(bus: &Bus) -> Receiver<Shown> {
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
