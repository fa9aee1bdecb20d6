//! What the ranks of a job on one machine say together: each story once, by one of them.
//!
//! Owns the book that they share and what follows from it: who speaks, which rank stands out,
//! what is still to be told. Pure; the book comes and goes as an argument, and who holds it
//! holds it alone. Times in it are the machine's, since each run counts from its own start.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{FindingState, Severity};

use super::alert::{End, Finding, OfRanks, RankNote};
use super::policy::{Happening, Inherited};

/// Where one rank stalls the others soon do: so long they are waited for, so that one alert has
/// them all.
const GATHER_S: f64 = 3.0;
/// Causes that say that a rank waits for another one.
const WAITS: [&str; 2] = ["spin", "remote"];

/// A finding that holds for a rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// It.
    pub finding: Finding,
    /// How serious.
    pub severity: Severity,
    /// Whether its stacks are still being collected.
    pub awaits: bool,
    /// Its stacks.
    pub stacks: Vec<String>,
}

/// A rank's page. It stays when the rank is gone: what it had found is still to be told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The id of its run.
    pub run: String,
    /// What holds there.
    pub held: BTreeMap<String, Held>,
    /// How it ended, and how many had ended before.
    pub ended: Option<(usize, End)>,
}

/// What somebody was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// As it was.
    pub finding: Finding,
    /// How serious.
    pub severity: Severity,
    /// Which channels.
    pub told: Vec<String>,
}

/// What the ranks of one start of a job share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Book {
    /// By rank.
    pub pages: BTreeMap<u32, Page>,
    /// Who spoke last.
    pub speaker: Option<u32>,
    /// What was told and holds.
    pub told: Vec<Known>,
    /// Whether the start was told.
    pub started: bool,
}

/// Who is there besides us.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Present {
    /// Ranks whose gpuwatch lives.
    pub alive: BTreeSet<u32>,
    /// Those of them that looked into the book lately: one that is stopped can't speak.
    pub awake: BTreeSet<u32>,
}

/// A story of the job as we handed it to the policy.
#[derive(Clone, Debug, PartialEq)]
struct Shown {
    /// `None`: somebody else told it.
    held: Option<Held>,
    seen_s: f64,
    is_released: bool,
}

/// One rank's part in it.
#[derive(Debug)]
pub struct Ranks {
    me: u32,
    run: String,
    /// What is added to a run time of ours for the machine's.
    offset_s: f64,
    held: BTreeMap<String, Held>,
    shown: BTreeMap<String, Shown>,
    speaks: bool,
    /// What the book said was told, when we last saw it.
    told: Vec<Known>,
}

impl Ranks {
    /// Nothing holds, and nobody spoke.
    pub fn new(me: u32, run: &str, offset_s: f64) -> Self {
        Self {
            me,
            run: run.to_owned(),
            offset_s,
            held: BTreeMap::new(),
            shown: BTreeMap::new(),
            speaks: false,
            told: Vec::new(),
        }
    }

    /// Something happened here. What is the job's to tell is kept, the rest comes back.
    pub fn hear(&mut self, happening: Happening) -> Option<Happening> {
        match happening {
            Happening::Finding {
                mut finding,
                severity,
                state: FindingState::Raised | FindingState::Updated,
                awaits_evidence,
            } => {
                finding.since_s += self.offset_s;
                let before = self.held.remove(&finding.name);
                let (awaits, stacks) =
                    before.map_or((awaits_evidence, Vec::new()), |b| (b.awaits, b.stacks));
                let held = Held {
                    finding,
                    severity,
                    awaits,
                    stacks,
                };
                self.held.insert(held.finding.name.clone(), held);
                None
            }
            Happening::Finding { finding, .. } => {
                self.held.remove(&finding.name);
                None
            }
            Happening::Evidence { finding, stacks } => {
                if let Some(held) = self.held.get_mut(&finding) {
                    held.stacks = stacks;
                    held.awaits = false;
                }
                None
            }
            other => Some(other),
        }
    }

    /// Writes our page and reads the others'. Returns what the policy is to hear of the job:
    /// nothing, unless it is we who speak.
    pub fn visit(&mut self, book: &mut Book, present: &Present, now_s: f64) -> Vec<Happening> {
        let page = book.pages.entry(self.me).or_default();
        page.run.clone_from(&self.run);
        let before = std::mem::replace(&mut page.held, self.held.clone());
        page.ended = None;
        // What is over for one that lives is over for those that had it until they ended.
        for (rank, page) in &mut book.pages {
            let is_gone = page.ended.is_some() || !present.alive.contains(rank);
            if is_gone && *rank != self.me {
                let is_over =
                    |name: &String| before.contains_key(name) && !self.held.contains_key(name);
                page.held.retain(|name, _| !is_over(name));
            }
        }
        let mut awake = present.awake.iter().filter(|rank| book.is_here(**rank));
        let speaks = awake.all(|rank| *rank >= self.me);
        let takes_over = speaks && book.speaker != Some(self.me);
        let lets_go = self.speaks && !speaks;
        let mut out = Vec::new();
        if takes_over || lets_go {
            let known = if speaks { book.told.as_slice() } else { &[] };
            out.push(Happening::TakenOver(self.inherited(known)));
            let shown = |known: &Known| {
                let shown = Shown {
                    held: None,
                    seen_s: now_s,
                    is_released: true,
                };
                (known.finding.name.clone(), shown)
            };
            self.shown = known.iter().map(shown).collect();
        }
        self.speaks = speaks;
        if speaks {
            book.speaker = Some(self.me);
            self.speak(book, present, now_s, &mut out);
        } else {
            self.told.clone_from(&book.told);
        }
        out
    }

