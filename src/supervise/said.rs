//! What the command says of its progress itself: JSON lines in the file that
//! `GPUWATCH_PROGRESS` names.

use std::fs::File;
use std::io;
use std::time::Instant;

use crate::model::Mark;
use crate::observe::Tail;
use crate::read::Said;

use super::clock::RunClock;
use super::desk::Desk;
use super::milestone::Herald;
use super::progress::{Progress, Voice};

/// So much is read at one look: a file that grows faster is read later.
const AT_ONCE: usize = 256 * 1024;
/// A longer line isn't progress.
const LONGEST_LINE: usize = 64 * 1024;

/// Reads the file as it grows.
pub struct SaidFile {
    tail: Tail,
    partial: Vec<u8>,
    said: Said,
    progress: Progress,
    clock: RunClock,
    herald: Herald,
}

impl SaidFile {
    /// Follows this file from its beginning.
    ///
    /// # Errors
    /// It is no regular file, or can't be read.
    pub fn new(file: File, progress: Progress, clock: RunClock, desk: Desk) -> io::Result<Self> {
        let herald = Herald::new(Voice::Said, progress.clone(), clock.clone(), desk);
        Ok(Self {
            tail: Tail::of(file, |_| 0)?,
            partial: Vec::new(),
            said: Said::default(),
            progress,
            clock,
            herald,
        })
    }

    /// Takes in what was added since the last look. Lines that aren't understood are the
    /// command's own affair, as is a file that it makes unreadable.
    pub fn look(&mut self) {
        let Ok(look) = self.tail.look(AT_ONCE) else {
            return;
        };
        if look.is_anew {
            self.partial.clear();
        }
        let now = Instant::now();
        let mut marks = Vec::new();
        for piece in look.bytes.split_inclusive(|b| *b == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let mark = serde_json::from_slice::<Mark>(&self.partial).ok();
                let t = Some(self.clock.elapsed_s(now));
                marks.extend(mark.and_then(|mark| self.said.absorb(&mark, t)));
                self.partial.clear();
            } else if self.partial.len() > LONGEST_LINE {
                self.partial.clear();
            }
        }
        if !marks.is_empty() {
            self.progress.tell(Voice::Said, self.said.state());
            self.herald.announce(&marks, now);
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
        let progress = Progress::default();
        let clock = RunClock::start();
        let (desk, _tray) = Desk::new();
        let file = File::open(path.path()).unwrap();
        let mut said = SaidFile::new(file, progress.clone(), clock, desk).unwrap();
        let mut writer = path.reopen().unwrap();
        writer.write_all(b"{\"epoch\": 2, \"epo").unwrap();
        said.look();
        assert_eq!(progress.now().epoch, None);
        writer
            .write_all(b"chs\": 5}\nnot json\n{\"loss\": \"nan\"}\n")
            .unwrap();
        said.look();
        let now = progress.now();
        assert_eq!((now.epoch, now.epochs), (Some(2.0), Some(5.0)));
        assert!(now.loss.is_some_and(|loss| loss.0.is_nan()));
        writer.set_len(0).unwrap();
        said.look();
        path.reopen()
            .unwrap()
            .write_all(b"{\"step\": 1}\n")
            .unwrap();
        said.look();
        assert_eq!(progress.now().step, Some(1));
    }
}
