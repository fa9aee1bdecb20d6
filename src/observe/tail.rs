//! A file that grows, is cut short, or is written anew.
//!
//! I/O only: what was added since the last look, and whether it is the old file's. Knows no
//! lines.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// So many bytes before the place where we are tell whether the file is still the same.
const KNOWN: u64 = 64;

/// Which file a path leads to: device and inode.
pub type FileId = (u64, u64);

/// The file behind these facts.
pub fn file_id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// What a look found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The file was cut short or written anew: what follows are its first bytes.
    pub is_anew: bool,
    /// What was added.
    pub bytes: Vec<u8>,
}

/// An open file and how far it was read.
#[derive(Debug)]
pub struct Tail {
    file: File,
    id: FileId,
    read_to: u64,
    /// The bytes before `read_to`.
    known: Vec<u8>,
    /// Length and time of the last change when it was looked at last.
    seen: Option<(u64, (i64, i64))>,
}

impl Tail {
    /// Opens a regular file; `from` is given its length and says where to begin.
    ///
    /// # Errors
    /// It can't be opened, or is no regular file (a pipe would be emptied by our reading).
    pub fn open(path: &Path, from: impl FnOnce(&Metadata) -> u64) -> io::Result<Self> {
        // Opening a pipe must not wait for its writer.
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        Self::of(file, from)
    }

    /// The same for one that is open already.
    ///
    /// # Errors
    /// As above.
    pub fn of(file: File, from: impl FnOnce(&Metadata) -> u64) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let read_to = from(&metadata).min(metadata.len());
        let mut tail = Self {
            file,
            id: file_id(&metadata),
            read_to,
            known: Vec::new(),
            seen: None,
        };
        tail.known = tail.before(read_to)?;
        Ok(tail)
    }

    /// Which file it is.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// What was added since the last look, at most `most` bytes of it. A file that was replaced
    /// by another one under its name is not noticed here.
    ///
    /// # Errors
    /// It can't be read.
    pub fn look(&mut self, most: usize) -> io::Result<Look> {
        let metadata = self.file.metadata()?;
        let now = (metadata.len(), (metadata.mtime(), metadata.mtime_nsec()));
        if self.seen == Some(now) && self.read_to == now.0 {
            return Ok(Look::default());
        }
        self.seen = Some(now);
        let is_anew = now.0 < self.read_to || self.before(self.read_to)? != self.known;
        if is_anew {
            self.read_to = 0;
            self.known.clear();
        }
        let length = (now.0 - self.read_to).min(most as u64);
        let mut bytes = vec![0; length as usize];
        let got = self.file.read_at(&mut bytes, self.read_to)?;
        bytes.truncate(got);
        self.read_to += got as u64;
        self.known.extend_from_slice(&bytes);
        let surplus = self.known.len().saturating_sub(KNOWN as usize);
        self.known.drain(..surplus);
        Ok(Look { is_anew, bytes })
    }

    /// The bytes before this place; fewer where the file was cut short meanwhile.
    fn before(&self, place: u64) -> io::Result<Vec<u8>> {
        let from = place.saturating_sub(KNOWN);
        let mut bytes = vec![0; (place - from) as usize];
        let got = self.file.read_at(&mut bytes, from)?;
        bytes.truncate(got);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn look(tail: &mut Tail) -> (bool, String) {
        let look = tail.look(1 << 20).unwrap();
        (look.is_anew, String::from_utf8(look.bytes).unwrap())
    }

    #[test]
    fn what_is_added_is_read_once_and_a_new_beginning_is_noticed() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), "before\n").unwrap();
        let mut tail = Tail::open(path.path(), Metadata::len).unwrap();
        let mut writer = OpenOptions::new().append(true).open(path.path()).unwrap();
        assert_eq!(look(&mut tail), (false, String::new()));
        writer.write_all(b"one\n").unwrap();
        assert_eq!(look(&mut tail), (false, "one\n".to_owned()));
        assert_eq!(look(&mut tail), (false, String::new()));
        writer.set_len(0).unwrap();
        writer.write_all(b"two\n").unwrap();
        assert_eq!(look(&mut tail), (true, "two\n".to_owned()));
        // Cut short and grown beyond where we were, all between two looks.
        writer.set_len(0).unwrap();
        writer.write_all(b"three and more\n").unwrap();
        assert_eq!(look(&mut tail), (true, "three and more\n".to_owned()));
    }

    #[test]
    fn a_little_at_a_time() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), "abcdef").unwrap();
        let mut tail = Tail::open(path.path(), |_| 0).unwrap();
        assert_eq!(tail.look(4).unwrap().bytes, b"abcd");
        assert_eq!(tail.look(4).unwrap().bytes, b"ef");
    }

    #[test]
    fn a_pipe_is_left_alone() {
        let (reader, _writer) = nix::unistd::pipe().unwrap();
        let error = Tail::of(File::from(reader), |_| 0).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
        assert!(Tail::open(Path::new("/dev/null"), |_| 0).is_err());
    }
}
