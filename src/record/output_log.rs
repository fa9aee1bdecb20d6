//! `output.log`: the bytes as relayed, the first 1 MiB and the last 16 MiB of them.
//!
//! Owns the file, its bounds and its markers. Must not know what the bytes say.
//!
//! While the run lasts, `output.log` grows to 17 MiB and is complete until then. What follows
//! goes to segments beside it (`output.tail.000001`, ...), of which only as many are kept as
//! hold the last 16 MiB; the end merges them. A supervisor that is killed leaves all of it
//! readable: `cat output.log output.tail.*` (see [`parts`]). Disk use stays under 60 MiB.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::{CURE_READ, CURE_WRITE, RecordError};
use super::files;

/// The file's name.
pub const OUTPUT_LOG: &str = "output.log";
const SEGMENT: &str = "output.tail.";

/// How much is kept of the beginning and of the end, and the size of a segment, in bytes.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    head: u64,
    tail: u64,
    segment: u64,
}

const SIZES: Sizes = Sizes {
    head: 1 << 20,
    tail: 16 << 20,
    segment: 4 << 20,
};

/// A marker in the tail: where it begins in the tail, how long its text is, and how many
/// bytes it stands for.
#[derive(Clone, Copy, Debug)]
struct Gap {
    at: u64,
    text: u64,
    n: u64,
}

/// Writes `output.log`.
#[derive(Debug)]
pub struct OutputLog {
    dir: PathBuf,
    sizes: Sizes,
    /// `output.log`, then the newest segment.
    file: File,
    path: PathBuf,
    /// Bytes in `output.log`.
    main_len: u64,
    /// The kept segments, oldest first: number and length.
    segments: VecDeque<(u64, u64)>,
    next_segment: u64,
    /// Bytes of the log so far (markers too), behind the head: the tail's length, had
    /// nothing been left out.
    tail_len: u64,
    /// Markers in the last part of the tail.
    gaps: VecDeque<Gap>,
    /// Bytes that the markers which are left out themselves stood for.
    gaps_left_out: (u64, u64),
    /// Bytes lost since the last write that succeeded.
    dropped: u64,
}

impl OutputLog {
    /// Makes `output.log` in a run's directory.
    ///
    /// # Errors
    /// What the system refused.
    pub fn create(run_dir: &Path) -> Result<Self, RecordError> {
        Self::with_sizes(run_dir, SIZES)
    }

    fn with_sizes(run_dir: &Path, sizes: Sizes) -> Result<Self, RecordError> {
        let path = run_dir.join(OUTPUT_LOG);
        let file =
            files::create_new(&path).map_err(RecordError::io("create", &path, CURE_WRITE))?;
        Ok(Self {
            dir: run_dir.to_owned(),
            sizes,
            file,
            path,
            main_len: 0,
            segments: VecDeque::new(),
            next_segment: 1,
            tail_len: 0,
            gaps: VecDeque::new(),
            gaps_left_out: (0, 0),
            dropped: 0,
        })
    }

    /// So many bytes were relayed that this log was never given.
    pub fn dropped(&mut self, n: u64) {
        self.dropped += n;
    }

