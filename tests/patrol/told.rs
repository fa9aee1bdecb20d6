//! Who is told what.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use super::machine::{
    ANA, BOB, CAT, DAN, Machine, end, fast, is_root, open_folder, process, wait_for,
};

use super::support::bus::{Bus, desktop_on};
use super::support::http_server::{Answer, Server};
use super::support::mail_server::{Script, server};
use super::support::{PATIENCE, Record, copy_program, wait_until};

/// Mail for owners by this server, everything for the administrator by this address.
fn settings(port: u16) -> Value {
    let mut profile = fast();
    let email = json!({"type": "email", "url": format!("smtp://127.0.0.1:{port}"), "from": "gpu@example.org",
        "to": ["admin@example.org"]});
    profile["tell"] = json!({"channels": {"post": email}, "routes": [{"to": ["post"], "findings": ["hardware"]}]});
    profile["patrol"] = json!({"owners": {"mail": "post", "domain": "example.org"}});
    profile
}

#[test]
fn each_owner_gets_mail_of_their_own_jobs_and_the_administrator_hears_of_all() {
    if !is_root() {
        return;
    }
    let machine = Machine::new(3);
    let (port, mails) = server(Script {
        refuses: None,
        offers: &[],
    });
    let heard = Server::start(&[Answer::status(200)]);
    let anas = machine.job(ANA.1, "anas-job sleep 3600", (0, 8000, 0));
    let bobs = machine.job(BOB.1, "bobs-job sleep 3600", (1, 8000, 0));
    let patrol = machine.patrol(
        &settings(port),
        &["--json", "--notify", &heard.url("/hook")],
    );
    let mut letters: Vec<Vec<String>> = Vec::new();
    for _ in 0..2 {
        letters.push(mails.recv_timeout(PATIENCE).unwrap());
    }
    let requests = heard.wait_for(2);
    for (user, own, other) in [
        (ANA.0, "anas-job", "bobs-job"),
        (BOB.0, "bobs-job", "anas-job"),
    ] {
        let to = format!("RCPT TO:<{user}@example.org>");
        let to_user: Vec<&Vec<String>> = letters.iter().filter(|l| l.contains(&to)).collect();
        assert_eq!(to_user.len(), 1, "{letters:?}");
        let text = to_user[0].join("\n");
        let receivers = text.matches("RCPT TO").count();
        assert_eq!(receivers, 1);
        assert!(text.contains(own) && !text.contains(other), "{text}");
        let mine = requests
            .iter()
            .filter(|r| r.json()["data"]["run"]["user"] == user);
        assert_eq!(mine.count(), 1);
    }
    let kinds: Vec<Value> = requests.iter().map(|r| r.json()["type"].clone()).collect();
    assert_eq!(kinds, ["job.idle-holding", "job.idle-holding"]);
    // The end of it is told to the same.
    drop(anas);
    let over = mails.recv_timeout(PATIENCE).unwrap().join("\n");
    assert!(
        over.contains(&format!("RCPT TO:<{}@example.org>", ANA.0)),
        "{over}"
    );
    let requests = heard.wait_for(3);
    assert_eq!(requests[2].json()["data"]["state"], "cleared");
    end(patrol);
    drop(bobs);
}

#[test]
fn a_run_that_gpuwatch_watches_tells_its_user_itself() {
    if !is_root() {
        return;
    }
    let machine = Machine::new(2);
    let (port, mails) = server(Script {
        refuses: None,
        offers: &[],
    });
    let heard = Server::start(&[Answer::status(200)]);
    let folder = open_folder();
    let gpuwatch = folder.path().join("gpuwatch");
    copy_program(env!("CARGO_BIN_EXE_gpuwatch").as_ref(), &gpuwatch);
    let runs = folder.path().join("runs");
    let script = format!(
        "HOME=/ exec {} run -q --gpus none --dir {} -- bash -c 'exec -a train sleep 3600'",
        gpuwatch.display(),
        runs.display()
    );
    let run = process(ANA.1, &script, Stdio::null());
    let child = child_named(run.pid(), "train");
    let id = Record::only_one_in(&runs).json()["id"].clone();
    machine.driver.hold(child, 0, 8000, 0);
    let patrol = machine.patrol(
        &settings(port),
        &["--json", "--notify", &heard.url("/hook")],
    );
    let requests = heard.wait_for(1);
    assert_eq!(requests[0].json()["data"]["run"]["id"], id);
    // Bob's is told to bob, and nothing came before it.
    let bobs = machine.job(BOB.1, "bobs-job sleep 3600", (1, 8000, 0));
    wait_for(&patrol, "idle-holding", "raised", BOB.0);
    let letter = mails.recv_timeout(PATIENCE).unwrap().join("\n");
    assert!(
        letter.contains(&format!("RCPT TO:<{}@example.org>", BOB.0)),
        "{letter}"
    );
    // Ana's record is the run's own.
    let users: Vec<_> = machine
        .jobs()
        .iter()
        .map(|job| job["user"].clone())
        .collect();
    assert_eq!(users, [BOB.0]);
    end(patrol);
    drop(bobs);
    drop(run);
}

fn child_named(parent: i32, name: &str) -> u32 {
    let mut found = None;
    wait_until("the child has started", || {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let children = children.unwrap_or_default();
        let is_it = |pid: &&str| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
            line.is_ok_and(|line| line.split('\0').next() == Some(name))
        };
        found = children
            .split_whitespace()
            .find(is_it)
            .and_then(|pid| pid.parse().ok());
        found.is_some()
    });
    found.unwrap()
}

/// The folder of a user's session, gone at the end.
struct Session(PathBuf);

impl Session {
    fn of(uid: u32) -> Self {
        let folder = Path::new("/run/user").join(uid.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        chown(&folder, Some(uid), None).unwrap();
        Self(folder)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn the_owner_sees_a_message_on_the_desktop_and_nobody_else_does() {
    if !is_root() {
        return;
    }
    let folder = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .unwrap();
    let (cats, dans) = (Session::of(CAT.1), Session::of(DAN.1));
    let bus = |(_, uid): (&str, u32), session: &Session| {
        let address = format!("unix:path={}/bus", session.0.display());
        Bus::of_user(uid, &address, folder.path())
    };
    let (Some(cats_bus), Some(dans_bus)) = (bus(CAT, &cats), bus(DAN, &dans)) else {
        return;
    };
    let (cats_desktop, dans_desktop) = (desktop_on(&cats_bus), desktop_on(&dans_bus));
    let machine = Machine::new(2);
    let job = machine.job(CAT.1, "cats-job sleep 3600", (0, 8000, 0));
    let patrol = machine.patrol(&fast(), &["--json"]);
    let (title, body, urgency) = cats_desktop.recv_timeout(PATIENCE).unwrap();
    assert!(title.starts_with("idle-holding: "), "{title}");
    assert!(body.contains("cats-job"), "{body}");
    assert_eq!(urgency, Some(1));
    end(patrol);
    assert!(dans_desktop.try_recv().is_err());
    drop(job);
}
