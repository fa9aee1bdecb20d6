//! What `/proc` says about one process that stands still.
//!
//! Owns reading it, under a root that tests replace. Files that need the process's memory map
//! (its arguments, its environment) are left alone while it waits for a device: reading them
//! could wait with it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Threads of one process that are looked at.
const THREADS: usize = 256;
/// Lines of `status` that tell what becomes of a process.
const OF_STATUS: [&str; 6] = [
    "VmRSS",
    "VmSwap",
    "RssShmem",
    "Cpus_allowed_list",
    "voluntary_ctxt_switches",
    "nonvoluntary_ctxt_switches",
];
/// Where PyTorch is told to write what it remembers of collectives, the newer name first.
const DUMPS: [&[u8]; 2] = [
    b"TORCH_FR_DUMP_TEMP_FILE",
    b"TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
];

/// A process of the job that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its PID.
    pub pid: u32,
    /// When it started, in clock ticks since boot (field 22 of `stat`): a PID alone names nobody.
    pub start: u64,
    /// Its rank, as far as is known.
    pub rank: Option<u32>,
}

/// What it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its short name (`comm`).
    pub name: String,
    /// The kernel's letter: `R`, `S`, `D`, `T`, `Z`, ...
    pub state: char,
    /// The function of the kernel in which it waits, where the kernel tells.
    pub wchan: Option<String>,
    /// The system call in which it waits, where the kernel tells: a name, or a number.
    pub syscall: Option<String>,
    /// The kernel's stack, readable by root alone.
    pub stack: Option<String>,
    /// How many threads it has.
    pub threads: Option<u32>,
    /// Where they wait, and how many in each place.
    pub waits: BTreeMap<String, usize>,
    /// What `status` says of its memory and of how often it gave way.
    pub status: Vec<String>,
}

/// What it is, as far as finding its stack needs that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Whether it runs Python.
    pub python: bool,
    /// Folders in which its interpreter's tools may be.
    pub tools: Vec<PathBuf>,
    /// How the files begin in which it records its collectives, where it was told.
    pub dumps: Option<PathBuf>,
}

/// What it does now; `None` if it has ended.
pub fn standing(root: &Path, subject: Subject) -> Option<Standing> {
    let folder = root.join(subject.pid.to_string());
    let stat = fs::read(folder.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // A name may hold anything, also parentheses.
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(').map_or("", |(_, name)| name);
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let started: u64 = fields.get(19)?.parse().ok()?;
    if started != subject.start {
        return None;
    }
    let line = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    Some(Standing {
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        // "0" is "in no function", and what an unprivileged reader is told of everything.
        wchan: line("wchan").filter(|text| text != "0"),
        syscall: line("syscall").and_then(|text| call(&text)),
        stack: line("stack"),
        threads: fields.get(17).and_then(|n| n.parse().ok()),
        waits: waits(&folder),
        status: status(&fs::read_to_string(folder.join("status")).unwrap_or_default()),
    })
}

/// Where threads wait: `futex_wait_queue`, or `running` where they are in no function.
fn waits(folder: &Path) -> BTreeMap<String, usize> {
    let mut waits = BTreeMap::new();
    let tasks = fs::read_dir(folder.join("task")).into_iter().flatten();
    for task in tasks.flatten().take(THREADS) {
        let Ok(place) = fs::read_to_string(task.path().join("wchan")) else {
            continue;
        };
        let place = match place.trim() {
            "" | "0" => "no function of the kernel",
            place => place,
        };
        *waits.entry(place.to_owned()).or_default() += 1;
    }
    waits
}

/// `VmRSS 1234 kB`, ...
fn status(text: &str) -> Vec<String> {
    let of_interest = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let value = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        OF_STATUS.contains(&name).then(|| format!("{name} {value}"))
    };
    text.lines().filter_map(of_interest).collect()
}

/// What it is. Of a process that waits for a device nothing can be asked.
pub fn identity(root: &Path, subject: Subject, standing: &Standing) -> Identity {
    let folder = root.join(subject.pid.to_string());
    if standing.state == 'D' {
        return Identity {
            python: standing.name.starts_with("python"),
            ..Identity::default()
        };
    }
    let exe = fs::read_link(folder.join("exe")).ok();
    let python = exe.as_deref().is_some_and(is_python) || maps_python(&folder);
    if !python {
        return Identity::default();
    }
    let environment = fs::read(folder.join("environ")).unwrap_or_default();
    Identity {
        python,
        tools: tools(&folder, exe.as_deref(), &environment),
        dumps: DUMPS.iter().find_map(|name| variable(&environment, name)),
    }
}

/// The path that a variable holds.
fn variable(environment: &[u8], name: &[u8]) -> Option<PathBuf> {
    let mut entries = environment.split(|b| *b == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(value)))
}

