//! What `/proc` says of the processes that hold a GPU, and of those above them.
//!
//! Owns reading it, each fact as often as it can change; never a look at all processes. Decides
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use nix::unistd::{Uid, User};

use super::group::{Marks, Scene, Seen};
use super::unit::unit_of;
use crate::model::ProcessId;
use crate::observe::{ProcFs, parse};
use crate::sys::process::mask_in;

/// A tree isn't deeper.
const DEEPEST: usize = 64;
/// The longest command line and environment that are looked at, bytes.
const LONGEST: usize = 1 << 20;
/// Processes of a job whose sockets are looked for.
const MOST_ASKED: usize = 64;
/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";
/// Variables by which launchers tell a rank that it is one.
const RANKS: [&[u8]; 5] = [
    b"LOCAL_RANK=",
    b"OMPI_COMM_WORLD_RANK=",
    b"PMI_RANK=",
    b"PMIX_RANK=",
    b"SLURM_PROCID=",
];

/// What doesn't change while a process holds a GPU.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// Its user.
    pub uid: u32,
    /// Its command.
    pub argv: Vec<OsString>,
    /// For grouping; known of those that hold a GPU.
    marks: Option<Marks>,
    /// Whether what it does may be read.
    pub readable: bool,
}

/// Reads, and remembers.
pub struct Sight {
    fs: ProcFs,
    known: BTreeMap<ProcessId, Fixed>,
    /// The unit that we are in ourselves holds everything.
    own_unit: Option<String>,
    names: BTreeMap<u32, String>,
}

impl Sight {
    /// Of this machine.
    pub fn new() -> Self {
        let mut fs = ProcFs::default();
        let own = text(&mut fs, format_args!("self/cgroup"));
        Self {
            fs,
            known: BTreeMap::new(),
            own_unit: unit_of(&own),
            names: BTreeMap::new(),
        }
    }

    /// The processes with these PIDs, and those above them.
    pub fn scene(&mut self, holders: &BTreeSet<u32>) -> Scene {
        let mut scene = Scene::default();
        for pid in holders {
            let Some(seen) = self.see(*pid) else { continue };
            scene.holders.insert(*pid, self.marks(seen.id));
            self.climb(seen, &mut scene);
        }
        for seen in scene.procs.values() {
            for leader in [seen.pgrp, seen.session] {
                if !scene.leaders.contains(&leader) && lives(&mut self.fs, leader) {
                    scene.leaders.insert(leader);
                }
            }
        }
        let there: BTreeSet<ProcessId> = scene.procs.values().map(|seen| seen.id).collect();
        self.known.retain(|id, _| there.contains(id));
        scene
    }

    /// What is known of this process.
    pub fn fixed(&self, id: ProcessId) -> Fixed {
        self.known.get(&id).cloned().unwrap_or_default()
    }

    /// A user's name, else the number.
    pub fn user(&mut self, uid: u32) -> String {
        let name = || match User::from_uid(Uid::from_raw(uid)) {
            Ok(Some(user)) if !user.name.is_empty() => user.name,
            _ => uid.to_string(),
        };
        self.names.entry(uid).or_insert_with(name).clone()
    }

    /// The first of these processes that listens on a socket, and `tcp:PORT`. A job of ranks is no
    /// server: they and their launcher listen for each other.
    pub fn listening(&mut self, pids: &BTreeSet<u32>) -> Option<(u32, String)> {
        let first = pids.first()?;
        let ports = listening_sockets(&mut self.fs, *first);
        if ports.is_empty() {
            return None;
        }
        let is_rank = |pid: &u32| {
            let marks = self.known.iter().find(|(id, _)| id.pid == *pid);
            marks.is_some_and(|(_, f)| f.marks.as_ref().is_some_and(|m| m.rank))
        };
        if pids.iter().any(is_rank) {
            return None;
        }
        pids.iter()
            .take(MOST_ASKED)
            .find_map(|pid| Some((*pid, format!("tcp:{}", port_of(*pid, &ports)?))))
    }

