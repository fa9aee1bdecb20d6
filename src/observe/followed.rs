//! Files beside the output in which a job writes how far it is: logs, and TensorBoard's event
//! files below a directory.
//!
//! I/O only. What was there before the run isn't the run's: [`Before`] remembers it. Knows no
//! progress.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::tail::{FileId, Tail, file_id};

/// A directory is searched this deep.
const DEPTH: usize = 6;
/// So many entries are looked at in one search.
const MOST_ENTRIES: usize = 20_000;
/// So many event files are followed; those that come later are not.
const MOST_EVENT_FILES: usize = 512;
/// A directory is searched for new files every so many looks.
const SEARCH_EVERY: u32 = 4;

/// What was there before the run: each file and its length.
#[derive(Clone, Debug, Default)]
pub struct Before(BTreeMap<PathBuf, (FileId, u64)>);

impl Before {
    /// Looks at these paths.
    pub fn of(paths: &[PathBuf]) -> Self {
        let mut seen = BTreeMap::new();
        for path in paths {
            let Ok(metadata) = fs::metadata(path) else {
                continue;
            };
            if metadata.is_dir() || names_event_file(path) {
                for (file, metadata) in event_files(path) {
                    seen.insert(file, (file_id(&metadata), metadata.len()));
                }
            } else {
                seen.insert(path.clone(), (file_id(&metadata), metadata.len()));
            }
        }
        Self(seen)
    }

    /// Where this run's part begins.
    fn end_of(&self, path: &Path, metadata: &Metadata) -> u64 {
        match self.0.get(path) {
            Some((id, length)) if *id == file_id(metadata) && *length <= metadata.len() => *length,
            _ => 0,
        }
    }
}

/// What a look found.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// Text was added to the log.
    Text(#[serde(with = "super::reader::base64")] Vec<u8>),
    /// The log begins anew.
    Anew,
    /// Something was added to an event file.
    Events {
        /// Files are numbered in the order in which they were found.
        file: usize,
        /// Its directory, below the one that is followed.
        place: String,
        /// What was added.
        #[serde(with = "super::reader::base64")]
        bytes: Vec<u8>,
    },
}

/// One path that is followed, whether it exists already or not.
pub struct Followed {
    path: PathBuf,
    before: Before,
    /// The log that is open.
    log: Option<Tail>,
    /// One was open before.
    had_log: bool,
    events: BTreeMap<PathBuf, EventFile>,
    looks: u32,
}

struct EventFile {
    number: usize,
    place: String,
    read_to: u64,
}

