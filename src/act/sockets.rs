//! Connections as `/proc/PID/net/tcp` lists them.
//!
//! Owns the text of that file and what its states are called.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// So much of a list is read: some 50,000 connections.
const MOST: u64 = 8 << 20;

/// States in the kernel's order, from 1 (`include/net/tcp_states.h`).
const STATES: [&str; 11] = [
    "established",
    "connecting",
    "accepting",
    "closing (FIN_WAIT1)",
    "closing (FIN_WAIT2)",
    "over (TIME_WAIT)",
    "closed",
    "closed by the other end",
    "closing (LAST_ACK)",
    "listening",
    "closing",
];
const LISTENING: &str = "listening";

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    state: &'static str,
    unsent: u64,
    unread: u64,
}

impl Socket {
    /// In words.
    pub fn text(&self) -> String {
        let Self {
            local,
            remote,
            state,
            unsent,
            unread,
        } = self;
        if *state == LISTENING {
            return format!("listens on tcp {local}");
        }
        format!("tcp {local} to {remote}, {state}, {unsent} B unsent, {unread} B unread")
    }
}

/// All connections that a process could have, by inode.
#[derive(Clone, Debug, Default)]
pub struct Sockets(BTreeMap<String, Socket>);

impl Sockets {
    /// Those of the network that this process (a folder of `/proc`) is in.
    pub fn read(folder: &Path) -> Self {
        let mut all = BTreeMap::new();
        for name in ["net/tcp", "net/tcp6"] {
            let mut text = Vec::new();
            let file = File::open(folder.join(name));
            if file.is_ok_and(|file| file.take(MOST).read_to_end(&mut text).is_ok()) {
                let text = String::from_utf8_lossy(&text);
                all.extend(text.lines().skip(1).filter_map(row));
            }
        }
        Self(all)
    }

    /// That with this inode.
    pub fn of(&self, inode: &str) -> Option<&Socket> {
        self.0.get(inode)
    }

    /// The inode of a connection's other end, where that is on this machine.
    pub fn other_end(&self, of: &Socket) -> Option<&str> {
        let is_it = |other: &Socket| other.local == of.remote && other.remote == of.local;
        let found = self.0.iter().find(|(_, other)| is_it(other));
        found.map(|(inode, _)| inode.as_str())
    }
}

/// `0: 0100007F:7530 0100007F:9C40 01 00000000:0000000C 00:00000000 00000000 0 0 51 ...`
fn row(line: &str) -> Option<(String, Socket)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let state = usize::try_from(hex(words.get(3)?)?).ok()?;
    let (unsent, unread) = words.get(4)?.split_once(':')?;
    let socket = Socket {
        local: address(words.get(1)?)?,
        remote: address(words.get(2)?)?,
        state: STATES.get(state.checked_sub(1)?)?,
        unsent: hex(unsent)?,
        unread: hex(unread)?,
    };
    Some(((*words.get(9)?).to_owned(), socket))
}

/// An address and a port, in hexadecimal; the address in the machine's order of bytes, four at a
/// time.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = [0; 16];
    let places = bytes.chunks_exact_mut(4);
    let n = ip.len() / 8;
    for (i, place) in places.take(n).enumerate() {
        let word = u32::from_str_radix(ip.get(8 * i..8 * i + 8)?, 16).ok()?;
        place.copy_from_slice(&word.to_ne_bytes());
    }
    let ip = match n {
        1 => IpAddr::from(Ipv4Addr::from(u32::from_be_bytes(*bytes.first_chunk()?))),
        4 => IpAddr::from(Ipv6Addr::from(bytes)).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_kinds_are_read() {
        let text = |word: &str| address(word).map(|a| a.to_string());
        assert_eq!(text("0100007F:0050").as_deref(), Some("127.0.0.1:80"));
        let mapped = "0000000000000000FFFF00000100007F:0050";
        assert_eq!(text(mapped).as_deref(), Some("127.0.0.1:80"));
        let own = "00000000000000000000000001000000:0050";
        assert_eq!(text(own).as_deref(), Some("[::1]:80"));
        assert_eq!(text("01007F:0050"), None);
        assert_eq!(text(""), None);
    }

    #[test]
    fn a_torn_row_is_none() {
        assert_eq!(row("0: 0100007F:7530 0100007F:9C40 01 00000000"), None);
        assert_eq!(
            row("0: 0100007F:7530 0100007F:9C40 0F 0:0 0 0 0 0 51"),
            None
        );
        assert_eq!(row(""), None);
    }
}