    /// Appends bytes as relayed.
    ///
    /// # Errors
    /// What the system refused: the bytes that weren't written count as dropped, later ones
    /// may be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        if self.dropped > 0 && !bytes.is_empty() {
            let n = self.dropped;
            let marker = marker(n);
            let (in_tail, at) = (self.main_len >= self.sizes.head, self.tail_len);
            let (done, result) = self.put(marker.as_bytes());
            if done > 0 {
                // Half a marker still says that something is missing; it isn't written twice.
                self.dropped -= n;
                if in_tail {
                    self.gaps.push_back(Gap {
                        at,
                        text: done as u64,
                        n,
                    });
                }
            }
            if let Err(e) = result {
                self.dropped += bytes.len() as u64;
                return Err(e);
            }
        }
        let (done, result) = self.put(bytes);
        self.dropped += (bytes.len() - done) as u64;
        result
    }

    /// Writes into whichever file is next, and says how much of it went there.
    fn put(&mut self, bytes: &[u8]) -> (usize, Result<(), RecordError>) {
        let mut done = 0;
        while done < bytes.len() {
            let room = match self.room() {
                Ok(room) => room,
                Err(e) => return (done, Err(e)),
            };
            let n = room.min((bytes.len() - done) as u64) as usize;
            match self.file.write(&bytes[done..done + n]) {
                Ok(0) => {
                    let error = io::ErrorKind::WriteZero.into();
                    return (done, Err(self.refused("write", error)));
                }
                Ok(n) => {
                    self.account(n as u64);
                    done += n;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return (done, Err(self.refused("write", e))),
            }
        }
        (done, Ok(()))
    }

    fn refused(&self, doing: &'static str, error: io::Error) -> RecordError {
        RecordError::io(doing, &self.path, CURE_WRITE)(error)
    }

    fn account(&mut self, n: u64) {
        match self.segments.back_mut() {
            Some((_, len)) => *len += n,
            None => self.main_len += n,
        }
        let head_left = self
            .sizes
            .head
            .saturating_sub(self.main_len.saturating_sub(n));
        let in_head = if self.segments.is_empty() {
            n.min(head_left)
        } else {
            0
        };
        self.tail_len += n - in_head;
    }

    /// How much fits into the current file; begins a segment where nothing does.
    fn room(&mut self) -> Result<u64, RecordError> {
        let left = match self.segments.back() {
            Some((_, len)) => self.sizes.segment.saturating_sub(*len),
            None => (self.sizes.head + self.sizes.tail).saturating_sub(self.main_len),
        };
        if left > 0 {
            return Ok(left);
        }
        let path = self.segment(self.next_segment);
        self.file =
            files::create_new(&path).map_err(RecordError::io("create", &path, CURE_WRITE))?;
        self.path = path;
        self.segments.push_back((self.next_segment, 0));
        self.next_segment += 1;
        self.forget_old();
        Ok(self.sizes.segment)
    }

    fn segment(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{SEGMENT}{number:06}"))
    }

    /// Removes segments that the last 16 MiB no longer reach into.
    fn forget_old(&mut self) {
        let mut kept: u64 = self.segments.iter().map(|(_, len)| len).sum();
        while let Some((number, len)) = self.segments.front().copied()
            && kept - len >= self.sizes.tail
        {
            let _ = fs::remove_file(self.segment(number));
            self.segments.pop_front();
            kept -= len;
        }
        let begin = self.tail_len.saturating_sub(self.sizes.tail);
        self.forget_gaps(begin);
    }

    /// Takes the markers before this place of the tail off the list.
    fn forget_gaps(&mut self, begin: u64) {
        while let Some(gap) = self.gaps.front().copied()
            && gap.at < begin
        {
            self.gaps_left_out.0 += gap.text;
            self.gaps_left_out.1 += gap.n;
            self.gaps.pop_front();
        }
    }

    /// Marks what was dropped last, and merges what was kept into `output.log`.
    ///
    /// # Errors
    /// What the system refused: all that was kept is still there, in [`parts`].
    pub fn finish(mut self) -> Result<(), RecordError> {
        if self.dropped > 0 {
            let text = marker(std::mem::take(&mut self.dropped));
            self.put(text.as_bytes()).1?;
        }
        if self.segments.is_empty() {
            return Ok(());
        }
        let path = self.dir.join(OUTPUT_LOG);
        let merged = self.dir.join("output.log.new");
        let written = self
            .merge_into(&merged)
            .and_then(|()| fs::rename(&merged, &path));
        if let Err(e) = written {
            let _ = fs::remove_file(&merged);
            return Err(RecordError::io("write", &path, CURE_WRITE)(e));
        }
        for (number, _) in &self.segments {
            let _ = fs::remove_file(self.segment(*number));
        }
        Ok(())
    }

    fn merge_into(&mut self, merged: &Path) -> io::Result<()> {
        let begin = self.tail_len.saturating_sub(self.sizes.tail);
        self.forget_gaps(begin);
        let (texts, stood_for) = self.gaps_left_out;
        let mut out = files::create_new(merged)?;
        let mut main = File::open(self.dir.join(OUTPUT_LOG))?;
        io::copy(&mut (&mut main).take(self.sizes.head), &mut out)?;
        let left_out = begin.saturating_sub(texts) + stood_for;
        if left_out > 0 {
            out.write_all(marker(left_out).as_bytes())?;
        }
        // Of the tail, `output.log` holds the beginning, and the segments the end.
        let in_segments: u64 = self.segments.iter().map(|(_, len)| len).sum();
        let mut skip = begin;
        let in_main = self.main_len - self.sizes.head;
        if skip < in_main {
            main.seek(SeekFrom::Start(self.sizes.head + skip))?;
            io::copy(&mut main, &mut out)?;
        }
        skip = skip.saturating_sub(self.tail_len - in_segments);
        for (number, len) in &self.segments {
            if skip < *len {
                let mut segment = File::open(self.segment(*number))?;
                segment.seek(SeekFrom::Start(skip))?;
                io::copy(&mut segment, &mut out)?;
            }
            skip = skip.saturating_sub(*len);
        }
        Ok(())
    }
}