impl Followed {
    /// Follows this path.
    pub fn new(path: PathBuf, before: Before) -> Self {
        Self {
            path,
            before,
            log: None,
            had_log: false,
            events: BTreeMap::new(),
            looks: 0,
        }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything was there to follow.
    pub fn was_there(&self) -> bool {
        self.had_log || !self.events.is_empty()
    }

    /// What was added since the last look, about `room` bytes at most, and what of it is there and
    /// can't be read.
    pub fn look(&mut self, room: usize) -> (Vec<Found>, io::Result<()>) {
        // What was found before an error is found all the same.
        let mut found = Vec::new();
        let is_dir = || fs::metadata(&self.path).is_ok_and(|m| m.is_dir());
        let holds_events = || is_dir() || names_event_file(&self.path);
        let result = if self.log.is_none() && holds_events() {
            self.look_below(room, &mut found)
        } else {
            self.look_at_log(room, &mut found)
        };
        (found, result)
    }

    fn look_at_log(&mut self, mut room: usize, found: &mut Vec<Found>) -> io::Result<()> {
        while room > 0 {
            let Some(log) = &mut self.log else {
                match self.open()? {
                    Some(log) => self.log = Some(log),
                    None => break,
                }
                if std::mem::replace(&mut self.had_log, true) {
                    found.push(Found::Anew);
                }
                continue;
            };
            let look = log.look(room)?;
            if look.is_anew {
                found.push(Found::Anew);
            }
            if !look.bytes.is_empty() {
                room -= look.bytes.len().min(room);
                found.push(Found::Text(look.bytes));
                continue;
            }
            // Rotated: what stood in the old one was read, the path leads to another.
            match fs::metadata(&self.path) {
                Ok(now) if file_id(&now) != log.id() => self.log = None,
                _ => break,
            }
        }
        Ok(())
    }

    /// None where there is nothing yet.
    fn open(&self) -> io::Result<Option<Tail>> {
        let from = |metadata: &Metadata| {
            if self.had_log {
                0
            } else {
                self.before.end_of(&self.path, metadata)
            }
        };
        match Tail::open(&self.path, from) {
            Ok(tail) => Ok(Some(tail)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One file that can't be read costs none of the others; the first error is told.
    fn look_below(&mut self, mut room: usize, found: &mut Vec<Found>) -> io::Result<()> {
        if self.looks.is_multiple_of(SEARCH_EVERY) {
            self.search();
        }
        self.looks = self.looks.wrapping_add(1);
        let mut result = Ok(());
        for (path, event) in &mut self.events {
            // One that was taken away again is no loss.
            let Ok(metadata) = fs::metadata(path) else {
                continue;
            };
            if room == 0 || metadata.len() <= event.read_to {
                continue;
            }
            let added = Tail::open(path, |_| event.read_to).and_then(|mut tail| tail.look(room));
            let bytes = match added {
                Ok(look) => look.bytes,
                Err(error) => {
                    let named = io::Error::other(format!("{}: {error}", path.display()));
                    result = result.and(Err(named));
                    continue;
                }
            };
            room -= bytes.len().min(room);
            event.read_to += bytes.len() as u64;
            found.push(Found::Events {
                file: event.number,
                place: event.place.clone(),
                bytes,
            });
        }
        result
    }

    /// Before the last look new files are searched for once more.
    pub fn search_again(&mut self) {
        self.looks = 0;
    }

    fn search(&mut self) {
        for (path, metadata) in event_files(&self.path) {
            if self.events.len() == MOST_EVENT_FILES {
                return;
            }
            // An older run's: nobody writes to it any more.
            if self.before.end_of(&path, &metadata) > 0 || self.events.contains_key(&path) {
                continue;
            }
            let below = path.strip_prefix(&self.path).ok().and_then(Path::parent);
            let place = below.unwrap_or(Path::new("")).to_string_lossy();
            let event = EventFile {
                number: self.events.len(),
                place: place.into_owned(),
                read_to: 0,
            };
            self.events.insert(path, event);
        }
    }
}

/// TensorBoard's event files below this directory, or this one; links are not followed.
fn event_files(dir: &Path) -> Vec<(PathBuf, Metadata)> {
    let mut found = Vec::new();
    if let Ok(metadata) = fs::metadata(dir)
        && metadata.is_file()
    {
        found.push((dir.to_owned(), metadata));
        return found;
    }
    let mut dirs = vec![(dir.to_owned(), 0)];
    let mut left = MOST_ENTRIES;
    while let Some((dir, depth)) = dirs.pop() {
        // What can't be read now may be gone, or readable at the next look.
        let Ok(entries) = fs::read_dir(dir) else {
            continue;
        };
        for entry in entries.flatten().take(left) {
            left -= 1;
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && depth < DEPTH {
                dirs.push((entry.path(), depth + 1));
            } else if kind.is_file() && is_event_file(&entry.file_name().to_string_lossy()) {
                found.extend(entry.metadata().ok().map(|m| (entry.path(), m)));
            }
        }
    }
    found
}

/// Whether this path is an event file's, whether it is there already or not.
fn names_event_file(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| is_event_file(&name))
}

/// `events.out.tfevents.1764500000.host.42.0`.
fn is_event_file(name: &str) -> bool {
    name.contains("tfevents")
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    const ROOM: usize = 1 << 20;

    fn look(followed: &mut Followed) -> Vec<Found> {
        let (found, result) = followed.look(ROOM);
        result.unwrap();
        found
    }

    fn append(path: &Path, text: &str) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn text(text: &str) -> Found {
        Found::Text(text.as_bytes().to_vec())
    }

    #[test]
    fn a_log_is_read_from_where_the_run_began_through_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.log");
        append(&path, "another run's\n");
        let before = Before::of(std::slice::from_ref(&path));
        append(&path, "1\n");
        let mut log = Followed::new(path.clone(), before);
        assert_eq!(look(&mut log), [text("1\n")]);
        append(&path, "2\n");
        fs::rename(&path, dir.path().join("train.log.1")).unwrap();
        append(&path, "3\n");
        assert_eq!(look(&mut log), [text("2\n"), Found::Anew, text("3\n")]);
        assert_eq!(look(&mut log), []);
        fs::remove_file(&path).unwrap();
        assert_eq!(look(&mut log), []);
    }

    #[test]
    fn what_does_not_exist_yet_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("later.log");
        let mut log = Followed::new(path.clone(), Before::of(std::slice::from_ref(&path)));
        assert_eq!(look(&mut log), []);
        assert!(!log.was_there());
        append(&path, "all of it\n");
        assert_eq!(log.look(4).0, [text("all ")]);
        assert_eq!(look(&mut log), [text("of it\n")]);
        assert!(log.was_there());
    }

    #[test]
    fn event_files_of_this_run_are_found_below_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        let old = root.join("events.out.tfevents.1.host");
        append(&old, "old");
        let before = Before::of(std::slice::from_ref(&root));
        fs::create_dir_all(root.join("a/train")).unwrap();
        let new = root.join("a/train/events.out.tfevents.2.host");
        append(&new, "xy");
        append(&root.join("notes.txt"), "nothing");
        let mut followed = Followed::new(root, before);
        let events = |bytes: &[u8]| Found::Events {
            file: 0,
            place: "a/train".to_owned(),
            bytes: bytes.to_vec(),
        };
        assert_eq!(look(&mut followed), [events(b"xy")]);
        append(&new, "z");
        append(&old, "er");
        assert_eq!(look(&mut followed), [events(b"z")]);
        assert_eq!(look(&mut followed), []);
    }

