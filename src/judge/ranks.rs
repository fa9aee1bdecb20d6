//! What the output tells of a job's ranks: who waited for whom, who came how far, who ended how.
//!
//! Owns which rank it began with. Who times out or loses a peer waited for another; who started
//! the ranks names the one that it saw end first; of those that wait at different places the one
//! that is behind is meant.

use std::collections::{BTreeMap, BTreeSet};

use crate::read::fingerprint::Kind;
use crate::read::fingerprint::ranks::{
    Ended, Reached, ended, listed, missing, reached, silent_task, speaker,
};

/// So many ranks, and groups of them, are told apart.
const MOST: usize = 4096;
const GROUPS: usize = 64;

/// What is known of the ranks.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    /// Those that anything was heard of.
    known: BTreeSet<u32>,
    /// Those that said that they wait for others or lost one.
    waited: BTreeSet<u32>,
    /// Those that others named.
    blamed: Vec<u32>,
    /// The last collective operation that each began, by their group.
    reached: BTreeMap<String, BTreeMap<u32, u64>>,
    /// The first end that who started them told.
    ended: Option<Ended>,
    /// The first failure in torchrun's list; the others stand before it.
    root: Option<Ended>,
}

impl Ranks {
    /// Takes in a line of this kind.
    pub fn line(&mut self, kind: Kind, text: &str) {
        let speaker = speaker(text);
        self.know(speaker);
        match kind {
            Kind::CollectiveTimeout | Kind::RankLost => {
                self.waited
                    .extend(speaker.filter(|rank| self.known.contains(rank)));
                self.blame(missing(text));
                self.blame(silent_task(text));
                self.reach(reached(text));
            }
            Kind::CollectiveState => self.reach(reached(text)),
            Kind::RankEnded | Kind::RankRaised => {
                self.ended.get_or_insert(ended(text));
            }
            Kind::KernelOom if text.contains("srun: error:") => {
                self.ended.get_or_insert(ended(text));
            }
            Kind::RootCause => self.root = Some(Ended::default()),
            Kind::ListedRank => {
                let rank = listed(text);
                self.know(rank);
                if let Some(root) = &mut self.root {
                    root.rank = root.rank.or(rank);
                }
            }
            Kind::ListedEnd => {
                if let Some(root) = &mut self.root {
                    root.code = root.code.or(ended(text).code);
                }
            }
            _ => {}
        }
    }

    /// How the first of them ended, unless it ended because of another.
    pub fn first_end(&self) -> Option<Ended> {
        let said = self.root.filter(|root| *root != Ended::default());
        let said = said.or(self.ended)?;
        let waited = said.rank.is_some_and(|rank| self.waited.contains(&rank));
        (!waited).then_some(said)
    }

    /// The rank that it began with; `gone` ended before any other said that it waits.
    pub fn guilty(&self, gone: Option<u32>) -> Option<u32> {
        let first = self.blamed.first().copied();
        let gone = gone.filter(|rank| !self.waited.contains(rank));
        first
            .or_else(|| self.behind())
            .or_else(|| self.first_end().and_then(|end| end.rank))
            .or(gone)
            .or_else(|| self.only_other())
    }

    /// Whether any said that it waits for others or lost one.
    pub fn any_waited(&self) -> bool {
        !self.waited.is_empty()
    }

    /// The one that waits at an earlier operation than all others of a group, which waits at the
    /// same where the group isn't told: then numbers of several groups may be mixed.
    fn behind(&self) -> Option<u32> {
        let of = |(group, ranks): (&String, &BTreeMap<u32, u64>)| {
            let least = ranks.values().min()?;
            let mut there = ranks.iter().filter(|(_, n)| *n == least);
            let (rank, _) = there.next()?;
            let mut others = ranks.values().filter(|n| *n != least);
            let place = others.next()?;
            let alike = !group.is_empty() || others.all(|n| n == place);
            (there.next().is_none() && alike).then_some(*rank)
        };
        // Those whose group is told first.
        self.reached.iter().rev().find_map(of)
    }

    /// All known ones but this wait.
    fn only_other(&self) -> Option<u32> {
        let mut others = self.known.difference(&self.waited);
        let other = others.next().filter(|_| self.any_waited())?;
        others.next().is_none().then_some(*other)
    }

    fn know(&mut self, rank: Option<u32>) {
        if self.known.len() < MOST {
            self.known.extend(rank);
        }
    }

    fn blame(&mut self, ranks: impl IntoIterator<Item = u32>) {
        let room = MOST.saturating_sub(self.blamed.len());
        self.blamed.extend(ranks.into_iter().take(room));
    }

    fn reach(&mut self, reached: Option<Reached>) {
        let Some(Reached { rank, group, last }) = reached else {
            return;
        };
        let room = self.reached.len() < GROUPS || self.reached.contains_key(&group);
        if room && self.known.contains(&rank) {
            let n = self.reached.entry(group).or_default();
            let n = n.entry(rank).or_insert(last);
            *n = last.max(*n);
        }
    }
}
