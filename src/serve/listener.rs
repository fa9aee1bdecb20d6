//! GET /metrics, for Prometheus: a small HTTP server on one thread.
//!
//! Owns the socket. Each connection carries one answer, is over within ten seconds whatever its
//! other end does, and where there are too many the oldest one goes: nobody can keep a scraper
//! out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use super::Shelf;
use crate::export::{Format, render};
use crate::model::Listen;

/// How long a request's head may take, and all of a connection.
const HEAD: Duration = Duration::from_secs(5);
const WHOLE: Duration = Duration::from_secs(10);

/// How much of a head is read: hyper's least, and far more than any scraper sends.
const HEAD_BYTES: usize = 8192;
const HEADERS: usize = 64;

/// Connections at once.
const MOST: usize = 32;

/// How long there is no accepting where the process has no descriptor left.
const BREATHER: Duration = Duration::from_millis(100);

/// The socket.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes the address.
    ///
    /// # Errors
    /// Why it can't be had, in one sentence.
    pub fn bind(listen: Listen) -> Result<Self, String> {
        let bound = TcpListener::bind(listen.0).and_then(|socket| {
            socket.set_nonblocking(true)?;
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        });
        bound.map_err(|error| {
            let cure = match error.kind() {
                io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => {
                    "; choose another port, or 0 for a free one"
                }
                io::ErrorKind::AddrNotAvailable => "; this machine doesn't have that address",
                _ => "",
            };
            format!("metrics can't be served at {listen}: {error}{cure}")
        })
    }

    /// Where it is, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until the process ends.
    ///
    /// # Errors
    /// What the system refused at the start.
    pub fn serve(self, shown: &Arc<Shelf>) -> io::Result<Infallible> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(accept(self.socket, shown))
    }
}

async fn accept(socket: TcpListener, shown: &Arc<Shelf>) -> io::Result<Infallible> {
    let socket = tokio::net::TcpListener::from_std(socket)?;
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = socket.accept().await else {
            tokio::time::sleep(BREATHER).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= MOST
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        // A defect of ours in it ends this connection alone.
        let task = tokio::spawn(connection(stream, Arc::clone(shown)));
        open.push_back(task.abort_handle());
    }
}

async fn connection(stream: TcpStream, shown: Arc<Shelf>) {
    let service = service_fn(move |request| {
        let answer = answer(&request, &shown);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .keep_alive(false);
    let serving = http.serve_connection(TokioIo::new(stream), service);
    // Whoever asks and doesn't listen, or says nonsense, has no answer.
    let _ = tokio::time::timeout(WHOLE, serving).await;
}

type Answer = Response<Full<Bytes>>;

fn answer(request: &Request<Incoming>, shown: &Shelf) -> Answer {
    if request.uri().path() != "/metrics" {
        return plain(
            StatusCode::NOT_FOUND,
            "There is nothing here but /metrics.\n",
        );
    }
    if *request.method() != Method::GET && *request.method() != Method::HEAD {
        let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        answer.headers_mut().insert(ALLOW, allowed);
        return answer;
    }
    let accepts = request.headers().get_all(ACCEPT).iter();
    let accepts: Vec<&str> = accepts.filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted(&accepts.join(","));
    body(
        StatusCode::OK,
        format.content_type(),
        metrics(shown, format),
    )
}

fn metrics(shown: &Shelf, format: Format) -> String {
    let (scrape, age) = shown.look();
    let mut scrape = (*scrape).clone();
    for job in &mut scrape.jobs {
        // To the millisecond, as all times are.
        let age_s = age.as_millis() as f64 / 1000.0;
        job.sample_age_s = job.sampled.map(|_| age_s);
    }
    render(&scrape, format)
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    body(status, "text/plain; charset=utf-8", text.to_owned())
}

fn body(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
