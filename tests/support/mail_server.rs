//! A server of mail of a few lines, and what it was told.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// What it does: which command it refuses, with which code.
pub struct Script {
    pub refuses: Option<(&'static str, u16)>,
    pub offers: &'static [&'static str],
}

/// A server of mail: its port, and every conversation's lines.
pub fn server(script: Script) -> (u16, Receiver<Vec<String>>) {
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
