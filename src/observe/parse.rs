//! The texts of `/proc` and of cgroups, as numbers.
//!
//! Owns the formats (proc(5), and the kernel's `Documentation/admin-guide/cgroup-v2.rst`).
//! Pure: bytes in, numbers out, nothing allocated. Must not know where the bytes came from.

/// `/proc/PID/stat`, as far as we use it. Times are in clock ticks (`USER_HZ`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Process id.
    pub pid: u32,
    /// State letter of the main thread.
    pub state: u8,
    /// Parent's process id.
    pub ppid: u32,
    /// Process group.
    pub pgrp: i32,
    /// Session.
    pub session: i32,
    /// Page faults that needed storage, since the process began.
    pub majflt: u64,
    /// User CPU time in ticks, since the process began.
    pub utime: u64,
    /// System CPU time in ticks, since the process began.
    pub stime: u64,
    /// Threads.
    pub threads: u32,
    /// When it started, in ticks since the machine did: with `pid` the process's identity.
    pub start: u64,
    /// What the parent is sent at the end; -1 marks a thread that isn't its process's first.
    pub exit_signal: i32,
}

/// `/proc/PID/statm`, as far as we use it, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statm {
    /// All resident memory.
    pub resident: u64,
    /// The part of it that isn't anonymous: pages of files and shared memory.
    pub shared: u64,
}

/// `/proc/PID/io` in bytes since the process began, ended and reaped children included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Read by call, from anything.
    pub rchar: u64,
    /// Written by call, to anything.
    pub wchar: u64,
    /// Fetched from storage.
    pub read_bytes: u64,
    /// Sent to storage.
    pub write_bytes: u64,
}

/// The first line of `/proc/stat` in ticks since boot, summed over cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Time in which something ran.
    pub busy: u64,
    /// Time in which nothing did (waiting for storage included).
    pub idle: u64,
}

/// The quota's part of a cgroup's `cpu.stat`, since the cgroup was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Enforcement periods that passed while something wanted to run.
    pub periods: u64,
    /// Those of them in which the quota ran out.
    pub throttled: u64,
}

/// A decimal number that fills the whole word.
pub fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_u64, |n, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// The same, for fields that may be negative.
fn signed(word: &[u8]) -> Option<i32> {
    match word.strip_prefix(b"-") {
        Some(rest) => i32::try_from(number(rest)?).ok().map(|n| -n),
        None => i32::try_from(number(word)?).ok(),
    }
}

/// Words between blanks and line ends.
pub fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| matches!(b, b' ' | b'\t' | b'\n'))
        .filter(|word| !word.is_empty())
}

/// `/proc/PID/stat` and the process's short name in it.
///
/// The name may hold blanks and parentheses, so the fields begin after the *last* `)`.
pub fn stat(text: &[u8]) -> Option<(Stat, &[u8])> {
    let open = memchr::memchr(b'(', text)?;
    let close = memchr::memrchr(b')', text)?;
    let name = text.get(open + 1..close)?;
    let pid = number(text.get(..open)?.trim_ascii())?;
    let mut fields = words(text.get(close + 1..)?);
    // Numbers in proc(5): state is field 3, so `nth(n)` skips what lies between.
    let stat = Stat {
        pid: u32::try_from(pid).ok()?,
        state: *fields.next()?.first()?,
        ppid: u32::try_from(number(fields.next()?)?).ok()?,
        pgrp: signed(fields.next()?)?,
        session: signed(fields.next()?)?,
        majflt: number(fields.nth(5)?)?, // 12
        utime: number(fields.nth(1)?)?,  // 14
        stime: number(fields.next()?)?,
        threads: u32::try_from(number(fields.nth(4)?)?).ok()?, // 20
        start: number(fields.nth(1)?)?,                        // 22
        exit_signal: fields.nth(15).and_then(signed).unwrap_or(0), // 38
    };
    Some((stat, name))
}

/// The value of `key` in lines of `key value`, or `key: value`.
pub fn keyed(text: &[u8], key: &[u8]) -> Option<u64> {
    text.split(|b| *b == b'\n').find_map(|line| {
        let rest = line.strip_prefix(key)?;
        let rest = match rest.first()? {
            b':' | b' ' | b'\t' => rest.get(1..)?,
            _ => return None,
        };
        number(words(rest).next()?)
    })
}

/// `/proc/PID/statm`: sizes in pages; all are 0 for a process without memory, such as a zombie.
pub fn statm(text: &[u8]) -> Option<Statm> {
    let mut fields = words(text).skip(1);
    Some(Statm {
        resident: number(fields.next()?)?,
        shared: number(fields.next()?)?,
    })
}

/// `/proc/PID/io`.
pub fn io(text: &[u8]) -> Option<Io> {
    Some(Io {
        rchar: keyed(text, b"rchar")?,
        wchar: keyed(text, b"wchar")?,
        read_bytes: keyed(text, b"read_bytes")?,
        write_bytes: keyed(text, b"write_bytes")?,
    })
}