    fn see(&mut self, pid: u32) -> Option<Seen> {
        let (stat, name) = self.fs.stat(pid).ok()?;
        let name = String::from_utf8_lossy(name).into_owned();
        let id = ProcessId {
            pid,
            start: stat.start,
        };
        let uid = self.known_uid(id)?;
        Some(Seen {
            id,
            ppid: stat.ppid,
            pgrp: u32::try_from(stat.pgrp).unwrap_or_default(),
            session: u32::try_from(stat.session).unwrap_or_default(),
            uid,
            name,
        })
    }

    /// None where it can't be told, as of one that has just ended.
    fn known_uid(&mut self, id: ProcessId) -> Option<u32> {
        if let Some(fixed) = self.known.get(&id) {
            return Some(fixed.uid);
        }
        let status = text(&mut self.fs, format_args!("{}/status", id.pid));
        let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let uid = uids?.split_ascii_whitespace().next()?.parse().ok()?;
        let fixed = Fixed {
            uid,
            ..Fixed::default()
        };
        self.known.insert(id, fixed);
        Some(uid)
    }

    /// The identity of whoever has this PID now.
    pub fn identity(&mut self, pid: u32) -> Option<ProcessId> {
        self.fs.identity(pid).ok()
    }

    /// How long ago this process was started.
    pub fn age(&mut self, id: ProcessId) -> Option<Duration> {
        let uptime = self.fs.read(format_args!("uptime")).ok()?;
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        let up_s = parse::uptime_centis(uptime)? as f64 / 100.0;
        Duration::try_from_secs_f64(up_s - id.start as f64 / ticks_per_s).ok()
    }

    /// Whether this process still is.
    pub fn is_there(&mut self, id: ProcessId) -> bool {
        self.fs.identity(id.pid).is_ok_and(|now| now == id)
    }

    fn climb(&mut self, from: Seen, scene: &mut Scene) {
        let mut at = from;
        for _ in 0..DEEPEST {
            let (pid, parent) = (at.id.pid, at.ppid);
            let known = scene.procs.insert(pid, at).is_some();
            if known || parent == 0 {
                return;
            }
            match self.see(parent) {
                Some(seen) => at = seen,
                None => return,
            }
        }
    }

    fn marks(&mut self, id: ProcessId) -> Marks {
        if let Some(marks) = self.known.get(&id).and_then(|f| f.marks.clone()) {
            return marks;
        }
        let status = text(&mut self.fs, format_args!("{}/status", id.pid));
        let hangup = 1_u64 << (libc::SIGHUP - 1);
        let ignored = mask_in(&status, "SigIgn").unwrap_or_default();
        let cgroup = text(&mut self.fs, format_args!("{}/cgroup", id.pid));
        let environ = self.fs.read(format_args!("{}/environ", id.pid));
        let readable = environ.is_ok() || Uid::effective().is_root();
        let environ: Vec<u8> = environ.map(<[u8]>::to_vec).unwrap_or_default();
        let set = |name: &[u8]| {
            environ
                .split(|b| *b == 0)
                .find_map(|e| e.strip_prefix(name))
        };
        let marks = Marks {
            run: set(b"GPUWATCH_RUN_ID=").and_then(plain_id),
            unit: unit_of(&cgroup).filter(|unit| Some(unit) != self.own_unit.as_ref()),
            rank: RANKS.iter().any(|name| set(name).is_some()),
            stays: ignored & hangup != 0,
        };
        let argv = argv_of(&mut self.fs, id.pid);
        let fixed = self.known.entry(id).or_default();
        fixed.argv = argv;
        fixed.readable = readable;
        fixed.marks = Some(marks.clone());
        marks
    }
}

fn text(fs: &mut ProcFs, path: std::fmt::Arguments<'_>) -> String {
    let read = fs.read(path);
    read.map_or_else(
        |_| String::new(),
        |t| String::from_utf8_lossy(t).into_owned(),
    )
}

