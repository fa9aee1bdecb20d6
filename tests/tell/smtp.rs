//! Mail to a real server (aiosmtpd), read by Python's email library.
//!
//! `GPUWATCH_TEST_MAIL_PYTHON` is an interpreter that has it (`tests/run` makes one).

use std::process::Command;

use serde_json::{Value, json};

use super::harness::SECRET;
use super::support::certificates::Certificates;
use super::support::{Ended, Job, Live, Sandbox, for_each, provided, script, wait_until};

/// This machine, by an address of which it can't be told: what is plain must be refused there.
const ABROAD: &str = "[::ffff:127.0.0.1]";

struct Server {
    live: Live,
    port: u16,
    url: &'static str,
}

impl Server {
    /// `starttls`, `tls` or `plain`.
    fn start(python: &str, how: &str, files: &Certificates) -> Self {
        let program = script("mail_server.py");
        let words = [&program, how, &files.certificate(), &files.key()];
        let live = Live::in_pipes(Command::new(python).args(["-W", "ignore"]).args(words));
        live.wait_for_out("\n");
        let mut server = Self {
            live,
            port: 0,
            url: if how == "tls" { "smtps" } else { "smtp" },
        };
        server.port = server.said()[0]["port"].as_u64().unwrap() as u16;
        server
    }

    fn said(&self) -> Vec<Value> {
        let out = self.live.out_so_far();
        let whole = out.rfind('\n').map_or("", |end| &out[..=end]);
        whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn mails(&self) -> Vec<Value> {
        let said = self.said().into_iter();
        said.filter(|said| !said["mail"].is_null()).collect()
    }

    /// A profile with a channel to it.
    fn profile(&self, sandbox: &Sandbox, host: &str, password: &str) {
        let url = format!("{}://me:{password}@{host}:{}", self.url, self.port);
        let to = r#"["Åsa <asa@example.org>", b@example.org]"#;
        let profile = format!(
            "tell: {{channels: {{post: {{type: email, url: '{url}', from: gpu@example.org, to: {to}}}}}}}\n"
        );
        std::fs::write(sandbox.path("p.yaml"), profile).unwrap();
    }
}

fn test(sandbox: &Sandbox, authority: Option<&str>) -> Ended {
    trusting(
        sandbox.gpuwatch(&["alert", "test", "--profile", "p.yaml"]),
        authority,
    )
    .run()
}

fn trusting(job: Job, authority: Option<&str>) -> Job {
    match authority {
        Some(file) => job.env("SSL_CERT_FILE", file),
        None => job,
    }
}

#[test]
fn a_mail_arrives_encrypted_and_reads_well() {
    let Some(python) = provided("GPUWATCH_TEST_MAIL_PYTHON") else {
        return;
    };
    let files = Certificates::new();
    for_each(&["starttls", "tls"], |how| {
        let server = Server::start(&python, how, &files);
        let sandbox = Sandbox::new();
        server.profile(&sandbox, ABROAD, SECRET);
        let options = [
            "--profile",
            "p.yaml",
            "--name",
            "训练 <b>\"Ü\"</b> & so on 🎉",
        ];
        let job = sandbox.watched(&options, &["sh", "-c", "exit 3"]);
        let ended = trusting(job, Some(&files.authority())).run();
        assert_eq!(ended.code(), Some(3), "{}", ended.err());
        assert!(!ended.err().contains("not sent"), "{}", ended.err());
        wait_until("it arrived", || server.mails().len() == 1);
        let mail = server.mails().remove(0);
        assert_eq!(server.said()[1], json!({"login": "me", "encrypted": true}));
        assert_eq!(
            (&mail["encrypted"], &mail["ascii"]),
            (&json!(true), &json!(true))
        );
        assert_eq!(mail["defects"], json!([]));
        assert_eq!(
            mail["receivers"],
            json!(["asa@example.org", "b@example.org"])
        );
        let subject = mail["mail"].as_str().unwrap();
        assert!(
            subject.contains("训练 <b>\"Ü\"</b> & so on 🎉"),
            "{subject}"
        );
        assert_eq!(mail["type"], "multipart/alternative");
        let part = |n: usize| {
            let part = &mail["parts"][n];
            (part[0].as_str().unwrap(), part[1].as_str().unwrap())
        };
        assert_eq!((part(0).0, part(1).0), ("text/plain", "text/html"));
        assert!(part(0).1.contains("exit code 3"), "{}", part(0).1);
        let html = part(1).1;
        assert!(html.contains("训练 &lt;b&gt;"), "{html}");
        assert!(!html.contains("<b>"), "{html}");
        assert!(!mail.to_string().contains(SECRET));
    });
}

#[test]
fn a_wrong_password_is_one_clear_error_without_it() {
    let Some(python) = provided("GPUWATCH_TEST_MAIL_PYTHON") else {
        return;
    };
    let files = Certificates::new();
    let server = Server::start(&python, "starttls", &files);
    let sandbox = Sandbox::new();
    server.profile(&sandbox, ABROAD, "wr0ng");
    let ended = test(&sandbox, Some(&files.authority()));
    assert_eq!(ended.code(), Some(1));
    assert_eq!(
        ended.out(),
        "post (email), test: failed: ::ffff:7f00:1 refused the login with code 535: check user and password\n"
    );
    assert_eq!(ended.err(), "");
    assert!(server.mails().is_empty());
}

/// No STARTTLS, and a certificate that nobody vouches for: no word of ours goes there.
#[test]
fn nothing_goes_to_whom_it_should_not() {
    let Some(python) = provided("GPUWATCH_TEST_MAIL_PYTHON") else {
        return;
    };
    let files = Certificates::new();
    let cases = [
        ("plain", "STARTTLS"),
        ("starttls", "SSL_CERT_FILE"),
        ("tls", "SSL_CERT_FILE"),
    ];
    for_each(&cases, |(how, said)| {
        let server = Server::start(&python, how, &files);
        let sandbox = Sandbox::new();
        server.profile(&sandbox, ABROAD, SECRET);
        let ended = test(&sandbox, None);
        assert_eq!(ended.code(), Some(1), "{how}");
        let out = ended.out();
        assert!(out.contains(said) && !out.contains(SECRET), "{how}: {out}");
        assert_eq!(server.said().len(), 1, "{how}: {:?}", server.said());
    });
}

/// A mail server of the machine itself has a certificate that nobody signed, or none.
#[test]
fn this_machines_own_server_needs_nobody_to_vouch_for_it() {
    let Some(python) = provided("GPUWATCH_TEST_MAIL_PYTHON") else {
        return;
    };
    let files = Certificates::new();
    for_each(&["starttls", "plain"], |how| {
        let server = Server::start(&python, how, &files);
        let sandbox = Sandbox::new();
        server.profile(&sandbox, "127.0.0.1", SECRET);
        let ended = test(&sandbox, None);
        assert_eq!(ended.out(), "post (email), test: ok\n", "{how}");
        assert_eq!(server.mails()[0]["encrypted"], *how == "starttls");
    });
}