    #[test]
    fn an_event_file_may_be_named_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.out.tfevents.3.host");
        let mut followed = Followed::new(path.clone(), Before::of(std::slice::from_ref(&path)));
        assert_eq!(look(&mut followed), []);
        append(&path, "xy");
        followed.search_again();
        let events = Found::Events {
            file: 0,
            place: String::new(),
            bytes: b"xy".to_vec(),
        };
        assert_eq!(look(&mut followed), [events]);
    }

    #[test]
    fn what_cannot_be_followed_is_an_error() {
        let mut pipe = Followed::new(PathBuf::from("/dev/null"), Before::default());
        assert!(pipe.look(ROOM).1.is_err());
    }

    #[test]
    fn what_cannot_be_read_costs_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("train.log");
        append(&path, "1\n");
        let mut log = Followed::new(path.clone(), Before::default());
        // Rotated, and a directory is in the new one's place.
        assert_eq!(look(&mut log), [text("1\n")]);
        append(&path, "2\n");
        fs::rename(&path, dir.path().join("train.log.1")).unwrap();
        fs::create_dir(&path).unwrap();
        let (found, result) = log.look(ROOM);
        assert_eq!(found, [text("2\n")]);
        assert!(result.is_err());
        // One event file is gone between the search and the look, and a pipe took its place.
        let root = dir.path().join("logs");
        fs::create_dir(&root).unwrap();
        for name in ["a.tfevents", "b.tfevents"] {
            append(&root.join(name), "x");
        }
        let mut followed = Followed::new(root.clone(), Before::default());
        followed.search();
        fs::remove_file(root.join("a.tfevents")).unwrap();
        fs::create_dir(root.join("a.tfevents")).unwrap();
        let (found, result) = followed.look(ROOM);
        assert!(
            matches!(&found[..], [Found::Events { bytes, .. }] if bytes == b"x"),
            "{found:?}"
        );
        assert!(result.unwrap_err().to_string().contains("a.tfevents"));
    }
}
