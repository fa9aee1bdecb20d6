//! Who waits for keys: what the processes of the job wait for, as the kernel tells it in
//! `/proc/PID/syscall`. Where it doesn't, who has opened a terminal for reading alone.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::fd::{AsFd, RawFd};
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileExt;

use nix::sys::stat::fstat;

use crate::sys::process::children;

/// The job's processes that are looked at, at most.
const MOST_PROCESSES: usize = 512;
/// Descriptors that one call waits for, at most.
const MOST_DESCRIPTORS: u64 = 1024;
/// `/dev/tty`: whatever terminal it is that its user means, it isn't the stand-in.
const OWN_TERMINAL: u64 = libc::makedev(5, 0);

/// A terminal, however it was opened and wherever its file system is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    file_system: u64,
    number: u64,
}

impl Device {
    pub fn of(terminal: impl AsFd) -> nix::Result<Self> {
        fstat(terminal).map(|stat| Self {
            file_system: stat.st_dev,
            number: stat.st_rdev,
        })
    }

    fn behind(link: &str) -> Option<Self> {
        fs::metadata(link).ok().map(|file| Self {
            file_system: file.st_dev(),
            number: file.st_rdev(),
        })
    }
}

/// Somebody who waits for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The bytes that it takes at once, where that is known.
    pub takes: Option<usize>,
}

/// What the job's processes wait for.
#[derive(Debug, Default)]
pub struct Look {
    /// Who waits for keys at the stand-in.
    pub reader: Option<Reader>,
    /// Somebody waits for them at the real terminal.
    pub rival: bool,
    /// Of somebody we may not know what it waits for.
    pub blind: bool,
}

impl Look {
    /// Looks at all processes of the job.
    pub fn at_job(stand_in: Device, real: Device) -> Self {
        let mut look = Self::default();
        for_each_process(|pid| {
            look.at(pid, stand_in, real);
            look.rival
        });
        look
    }

    fn at(&mut self, pid: u32, stand_in: Device, real: Device) {
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            return;
        };
        for thread in threads.flatten() {
            match fs::read_to_string(thread.path().join("syscall")) {
                Ok(line) => {
                    for wanted in Call::parse(&line).map_or_else(Vec::new, |call| call.waits(pid)) {
                        match Device::behind(&format!("/proc/{pid}/fd/{}", wanted.fd)) {
                            Some(device) if device == stand_in => {
                                self.reader.get_or_insert(Reader {
                                    takes: wanted.takes,
                                });
                            }
                            Some(device) if device == real || device.number == OWN_TERMINAL => {
                                self.rival = true;
                            }
                            _ => {}
                        }
                    }
                }
                Err(_) => self.blind = true,
            }
        }
    }
}

/// Whether a process of the job has made the stand-in its own to read from: as its stdin, or
/// opened for reading alone. What it inherited from us may be written as well.
pub fn is_held(stand_in: Device) -> bool {
    let mut held = false;
    for_each_process(|pid| {
        let links = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        held = links.flatten().any(|entry| {
            let name = entry.file_name();
            let fd = name.to_string_lossy();
            Device::behind(&format!("/proc/{pid}/fd/{fd}")) == Some(stand_in)
                && (fd == "0" || reads_only(pid, &fd))
        });
        held
    });
    held
}

/// `flags` of `/proc/PID/fdinfo/N` (proc(5)), octal.
fn reads_only(pid: u32, fd: &str) -> bool {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & libc::O_ACCMODE == libc::O_RDONLY)
}

/// Calls `each` with the job's processes until it has seen enough.
fn for_each_process(mut each: impl FnMut(u32) -> bool) {
    let mut waiting = VecDeque::from(children(std::process::id()));
    for _ in 0..MOST_PROCESSES {
        let Some(pid) = waiting.pop_front() else {
            return;
        };
        if each(pid) {
            return;
        }
        waiting.extend(children(pid));
    }
}

/// A descriptor that somebody wants to read from.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    fd: RawFd,
    takes: Option<usize>,
}

