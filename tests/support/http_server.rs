//! A small HTTP server that does what its script says, and keeps what it was sent.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::PATIENCE;

/// What it does with a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A status, headers, a body.
    Say(u16, Vec<(&'static str, String)>, &'static str),
    /// Nothing, for ever.
    Silence,
    /// One byte a second.
    Drip,
    /// A good status at once, and of the body one byte a second.
    SlowBody,
    /// Closes the connection.
    HangUp,
}

impl Answer {
    /// A status alone.
    pub fn status(code: u16) -> Self {
        Self::Say(code, Vec::new(), "")
    }

    /// A status and one header.
    pub fn with(code: u16, name: &'static str, value: impl Into<String>) -> Self {
        Self::Say(code, vec![(name, value.into())], "")
    }
}

/// A request as it arrived; header names in lower case.
#[derive(Clone, Debug)]
pub struct Request {
    pub at: Instant,
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Request {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct State {
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    instead: Mutex<Option<Answer>>,
}

/// The server. It answers with its script's entries in turn, and with the last one from then on.
pub struct Server {
    at: SocketAddr,
    state: Arc<State>,
}

impl Server {
    pub fn start(script: &[Answer]) -> Self {
        Self::on(&TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    /// At another address of this machine.
    pub fn on(listener: &TcpListener, script: &[Answer]) -> Self {
        let listener = listener.try_clone().unwrap();
        let at = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let (ours, script) = (Arc::clone(&state), script.to_vec());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (state, script) = (Arc::clone(&ours), script.clone());
                std::thread::spawn(move || serve(&stream.unwrap(), &state, &script));
            }
        });
        Self { at, state }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    /// From now on it gives this answer and no other.
    pub fn answer(&self, answer: Answer) {
        *self.state.instead.lock().unwrap() = Some(answer);
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Waits until so many requests have arrived.
    pub fn wait_for(&self, n: usize) -> Vec<Request> {
        let requests = self.state.requests.lock().unwrap();
        let (requests, waited) = self
            .state
            .arrived
            .wait_timeout_while(requests, PATIENCE, |r| r.len() < n)
            .unwrap();
        assert!(
            !waited.timed_out(),
            "{} of {n} requests came",
            requests.len()
        );
        requests.clone()
    }
}

/// An address on which nobody listens.
pub fn closed_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/hook/t0ken", listener.local_addr().unwrap())
}

fn serve(stream: &TcpStream, state: &State, script: &[Answer]) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read(&mut reader) {
        let answer = {
            let mut requests = state.requests.lock().unwrap();
            requests.push(request);
            state.arrived.notify_all();
            let at = (requests.len() - 1).min(script.len() - 1);
            let instead = state.instead.lock().unwrap().clone();
            instead.unwrap_or_else(|| script[at].clone())
        };
        // Whoever hangs up first has heard enough.
        if give(stream, &answer).is_err() {
            return;
        }
    }
}

fn give(mut stream: &TcpStream, answer: &Answer) -> std::io::Result<()> {
    match answer {
        Answer::Say(code, headers, body) => {
            write!(stream, "HTTP/1.1 {code} X\r\n")?;
            for (name, value) in headers {
                write!(stream, "{name}: {value}\r\n")?;
            }
            write!(stream, "content-length: {}\r\n\r\n{body}", body.len())
        }
        Answer::Silence => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        Answer::Drip => drip(stream, "HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n"),
        Answer::SlowBody => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n")?;
            drip(stream, &"{".repeat(9000))
        }
        Answer::HangUp => Err(std::io::ErrorKind::ConnectionAborted.into()),
    }
}

fn drip(mut stream: &TcpStream, text: &str) -> std::io::Result<()> {
    for byte in text.bytes() {
        stream.write_all(&[byte])?;
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        at: Instant::now(),
        method,
        path,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}
