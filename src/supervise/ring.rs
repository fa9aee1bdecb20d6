//! Between the byte path and whoever reads progress: a bounded buffer that never makes the
//! byte path wait. When the reader is behind, bytes are lost to it, counted, and said.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::{Stream, Tap};
use crate::observe::Found;

/// At most so many bytes wait.
const CAPACITY: usize = 8 << 20;

/// The same of what is found beside the output; the rest stays in its files.
const CAPACITY_ASIDE: usize = 1 << 20;

/// After a wake-up the reader lets this much time pass, so that a chatty child costs one
/// wake-up for many lines.
const GATHER: Duration = Duration::from_millis(20);

/// A piece of output that was relayed.
#[derive(Debug)]
pub struct Piece {
    /// Where it went.
    pub stream: Stream,
    /// When it was delivered.
    pub at: Instant,
    /// What it was.
    pub bytes: Vec<u8>,
    /// Bytes that were lost before it.
    pub lost_before: u64,
}

/// Something that was found beside the output, in a followed file.
#[derive(Debug)]
pub struct Aside {
    /// Which of the followed paths.
    pub path: usize,
    /// When it was found.
    pub at: Instant,
    /// What it was.
    pub found: Found,
}

impl Aside {
    /// Found now.
    pub fn new(path: usize, found: Found) -> Self {
        let at = Instant::now();
        Self { path, at, found }
    }

    fn len(&self) -> usize {
        match &self.found {
            Found::Text(bytes) | Found::Events { bytes, .. } => bytes.len(),
            Found::Anew => 0,
        }
    }
}

#[derive(Default)]
struct Inside {
    pieces: VecDeque<Piece>,
    asides: VecDeque<Aside>,
    held: usize,
    held_aside: usize,
    lost: u64,
    open: usize,
    reader_waits: bool,
    attempt_over: bool,
}

impl Inside {
    fn is_idle(&self) -> bool {
        let nothing = self.pieces.is_empty() && self.asides.is_empty();
        nothing && self.open > 0 && !self.attempt_over
    }
}

/// What the reader gets.
#[derive(Debug, Default)]
pub struct Taken {
    /// In the order of delivery.
    pub pieces: VecDeque<Piece>,
    /// What was found beside them.
    pub asides: VecDeque<Aside>,
    /// No stream will give more.
    pub over: bool,
    /// Behind these pieces the command had ended, and may be started again.
    pub attempt_over: bool,
}

/// The buffer.
pub struct Ring {
    inside: Mutex<Inside>,
    arrived: Condvar,
}

impl Ring {
    /// For this many streams.
    pub fn new(streams: usize) -> Self {
        let inside = Inside {
            open: streams,
            ..Inside::default()
        };
        Self {
            inside: Mutex::new(inside),
            arrived: Condvar::new(),
        }
    }

    /// Waits for output, then takes all there is.
    pub fn take(&self) -> Taken {
        let mut inside = self.inside();
        while inside.is_idle() {
            inside.reader_waits = true;
            inside = self
                .arrived
                .wait(inside)
                .unwrap_or_else(PoisonError::into_inner);
        }
        inside.reader_waits = false;
        let gather_until = Instant::now() + GATHER;
        // The rest of a burst may come along; a flood or the end doesn't wait.
        while inside.open > 0 && inside.held < CAPACITY / 2 {
            let left = gather_until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let woken = self.arrived.wait_timeout(inside, left);
            inside = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        inside.held = 0;
        inside.held_aside = 0;
        Taken {
            pieces: std::mem::take(&mut inside.pieces),
            asides: std::mem::take(&mut inside.asides),
            over: inside.open == 0,
            attempt_over: std::mem::take(&mut inside.attempt_over),
        }
    }
}

impl Ring {
    /// The command has ended, and what it printed is here.
    pub fn end_attempt(&self) {
        self.inside().attempt_over = true;
        self.arrived.notify_one();
    }

    /// From now on something may be found beside the output, too.
    pub fn expect_asides(&self) {
        self.inside().open += 1;
    }