impl Wanted {
    fn sometime(fd: RawFd) -> Self {
        Self { fd, takes: None }
    }
}

/// The system call in which a thread sleeps.
struct Call {
    number: i64,
    args: [u64; 3],
}

impl Call {
    /// A line of `/proc/PID/syscall`: the number, six arguments, and two addresses; or a word.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut args = [0; 3];
        for arg in &mut args {
            *arg = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self { number, args })
    }

    fn waits(&self, pid: u32) -> Vec<Wanted> {
        self.waits_in(
            |at, bytes| {
                let mut memory = vec![0; bytes];
                let file = File::open(format!("/proc/{pid}/mem")).ok()?;
                file.read_exact_at(&mut memory, at).ok()?;
                Some(memory)
            },
            |fd| fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok(),
        )
    }

    /// What is to be read, in a process with this memory and these descriptors.
    fn waits_in(
        &self,
        memory: impl Fn(u64, usize) -> Option<Vec<u8>>,
        about: impl Fn(RawFd) -> Option<String>,
    ) -> Vec<Wanted> {
        let [first, second, third] = self.args;
        // The kernel takes the lower half of a register for a descriptor.
        let fd = first as RawFd;
        let some = match self.number {
            libc::SYS_read => Some(vec![Wanted {
                fd,
                takes: usize::try_from(third).ok(),
            }]),
            libc::SYS_readv => Some(vec![Wanted::sometime(fd)]),
            number if POLLS.contains(&number) => {
                let count = second.min(MOST_DESCRIPTORS) as usize;
                memory(first, count * 8).map(|list| polled(&list))
            }
            number if SELECTS.contains(&number) && second != 0 => {
                let bytes = first.min(MOST_DESCRIPTORS).div_ceil(64) as usize * 8;
                memory(second, bytes).map(|set| selected(&set, fd))
            }
            number if EPOLLS.contains(&number) => about(fd).map(|info| listed(&info)),
            _ => None,
        };
        some.unwrap_or_default()
    }
}

/// Calls with a list of `struct pollfd`. One that goes on after a stop bears the name of
/// going on; the others that do have no such list in their arguments.
#[cfg(target_arch = "x86_64")]
const POLLS: [i64; 3] = [libc::SYS_poll, libc::SYS_ppoll, libc::SYS_restart_syscall];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: [i64; 2] = [libc::SYS_ppoll, libc::SYS_restart_syscall];
/// Calls with sets of descriptors.
#[cfg(target_arch = "x86_64")]
const SELECTS: [i64; 2] = [libc::SYS_select, libc::SYS_pselect6];
#[cfg(not(target_arch = "x86_64"))]
const SELECTS: [i64; 1] = [libc::SYS_pselect6];
/// Calls that wait for what was registered before.
#[cfg(target_arch = "x86_64")]
const EPOLLS: [i64; 3] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
];
#[cfg(not(target_arch = "x86_64"))]
const EPOLLS: [i64; 2] = [libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2];

/// The readable ones in a list of `struct pollfd`: a descriptor, what is asked, what came.
fn polled(list: &[u8]) -> Vec<Wanted> {
    let (entries, _) = list.as_chunks::<8>();
    let asked = entries.iter().filter_map(|[a, b, c, d, e, f, _, _]| {
        let events = libc::c_short::from_ne_bytes([*e, *f]);
        (events & libc::POLLIN != 0).then(|| RawFd::from_ne_bytes([*a, *b, *c, *d]))
    });
    asked.map(Wanted::sometime).collect()
}

/// Those in an `fd_set`, which is made of long words, that are below the limit.
fn selected(set: &[u8], limit: RawFd) -> Vec<Wanted> {
    let (words, _) = set.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|w| u64::from_ne_bytes(*w)).collect();
    (0..limit)
        .zip(
            words
                .iter()
                .flat_map(|word| (0..64).map(move |bit| word >> bit & 1 == 1)),
        )
        .filter(|(_, set)| *set)
        .map(|(fd, _)| Wanted::sometime(fd))
        .collect()
}

