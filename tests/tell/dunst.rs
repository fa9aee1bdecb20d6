//! A real desktop: dunst, on a private bus and a screen that nobody sees.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::support::bus::Bus;
use super::support::{Sandbox, skipped, wait_until};

/// A program that is ended with the test.
struct Beside(Child);

impl Beside {
    fn start(command: &mut Command) -> Option<Self> {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        match quiet.spawn() {
            Ok(child) => Some(Self(child)),
            Err(error) => {
                skipped(&format!("{command:?} can't be started: {error}"));
                None
            }
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Gone already is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The screen, and dunst on it.
struct Desktop {
    bus: Bus,
    _dunst: Beside,
    _screen: Beside,
}

impl Desktop {
    fn start(sandbox: &Sandbox) -> Option<Self> {
        let bus = Bus::start()?;
        let number = sandbox.path("display");
        // The screen takes a number that is free, and says which.
        let mut words = Command::new("sh");
        let say = format!(
            "exec Xvfb -displayfd 3 -nolisten tcp 3>'{}'",
            number.display()
        );
        let screen = Beside::start(words.args(["-c", &say]))?;
        wait_until("there is a screen", || {
            std::fs::read_to_string(&number).is_ok_and(|text| text.ends_with('\n'))
        });
        let display = std::fs::read_to_string(&number).unwrap();
        let dunst = Beside::start(
            Command::new("dunst")
                .env("DISPLAY", format!(":{}", display.trim()))
                .env("DBUS_SESSION_BUS_ADDRESS", &bus.address)
                .env("HOME", sandbox.path("")),
        )?;
        let desktop = Self {
            bus,
            _dunst: dunst,
            _screen: screen,
        };
        wait_until("dunst answers", || desktop.control("count").is_some());
        Some(desktop)
    }

    fn control(&self, word: &str) -> Option<String> {
        let mut command = Command::new("dunstctl");
        command
            .arg(word)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.bus.address);
        let done = command.output().expect("dunstctl comes with dunst");
        let out = String::from_utf8(done.stdout).unwrap();
        done.status.success().then_some(out)
    }

    /// What was shown, the newest first.
    fn shown(&self) -> Vec<Value> {
        self.control("close-all").unwrap();
        let history = self.control("history").unwrap();
        let history: Value = serde_json::from_str(&history).unwrap();
        history["data"][0].as_array().unwrap().clone()
    }
}

const JOB: &str = r#"until grep -q '"alert"' "$GPUWATCH_RUN_DIR/events.jsonl"; do
    i=$((i+1)); echo step $i/1000 loss 9.0; sleep 0.1; done"#;

#[test]
fn markup_is_shown_as_it_is() {
    let sandbox = Sandbox::new();
    let Some(desktop) = Desktop::start(&sandbox) else {
        return;
    };
    let profile = "rules: [{name: high, when: progress.loss > 1, for: 0s, severity: critical,
        say: '<i>look</i> & \"see\"'}]\n";
    std::fs::write(sandbox.path("p.yaml"), profile).unwrap();
    let name = "<b>训练</b> & <img src=\"x\">";
    let options = [
        "--desktop",
        "--profile",
        "p.yaml",
        "--interval",
        "200ms",
        "--name",
        name,
    ];
    sandbox
        .watched(&options, &["sh", "-c", JOB])
        .env("DBUS_SESSION_BUS_ADDRESS", &desktop.bus.address)
        .run()
        .assert_ok();
    let shown = desktop.shown();
    assert_eq!(shown.len(), 1, "{shown:?}");
    let of = |key: &str| shown[0][key]["data"].as_str().unwrap().to_owned();
    assert_eq!(of("appname"), "gpuwatch");
    // The summary is no markup, so nothing in it is escaped; the body is.
    let summary = of("summary");
    assert!(
        summary.starts_with(&format!("high: {name} on ")),
        "{summary}"
    );
    let body = of("body");
    assert!(
        body.contains("&lt;i&gt;look&lt;/i&gt; &amp; \"see\""),
        "{body}"
    );
    // What dunst gives to its renderer is well formed, and has no other markup than its own.
    let drawn = of("message");
    assert_eq!(drawn.matches('<').count(), 2, "{drawn}");
    assert!(
        drawn.starts_with("<b>high: &lt;b&gt;训练&lt;/b&gt; &amp; &lt;img"),
        "{drawn}"
    );
}
