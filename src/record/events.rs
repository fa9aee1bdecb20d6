//! `events.jsonl`: one line an event.
//!
//! Owns the lines. Must not know what an event means.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::error::{CURE_READ, CURE_WRITE, RecordError};
use super::files::Lines;
use crate::model::Logged;

/// The file's name.
pub const EVENTS: &str = "events.jsonl";

/// Appends events, one write a line.
#[derive(Debug)]
pub struct EventWriter {
    lines: Lines,
}

impl EventWriter {
    /// Makes `events.jsonl` in a run's directory.
    ///
    /// # Errors
    /// What the system refused.
    pub fn create(run_dir: &Path) -> Result<Self, RecordError> {
        Ok(Self {
            lines: Lines::create(run_dir.join(EVENTS))?,
        })
    }

    /// Appends one event.
    ///
    /// # Errors
    /// What the system refused: this event is lost, later ones may be written.
    pub fn append(&mut self, event: &Logged) -> Result<(), RecordError> {
        let mut line = serde_json::to_vec(event)
            .map_err(io::Error::from)
            .map_err(RecordError::io("write", Path::new(EVENTS), CURE_WRITE))?;
        line.push(b'\n');
        self.lines.append(&line)
    }
}

/// Reads events back in their order; lines that are torn, or of a kind that this version
/// doesn't know, are skipped.
#[derive(Debug)]
pub struct EventReader<R> {
    input: R,
    path: std::path::PathBuf,
    line: Vec<u8>,
}

impl EventReader<BufReader<File>> {
    /// Opens `events.jsonl` in a run's directory.
    ///
    /// # Errors
    /// What the system refused.
    pub fn open(run_dir: &Path) -> Result<Self, RecordError> {
        let path = run_dir.join(EVENTS);
        let file = File::open(&path).map_err(RecordError::io("read", &path, CURE_READ))?;
        Ok(Self {
            input: BufReader::with_capacity(64 * 1024, file),
            path,
            line: Vec::new(),
        })
    }
}

impl<R: BufRead> Iterator for EventReader<R> {
    type Item = Result<Logged, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.line.clear();
            match self.input.read_until(b'\n', &mut self.line) {
                Ok(0) => return None,
                Err(e) => return Some(Err(RecordError::io("read", &self.path, CURE_READ)(e))),
                Ok(_) => {}
            }
            if self.line.ends_with(b"\n")
                && let Ok(event) = serde_json::from_slice(&self.line)
            {
                return Some(Ok(event));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::model::{Event, Stamp};

    #[test]
    fn events_come_back_and_torn_or_unknown_lines_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = EventWriter::create(dir.path()).unwrap();
        let event = |pid| Logged {
            stamp: Stamp {
                time: "2026-11-30T09:15:02.000+08:00".into(),
                elapsed_s: 0.4,
            },
            event: Event::Started { pid },
        };
        writer.append(&event(1)).unwrap();
        let mut file = super::super::files::open_append(&dir.path().join(EVENTS)).unwrap();
        file.write_all(b"{\"time\":\"t\",\"elapsed_s\":1,\"kind\":\"from-the-future\"}\n\xff\n")
            .unwrap();
        writer.append(&event(2)).unwrap();
        file.write_all(b"{\"time\":\"t\",\"elapsed_s\":1,\"kind\":\"started\",\"pid\":3}")
            .unwrap();
        let read: Vec<_> = EventReader::open(dir.path())
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(read, [event(1), event(2)]);
    }
}