/// `tfd:` lines of an epoll's fdinfo (proc(5)): descriptor, then the events, hexadecimal.
fn listed(info: &str) -> Vec<Wanted> {
    let lines = info.lines().filter_map(|line| line.strip_prefix("tfd:"));
    lines
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let fd = words.next()?.parse().ok()?;
            let events = words.skip_while(|word| *word != "events:").nth(1)?;
            let events = u64::from_str_radix(events, 16).ok()?;
            (events & libc::EPOLLIN as u64 != 0).then(|| Wanted::sometime(fd))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(line: &str, memory: &[u8], info: &str) -> Option<Vec<RawFd>> {
        let call = Call::parse(line)?;
        let wanted = call.waits_in(
            |at, bytes| {
                assert_eq!(at, 0x7000, "the list's address");
                memory.get(..bytes).map(<[u8]>::to_vec)
            },
            |fd| (fd == 4).then(|| info.to_owned()),
        );
        Some(wanted.into_iter().map(|wanted| wanted.fd).collect())
    }

    fn line(number: i64, args: [u64; 3]) -> String {
        let [a, b, c] = args;
        format!("{number} {a:#x} {b:#x} {c:#x} 0x0 0x0 0x0 0x7ffd 0x7f11\n")
    }

    #[test]
    fn what_a_call_waits_for_is_what_it_wants_to_read() {
        let mut polls = Vec::new();
        for (fd, events) in [
            (2_i32, libc::POLLIN),
            (1, libc::POLLOUT),
            (-1, libc::POLLIN),
        ] {
            polls.extend(fd.to_ne_bytes());
            polls.extend(events.to_ne_bytes());
            polls.extend([0; 2]);
        }
        let set = (1_u64 << 2 | 1 << 9).to_ne_bytes();
        let info = "pos:\t0\nflags:\t02\ntfd:        2 events: 80000019 data: 2  pos:0 ino:3 sdev:8\n\
                    tfd:        7 events:        4 data: 7  pos:0 ino:3 sdev:8\n";
        for (call, memory, wanted) in [
            (line(libc::SYS_read, [2, 0x7000, 1]), &[][..], vec![2]),
            (line(libc::SYS_readv, [5, 0x7000, 1]), &[], vec![5]),
            (line(libc::SYS_write, [2, 0x7000, 1]), &[], vec![]),
            (line(libc::SYS_ppoll, [0x7000, 3, 0]), &polls, vec![2, -1]),
            (line(libc::SYS_ppoll, [0x7000, 1, 0]), &polls, vec![2]),
            (
                line(libc::SYS_restart_syscall, [0x7000, 1, 0]),
                &polls,
                vec![2],
            ),
            // Its memory can't be read as far as that.
            (line(libc::SYS_ppoll, [0x7000, 4, 0]), &polls, vec![]),
            (line(libc::SYS_pselect6, [10, 0x7000, 0]), &set, vec![2, 9]),
            (line(libc::SYS_pselect6, [9, 0x7000, 0]), &set, vec![2]),
            (line(libc::SYS_pselect6, [10, 0, 0x7000]), &set, vec![]),
            (line(libc::SYS_epoll_pwait, [4, 0x7000, 1]), &[], vec![2]),
            (line(libc::SYS_epoll_pwait, [3, 0x7000, 1]), &[], vec![]),
        ] {
            assert_eq!(waits(&call, memory, info), Some(wanted), "{call}");
        }
        for nothing in ["running\n", "-1 0x7ffd 0x7f11\n", ""] {
            assert_eq!(waits(nothing, &[], info), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_read_says_how_much_it_takes() {
        let call = Call::parse(&line(libc::SYS_read, [2, 0x7000, 17])).unwrap();
        let wanted = call.waits_in(|_, _| None, |_| None);
        assert_eq!(wanted[0].takes, Some(17));
    }
}
