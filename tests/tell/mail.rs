//! Mail, to a server of a few lines.

use std::time::Duration;

use gpuwatch::model::Channel;

use super::harness::{Run, run_facts, secret, settings};
use super::support::PATIENCE;
use super::support::mail_server::{Script, server};

fn mail(url: &str) -> Channel {
    Channel::Email {
        url: secret(url),
        from: "gpuwatch <gpu@example.org>".into(),
        to: vec!["Ana <ana@example.org>".into(), "b@example.org".into()],
    }
}

#[test]
fn a_mail_arrives_in_two_forms_with_encoded_headers() {
    let (port, heard) = server(Script {
        refuses: None,
        offers: &["AUTH PLAIN LOGIN"],
    });
    let mut facts = run_facts();
    facts.name = "训练\r\nBcc: eve@example.org <b>".into();
    let channel = mail(&format!("smtp://me:t0ken@127.0.0.1:{port}"));
    let run = Run::of(settings(vec![channel]), facts);
    run.raise("stalled");
    assert_eq!(run.wait_for_fates(1), ["c0 stalled sent"]);
    let lines = heard.recv_timeout(PATIENCE).unwrap();
    run.end();
    let text = lines.join("\n");
    for part in [
        "RCPT TO:<ana@example.org>",
        "RCPT TO:<b@example.org>",
        "Subject: ",
        "=?utf-8?b?",
        "multipart/alternative",
        "text/plain",
        "text/html",
        "Message-ID: <msg_",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!lines.iter().any(|line| line.starts_with("Bcc")), "{text}");
}

#[test]
fn a_refusal_is_told_by_its_code_alone() {
    for (command, code, fate) in [
        ("AUTH", 535, "c0 stalled failed"),
        ("RCPT", 550, "c0 stalled failed"),
        ("MAIL", 451, "c0 stalled kept"),
    ] {
        let (port, heard) = server(Script {
            refuses: Some((command, code)),
            offers: &["AUTH PLAIN"],
        });
        let run = Run::with(vec![mail(&format!("smtp://me:t0ken@127.0.0.1:{port}"))]);
        run.raise("stalled");
        heard.recv_timeout(PATIENCE).unwrap();
        let end = run.end();
        assert_eq!(end.fates(), [fate], "{command}");
        let why = end.told.first_why.unwrap();
        assert!(why.contains(&code.to_string()), "{why}");
    }
}

#[test]
fn without_tls_nothing_is_sent_where_it_was_asked_for() {
    // TLS from the start, to a server that speaks none.
    let (port, heard) = server(Script {
        refuses: None,
        offers: &[],
    });
    let run = Run::with(vec![mail(&format!("smtps://me:t0ken@127.0.0.1:{port}"))]);
    run.raise("stalled");
    let end = run.end();
    assert_eq!(end.told.sent, 0);
    assert_eq!(end.fates(), ["c0 stalled kept"]);
    let heard = heard.recv_timeout(PATIENCE).unwrap();
    assert!(heard.is_empty(), "it was spoken to in plain: {heard:?}");
    assert!(end.took < Duration::from_millis(5500));
}