    /// So many bytes of what is found beside the output have room.
    pub fn room_aside(&self) -> usize {
        CAPACITY_ASIDE.saturating_sub(self.inside().held_aside)
    }

    /// Hands over what was found beside the output.
    pub fn aside(&self, aside: Aside) {
        let mut inside = self.inside();
        inside.held_aside += aside.len();
        inside.asides.push_back(aside);
        self.arrived.notify_one();
    }

    /// Nothing is looked for there any more.
    pub fn no_more_asides(&self) {
        self.close_one();
    }

    fn close_one(&self) {
        let mut inside = self.inside();
        inside.open = inside.open.saturating_sub(1);
        self.arrived.notify_one();
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for Ring {
    fn relayed(&self, stream: Stream, bytes: &[u8]) {
        let mut inside = self.inside();
        // The newest is worth most: it is where a run stands, and what it died of.
        while inside.held + bytes.len() > CAPACITY {
            let Some(oldest) = inside.pieces.pop_front() else {
                break;
            };
            inside.held -= oldest.bytes.len();
            let lost = oldest.lost_before + oldest.bytes.len() as u64;
            match inside.pieces.front_mut() {
                Some(next) => next.lost_before += lost,
                None => inside.lost += lost,
            }
        }
        inside.held += bytes.len();
        let lost_before = std::mem::take(&mut inside.lost);
        // One line a write is the common case; one piece for many keeps the list short.
        match inside.pieces.back_mut() {
            Some(last)
                if lost_before == 0
                    && last.stream == stream
                    && last.bytes.len() + bytes.len() <= 16 * 1024 =>
            {
                last.bytes.extend_from_slice(bytes);
            }
            _ => inside.pieces.push_back(Piece {
                stream,
                at: Instant::now(),
                bytes: bytes.to_vec(),
                lost_before,
            }),
        }
        // Somebody waits for anything, or (with nobody to notice it costs nothing) for a flood.
        let flood = inside.held >= CAPACITY / 2 && inside.held - bytes.len() < CAPACITY / 2;
        if inside.reader_waits || flood {
            inside.reader_waits = false;
            self.arrived.notify_one();
        }
    }

    fn closed(&self, _stream: Stream) {
        self.close_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_in_order_and_small_ones_together() {
        let ring = Ring::new(2);
        ring.relayed(Stream::Out, b"a");
        ring.relayed(Stream::Out, b"b");
        ring.relayed(Stream::Err, b"c");
        ring.closed(Stream::Out);
        ring.closed(Stream::Err);
        let taken = ring.take();
        let got: Vec<_> = taken
            .pieces
            .iter()
            .map(|p| (p.stream, p.bytes.as_slice()))
            .collect();
        assert_eq!(
            got,
            [
                (Stream::Out, b"ab".as_slice()),
                (Stream::Err, b"c".as_slice())
            ]
        );
        assert!(taken.over);
    }

    #[test]
    fn a_full_ring_loses_the_oldest_counts_and_says_where() {
        let ring = Ring::new(1);
        let chunk = vec![b'x'; 64 * 1024];
        for _ in 0..200 {
            ring.relayed(Stream::Out, &chunk);
        }
        ring.relayed(Stream::Out, b"the end");
        ring.closed(Stream::Out);
        let taken = ring.take();
        let kept: usize = taken.pieces.iter().map(|p| p.bytes.len()).sum();
        assert!(kept <= CAPACITY && kept > CAPACITY - 2 * chunk.len());
        let lost: Vec<u64> = taken.pieces.iter().map(|p| p.lost_before).collect();
        let all = 200 * 64 * 1024 + 7;
        assert_eq!(lost[0], all - kept as u64);
        assert!(lost[1..].iter().all(|n| *n == 0));
        let whole_end = taken.pieces.back().map(|p| p.bytes.ends_with(b"the end"));
        assert_eq!((whole_end, taken.over), (Some(true), true));
    }
}
