//! Private files, whole lines, and waiting for a lock: what the other files of this room share.
//!
//! Owns modes, append-whole-or-not-at-all, and replace-by-rename. Must not know formats.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::{CURE_WRITE, RecordError};

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Makes one directory, 0700 whatever the umask says.
pub fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIR_MODE).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(DIR_MODE))
}

/// Makes a directory and what is missing above it; existing ones keep their modes.
pub fn create_dirs(path: &Path) -> io::Result<()> {
    let made = match (create_dir(path), path.parent()) {
        (Err(e), Some(parent)) if e.kind() == io::ErrorKind::NotFound => {
            create_dirs(parent)?;
            // Once: where the parent is there (in /proc, say) this may still be "not found".
            create_dir(path)
        }
        (made, _) => made,
    };
    match made {
        // Another run may make the same directory at the same moment.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            Err(io::ErrorKind::NotADirectory.into())
        }
        made => made,
    }
}

/// Opens a private file for appending, close-on-exec, made if it isn't there.
pub fn open_append(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(FILE_MODE)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Makes a new private file; fails where there is one.
pub fn create_new(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Puts new content in place of a file's: readers see the old or the new, never a part.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut temp_name = path.file_name().unwrap_or_default().to_owned();
    temp_name.push(".new");
    let temp = path.with_file_name(temp_name);
    let written = write_fresh(&temp, content).and_then(|()| fs::rename(&temp, path));
    if written.is_err() {
        // Half a file is of no use to anybody, and on a full disk it is in the way.
        let _ = fs::remove_file(&temp);
    }
    written
}

fn write_fresh(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    create_new(path)?.write_all(content)
}

/// A file to which whole blocks of lines are appended: all of a block or, as far as the
/// file system lets us, nothing of it.
#[derive(Debug)]
pub struct Lines {
    file: File,
    path: PathBuf,
    len: u64,
    /// The last block is cut in its middle and couldn't be taken back.
    torn: bool,
}

impl Lines {
    /// A new file.
    pub fn create(path: PathBuf) -> Result<Self, RecordError> {
        let file = create_new(&path).map_err(RecordError::io("create", &path, CURE_WRITE))?;
        Ok(Self {
            file,
            path,
            len: 0,
            torn: false,
        })
    }

    /// An open file that others append to as well: the caller holds its lock.
    pub fn shared(file: File, path: PathBuf) -> io::Result<Self> {
        let len = file.metadata()?.len();
        let torn = len > 0 && last_byte(&file, len)? != b'\n';
        Ok(Self {
            file,
            path,
            len,
            torn,
        })
    }

    /// Appends a block that ends with a newline, by one write.
    pub fn append(&mut self, block: &[u8]) -> Result<(), RecordError> {
        let mended;
        let bytes = if self.torn {
            mended = [b"\n", block].concat();
            &mended
        } else {
            block
        };
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.len += bytes.len() as u64;
                self.torn = false;
                Ok(())
            }
            Err(e) => {
                self.torn |= self.file.set_len(self.len).is_err();
                Err(RecordError::io("write", &self.path, CURE_WRITE)(e))
            }
        }
    }
}

fn last_byte(file: &File, len: u64) -> io::Result<u8> {
    let mut byte = [0];
    std::os::unix::fs::FileExt::read_exact_at(file, &mut byte, len - 1)?;
    Ok(byte[0])
}

/// What became of waiting for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// It is ours.
    Yes,
    /// Somebody else's, all the time.
    Busy,
    /// This file system has no locks.
    Unsupported,
}

/// Takes the exclusive lock, waiting at most so long: `flock` itself knows no limit.
pub fn lock_within(file: &File, limit: Duration) -> Locked {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Locked::Yes,
            Err(TryLockError::Error(e)) if e.kind() != io::ErrorKind::Interrupted => {
                return Locked::Unsupported;
            }
            Err(_) => {}
        }
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Locked::Busy;
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Gives whole lines only: what follows the last newline was torn by a crash.
#[derive(Debug)]
pub struct WholeLines<R> {
    inner: R,
    held: Vec<u8>,
    /// Where the bytes that may be given start and end in `held`.
    start: usize,
    ready: usize,
    ended: bool,
}

impl<R: Read> WholeLines<R> {
    const CHUNK: usize = 64 * 1024;

    /// Reads from this.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            held: Vec::new(),
            start: 0,
            ready: 0,
            ended: false,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        while self.start == self.ready && !self.ended {
            self.held.drain(..self.start);
            (self.start, self.ready) = (0, 0);
            let before = self.held.len();
            self.held.resize(before + Self::CHUNK, 0);
            let read = self.inner.read(&mut self.held[before..]);
            self.held.truncate(before + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
            self.ready =
                memchr::memrchr(b'\n', &self.held[before..]).map_or(0, |at| before + at + 1);
        }
        Ok(())
    }
}

impl<R: Read> Read for WholeLines<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.fill()?;
        let n = out.len().min(self.ready - self.start);
        out[..n].copy_from_slice(&self.held[self.start..self.start + n]);
        self.start += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_held_back() {
        for (text, whole) in [
            ("a\nb\nc", "a\nb\n"),
            ("a\nb\n", "a\nb\n"),
            ("abc", ""),
            ("", ""),
        ] {
            let mut got = String::new();
            WholeLines::new(text.as_bytes())
                .read_to_string(&mut got)
                .unwrap();
            assert_eq!(got, whole);
        }
        let long = format!("{}\n{}", "x".repeat(200_000), "y".repeat(100_000));
        let mut got = String::new();
        WholeLines::new(long.as_bytes())
            .read_to_string(&mut got)
            .unwrap();
        assert_eq!(got.len(), 200_001);
    }

    #[test]
    fn modes_do_not_depend_on_what_is_there() {
        let temp = tempfile::tempdir().unwrap();
        let deep = temp.path().join("a/b/c");
        create_dirs(&deep).unwrap();
        create_dirs(&deep).unwrap();
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&deep), 0o700);
        assert_eq!(mode(deep.parent().unwrap()), 0o700);
        let file = deep.join("f");
        replace(&file, b"one").unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(mode(&file), 0o600);
        assert_eq!(fs::read_dir(&deep).unwrap().count(), 1);
    }

    #[test]
    fn a_torn_line_is_ended_before_the_next() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("index");
        fs::write(&path, "whole\ntor").unwrap();
        let mut lines = Lines::shared(open_append(&path).unwrap(), path.clone()).unwrap();
        lines.append(b"next\n").unwrap();
        lines.append(b"more\n").unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "whole\ntor\nnext\nmore\n"
        );
    }
}