    /// After the policy has heard it: what its channels know now.
    pub fn told(&mut self, book: &mut Book, known: Vec<Inherited>) {
        if !self.speaks {
            return;
        }
        let known = known.into_iter().map(|known| {
            let mut finding = known.finding;
            finding.since_s += self.offset_s;
            Known {
                finding,
                severity: known.severity,
                told: known.told,
            }
        });
        book.told = known.collect();
        self.told.clone_from(&book.told);
    }

    /// The run began. Comes back if nobody has told so of this job.
    pub fn starts(&self, book: &mut Book) -> Option<Happening> {
        let first = self.speaks && !book.started;
        book.started |= first;
        first.then_some(Happening::Started)
    }

    /// Our run has ended, after a last visit. The last one tells how the job did; true says so.
    pub fn leave(
        &mut self,
        book: &mut Book,
        present: &Present,
        end: End,
    ) -> (Vec<Happening>, bool) {
        let before = book.pages.values().filter(|p| p.ended.is_some()).count();
        let page = book.pages.entry(self.me).or_default();
        page.ended = Some((before, end.clone()));
        if present.alive.iter().any(|rank| book.is_here(*rank)) {
            return (vec![Happening::Left], false);
        }
        let failed = book.pages.iter().filter_map(|(rank, page)| {
            let (order, end) = page.ended.as_ref().filter(|(_, end)| !end.is_well())?;
            Some((order, *rank, end))
        });
        let first = failed.min_by_key(|(order, ..)| **order);
        let (rank, end) = first.map_or((None, end), |(_, rank, end)| (Some(rank), end.clone()));
        let ranks = self.notes(book, present, rank, |_| false);
        let view = BTreeMap::from([("run.finished".to_owned(), OfRanks { rank, ranks })]);
        (vec![Happening::Ranks(view), Happening::Ended(end)], true)
    }

    /// The book can't be had any more: from now on we tell what is ours, and no other rank's.
    pub fn alone(&self) -> Vec<Happening> {
        let ours = |known: &&Known| self.held.contains_key(&known.finding.name);
        let known: Vec<Known> = self.told.iter().filter(ours).cloned().collect();
        let mut out = vec![
            Happening::Ranks(BTreeMap::new()),
            Happening::TakenOver(self.inherited(&known)),
        ];
        for held in self.held.values() {
            out.push(self.says(held, FindingState::Raised, held.awaits));
            out.extend(evidence(held));
        }
        out
    }

    fn speak(&mut self, book: &Book, present: &Present, now_s: f64, out: &mut Vec<Happening>) {
        let stories = book.stories();
        let heads = stories.iter().map(|(name, (rank, _))| {
            let ranks = self.notes(book, present, Some(*rank), |found| found == name);
            let rank = Some(*rank);
            (name.clone(), OfRanks { rank, ranks })
        });
        out.push(Happening::Ranks(heads.collect()));
        let over: Vec<String> = self
            .shown
            .keys()
            .filter(|name| !stories.contains_key(*name))
            .cloned()
            .collect();
        for name in over {
            let known = book.told.iter().find(|known| known.finding.name == name);
            let known = known.map(|known| (known.finding.clone(), known.severity));
            let ours = self.shown.remove(&name).and_then(|shown| shown.held);
            let last = ours.map(|held| (held.finding, held.severity)).or(known);
            if let Some((mut finding, severity)) = last {
                finding.since_s -= self.offset_s;
                out.push(Happening::Finding {
                    finding,
                    severity,
                    state: FindingState::Cleared,
                    awaits_evidence: false,
                });
            }
        }
        for (name, (_, held)) in stories {
            self.show(book, present, now_s, &name, held, out);
        }
    }

