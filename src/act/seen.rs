//! One process as it was looked at: where it waits, and where its Python stands.
//!
//! Owns what that is called in words, and by what two processes stand at the same place.

use std::path::Path;

use super::proc_files::{self, Identity, Standing, Subject};
use super::pyspy::{Dump, Frame};

/// One process.
pub struct Seen {
    /// Its PID.
    pub pid: u32,
    /// Its rank, as far as is known.
    pub rank: Option<u32>,
    /// What it does.
    pub standing: Standing,
    /// What it is.
    pub identity: Identity,
    /// Its Python stack, or why there is none; `None` where none was asked for.
    pub dump: Option<Result<Dump, String>>,
}

/// Where a process stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// For people, with lines.
    pub words: String,
    /// Without them: ranks of which each is at another line of one function stand together.
    pub function: String,
    /// It waits there for other ranks.
    pub meets: bool,
}

impl Seen {
    /// None if it has ended.
    pub fn look(root: &Path, subject: Subject) -> Option<Self> {
        let standing = proc_files::standing(root, subject)?;
        Some(Self {
            pid: subject.pid,
            rank: subject.rank,
            identity: proc_files::identity(root, subject, &standing),
            standing,
            dump: None,
        })
    }

    /// `waits in futex_wait_queue`, `state D, waits in ...`
    pub fn waits(&self) -> String {
        let state = match self.standing.state {
            'R' => "runs",
            'D' => "waits for a device (D)",
            'T' | 't' => "is stopped",
            'Z' => "has ended (zombie)",
            _ => "sleeps",
        };
        let place = [&self.standing.syscall, &self.standing.wchan];
        let place: Vec<&str> = place.into_iter().flatten().map(String::as_str).collect();
        if place.is_empty() {
            state.to_owned()
        } else {
            format!("{state} in {}", place.join(", "))
        }
    }

    fn is_stopped(&self) -> bool {
        matches!(self.standing.state, 'T' | 't')
    }

    /// Its place in the program, where its stack is known.
    pub fn place(&self) -> Option<Place> {
        let dump = self.dump.as_ref()?.as_ref().ok()?;
        let innermost = dump.main.first()?;
        let own = dump.main.iter().find(|frame| frame.is_users_own());
        let in_words = |text: fn(&Frame) -> String| {
            let place = match own {
                Some(own) if own != innermost => {
                    format!("{} in {}", text(own), text(innermost))
                }
                _ => text(innermost),
            };
            if self.is_stopped() {
                format!("is stopped at {place}")
            } else {
                place
            }
        };
        Some(Place {
            words: in_words(Frame::text),
            function: in_words(Frame::name),
            meets: innermost.meets_others() && !self.is_stopped(),
        })
    }
}