/// The last field of `/proc/loadavg`: the process or thread id given out last.
pub fn last_pid(text: &[u8]) -> Option<u32> {
    u32::try_from(number(words(text).nth(4)?)?).ok()
}

/// The first number of `/proc/uptime`, in hundredths of a second.
pub fn uptime_centis(text: &[u8]) -> Option<u64> {
    let word = words(text).next()?;
    let dot = memchr::memchr(b'.', word)?;
    let (whole, fraction) = (word.get(..dot)?, word.get(dot + 1..)?);
    number(whole)?
        .checked_mul(100)?
        .checked_add(number(fraction.get(..2)?)?)
}

/// The first line of `/proc/stat`. Time of guests is already part of user time.
pub fn cpu_times(text: &[u8]) -> Option<CpuTimes> {
    let line = text.split(|b| *b == b'\n').next()?.strip_prefix(b"cpu ")?;
    let mut fields = [0_u64; 8];
    for (slot, word) in fields.iter_mut().zip(words(line)) {
        *slot = number(word)?;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = fields;
    let sum = |ticks: &[u64]| ticks.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
    Some(CpuTimes {
        busy: sum(&[user, nice, system, irq, softirq, steal])?,
        idle: sum(&[idle, iowait])?,
    })
}

/// Microseconds in which some task waited: `total=` of the line `some` of a pressure file.
pub fn pressure_some_us(text: &[u8]) -> Option<u64> {
    let line = text
        .split(|b| *b == b'\n')
        .find(|line| line.starts_with(b"some "))?;
    words(line).find_map(|word| number(word.strip_prefix(b"total=")?))
}

/// The quota's part of `cpu.stat`, alike in both versions of cgroups.
pub fn quota(text: &[u8]) -> Option<Quota> {
    Some(Quota {
        periods: keyed(text, b"nr_periods")?,
        throttled: keyed(text, b"nr_throttled")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"1234 (a) b (c) S 77 1234 1200 34816 1234 4194304 100 200 7 9 150 50 3 4 20 0 12 0 987654 1000000 2500 18446744073709551615 1 1 0 0 0 0 0 16781312 17642 0 0 0 17 3 0 0 0 0 0\n";

    #[test]
    fn the_name_ends_at_the_last_parenthesis() {
        let (stat, name) = stat(LINE).unwrap();
        assert_eq!(name, b"a) b (c");
        assert_eq!(
            stat,
            Stat {
                pid: 1234,
                state: b'S',
                ppid: 77,
                pgrp: 1234,
                session: 1200,
                majflt: 7,
                utime: 150,
                stime: 50,
                threads: 12,
                start: 987_654,
                exit_signal: 17,
            }
        );
    }

    #[test]
    fn a_cut_line_is_no_process() {
        for end in [0, 5, 12, 20, 60] {
            assert_eq!(stat(&LINE[..end]), None, "{end}");
        }
        assert_eq!(stat(b"1 )( S 1"), None);
    }

    #[test]
    fn keys_match_whole() {
        let text = b"oom 4\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(keyed(text, b"oom_kill"), Some(2));
        assert_eq!(keyed(text, b"oom"), Some(4));
        assert_eq!(keyed(text, b"max"), None);
        let status = b"VmRSS:\t 300 kB\nRssFile:\t 50 kB\nRssShmem:\t     150 kB\n";
        assert_eq!(keyed(status, b"RssShmem"), Some(150));
    }

    #[test]
    fn the_small_files() {
        assert_eq!(
            statm(b"7000 500 200 30 0 900 0\n"),
            Some(Statm {
                resident: 500,
                shared: 200
            })
        );
        assert_eq!(last_pid(b"0.11 0.08 0.03 1/101 6146\n"), Some(6146));
        assert_eq!(uptime_centis(b"350735.47 234388.90\n"), Some(35_073_547));
        assert_eq!(
            cpu_times(b"cpu  10 20 30 400 50 6 7 8 99 9\ncpu0 1 2 3 4\n"),
            Some(CpuTimes {
                busy: 81,
                idle: 450
            })
        );
        let pressure = b"some avg10=0.00 avg60=0.03 avg300=0.13 total=1914214\nfull avg10=0.00 avg60=0.03 avg300=0.12 total=1754268\n";
        assert_eq!(pressure_some_us(pressure), Some(1_914_214));
        assert_eq!(
            quota(b"usage_usec 5\nnr_periods 10\nnr_throttled 4\n"),
            Some(Quota {
                periods: 10,
                throttled: 4
            })
        );
        assert_eq!(number(b"99999999999999999999"), None);
        let most = u64::MAX;
        let too_much = format!("cpu  {most} 1 0 0 0 0 0 0\n");
        assert_eq!(cpu_times(too_much.as_bytes()), None);
    }
}
