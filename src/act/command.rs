//! A user's command: for a finding, or as a channel of alerts.
//!
//! Owns what such a program is given and how its end is told. It is started in a group of its
//! own, inherits nothing but the environment, and is no part of the job.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use nix::unistd::{Uid, User};

use crate::model::units::seconds_text;
use crate::model::{Event, Logged, OwnProcesses, Program, Programs};

use super::process::{self, Bounds};

/// How long a command on a finding may take.
pub const WITHIN: Duration = Duration::from_secs(30);

/// Runs programs that are no part of the job.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    own: OwnProcesses,
    /// Another user that they are started as.
    user: Option<u32>,
}

impl Commands {
    /// Their processes are entered in this list while they live.
    pub fn new(own: OwnProcesses) -> Self {
        Self { own, user: None }
    }

    /// They are started as this user, which root alone can do, with nothing of our environment
    /// but what the user's session has.
    pub fn as_user(own: OwnProcesses, uid: u32) -> Self {
        Self {
            own,
            user: Some(uid),
        }
    }

    /// Whether this user has a session bus.
    pub fn has_session(uid: u32) -> bool {
        let socket = std::fs::symlink_metadata(session_bus(uid));
        // Nobody else's, whoever could make the folder.
        socket.is_ok_and(|file| file.file_type().is_socket() && file.uid() == uid)
    }
}

impl Programs for Commands {
    fn run(&self, program: &Program) -> Result<(), String> {
        let Some((name, args)) = program.argv.split_first() else {
            return Err("there is no program to run".to_owned());
        };
        let mut command = Command::new(name);
        if let Some(uid) = self.user {
            become_user(&mut command, uid);
        }
        command
            .args(args)
            .envs(program.env.iter().map(|(name, value)| (name, value)));
        // What it prints would land between the lines of the job: it goes nowhere.
        let bounds = Bounds {
            within: program.within,
            output: 0,
        };
        let output =
            process::run(command, &program.stdin, bounds, &self.own).map_err(|e| cant_start(&e))?;
        match output.status {
            None => Err(format!(
                "it was killed: it took longer than {}",
                seconds_text(program.within.as_secs_f64())
            )),
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(ended(status)),
        }
    }
}

/// The command for a finding: the event as one JSON object on stdin, and what a shell script
/// needs of it in `GPUWATCH_FINDING`, `GPUWATCH_STATE`, `GPUWATCH_SEVERITY`, `GPUWATCH_ADVICE`.
///
/// `None` for any other event.
pub fn on_finding(argv: &[String], run_id: &str, logged: &Logged) -> Option<Program> {
    let Event::Finding {
        name,
        severity,
        state,
        advice,
        ..
    } = &logged.event
    else {
        return None;
    };
    let word = |value: serde_json::Result<serde_json::Value>| match value {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    };
    let variable = |name: &str, value: String| (format!("GPUWATCH_{name}"), value);
    let mut stdin = serde_json::to_vec(logged).unwrap_or_default();
    stdin.push(b'\n');
    Some(Program {
        argv: argv.to_vec(),
        env: vec![
            variable("RUN_ID", run_id.to_owned()),
            variable("FINDING", name.clone()),
            variable("STATE", word(serde_json::to_value(state))),
            variable("SEVERITY", word(serde_json::to_value(severity))),
            variable(
                "ADVICE",
                advice.clone().unwrap_or_default().replace('\0', ""),
            ),
        ],
        stdin,
        within: WITHIN,
    })
}

fn session_bus(uid: u32) -> String {
    format!("/run/user/{uid}/bus")
}

/// std gives up supplementary groups, then the group, then the user, between fork and exec.
fn become_user(command: &mut Command, uid: u32) {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    // A user without a name has no group either: its number is nobody else's.
    let gid = user.as_ref().map_or(uid, |user| user.gid.as_raw());
    let bus = format!("unix:path={}", session_bus(uid));
    command
        .uid(uid)
        .gid(gid)
        .current_dir("/")
        .env_clear()
        .env("DBUS_SESSION_BUS_ADDRESS", bus)
        .env("XDG_RUNTIME_DIR", format!("/run/user/{uid}"));
}

fn cant_start(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program: give its path".to_owned(),
        io::ErrorKind::PermissionDenied => "it isn't executable: chmod +x it".to_owned(),
        kind => format!("it can't be started: {kind}"),
    }
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it died of signal {signal}"),
        (None, None) => "it ended in an unknown way".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::model::{FindingState, Severity, Stamp};

    fn sh(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).into()
    }

    #[test]
    fn a_command_on_a_finding_gets_it_twice() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("out");
        let logged = Logged {
            stamp: Stamp::default(),
            event: Event::Finding {
                name: "stalled".into(),
                cause: None,
                severity: Severity::Critical,
                state: FindingState::Raised,
                because: None,
                since_s: 3.0,
                evidence: Map::new(),
                advice: Some("look".into()),
            },
        };
        let script = format!(
            "{{ cat; echo $GPUWATCH_FINDING $GPUWATCH_STATE $GPUWATCH_SEVERITY $GPUWATCH_ADVICE $GPUWATCH_RUN_ID; }} > {}",
            file.display()
        );
        let program = on_finding(&sh(&script), "run-1", &logged).unwrap();
        Commands::default().run(&program).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let (json, words) = text.split_once('\n').unwrap();
        assert_eq!(serde_json::from_str::<Logged>(json).unwrap(), logged);
        assert_eq!(words, "stalled raised critical look run-1\n");
    }

    #[test]
    fn failures_are_told_without_its_arguments() {
        let run = |argv: Vec<String>| {
            Commands::default()
                .run(&Program {
                    argv,
                    env: vec![],
                    stdin: vec![],
                    within: Duration::from_millis(300),
                })
                .unwrap_err()
        };
        assert_eq!(run(sh("exit 3")), "it ended with exit code 3");
        assert_eq!(run(sh("kill -9 $$")), "it died of signal 9");
        assert!(run(sh("sleep 600")).contains("longer than 0.3 s"));
        assert!(run(vec!["/no/such/s3cret".into()]).contains("no such program"));
        assert!(!run(vec!["/no/such/s3cret".into()]).contains("s3cret"));
    }
}
