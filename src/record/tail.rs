//! Lines of a file from its end: the newest runs without the rest.
//!
//! Owns reading backwards. Must not know what a line holds.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The whole lines of a file, last first, without their newlines; a torn last line is left
/// out. Reads only as far back as it is asked.
#[derive(Debug)]
pub struct ReverseLines {
    file: File,
    /// Where `held` begins in the file.
    from: u64,
    held: Vec<u8>,
    /// How many bytes of `held` haven't been given.
    left: usize,
    done: bool,
}

impl ReverseLines {
    const BLOCK: usize = 64 * 1024;

    /// Reads this file as long as it is now.
    pub fn new(file: File) -> io::Result<Self> {
        let from = file.metadata()?.len();
        let mut lines = Self {
            file,
            from,
            held: Vec::new(),
            left: 0,
            done: from == 0,
        };
        // The empty or torn "line" behind the last newline.
        if let Some(torn) = lines.line() {
            torn?;
        }
        Ok(lines)
    }

    fn line(&mut self) -> Option<io::Result<Vec<u8>>> {
        if self.done {
            return None;
        }
        let mut searched = self.left;
        loop {
            if let Some(at) = memchr::memrchr(b'\n', &self.held[..searched]) {
                let line = self.held[at + 1..self.left].to_vec();
                self.left = at;
                return Some(Ok(line));
            }
            if self.from == 0 {
                self.done = true;
                return Some(Ok(self.held[..self.left].to_vec()));
            }
            match self.read_back() {
                Ok(n) => searched = n,
                Err(e) => {
                    self.done = true;
                    return Some(Err(e));
                }
            }
        }
    }

    /// Puts the block before `held` in front of it, and gives its length.
    fn read_back(&mut self) -> io::Result<usize> {
        let n = self.from.min(Self::BLOCK as u64) as usize;
        let mut block = vec![0; n];
        self.file.read_exact_at(&mut block, self.from - n as u64)?;
        block.extend_from_slice(&self.held[..self.left]);
        self.from -= n as u64;
        self.left = block.len();
        self.held = block;
        Ok(n)
    }
}

impl Iterator for ReverseLines {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.line()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn reversed(content: &[u8]) -> Vec<Vec<u8>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        ReverseLines::new(file)
            .unwrap()
            .map(Result::unwrap)
            .collect()
    }

    #[test]
    fn lines_come_last_first_and_torn_ones_do_not() {
        assert_eq!(reversed(b"a\nbb\nccc\n"), [&b"ccc"[..], b"bb", b"a"]);
        assert_eq!(reversed(b"a\nbb\nccc"), [&b"bb"[..], b"a"]);
        assert_eq!(reversed(b"\n"), [&b""[..]]);
        assert!(reversed(b"torn").is_empty());
        assert!(reversed(b"").is_empty());
    }

    #[test]
    fn lines_longer_than_a_block_come_whole() {
        let text = (0..200_000).fold(String::new(), |text, i| text + &i.to_string() + "\n");
        let lines = reversed(text.as_bytes());
        assert_eq!(lines.len(), 200_000);
        assert_eq!(lines[199_999], b"0");
        let long = [
            vec![b'x'; 300_000],
            vec![b'\n'],
            vec![b'y'; 70_000],
            vec![b'\n'],
        ]
        .concat();
        let lines = reversed(&long);
        assert_eq!((lines[0].len(), lines[1].len()), (70_000, 300_000));
    }
}
