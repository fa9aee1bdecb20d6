//! What processes have open that they may wait for: connections and whose other end they are,
//! pipes, files that they write or that lie on a network, devices.
//!
//! Owns reading that under a root that tests replace, and what is left out as of no interest. Asks
//! the process tables and never a file: one on a dead server would not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use super::sockets::{Socket, Sockets};

/// Descriptors of one process that are looked at, and lines about it.
const DESCRIPTORS: usize = 1024;
const LINES: usize = 40;
/// Devices that nobody waits for.
const PLAIN: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts/",
];

/// What the processes of a job have open.
#[derive(Debug, Default)]
pub struct Open {
    by_process: BTreeMap<u32, Vec<Descriptor>>,
    /// Who has a pipe or a socket, by what its link is called.
    holders: BTreeMap<String, BTreeSet<u32>>,
    sockets: Sockets,
    /// Types of file systems by the number of their mount.
    mounts: BTreeMap<u32, Vec<u8>>,
}

#[derive(Debug)]
struct Descriptor {
    number: u32,
    /// What its link in `/proc/PID/fd` is called.
    target: String,
    info: Info,
}

/// What `/proc/PID/fdinfo` says.
#[derive(Debug, Default)]
struct Info {
    position: u64,
    reads: bool,
    writes: bool,
    mount: Option<u32>,
}

impl Open {
    /// Of these processes, as far as the time reaches and it may be read.
    pub fn look(root: &Path, pids: &[u32], until: Instant) -> Self {
        let mut open = Self::default();
        for pid in pids {
            if Instant::now() >= until {
                break;
            }
            let found = descriptors(&root.join(pid.to_string()));
            for one in found.iter().filter(|one| !one.target.starts_with('/')) {
                let holders = open.holders.entry(one.target.clone()).or_default();
                holders.insert(*pid);
            }
            open.by_process.insert(*pid, found);
        }
        // The first stands for all: processes of a job share their network and their mounts.
        if let Some(first) = pids.first() {
            let folder = root.join(first.to_string());
            open.sockets = Sockets::read(&folder);
            open.mounts = mounts(&fs::read(folder.join("mountinfo")).unwrap_or_default());
        }
        open
    }

    /// What is worth a line of this process.
    pub fn lines(&self, pid: u32, is_network: fn(&[u8]) -> bool) -> Vec<String> {
        let all = self.by_process.get(&pid).map_or(&[][..], Vec::as_slice);
        let mut lines: Vec<String> = all
            .iter()
            .filter_map(|one| self.line(pid, one, is_network))
            .collect();
        let more = lines.len().saturating_sub(LINES);
        lines.truncate(LINES);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        lines.extend(devices(all));
        lines
    }

    fn line(&self, pid: u32, one: &Descriptor, is_network: fn(&[u8]) -> bool) -> Option<String> {
        let (number, target) = (one.number, &one.target);
        let use_of = || match (one.info.reads, one.info.writes) {
            (true, true) => "reads and writes",
            (false, true) => "writes",
            _ => "reads",
        };
        if let Some(inode) = inode(target, "socket:[") {
            let socket = self.sockets.of(inode)?;
            return Some(format!("{number} {}{}", socket.text(), self.peer(socket)));
        }
        if let Some(inode) = inode(target, "pipe:[") {
            let others = self.holders.get(target)?.iter().filter(|p| **p != pid);
            let others = named(others);
            return Some(format!("{number} {} pipe {inode}{others}", use_of()));
        }
        if !target.starts_with('/') || is_device(target) {
            return None;
        }
        let mount = one.info.mount.and_then(|id| self.mounts.get(&id));
        let kind = mount.map_or(&b""[..], Vec::as_slice);
        if !one.info.writes && !is_network(kind) {
            return None;
        }
        let on = String::from_utf8_lossy(kind);
        let on = if on.is_empty() {
            String::new()
        } else {
            format!(" ({on})")
        };
        let at = one.info.position;
        Some(format!("{number} {} {target} at {at}{on}", use_of()))
    }

