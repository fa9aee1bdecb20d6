//! What the command says of its progress itself: JSON lines in the file that
//! `GPUWATCH_PROGRESS` names.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::model::Mark;

use super::progress::Progress;

/// So much is read at one look: a file that grows faster is read later.
const AT_ONCE: usize = 256 * 1024;
/// A longer line isn't progress.
const LONGEST_LINE: usize = 64 * 1024;

/// Reads the file as it grows.
pub struct Follower {
    file: File,
    read_to: u64,
    partial: Vec<u8>,
}

impl Follower {
    /// Follows this file from its beginning.
    pub fn new(file: File) -> Self {
        Self {
            file,
            read_to: 0,
            partial: Vec::new(),
        }
    }

    /// Takes in what was added since the last look. Lines that aren't understood are the
    /// command's own affair.
    pub fn look(&mut self, progress: &Progress) {
        let Ok(size) = self.file.metadata().map(|m| m.len()) else {
            return;
        };
        if size < self.read_to {
            // Somebody began it anew.
            self.read_to = 0;
            self.partial.clear();
        }
        if size == self.read_to {
            return;
        }
        let mut added = vec![0; AT_ONCE.min((size - self.read_to) as usize)];
        let Ok(n) = self.file.read_at(&mut added, self.read_to) else {
            return;
        };
        self.read_to += n as u64;
        for piece in added[..n].split_inclusive(|b| *b == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                if let Ok(mark) = serde_json::from_slice::<Mark>(&self.partial) {
                    progress.told(&mark);
                }
                self.partial.clear();
            } else if self.partial.len() > LONGEST_LINE {
                self.partial.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_are_taken_once_they_are_whole() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let mut follower = Follower::new(File::open(path.path()).unwrap());
        let mut writer = path.reopen().unwrap();
        let progress = Progress::default();
        writer.write_all(b"{\"epoch\": 2, \"epo").unwrap();
        follower.look(&progress);
        assert_eq!(progress.now().epoch, None);
        writer
            .write_all(b"chs\": 5}\nnot json\n{\"loss\": \"nan\"}\n")
            .unwrap();
        follower.look(&progress);
        let now = progress.now();
        assert_eq!((now.epoch, now.epochs), (Some(2.0), Some(5.0)));
        assert!(now.loss.is_some_and(|loss| loss.0.is_nan()));
        writer.set_len(0).unwrap();
        follower.look(&progress);
        path.reopen()
            .unwrap()
            .write_all(b"{\"step\": 1}\n")
            .unwrap();
        follower.look(&progress);
        assert_eq!(progress.now().step, Some(1));
    }
}
