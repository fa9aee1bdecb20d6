//! Alerts on their way, kept in files until they arrive.
//!
//! Owns the folder and its files, one an alert and channel, and who may send which. An alert is
//! kept before it is first tried, by a sender whose lock tells that it lives. What a sender
//! leaves, however it ends, is free: the next one takes it over, and nobody else has it then. No
//! address and no secret is in the files: a place is named by its hash.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use etcetera::BaseStrategy;
use jiff::Timestamp;

use super::kept::plain;
use super::letter::token;

pub use super::kept::Kept;

/// More alerts than this aren't kept: the least important go, of them the oldest.
const MOST: usize = 500;
/// How often a lock is tried that others hold for a moment, and the pause between.
const TRIES: (u32, Duration) = (100, Duration::from_millis(10));

/// What was begun so long ago, nobody writes any more, seconds.
const UNFINISHED_S: u64 = 3600;

const TURN: &str = "lock";
const SENDER: &str = "sender-";

/// What is kept, each with its file, and what can't be read.
pub type Listed = (Vec<(PathBuf, Kept)>, Vec<String>);

/// The folder.
#[derive(Clone, Debug)]
pub struct Outbox {
    folder: PathBuf,
}

impl Outbox {
    /// `$XDG_STATE_HOME/gpuwatch/outbox`, else in `~/.local/state`; `None` without a home.
    pub fn at_home() -> Option<Self> {
        let base = etcetera::base_strategy::Xdg::new().ok()?;
        let state = base.state_dir().filter(|dir| dir.is_absolute())?;
        Some(Self::at(&state.join("gpuwatch/outbox")))
    }

    /// This folder.
    pub fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Another one below it, for what must not be mixed with the rest.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        Self::at(&self.folder.join(plain(name)))
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps an alert, in the place of what was kept of it: whoever looks finds it whole or not
    /// at all. The folder is made (0700) if it is missing; the file is 0600. Returns how many
    /// others had to go.
    ///
    /// # Errors
    /// What the system refused.
    pub fn keep(&self, kept: &Kept) -> io::Result<u64> {
        self.write(kept)?;
        let files = self.files()?;
        let surplus = files.len().saturating_sub(MOST);
        if surplus == 0 {
            return Ok(0);
        }
        let (mut all, _) = self.list()?;
        // They are in order of time, and it is kept.
        all.sort_by_key(|(_, kept)| kept.importance());
        for (path, _) in all.iter().take(surplus) {
            remove(path)?;
        }
        Ok(surplus as u64)
    }

