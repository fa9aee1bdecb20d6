//! The thread that reads progress off what was relayed, and hands the bytes on to the record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::launch::relay;
use crate::model::{Event, LineSource, Mark, ProgressState, Stream};
use crate::observe::Found;
use crate::read::fingerprint::{Lines, Source};
use crate::read::{EventFile, Layout, Patterns, ProgressReader, Scalars};
use crate::report::text::clean;
use crate::sys::defect::{caught, sentence};
use crate::sys::fault;

use super::clock::RunClock;
use super::desk::{Desk, Entry};
use super::milestone::Herald;
use super::progress::{Progress, Voice};
use super::ring::{Aside, Piece, Ring};

/// Where a run stands is told by the last screens of its output.
const LAST_BYTES: usize = 256 * 1024;

/// At the end the last bytes may wait so long for the disk; nobody is held up by that then.
const AT_THE_END: Duration = Duration::from_millis(300);

/// What it needs.
pub struct Digest {
    /// The run's clock.
    pub clock: RunClock,
    /// What was relayed.
    pub ring: Arc<Ring>,
    /// The relays, for the size of a terminal.
    pub relays: Vec<Arc<relay::Progress>>,
    /// Where training stands.
    pub progress: Progress,
    /// Lines of the user's own.
    pub patterns: Patterns,
    /// The followed files, in their order.
    pub followed: Vec<PathBuf>,
    /// The record.
    pub desk: Desk,
    /// The streams are at their end: of what waits only the last bytes are worth reading.
    pub hurry: Arc<AtomicBool>,
}

/// What reads the output.
struct Readers {
    progress: ProgressReader,
    shown: Herald,
    lines: Lines,
    events: Events,
}

/// What reads event files.
struct Events {
    /// By the followed path and the file's number below it.
    files: BTreeMap<(usize, usize), EventFile>,
    scalars: Scalars,
    written: Herald,
}

impl Digest {
    /// Runs until the streams have ended. A defect of ours costs the reading: the record gets
    /// its output all the same.
    pub fn run(self) {
        let mut readers = self.guarded(|| self.readers());
        loop {
            let taken = self.ring.take();
            let mut left: usize = taken.pieces.iter().map(|piece| piece.bytes.len()).sum();
            for piece in taken.pieces {
                left -= piece.bytes.len();
                if left < LAST_BYTES || !self.hurry.load(Ordering::Relaxed) {
                    readers =
                        readers.and_then(|readers| self.guarded(|| self.read(readers, &piece)));
                }
                let patience = self.hurry.load(Ordering::Relaxed).then_some(AT_THE_END);
                self.desk.output(piece.bytes, piece.lost_before, patience);
            }
            for aside in taken.asides {
                readers =
                    readers.and_then(|readers| self.guarded(|| self.read_aside(readers, &aside)));
            }
            if taken.over {
                break;
            }
            if taken.attempt_over {
                // Whatever comes is another attempt's, which begins anew.
                readers = readers.and_then(|readers| self.guarded(|| self.finish(readers, true)));
            }
        }
        readers.and_then(|readers| self.guarded(|| self.finish(readers, false)));
    }

    fn guarded<T>(&self, read: impl FnOnce() -> T) -> Option<T> {
        caught(read)
            .map_err(|why| {
                let text = sentence("progress is no longer read", &why);
                self.desk.put(Entry::Problem(text));
                // Where it stands now nobody knows.
                for voice in [Voice::Shown, Voice::Scalars] {
                    self.progress.tell(voice, ProgressState::default());
                }
            })
            .ok()
    }

    fn readers(&self) -> Readers {
        let layout = |stream| {
            let size = self
                .relays
                .iter()
                .find(|r| r.stream() == stream)
                .and_then(|r| r.size());
            size.map_or(Layout::Plain, |(cols, rows)| Layout::Terminal {
                cols,
                rows,
            })
        };
        let (out, err) = (layout(Stream::Out), layout(Stream::Err));
        let herald = |voice| {
            let (progress, clock) = (self.progress.clone(), self.clock.clone());
            Herald::new(voice, progress, clock, self.desk.clone())
        };
        Readers {
            progress: ProgressReader::with_patterns(out, err, self.patterns.clone()),
            shown: herald(Voice::Shown),
            lines: Lines::new(),
            events: Events {
                files: BTreeMap::new(),
                scalars: Scalars::default(),
                written: herald(Voice::Scalars),
            },
        }
    }

