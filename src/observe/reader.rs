//! The process that looks at followed files: a file system that hangs holds this process alone.
//!
//! Owns what is asked of it and what it answers, a line of JSON each on one socket. It ends with
//! that socket.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use nix::sys::signal::SigSet;
use serde::{Deserialize, Serialize};

use super::followed::{Before, Followed, Found};
use crate::sys::process::{READER_NAME, call_us};

/// Look.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Request {
    /// About so many bytes of each path, at most.
    pub room: usize,
    /// It is the last time: search for everything once more.
    pub is_last: bool,
}

/// What was found, for each path in the order in which they were given. The first, empty reply
/// says that what was there before the command is known.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Reply(pub Vec<OfPath>);

/// What was found at one path.
#[derive(Debug, Serialize, Deserialize)]
pub struct OfPath {
    /// What was added.
    pub found: Vec<Found>,
    /// Why something that is there can't be read.
    pub error: Option<String>,
    /// Something to follow was there at some time.
    pub was_there: bool,
}

/// Answers until the socket ends.
///
/// # Errors
/// The socket can't be read or written, or what came is no request.
pub fn serve(paths: &[PathBuf], socket: OwnedFd) -> io::Result<()> {
    // Signals to the group are meant for the command; our end is the socket's.
    let _ = SigSet::all().thread_block();
    call_us(READER_NAME);
    let socket = UnixStream::from(socket);
    let mut requests = BufReader::new(socket.try_clone()?);
    let before = Before::of(paths);
    let mut followed: Vec<Followed> = paths
        .iter()
        .map(|path| Followed::new(path.clone(), before.clone()))
        .collect();
    answer(&socket, &Reply::default())?;
    let mut line = String::new();
    while requests.read_line(&mut line)? > 0 {
        let request: Request = serde_json::from_str(&line)?;
        line.clear();
        let looks = followed.iter_mut().map(|path| look(path, request));
        answer(&socket, &Reply(looks.collect()))?;
    }
    Ok(())
}

fn look(path: &mut Followed, request: Request) -> OfPath {
    if request.is_last {
        path.search_again();
    }
    let (found, result) = path.look(request.room);
    OfPath {
        found,
        error: result.err().map(|error| error.to_string()),
        was_there: path.was_there(),
    }
}

fn answer(mut socket: &UnixStream, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// Bytes as a JSON string.
pub(super) mod base64 {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(d)?;
        BASE64_STANDARD.decode(text).map_err(D::Error::custom)
    }
}