/// The files that hold a run's output, in their order: `output.log`, and, where the
/// supervisor was killed, the segments that it hadn't merged.
///
/// # Errors
/// What the system refused.
pub fn parts(run_dir: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let list = || -> io::Result<Vec<PathBuf>> {
        let mut segments = Vec::new();
        for entry in fs::read_dir(run_dir)? {
            let name = entry?.file_name();
            if name.to_string_lossy().starts_with(SEGMENT) {
                segments.push(run_dir.join(name));
            }
        }
        segments.sort();
        segments.insert(0, run_dir.join(OUTPUT_LOG));
        segments.retain(|path| path.exists());
        Ok(segments)
    };
    list().map_err(RecordError::io("read", run_dir, CURE_READ))
}

/// The last bytes of a run's output, at most so many.
///
/// # Errors
/// What the system refused.
pub fn last_bytes(run_dir: &Path, limit: u64) -> Result<Vec<u8>, RecordError> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut left = limit;
    for path in parts(run_dir)?.into_iter().rev() {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(&path)?;
            let from = file.metadata()?.len().saturating_sub(left);
            file.seek(io::SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(left).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(RecordError::io("read", &path, CURE_READ))?;
        left -= bytes.len() as u64;
        found.push(bytes);
    }
    found.reverse();
    Ok(found.concat())
}

fn marker(n: u64) -> String {
    format!("\n[gpuwatch: {n} bytes left out here]\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Sizes = Sizes {
        head: 100,
        tail: 1600,
        segment: 400,
    };

    fn bytes(n: usize) -> Vec<u8> {
        // No period that divides a segment, so that a shift by one segment is seen.
        (0..n).map(|i| (i % 251) as u8).collect()
    }

    fn log_of(all: &[u8], chunk: usize) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let mut log = OutputLog::with_sizes(dir.path(), SMALL).unwrap();
        for part in all.chunks(chunk) {
            log.write(part).unwrap();
            let on_disk: u64 = fs::read_dir(dir.path())
                .unwrap()
                .map(|e| e.unwrap().metadata().unwrap().len())
                .sum();
            assert!(on_disk <= 100 + 1600 + 1600 + 2 * 400, "{on_disk}");
        }
        log.finish().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::read(dir.path().join(OUTPUT_LOG)).unwrap()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        for n in [0, 1, 99, 100, 101, 1699, 1700] {
            let all = bytes(n);
            assert_eq!(log_of(&all, 64), all);
            assert_eq!(log_of(&all, 5000), all);
        }
    }

    #[test]
    fn of_the_rest_the_first_and_the_last_are_kept() {
        for n in [1701, 2000, 2100, 2101, 3300, 3301, 3700, 9999] {
            for chunk in [1, 64, 401, 20_000] {
                let all = bytes(n);
                let marker = format!("\n[gpuwatch: {} bytes left out here]\n", n - 1700);
                let expected = [&all[..100], marker.as_bytes(), &all[n - 1600..]].concat();
                assert!(log_of(&all, chunk) == expected, "{n} by {chunk}");
            }
        }
    }

    #[test]
    fn what_was_lost_to_us_is_marked_where_it_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = OutputLog::with_sizes(dir.path(), SMALL).unwrap();
        log.write(b"before").unwrap();
        log.dropped(3);
        log.dropped(4);
        log.write(b"after").unwrap();
        log.dropped(8);
        log.finish().unwrap();
        assert_eq!(
            fs::read_to_string(dir.path().join(OUTPUT_LOG)).unwrap(),
            "before\n[gpuwatch: 7 bytes left out here]\nafter\n[gpuwatch: 8 bytes left out here]\n"
        );
    }

    #[test]
    fn a_marker_that_is_left_out_is_counted_with_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = OutputLog::with_sizes(dir.path(), SMALL).unwrap();
        log.write(&bytes(500)).unwrap();
        log.dropped(1000);
        log.write(&bytes(5000)).unwrap();
        log.finish().unwrap();
        let text = fs::read(dir.path().join(OUTPUT_LOG)).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        let expected = format!("[gpuwatch: {} bytes left out here]", 6500 - 1700);
        assert!(text.contains(&expected), "{text}");
    }

    #[test]
    fn a_killed_supervisor_leaves_its_parts() {
        let dir = tempfile::tempdir().unwrap();
        let all = bytes(4000);
        let mut log = OutputLog::with_sizes(dir.path(), SMALL).unwrap();
        log.write(&all).unwrap();
        drop(log);
        let parts = parts(dir.path()).unwrap();
        let texts: Vec<Vec<u8>> = parts.iter().map(|p| fs::read(p).unwrap()).collect();
        assert!(texts[0] == all[..1700]);
        let tail = texts[1..].concat();
        assert!(tail.len() >= 1600);
        assert!(all.ends_with(&tail));
    }
}
