//! What the command says of its progress itself: JSON lines in the file that
//! `GPUWATCH_PROGRESS` names.

use std::io;
use std::path::PathBuf;
use std::time::Instant;

use crate::model::Mark;
use crate::observe::{Tail, file_id};
use crate::read::{Said, is_sound};

use super::clock::RunClock;
use super::desk::{Desk, Entry};
use super::milestone::Herald;
use super::progress::{Progress, Voice};

/// So much is read at one look: a file that grows faster is read later.
const AT_ONCE: usize = 256 * 1024;
/// A longer line isn't progress.
const LONGEST_LINE: usize = 64 * 1024;

/// Reads the file as it grows.
pub struct SaidFile {
    tail: Tail,
    path: PathBuf,
    partial: Vec<u8>,
    /// A line that says nothing was spoken of.
    complained: bool,
    said: Said,
    progress: Progress,
    clock: RunClock,
    desk: Desk,
    herald: Herald,
}

impl SaidFile {
    /// Follows this file from its beginning.
    ///
    /// # Errors
    /// It is no regular file, or can't be read.
    pub fn new(path: PathBuf, progress: Progress, clock: RunClock, desk: Desk) -> io::Result<Self> {
        let herald = Herald::new(Voice::Said, progress.clone(), clock.clone(), desk.clone());
        Ok(Self {
            tail: Tail::open(&path, |_| 0)?,
            path,
            complained: false,
            desk,
            partial: Vec::new(),
            said: Said::default(),
            progress,
            clock,
            herald,
        })
    }

    /// Takes in what was added since the last look. A file that the command makes unreadable is
    /// its own affair; one that it puts in the place of the other is read from its beginning.
    pub fn look(&mut self) {
        let now = Instant::now();
        let mut marks = Vec::new();
        self.read(now, &mut marks);
        let there = std::fs::metadata(&self.path).map(|m| file_id(&m));
        if there.is_ok_and(|id| id != self.tail.id())
            && let Ok(tail) = Tail::open(&self.path, |_| 0)
        {
            self.tail = tail;
            self.partial.clear();
            self.read(now, &mut marks);
        }
        if !marks.is_empty() {
            self.progress.tell(Voice::Said, self.said.state());
            self.herald.announce(&marks, now);
        }
    }

    fn read(&mut self, now: Instant, marks: &mut Vec<Mark>) {
        let Ok(look) = self.tail.look(AT_ONCE) else {
            return;
        };
        if look.is_anew {
            self.partial.clear();
        }
        for piece in look.bytes.split_inclusive(|b| *b == b'\n') {
            self.partial.extend_from_slice(piece);
            let ended = piece.ends_with(b"\n");
            // The last line may have no end; an object that is closed is whole.
            if ended || self.partial.ends_with(b"}") {
                self.line(now, ended, marks);
            } else if self.partial.len() > LONGEST_LINE {
                self.partial.clear();
                self.complain();
            }
        }
    }

    fn line(&mut self, now: Instant, ended: bool, marks: &mut Vec<Mark>) {
        let line = self.partial.trim_ascii();
        match serde_json::from_slice::<Mark>(line) {
            Ok(mark) => {
                let t = Some(self.clock.elapsed_s(now));
                if !is_sound(&mark) {
                    self.complain();
                }
                marks.extend(self.said.absorb(&mark, t));
                self.partial.clear();
            }
            Err(_) if ended => {
                if !line.is_empty() {
                    self.complain();
                }
                self.partial.clear();
            }
            Err(_) => {}
        }
    }

    /// Says once that lines are passed over: who made a mistake wants to know.
    fn complain(&mut self) {
        if !std::mem::replace(&mut self.complained, true) {
            let text = "a line in GPUWATCH_PROGRESS was passed over: it must be a JSON object with the keys of 'gpuwatch parse --json', and numbers that can be";
            self.desk.put(Entry::Problem(text.to_owned()));
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
        let mut said =
            SaidFile::new(path.path().to_owned(), progress.clone(), clock, desk).unwrap();
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
        // The safe way to write a file puts another one in its place.
        let other = path.path().with_extension("new");
        std::fs::write(&other, "{\"step\": 7}").unwrap();
        std::fs::rename(&other, path.path()).unwrap();
        said.look();
        assert_eq!(
            progress.now().step,
            Some(7),
            "a last line without an end counts"
        );
    }
}