    /// Who of the job has the other end of a connection.
    fn peer(&self, socket: &Socket) -> String {
        let other = self.sockets.other_end(socket);
        let holders = other.and_then(|inode| self.holders.get(&format!("socket:[{inode}]")));
        holders.map_or_else(String::new, |holders| {
            let pids: Vec<String> = holders.iter().map(u32::to_string).collect();
            format!(", its other end is {}'s", pids.join(" and "))
        })
    }
}

/// `, which 4243, 4244 have, too`
fn named<'a>(pids: impl Iterator<Item = &'a u32>) -> String {
    let mut pids: Vec<String> = pids.map(u32::to_string).collect();
    let more = pids.len().saturating_sub(6);
    pids.truncate(6);
    match (&pids[..], more) {
        ([], _) => String::new(),
        ([one], 0) => format!(", which {one} has, too"),
        (_, 0) => format!(", which {} have, too", pids.join(", ")),
        (_, more) => format!(", which {} and {more} more have, too", pids.join(", ")),
    }
}

fn inode<'a>(target: &'a str, kind: &str) -> Option<&'a str> {
    target.strip_prefix(kind)?.strip_suffix(']')
}

fn is_device(target: &str) -> bool {
    target.starts_with("/dev/") && !target.starts_with("/dev/shm/")
}

/// `devices: /dev/nvidia0 (3 times), /dev/nvidiactl`
fn devices(all: &[Descriptor]) -> Option<String> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for one in all {
        let target = one.target.as_str();
        if is_device(target) && !PLAIN.iter().any(|plain| target.starts_with(plain)) {
            *times.entry(target).or_default() += 1;
        }
    }
    let names = times.iter().map(|(name, n)| match n {
        1 => (*name).to_owned(),
        n => format!("{name} ({n} times)"),
    });
    let names: Vec<String> = names.take(LINES).collect();
    (!names.is_empty()).then(|| format!("devices: {}", names.join(", ")))
}

fn descriptors(folder: &Path) -> Vec<Descriptor> {
    let Ok(entries) = fs::read_dir(folder.join("fd")) else {
        return Vec::new();
    };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut found: Vec<Descriptor> = numbers
        .take(DESCRIPTORS)
        .filter_map(|number: u32| {
            let link = fs::read_link(folder.join("fd").join(number.to_string())).ok()?;
            let target = String::from_utf8_lossy(link.as_os_str().as_bytes()).into_owned();
            let has_info = target.starts_with('/') || target.starts_with("pipe:");
            let info = has_info.then(|| info(folder, number)).flatten();
            Some(Descriptor {
                number,
                target,
                info: info.unwrap_or_default(),
            })
        })
        .collect();
    found.sort_by_key(|one| one.number);
    found
}

fn info(folder: &Path, number: u32) -> Option<Info> {
    let text = fs::read_to_string(folder.join("fdinfo").join(number.to_string())).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
    };
    let flags = field("flags:").and_then(|octal| i32::from_str_radix(octal, 8).ok());
    let access = flags.unwrap_or_default() & libc::O_ACCMODE;
    Some(Info {
        position: field("pos:").and_then(|n| n.parse().ok()).unwrap_or(0),
        reads: access != libc::O_WRONLY,
        writes: access != libc::O_RDONLY,
        mount: field("mnt_id:").and_then(|n| n.parse().ok()),
    })
}

