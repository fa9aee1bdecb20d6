//! Mail, to a server of a few lines.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use gpuwatch::model::Channel;

use super::harness::{Run, run_facts, secret, settings};
use super::support::PATIENCE;

/// What it does: which command it refuses, with which code.
struct Script {
    refuses: Option<(&'static str, u16)>,
    offers: &'static [&'static str],
}

/// A server of mail: its port, and every conversation's lines.
fn server(script: Script) -> (u16, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (said, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The test may be over.
            let _ = said.send(talk(&stream.unwrap(), &script));
        }
    });
    (port, heard)
}

fn talk(mut stream: &TcpStream, script: &Script) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut answer = |text: &str| stream.write_all(format!("{text}\r\n").as_bytes()).is_ok();
    answer("220 ready");
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return lines;
        }
        let line = line.trim_end().to_owned();
        lines.push(line.clone());
        let word = line
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_ascii_uppercase();
        let refused = script.refuses.filter(|(command, _)| *command == word);
        match (word.as_str(), refused) {
            (_, Some((_, code))) => {
                answer(&format!("{code} no, and your t0ken is wrong"));
            }
            ("EHLO", _) => {
                for offer in script.offers {
                    answer(&format!("250-{offer}"));
                }
                answer("250 SMTPUTF8");
            }
            ("AUTH", _) => drop(answer("235 welcome")),
            ("DATA", _) => {
                answer("354 go on");
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if line == ".\r\n" {
                        break;
                    }
                    lines.push(line.trim_end().to_owned());
                }
                answer("250 kept");
            }
            ("QUIT", _) => {
                answer("221 bye");
                return lines;
            }
            _ => drop(answer("250 ok")),
        }
    }
}

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