    fn read(&self, mut readers: Readers, piece: &Piece) -> Readers {
        fault::at("digest");
        self.follow_sizes(&mut readers.progress);
        let t = self.clock.elapsed_s(piece.at);
        let marks = readers.progress.feed(piece.stream, Some(t), &piece.bytes);
        self.show(&mut readers, &marks, piece.at);
        let source = Source::from(piece.stream);
        for text in readers.lines.feed(source, &piece.bytes) {
            self.tell(source, text, piece.at);
        }
        readers
    }

    /// What was found in followed files.
    fn read_aside(&self, mut readers: Readers, aside: &Aside) -> Readers {
        let t = Some(self.clock.elapsed_s(aside.at));
        let marks = match &aside.found {
            Found::Text(bytes) => {
                let source = Source::File(aside.path);
                for text in readers.lines.feed(source, bytes) {
                    self.tell(source, text, aside.at);
                }
                readers.progress.feed_file(aside.path, t, bytes)
            }
            Found::Anew => {
                readers.lines.turn(Source::File(aside.path));
                readers.progress.turn_file(aside.path, t)
            }
            Found::Events { file, place, bytes } => {
                let events = &mut readers.events;
                let file = events.files.entry((aside.path, *file)).or_default();
                let was_damaged = file.is_damaged();
                let written = file.feed(bytes);
                if file.is_damaged() && !was_damaged {
                    let text = format!(
                        "an event file in '{}' is damaged: what is behind the damage isn't read",
                        clean(place)
                    );
                    self.desk.put(Entry::Problem(text));
                }
                let marks = events.scalars.absorb(place, t, &written);
                if !marks.is_empty() {
                    let state = events.scalars.state();
                    self.progress.tell(Voice::Scalars, state);
                    events.written.announce(&marks, aside.at);
                }
                return readers;
            }
        };
        self.show(&mut readers, &marks, aside.at);
        readers
    }

    fn show(&self, readers: &mut Readers, marks: &[Mark], at: Instant) {
        if !marks.is_empty() {
            self.progress.tell(Voice::Shown, readers.progress.state());
            readers.shown.announce(marks, at);
        }
    }

    /// The last of what was read. `again`: another attempt may follow; its readers.
    fn finish(&self, mut readers: Readers, again: bool) -> Readers {
        let end = Instant::now();
        let marks = readers.progress.finish(Some(self.clock.elapsed_s(end)));
        self.progress.tell(Voice::Shown, readers.progress.state());
        readers.shown.announce(&marks, end);
        for (source, text) in readers.lines.finish() {
            self.tell(source, text, end);
        }
        self.desk.put(Entry::Quotes(readers.lines.quotes()));
        if !again {
            return readers;
        }
        self.desk.put(Entry::AttemptOver);
        for voice in [Voice::Shown, Voice::Scalars] {
            self.progress.tell(voice, ProgressState::default());
        }
        let mut fresh = self.readers();
        // Their files go on where they were.
        fresh.events.files = readers.events.files;
        fresh
    }

    /// A line that the judge cares about.
    fn tell(&self, source: Source, text: String, at: Instant) {
        let (stream, file) = match source {
            Source::Out => (LineSource::Out, None),
            Source::Err => (LineSource::Err, None),
            Source::File(number) => (LineSource::File, self.followed.get(number)),
        };
        let file = file.map(|path| path.to_string_lossy().into_owned());
        let event = Event::Line { stream, text, file };
        self.desk.event(self.clock.at(at), event);
    }

    fn follow_sizes(&self, reader: &mut ProgressReader) {
        for relay in &self.relays {
            if let Some((cols, rows)) = relay.size() {
                reader.resize(relay.stream(), cols, rows);
            }
        }
    }
}