/// The number of each mount (field 1 of `mountinfo`) and its type (the first after a lone `-`).
fn mounts(mountinfo: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let text = String::from_utf8_lossy(mountinfo);
    let mount = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let id = words.next()?.parse().ok()?;
        let kind = words.skip_while(|word| *word != "-").nth(1)?;
        Some((id, kind.as_bytes().to_vec()))
    };
    text.lines().filter_map(mount).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;

    struct Proc(tempfile::TempDir);

    impl Proc {
        fn folder(&self, pid: u32) -> PathBuf {
            self.0.path().join(pid.to_string())
        }

        fn open(&self, pid: u32, number: u32, target: &str, flags: &str) {
            let folder = self.folder(pid);
            fs::create_dir_all(folder.join("fd")).unwrap();
            fs::create_dir_all(folder.join("fdinfo")).unwrap();
            symlink(target, folder.join("fd").join(number.to_string())).unwrap();
            let info = format!("pos:\t4096\nflags:\t{flags}\nmnt_id:\t29\nino:\t7\n");
            fs::write(folder.join("fdinfo").join(number.to_string()), info).unwrap();
        }

        fn write(&self, pid: u32, name: &str, text: &str) {
            let file = self.folder(pid).join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }

    fn is_network(kind: &[u8]) -> bool {
        kind == b"nfs4"
    }

    #[test]
    fn what_a_process_may_wait_for_is_told_and_who_is_at_the_other_end() {
        let proc = Proc(tempfile::tempdir().unwrap());
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let rows = "   0: 0100007F:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 50 1 x\n   1: 0100007F:7530 0100007F:9C40 01 00000000:0000000C 00:00000000 00000000     0        0 51 1 x\n   2: 0100007F:9C40 0100007F:7530 01 00000005:00000000 00:00000000 00000000     0        0 52 1 x\n";
        proc.write(41, "net/tcp", &format!("{head}{rows}"));
        proc.write(
            41,
            "mountinfo",
            "29 1 0:2 / /data rw - nfs4 nas:/data rw\n30 1 0:2 / / rw - ext4 /dev/vda rw\n",
        );
        proc.open(41, 0, "/dev/null", "0100002");
        proc.open(41, 1, "pipe:[90]", "01");
        proc.open(41, 3, "socket:[50]", "02");
        proc.open(41, 4, "socket:[51]", "02");
        proc.open(41, 5, "socket:[77]", "02");
        proc.open(41, 6, "/data/train.bin", "0100000");
        proc.open(41, 7, "anon_inode:[eventpoll]", "02");
        proc.open(41, 8, "/dev/nvidia0", "02");
        proc.open(41, 9, "/dev/nvidia0", "02");
        proc.open(42, 0, "pipe:[90]", "0100000");
        proc.open(42, 4, "socket:[52]", "02");
        let until = Instant::now() + Duration::from_secs(60);
        let open = Open::look(proc.0.path(), &[41, 42], until);
        assert_eq!(
            open.lines(41, is_network),
            [
                "1 writes pipe 90, which 42 has, too",
                "3 listens on tcp 127.0.0.1:30000",
                "4 tcp 127.0.0.1:30000 to 127.0.0.1:40000, established, 0 B unsent, 12 B unread, its other end is 42's",
                "6 reads /data/train.bin at 4096 (nfs4)",
                "devices: /dev/nvidia0 (2 times)",
            ]
        );
        assert_eq!(
            open.lines(42, is_network),
            [
                "0 reads pipe 90, which 41 has, too",
                "4 tcp 127.0.0.1:40000 to 127.0.0.1:30000, established, 5 B unsent, 0 B unread, its other end is 41's",
            ]
        );
        assert!(open.lines(43, is_network).is_empty());
        // What may not be read is missing, and nothing else.
        let nobody = Open::look(Path::new("/nowhere"), &[1], until);
        assert!(nobody.lines(1, is_network).is_empty());
    }

    #[test]
    fn only_files_that_are_written_or_far_away_are_told() {
        let proc = Proc(tempfile::tempdir().unwrap());
        proc.write(41, "mountinfo", "29 1 0:2 / / rw - ext4 /dev/vda rw\n");
        proc.open(41, 3, "/home/u/train.py", "0100000");
        for number in 10..60 {
            proc.open(41, number, "/home/u/out.bin", "0102001");
        }
        let until = Instant::now() + Duration::from_secs(60);
        let lines = Open::look(proc.0.path(), &[41], until).lines(41, is_network);
        assert_eq!(lines.len(), LINES + 1);
        assert_eq!(lines[0], "10 writes /home/u/out.bin at 4096 (ext4)");
        assert_eq!(lines[LINES], "and 10 more");
    }
}
