//! A small HTTP client.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use super::PATIENCE;

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