/// Another process may have made it up, so only what an id can be is taken.
fn plain_id(id: &[u8]) -> Option<String> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"._-".contains(b);
    let fits = !id.is_empty() && id.len() <= 80 && id.iter().all(plain);
    fits.then(|| String::from_utf8_lossy(id).into_owned())
}

/// The words of a command; the short name in brackets where it has none.
fn argv_of(fs: &mut ProcFs, pid: u32) -> Vec<OsString> {
    let line = fs.read(format_args!("{pid}/cmdline"));
    let line = line.map_or_else(|_| Vec::new(), |l| l[..l.len().min(LONGEST)].to_vec());
    let words = line.strip_suffix(b"\0").unwrap_or(&line);
    if words.is_empty() {
        let name = text(fs, format_args!("{pid}/comm"));
        return vec![format!("[{}]", name.trim_end()).into()];
    }
    let word = |word: &[u8]| OsString::from_vec(word.to_vec());
    words.split(|b| *b == 0).map(word).collect()
}

fn lives(fs: &mut ProcFs, pid: u32) -> bool {
    let stat = fs.stat(pid);
    stat.is_ok_and(|(stat, _)| !matches!(stat.state, b'Z' | b'X' | b'x'))
}

/// Inodes and ports of the sockets that listen in this process's network.
fn listening_sockets(fs: &mut ProcFs, pid: u32) -> BTreeMap<u64, u16> {
    let mut found = BTreeMap::new();
    for table in ["tcp", "tcp6"] {
        let text = text(fs, format_args!("{pid}/net/{table}"));
        found.extend(text.lines().skip(1).filter_map(listening_socket));
    }
    found
}

/// `sl local_address rem_address st ... inode` of `/proc/net/tcp`.
fn listening_socket(line: &str) -> Option<(u64, u16)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let port = words.get(1)?.rsplit(':').next()?;
    let inode = words.get(9)?.parse().ok()?;
    (*words.get(3)? == LISTENS).then_some((inode, u16::from_str_radix(port, 16).ok()?))
}

fn port_of(pid: u32, ports: &BTreeMap<u64, u16>) -> Option<u16> {
    let links = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).ok()?;
    links.flatten().find_map(|link| {
        let to = fs::read_link(link.path()).ok()?;
        let inode = to.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        ports.get(&parse::number(inode.as_bytes())?).copied()
    })
}

/// Whether PIDs here are another namespace's than the machine's: then a driver lists the
/// processes of this one alone.
pub fn is_namespaced() -> bool {
    // The initial namespace's inode (`PROC_PID_INIT_INO` in the kernel's `proc_ns.h`).
    const HOST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() != HOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_listens_is_found_in_the_kernel_s_table() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000 100 0 0 10 0";
        assert_eq!(listening_socket(line), Some((31337, 8080)));
        assert_eq!(listening_socket(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening_socket("torn 0100007F:1F90"), None);
    }

    #[test]
    fn this_process_is_seen_with_what_is_above_it() {
        let me = std::process::id();
        let mut sight = Sight::new();
        let scene = sight.scene(&BTreeSet::from([me, u32::MAX]));
        assert_eq!(scene.holders.keys().collect::<Vec<_>>(), [&me]);
        let seen = &scene.procs[&me];
        assert_eq!(seen.uid, Uid::effective().as_raw());
        assert!(scene.procs.contains_key(&seen.ppid));
        // Whoever started the tests in the background may be gone.
        let leads = std::path::Path::new(&format!("/proc/{}", seen.pgrp)).exists();
        assert_eq!(scene.leaders.contains(&seen.pgrp), leads);
        let fixed = sight.fixed(seen.id);
        assert!(fixed.readable && !fixed.argv.is_empty());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ports = listening_sockets(&mut ProcFs::default(), me);
        assert!(ports.values().any(|p| *p == port));
        assert!(port_of(me, &ports).is_some());
    }
}