    fn write(&self, kept: &Kept) -> io::Result<PathBuf> {
        self.make()?;
        let name = kept.name();
        let unfinished = self.folder.join(format!(".{name}"));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)?;
        let mut text = serde_json::to_vec_pretty(kept)?;
        text.push(b'\n');
        file.write_all(&text)?;
        let path = self.file_of(kept);
        fs::rename(&unfinished, &path)?;
        Ok(path)
    }

    fn file_of(&self, kept: &Kept) -> PathBuf {
        self.folder.join(format!("{}.json", kept.name()))
    }

    /// It arrived, or never will.
    ///
    /// # Errors
    /// What the system refused.
    pub fn forget(&self, kept: &Kept) -> io::Result<()> {
        remove(&self.file_of(kept))
    }

    /// Everything that is kept, the oldest first. What can't be read is in the second list,
    /// each as one sentence.
    ///
    /// # Errors
    /// The folder can't be read; a missing one is empty.
    pub fn list(&self) -> io::Result<Listed> {
        let (mut kept, mut problems) = (Vec::new(), Vec::new());
        for path in self.files()? {
            let text = match fs::read(&path) {
                // It has arrived meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read.map_err(|e| e.kind().to_string()),
            };
            let parsed = text.and_then(|text| {
                serde_json::from_slice::<Kept>(&text)
                    .map_err(|_| "it is not a kept alert".to_owned())
            });
            match parsed {
                Ok(entry) => kept.push((path, entry)),
                Err(why) => problems.push(format!("{} can't be read: {why}", path.display())),
            }
        }
        // Of one instant, in the order in which they were to be sent.
        kept.sort_by_cached_key(|(path, kept)| (kept.time(), kept.number, path.clone()));
        Ok((kept, problems))
    }

    /// A sender of what is kept here, until it is dropped or the process ends, however it ends.
    ///
    /// # Errors
    /// What the system refused, or others hold the folder for too long.
    pub fn sender(&self) -> io::Result<Sender> {
        self.make()?;
        let _turn = self.turn()?;
        let name = token(24);
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(self.lock_of(&name))?;
        lock.try_lock()?;
        Ok(Sender {
            outbox: self.clone(),
            name,
            _lock: lock,
        })
    }

    /// Whether somebody has it on its way.
    pub fn is_on_its_way(&self, kept: &Kept) -> bool {
        let Some(sender) = &kept.sender else {
            return false;
        };
        let path = self.lock_of(sender);
        match OpenOptions::new().write(true).open(&path) {
            Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
            Err(_) => false,
        }
    }

    fn lock_of(&self, sender: &str) -> PathBuf {
        self.folder.join(format!("{SENDER}{}", plain(sender)))
    }

    fn make(&self) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
    }

    /// The folder, for a moment.
    fn turn(&self) -> io::Result<File> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.folder.join(TURN))?;
        let (tries, pause) = TRIES;
        for _ in 0..tries {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => thread::sleep(pause),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// The files, sorted by name.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if !hidden && path.extension().is_some_and(|e| e == "json") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

/// Somebody who sends what is kept.
#[derive(Debug)]
pub struct Sender {
    outbox: Outbox,
    name: String,
    _lock: File,
}

impl Sender {
    /// Keeps an alert as ours to send; how many others had to go.
    ///
    /// # Errors
    /// What the system refused.
    pub fn take(&self, kept: &Kept) -> io::Result<u64> {
        let mut ours = kept.clone();
        ours.sender = Some(self.name.clone());
        self.outbox.keep(&ours)
    }

    /// Takes over what nobody has on its way and this says is ours, in the order in which it was
    /// to be sent. Old news is removed.
    ///
    /// # Errors
    /// What the system refused, or others hold the folder for too long.
    pub fn adopt(&self, is_ours: impl Fn(&Kept) -> bool) -> io::Result<Vec<Kept>> {
        let _turn = self.outbox.turn()?;
        let (files, all): (Vec<_>, Vec<_>) = self.outbox.list()?.0.into_iter().unzip();
        let now = Timestamp::now();
        let mut adopted = Vec::new();
        for (path, kept) in files.iter().zip(&all) {
            if !is_ours(kept) || self.outbox.is_on_its_way(kept) {
                continue;
            }
            if kept.is_stale(&all, now) {
                remove(path)?;
                continue;
            }
            let mut ours = kept.clone();
            ours.sender = Some(self.name.clone());
            let written = self.outbox.write(&ours)?;
            if written != *path {
                remove(path)?;
            }
            adopted.push(ours);
        }
        self.sweep()?;
        Ok(adopted)
    }

    /// Gives one back to whoever takes it over.
    ///
    /// # Errors
    /// What the system refused.
    pub fn give_back(&self, kept: &Kept) -> io::Result<u64> {
        let mut free = kept.clone();
        free.sender = None;
        self.outbox.keep(&free)
    }

    /// Locks of senders that have gone, which can't come into being while we hold the folder, and
    /// what nobody has finished writing.
    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.outbox.folder)? {
            let entry = entry?;
            let (name, path) = (entry.file_name(), entry.path());
            let begins = |with: &str| name.as_encoded_bytes().starts_with(with.as_bytes());
            let is_dead = || File::open(&path).is_ok_and(|f| f.try_lock_shared().is_ok());
            let is_old = || {
                let written = entry.metadata().and_then(|about| about.modified());
                let age = written.ok().and_then(|written| written.elapsed().ok());
                age.is_some_and(|age| age.as_secs() > UNFINISHED_S)
            };
            if (begins(SENDER) && is_dead()) || (begins(".") && is_old()) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // What stays is swept by the next one.
        let _ = fs::remove_file(self.outbox.lock_of(&self.name));
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::model::Severity;
    use crate::tell::alert::State;
    use crate::tell::letter::Letter;
    use crate::tell::samples;
    use crate::tell::words::Tongue;

    fn letter(state: State, time: Timestamp) -> Letter {
        let mut alert = samples::stalled();
        (alert.state, alert.time) = (state, time.to_string());
        Letter::new(alert, samples::run(), Tongue::English)
    }

    fn kept(letter: Letter, number: u64) -> Kept {
        let mut kept = Kept::new("team", "slack", "no answer", letter);
        (kept.place, kept.number) = (Some("here".to_owned()), number);
        kept
    }

    #[test]
    fn what_is_kept_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::at(&dir.path().join("state/outbox"));
        assert!(outbox.list().unwrap().0.is_empty());
        let kept = Kept::new("../team", "slack", "no answer", Letter::sample());
        outbox.keep(&kept).unwrap();
        outbox.keep(&kept).unwrap();
        let (found, problems) = outbox.list().unwrap();
        assert!(problems.is_empty());
        assert_eq!(found.len(), 1, "the same alert is kept once");
        assert_eq!(found[0].1, kept);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(outbox.folder()), mode(&found[0].0)), (0o700, 0o600));
        fs::write(outbox.folder().join("x.json"), "{").unwrap();
        assert_eq!(outbox.list().unwrap().1.len(), 1);
        outbox.forget(&kept).unwrap();
        assert!(outbox.list().unwrap().0.is_empty());
    }

    #[test]
    fn channels_are_kept_apart_whatever_they_are_called() {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::at(dir.path());
        let sender = outbox.sender().unwrap();
        let letter = letter(State::Raised, Timestamp::now());
        for (number, channel) in [(0, "团队"), (1, "老板")] {
            let mut kept = kept(letter.clone(), number);
            kept.channel = channel.to_owned();
            sender.take(&kept).unwrap();
        }
        let (all, _) = outbox.list().unwrap();
        assert_eq!(all.len(), 2);
        outbox.forget(&all[0].1).unwrap();
        assert_eq!(outbox.list().unwrap().0[0].1.channel, "老板");
        // A file that was called otherwise is the same alert.
        drop(sender);
        fs::rename(&all[1].0, dir.path().join("x.json")).unwrap();
        let sender = outbox.sender().unwrap();
        assert_eq!(sender.adopt(|_| true).unwrap().len(), 1);
        assert_eq!(outbox.list().unwrap().0.len(), 1);
    }

    #[test]
    fn one_sender_has_it_and_the_next_one_when_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::at(dir.path());
        let (one, two) = (outbox.sender().unwrap(), outbox.sender().unwrap());
        let now = Timestamp::now();
        for number in [1, 0, 2] {
            one.take(&kept(letter(State::Raised, now), number)).unwrap();
        }
        assert!(two.adopt(|_| true).unwrap().is_empty());
        assert!(outbox.is_on_its_way(&outbox.list().unwrap().0[0].1));
        let given = outbox.list().unwrap().0[2].1.clone();
        one.give_back(&given).unwrap();
        assert_eq!(two.adopt(|_| true).unwrap().len(), 1);
        drop(one);
        assert!(
            two.adopt(|kept| kept.channel == "other")
                .unwrap()
                .is_empty()
        );
        let adopted = two.adopt(|_| true).unwrap();
        let numbers: Vec<u64> = adopted.iter().map(|kept| kept.number).collect();
        assert_eq!(numbers, [0, 1], "in order");
        assert!(two.adopt(|_| true).unwrap().is_empty(), "they are ours");
        // A sender that was killed leaves its lock.
        let dead = outbox.lock_of("dead");
        fs::write(&dead, "").unwrap();
        two.adopt(|_| true).unwrap();
        assert!(!dead.exists());
        drop(two);
        let left = fs::read_dir(dir.path()).unwrap().flatten();
        let locks = left.filter(|e| e.file_name().as_encoded_bytes().starts_with(b"sender-"));
        assert_eq!(locks.count(), 0);
    }

    #[test]
    fn old_news_expire() {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::at(dir.path());
        let ago = |minutes: i64| Timestamp::now() - jiff::SignedDuration::from_mins(minutes);
        let adopt = |letters: &[(State, i64)]| {
            for (number, (state, minutes)) in (0..).zip(letters) {
                let kept = kept(letter(*state, ago(*minutes)), number);
                outbox.keep(&kept).unwrap();
            }
            let sender = outbox.sender().unwrap();
            let adopted = sender.adopt(|_| true).unwrap();
            for kept in &adopted {
                outbox.forget(kept).unwrap();
            }
            assert!(outbox.list().unwrap().0.is_empty());
            let states = adopted.iter().map(|kept| kept.letter.alert.state);
            states.collect::<Vec<_>>()
        };
        assert_eq!(adopt(&[(State::Cleared, 61)]), []);
        assert_eq!(adopt(&[(State::Reminded, 61)]), []);
        assert_eq!(adopt(&[(State::Cleared, 59)]), [State::Cleared]);
        assert_eq!(adopt(&[(State::Raised, 9999)]), [State::Raised]);
        // Who hears of it for the first time hears that it is over, too.
        assert_eq!(
            adopt(&[
                (State::Raised, 90),
                (State::Reminded, 80),
                (State::Cleared, 70)
            ]),
            [State::Raised, State::Cleared]
        );
    }

    #[test]
    fn what_matters_least_goes_when_there_is_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::at(dir.path());
        let now = Timestamp::now();
        let mut raised = kept(letter(State::Raised, now), 0);
        raised.letter.alert.severity = Severity::Critical;
        outbox.keep(&raised).unwrap();
        let mut gone = 0;
        for number in 1..=MOST as u64 {
            gone += outbox
                .keep(&kept(letter(State::Cleared, now), number))
                .unwrap();
        }
        assert_eq!(gone, 1);
        let (left, _) = outbox.list().unwrap();
        assert_eq!((left.len(), &left[0].1), (MOST, &raised));
        assert_eq!(left[1].1.number, 2);
    }
}
