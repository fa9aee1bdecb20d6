//! Who holds which lock, as `/proc/locks` says (proc(5)).
//!
//! Owns the reading of that file. Pure but for the one function that opens it.

use std::fs;
use std::path::Path;

/// A whole-file lock that somebody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its holder's PID; None where our PID namespace has none for it.
    pub pid: Option<u32>,
    /// Nobody else can have one beside it.
    pub exclusive: bool,
    /// The file's device, as the kernel counts it.
    pub device: (u32, u32),
    /// The file.
    pub inode: u64,
}

/// All whole-file locks (flock(2)) of this machine. None where the kernel doesn't say.
pub fn held(proc: &Path) -> Option<Vec<Lock>> {
    let text = fs::read_to_string(proc.join("locks")).ok()?;
    Some(text.lines().filter_map(lock).collect())
}

/// `1: FLOCK  ADVISORY  WRITE 4242 00:1b:310 0 EOF`; who only waits for one has `->` after the
/// number, and holds nothing.
fn lock(line: &str) -> Option<Lock> {
    let mut words = line.split_ascii_whitespace();
    words.next()?;
    if words.next()? != "FLOCK" {
        return None;
    }
    words.next()?;
    let exclusive = words.next()? == "WRITE";
    let pid: i64 = words.next()?.parse().ok()?;
    let mut file = words.next()?.split(':');
    let mut hex = || u32::from_str_radix(file.next()?, 16).ok();
    let device = (hex()?, hex()?);
    Some(Lock {
        pid: u32::try_from(pid).ok().filter(|pid| *pid != 0),
        exclusive,
        device,
        inode: file.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_lines() {
        let text = "\
1: POSIX  ADVISORY  WRITE 699 00:1b:1 128 128
2: FLOCK  ADVISORY  WRITE 4242 00:1b:310 0 EOF
2: -> FLOCK  ADVISORY  WRITE 7 00:1b:310 0 EOF
3: FLOCK  ADVISORY  READ 0 fe:00:99 0 EOF
4: LEASE  ACTIVE    READ  5 00:2a:7 0 EOF
5: OFDLCK ADVISORY  READ -1 08:01:8 0 EOF
6: FLOCK  torn";
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("locks"), text).unwrap();
        let lock = |pid, exclusive, device, inode| Lock {
            pid,
            exclusive,
            device,
            inode,
        };
        assert_eq!(
            held(root.path()).unwrap(),
            [
                lock(Some(4242), true, (0, 0x1b), 310),
                lock(None, false, (0xfe, 0), 99),
            ]
        );
        assert_eq!(held(&root.path().join("nowhere")), None);
    }
}
