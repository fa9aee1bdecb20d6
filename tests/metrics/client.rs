//! A small HTTP client, and what it finds in an answer.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::support::{Live, PATIENCE, wait_until};

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Sends these bytes as they are; None where there is no answer.
pub fn send(address: &str, request: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    // Whoever is refused early may not be able to send all.
    let _ = stream.write_all(request);
    read(&mut stream)
}

/// What comes until the other end closes.
pub fn read(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        // That is the end, too; silence is not.
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some(Answer {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    })
}

/// GET; HTTP/1.0 has no chunks.
pub fn get(address: &str, path: &str) -> Option<Answer> {
    send(address, format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())
}

/// The metrics of a run at this address.
pub fn metrics(address: &str) -> String {
    let answer = get(address, "/metrics").expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body
}

/// The values of this metric, wherever its labels hold this text.
pub fn values(text: &str, metric: &str, label: &str) -> Vec<f64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(metric));
    let its = lines.filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(label));
    its.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
        .collect()
}

/// Where a run that was started with `--metrics 0` says that it is.
pub fn address(live: &Live) -> String {
    let mut found = None;
    wait_until("the address is said", || {
        let said = live.err_so_far();
        found = said
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once("/metrics"))
            .map(|(address, _)| address.to_owned());
        found.is_some()
    });
    found.unwrap()
}

/// Waits until the run at this address has been looked at, and gives its metrics.
pub fn sampled(address: &str) -> String {
    let mut text = String::new();
    wait_until("a sample", || {
        text = metrics(address);
        !values(&text, "gpuwatch_job_last_sample_timestamp_seconds", "").is_empty()
    });
    text
}