    fn show(
        &mut self,
        book: &Book,
        present: &Present,
        now_s: f64,
        name: &str,
        held: Held,
        out: &mut Vec<Happening>,
    ) {
        let before = self.shown.get(name);
        let state = match before {
            None => Some(FindingState::Raised),
            Some(shown) if shown.held.as_ref() != Some(&held) => Some(FindingState::Updated),
            Some(_) => None,
        };
        let seen_s = before.map_or(now_s, |shown| shown.seen_s);
        let was_released = before.is_some_and(|shown| shown.is_released);
        if let Some(state) = state {
            out.push(self.says(&held, state, true));
        }
        let everybody = book.pages.iter().all(|(rank, page)| {
            let is_here = *rank == self.me || present.awake.contains(rank);
            !is_here || page.ended.is_some() || page.held.contains_key(name)
        });
        let all_came = everybody
            && present
                .awake
                .iter()
                .all(|rank| book.pages.contains_key(rank));
        let waits = held.awaits || !(all_came || now_s - seen_s >= GATHER_S);
        if !waits && !was_released {
            // Without stacks, too: it says that nothing more is waited for.
            out.push(Happening::Evidence {
                finding: name.to_owned(),
                stacks: held.stacks.clone(),
            });
        }
        let shown = Shown {
            held: Some(held),
            seen_s,
            is_released: was_released || !waits,
        };
        self.shown.insert(name.to_owned(), shown);
    }

    /// What each rank says: `head` first, of its findings the one that is `asked` for first.
    fn notes(
        &self,
        book: &Book,
        present: &Present,
        head: Option<u32>,
        asked: impl Fn(&str) -> bool,
    ) -> Vec<RankNote> {
        let is_asked = |note: &RankNote| note.finding.as_deref().is_some_and(&asked);
        let mut notes = Vec::new();
        for (rank, page) in &book.pages {
            let blank = RankNote {
                rank: *rank,
                run: page.run.clone(),
                finding: None,
                cause: None,
                since_s: None,
                exit: None,
            };
            let alarms = page
                .held
                .values()
                .filter(|held| held.severity > Severity::Note && held.finding.because.is_none());
            let mut told: Vec<RankNote> = alarms
                .map(|held| RankNote {
                    finding: Some(held.finding.name.clone()),
                    cause: held.finding.cause.clone(),
                    since_s: Some(held.finding.since_s - self.offset_s),
                    ..blank.clone()
                })
                .collect();
            if let Some((_, end)) = &page.ended {
                // One line a rank that is over, with what is asked about if it had that.
                told.sort_by_key(|note| !is_asked(note));
                let last = told.into_iter().next().unwrap_or(blank);
                notes.push(RankNote {
                    cause: end.verdict.cause.clone().or(last.cause),
                    exit: Some(end.exit),
                    ..last
                });
                continue;
            }
            notes.extend(told);
            let lives = *rank == self.me || present.alive.contains(rank);
            notes.extend((!lives).then_some(blank));
        }
        notes.sort_by_key(|note| (Some(note.rank) != head, !is_asked(note), note.rank));
        notes
    }

    fn says(&self, held: &Held, state: FindingState, awaits_evidence: bool) -> Happening {
        let mut finding = held.finding.clone();
        finding.since_s -= self.offset_s;
        Happening::Finding {
            finding,
            severity: held.severity,
            state,
            awaits_evidence,
        }
    }

    fn inherited(&self, known: &[Known]) -> Vec<Inherited> {
        let ours = |known: &Known| {
            let mut finding = known.finding.clone();
            finding.since_s -= self.offset_s;
            Inherited {
                finding,
                severity: known.severity,
                told: known.told.clone(),
            }
        };
        known.iter().map(ours).collect()
    }
}

impl Book {
    /// Whether a rank, if it lives, has not said that it leaves.
    fn is_here(&self, rank: u32) -> bool {
        self.pages
            .get(&rank)
            .is_none_or(|page| page.ended.is_none())
    }

    /// Every finding that holds anywhere, as the rank that stands out has it.
    fn stories(&self) -> BTreeMap<String, (u32, Held)> {
        let mut stories: BTreeMap<String, (u32, Held)> = BTreeMap::new();
        for (rank, page) in &self.pages {
            for (name, held) in &page.held {
                let Some((first, best)) = stories.get_mut(name) else {
                    stories.insert(name.clone(), (*rank, held.clone()));
                    continue;
                };
                let severity = best.severity.max(held.severity);
                if stands_out(held, best) {
                    (*first, *best) = (*rank, held.clone());
                }
                best.severity = severity;
            }
        }
        stories
    }
}

/// Stacks that are there already.
fn evidence(held: &Held) -> Option<Happening> {
    (!held.awaits && !held.stacks.is_empty()).then(|| Happening::Evidence {
        finding: held.finding.name.clone(),
        stacks: held.stacks.clone(),
    })
}

/// Whether this rank is more likely than that one to be where it began: what it has isn't
/// explained, it doesn't wait for others, it got less far, and it began earlier.
fn stands_out(this: &Held, that: &Held) -> bool {
    let place = |held: &Held| {
        let finding = &held.finding;
        let number = |name| {
            finding
                .evidence
                .get(name)
                .and_then(serde_json::Value::as_f64)
        };
        let follows = finding.because.is_some();
        let waits = finding.cause.as_deref().is_some_and(|c| WAITS.contains(&c));
        let far = |name| number(name).unwrap_or(f64::INFINITY);
        (follows, waits, far("epoch"), far("step"), finding.since_s)
    };
    place(this) < place(that)
}

#[cfg(test)]
#[path = "ranks_tests.rs"]
mod tests;
