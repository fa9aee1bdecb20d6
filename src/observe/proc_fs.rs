//! `/proc` as files, under a root that tests replace.
//!
//! Owns opening and reading them, cheaply: buffers are used again, and files of processes that
//! are looked at every second stay open. Knows no process tree and computes nothing.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

pub use crate::model::ProcessId;
use crate::model::Why;

use super::parse::{self, Stat};

/// One read takes this much: more than `stat`, `io` and the part of `status` that we use.
const ONE_READ: usize = 8192;

/// A process file system and its buffers.
#[derive(Debug)]
pub struct ProcFs {
    root: PathBuf,
    /// Whether the root is the kernel's, where an open file dies with its process.
    real: bool,
    path: OsString,
    buffer: Vec<u8>,
}

impl Default for ProcFs {
    fn default() -> Self {
        Self::at("/proc")
    }
}

impl ProcFs {
    /// The process file system mounted (or imitated) at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let real =
            rustix::fs::statfs(&root).is_ok_and(|fs| fs.f_type == rustix::fs::PROC_SUPER_MAGIC);
        Self {
            root,
            real,
            path: OsString::new(),
            buffer: Vec::with_capacity(2 * ONE_READ),
        }
    }

    /// The whole of `root/relative`.
    pub fn read(&mut self, relative: std::fmt::Arguments<'_>) -> io::Result<&[u8]> {
        let mut file = self.open(relative)?;
        self.buffer.clear();
        file.read_to_end(&mut self.buffer)?;
        Ok(&self.buffer)
    }

    /// The link `root/relative`, without following it.
    pub fn link(&mut self, relative: std::fmt::Arguments<'_>) -> io::Result<PathBuf> {
        self.set_path(relative);
        std::fs::read_link(&self.path)
    }

    /// Numbers of a process, and its short name.
    ///
    /// Errors: `NotFound` or `ESRCH` where there is no such process, `InvalidData` for a text
    /// that isn't a `stat` line.
    pub fn stat(&mut self, pid: u32) -> io::Result<(Stat, &[u8])> {
        let text = self.read(format_args!("{pid}/stat"))?;
        parse::stat(text).ok_or_else(not_understood)
    }

    /// The identity of whoever has this PID now.
    pub fn identity(&mut self, pid: u32) -> io::Result<ProcessId> {
        let (stat, _) = self.stat(pid)?;
        Ok(ProcessId {
            pid,
            start: stat.start,
        })
    }

    /// Appends the children that thread `tid` of `pid` forked (or took over) to `into`.
    ///
    /// proc(5) calls the list unreliable while processes end: a look that misses one finds it
    /// the next time.
    pub fn children(&mut self, pid: u32, tid: u32, into: &mut Vec<u32>) -> io::Result<()> {
        let text = self.read(format_args!("{pid}/task/{tid}/children"))?;
        into.extend(parse::words(text).filter_map(pid_of));
        Ok(())
    }

    /// Appends the thread ids of `pid`, ascending.
    pub fn threads(&mut self, pid: u32, into: &mut Vec<u32>) -> io::Result<()> {
        self.numbered(format_args!("{pid}/task"), into)
    }

    /// Appends all PIDs, ascending.
    pub fn pids(&mut self, into: &mut Vec<u32>) -> io::Result<()> {
        self.numbered(format_args!("."), into)
    }

    /// The last process or thread id that the kernel gave out.
    pub fn last_pid(&mut self, kept: &mut Kept) -> io::Result<u32> {
        let text = kept.read(self, true, format_args!("loadavg"))?;
        parse::last_pid(text).ok_or_else(not_understood)
    }

    fn numbered(
        &mut self,
        relative: std::fmt::Arguments<'_>,
        into: &mut Vec<u32>,
    ) -> io::Result<()> {
        self.set_path(relative);
        let first = into.len();
        for entry in std::fs::read_dir(&self.path)? {
            into.extend(pid_of(entry?.file_name().as_encoded_bytes()));
        }
        if let Some(new) = into.get_mut(first..) {
            new.sort_unstable();
        }
        Ok(())
    }

    fn open(&mut self, relative: std::fmt::Arguments<'_>) -> io::Result<File> {
        self.set_path(relative);
        File::open(&self.path)
    }

    fn set_path(&mut self, relative: std::fmt::Arguments<'_>) {
        self.path.clear();
        self.path.push(&self.root);
        // Writing to a string in memory can't fail.
        let _ = write!(self.path, "/{relative}");
    }
}

/// A file that is read again and again.
///
/// On the kernel's own `/proc` it may stay open, and then can't become another process's: when
/// its process ends, reading fails with `ESRCH`, whoever gets the PID next.
#[derive(Debug, Default)]
pub struct Kept(Option<File>);

impl Kept {
    /// Up to 8 KiB of it, as it is now; `keep` leaves it open afterwards.
    pub fn read<'a>(
        &mut self,
        fs: &'a mut ProcFs,
        keep: bool,
        relative: std::fmt::Arguments<'_>,
    ) -> io::Result<&'a [u8]> {
        let file = match self.0.take() {
            Some(file) => file,
            None => fs.open(relative)?,
        };
        fs.buffer.resize(ONE_READ, 0);
        let length = loop {
            match file.read_at(&mut fs.buffer, 0) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if keep && fs.real {
            self.0 = Some(file);
        }
        Ok(fs.buffer.get(..length).unwrap_or_default())
    }
}

/// A word as a process or thread id.
fn pid_of(word: &[u8]) -> Option<u32> {
    parse::number(word).and_then(|n| u32::try_from(n).ok())
}

/// A text that isn't what proc(5) promises.
pub fn not_understood() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "not in the format of proc(5)")
}

/// Whether the error says that the process is no more (`ESRCH` comes from files opened before).
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// The reason of a reading that failed so.
pub fn why(error: &io::Error) -> Why {
    // What pressure files answer where the accounting is switched off at boot.
    if error.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) {
        return Why::NotSupported;
    }
    match error.kind() {
        ErrorKind::PermissionDenied => Why::NoPermission,
        ErrorKind::InvalidData => Why::Garbage,
        // A kernel without the file, or with the feature switched off.
        ErrorKind::NotFound | ErrorKind::Unsupported => Why::NotSupported,
        _ => Why::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::FakeProc;
    use super::*;

    #[test]
    fn reads_under_its_root() {
        let fake = FakeProc::new();
        fake.process(41, 1).name("py thon)").start(77).write();
        let mut fs = fake.fs();
        let (stat, name) = fs.stat(41).unwrap();
        assert_eq!((stat.pid, stat.start, name), (41, 77, &b"py thon)"[..]));
        assert_eq!(fs.identity(41).unwrap(), ProcessId { pid: 41, start: 77 });
        assert!(is_gone(&fs.stat(42).unwrap_err()));
    }

    #[test]
    fn a_text_of_another_kind_is_said_to_be_so() {
        let fake = FakeProc::new();
        fake.file("9/stat", "nonsense");
        let error = fake.fs().stat(9).unwrap_err();
        assert_eq!(why(&error), Why::Garbage);
    }

    #[test]
    fn a_file_kept_open_is_read_afresh() {
        let mut fs = ProcFs::default();
        let me = std::process::id();
        let mut kept = Kept::default();
        for _ in 0..2 {
            let text = kept.read(&mut fs, true, format_args!("{me}/stat")).unwrap();
            assert_eq!(parse::stat(text).unwrap().0.pid, me);
        }
    }
}