fn is_python(exe: &Path) -> bool {
    exe.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(b"python"))
}

/// Programs that embed Python have its library.
fn maps_python(folder: &Path) -> bool {
    fs::read(folder.join("maps"))
        .is_ok_and(|text| memchr::memmem::find(&text, b"/libpython3").is_some())
}

/// Where the interpreter was called (a virtual environment's is a link), then its environment's
/// own words, then where it really is.
fn tools(folder: &Path, exe: Option<&Path>, environment: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let cmdline = fs::read(folder.join("cmdline")).unwrap_or_default();
    let program = cmdline.split(|b| *b == 0).next().unwrap_or_default();
    let program = Path::new(std::ffi::OsStr::from_bytes(program));
    if program.is_absolute() {
        found.extend(program.parent().map(Path::to_owned));
    }
    for name in [&b"VIRTUAL_ENV"[..], b"CONDA_PREFIX"] {
        let home = variable(environment, name).map(|home| home.join("bin"));
        found.extend(home.filter(|home| home.is_absolute()));
    }
    found.extend(exe.and_then(Path::parent).map(Path::to_owned));
    found
}

/// `/proc/PID/syscall`: a number and its arguments, `running`, or -1 for none.
fn call(text: &str) -> Option<String> {
    let number: i64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    if number < 0 {
        return None;
    }
    let name = CALLS.iter().find(|(n, _)| *n == number);
    Some(name.map_or_else(
        || format!("system call {number}"),
        |(_, name)| (*name).into(),
    ))
}

/// The system calls in which programs wait.
const CALLS: &[(i64, &str)] = &[
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_ppoll, "ppoll"),
    (libc::SYS_pselect6, "pselect6"),
    (libc::SYS_epoll_pwait, "epoll_pwait"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, "poll"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, "select"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, "epoll_wait"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, "open"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_nanosleep, "nanosleep"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_wait4, "wait4"),
    (libc::SYS_waitid, "waitid"),
    (libc::SYS_accept, "accept"),
    (libc::SYS_accept4, "accept4"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    (libc::SYS_rt_sigsuspend, "rt_sigsuspend"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_its_successor() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("41");
        fs::create_dir(&folder).unwrap();
        let rest = "S 1 41 41 0 -1 0 0 0 0 0 1 2 0 0 20 0 7 0 77 0 0";
        fs::write(folder.join("stat"), format!("41 (py) t (x) {rest}\n")).unwrap();
        fs::write(folder.join("wchan"), "futex_wait_queue").unwrap();
        fs::write(
            folder.join("syscall"),
            format!("{} 0x1 0x2\n", libc::SYS_futex),
        )
        .unwrap();
        let status = "Name:\tpy\nVmRSS:\t     12 kB\nvoluntary_ctxt_switches:\t3\n";
        fs::write(folder.join("status"), status).unwrap();
        fs::create_dir_all(folder.join("task/41")).unwrap();
        fs::write(folder.join("task/41/wchan"), "do_poll").unwrap();
        let rank = None;
        let at = |start| {
            standing(
                dir.path(),
                Subject {
                    pid: 41,
                    start,
                    rank,
                },
            )
        };
        let now = at(77).unwrap();
        assert_eq!(now.name, "py) t (x");
        assert_eq!((now.state, now.threads), ('S', Some(7)));
        assert_eq!(now.wchan.as_deref(), Some("futex_wait_queue"));
        assert_eq!(now.syscall.as_deref(), Some("futex"));
        assert_eq!(now.waits, BTreeMap::from([("do_poll".to_owned(), 1)]));
        assert_eq!(now.status, ["VmRSS 12 kB", "voluntary_ctxt_switches 3"]);
        assert_eq!(at(78), None);
    }

    #[test]
    fn a_virtual_environment_is_looked_into_first() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("9");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("cmdline"), "/venv/bin/python\0-u\0t.py\0").unwrap();
        fs::write(folder.join("environ"), "A=1\0CONDA_PREFIX=/conda\0").unwrap();
        std::os::unix::fs::symlink("/usr/bin/python3.11", folder.join("exe")).unwrap();
        let subject = Subject {
            pid: 9,
            start: 1,
            rank: None,
        };
        let found = identity(dir.path(), subject, &Standing::default());
        assert!(found.python);
        let tools: Vec<&str> = found.tools.iter().filter_map(|p| p.to_str()).collect();
        assert_eq!(tools, ["/venv/bin", "/conda/bin", "/usr/bin"]);
        let waiting = Standing {
            state: 'D',
            ..Standing::default()
        };
        assert!(!identity(dir.path(), subject, &waiting).python);
    }
}
