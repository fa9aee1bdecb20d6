//! The grammar of progress: one line of text in, what it says out.
//!
//! Owns the decision whether a line shows progress at all. General rules come first: bars,
//! counters, `key=value`, tables; the little that only one framework does is marked so. Must
//! not know the screen, or what was read before (a table's header excepted).

use super::counters::{self, Counter};
use super::csv::Csv;
use super::foreign::{Traceback, is_foreign};
use super::keyed::{self, Keyed};
use super::reading::{EpochShown, Reading, StepShown};
use super::screen::Line;
use super::table::Table;
use super::times;
use super::token::{Kind, Token, tokens};
use super::values::{self, Value};
use super::words::{self, Counts};

/// The grammar of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Grammar {
    table: Option<Table>,
    csv: Option<Csv>,
    traceback: Traceback,
    /// The present line is quoted, or recalls an earlier one.
    ignored: bool,
    /// The next one will.
    recalled: bool,
    /// An epoch was the last thing that was read.
    under_epoch: bool,
}

/// A line and everything that was found on it.
pub(super) struct Parts<'a> {
    pub(super) tokens: &'a [Token<'a>],
    /// Where the message begins, behind time stamps, levels and ranks.
    pub(super) body: usize,
    pub(super) counters: Vec<Counter>,
    pub(super) keyed: Vec<Keyed>,
    pub(super) values: Vec<Value>,
    /// The first bar.
    pub(super) bar: Option<usize>,
    pub(super) table: Option<&'a Table>,
    /// An epoch was read just before: a nameless bar is its own.
    pub(super) under_epoch: bool,
}

impl Grammar {
    /// Remembers a table's header; called once for each complete line.
    pub fn notice(&mut self, line: &str) {
        let numbers = |w: &str| w.starts_with(|c: char| c.is_ascii_digit());
        if !line.split_whitespace().any(numbers)
            && let Some(table) = Table::header(&tokens(line))
        {
            self.table = Some(table);
        }
        if let Some(csv) = Csv::header(line) {
            self.csv = Some(csv);
        }
        let text = line.trim_end();
        // "Early stopping, best iteration is:", and the line below.
        let recalls = text.ends_with(':') && text.split(' ').any(words::is_recall);
        let recalled = std::mem::replace(&mut self.recalled, recalls);
        self.ignored = self.traceback.has(line) || recalled;
    }

    /// What the last line said.
    pub fn remember(&mut self, reading: Option<&Reading>) {
        if let Some(r) = reading {
            let bar = r.step.as_ref().is_some_and(|s| s.bar);
            let bare = r.step.is_none() && r.loss.is_none() && r.metrics.is_empty();
            let heading = bare && r.epoch.is_some_and(|e| e.total.is_some());
            self.under_epoch = heading || self.under_epoch && bar;
        }
    }

    /// What this line says, if it shows progress.
    pub fn read(&self, line: &Line) -> Option<Reading> {
        if self.ignored {
            return None;
        }
        if let Some(row) = self.csv.as_ref().and_then(|csv| csv.read(&line.text)) {
            return Some(row);
        }
        let tokens = tokens(&line.text);
        let mut parts = Parts::new(&tokens, self.table.as_ref());
        if is_foreign(&line.text, &tokens, parts.body) {
            return None;
        }
        parts.under_epoch = self.under_epoch;
        let mut reading = parts.reading()?;
        reading.redrawn = line.redrawn;
        reading.repeated = line.repeated;
        if line.text.trim_start().starts_with('{') && !reading.source.ends_with("bar") {
            reading.source = "json".into();
        }
        Some(reading)
    }
}

impl<'a> Parts<'a> {
    fn new(tokens: &'a [Token<'a>], table: Option<&'a Table>) -> Self {
        let body = counters::body(tokens);
        let counters = counters::find(tokens, body);
        let keyed = keyed::keyed(tokens, &counters);
        let mut values = values::find(tokens, &counters);
        values.retain(|v| !keyed.iter().any(|k| (v.first..v.at).contains(&k.at)));
        Self {
            tokens,
            body,
            values,
            bar: tokens.iter().position(|t| t.kind == Kind::Bar),
            table: table.filter(|t| t.fits(tokens)),
            counters,
            keyed,
            under_epoch: false,
        }
    }

    fn reading(&self) -> Option<Reading> {
        let epoch = self.epoch();
        let mut step = self.step(epoch.as_ref());
        let mut epoch = epoch;
        if epoch.is_none() && step.as_ref().is_some_and(|s| !s.bar) && self.counts_epochs() {
            epoch = step.take().map(|s| EpochShown {
                value: s.n as f64,
                total: s.total.map(|t| t as f64),
                done: false,
                fractional: false,
            });
        }
        let (loss, metrics) = self.measures();
        let percent = self.percent(step.is_some());
        let rate = times::rate(self.tokens, self.bar.is_some())
            .filter(|_| !epoch.is_some_and(|e| e.done && step.is_none()));
        if epoch.is_none() && step.is_none() && percent.is_none() {
            // Only what adds to progress that is known already.
            let fit = self
                .values
                .iter()
                .filter_map(|v| words::loss_fit(&v.name))
                .min();
            let said = fit.is_some_and(|f| f <= 2) || rate.is_some();
            if !said {
                return None;
            }
        }
        Some(Reading {
            source: self.source(epoch.as_ref(), step.as_ref()).into(),
            phase: self.phase(step.as_ref()),
            says_train: self.says_train(step.as_ref()),
            is_told: false,
            rank: self.rank(),
            eta_s: times::eta(
                self.tokens,
                step.as_ref().is_some_and(|s| s.total != Some(s.n)),
            ),
            epoch,
            step,
            percent,
            loss,
            metrics,
            rate,
            redrawn: false,
            repeated: false,
        })
    }

    fn rank(&self) -> Option<u32> {
        let named = !self.keyed.is_empty() || self.counters.iter().any(|c| c.counts.is_some());
        let label = || counters::labelled_rank(self.tokens).filter(|_| named);
        counters::rank(self.tokens).or_else(label)
    }

    fn epoch(&self) -> Option<EpochShown> {
        if let Some((outer, _)) = self.outer_and_inner() {
            return Some(EpochShown {
                value: outer.n,
                total: outer.total,
                done: false,
                fractional: false,
            });
        }
        if let Some(c) = self
            .counters
            .iter()
            .find(|c| c.counts == Some(Counts::Epochs))
        {
            return Some(EpochShown {
                value: c.n,
                total: c.total,
                done: c.behind_bar,
                fractional: false,
            });
        }
        if let Some((value, total)) = self.table.and_then(|t| t.epoch(self.tokens)) {
            return Some(EpochShown {
                value,
                total,
                done: false,
                fractional: false,
            });
        }
        if let Some((first, _)) = self.pair() {
            return Some(first);
        }
        if let Some(value) = self.piped_epoch() {
            return Some(EpochShown {
                value,
                total: None,
                done: false,
                fractional: false,
            });
        }
        let key = self.keyed.iter().find(|k| k.counts == Counts::Epochs)?;
        let firm = key.separated
            || key.words_before <= 4
            || self.keyed.len() > 1
            || self.values.iter().any(|v| words::is_measure(&v.name));
        if !firm || (self.counters.is_empty() && self.recalls()) {
            return None;
        }
        Some(EpochShown {
            value: key.n,
            total: self.total(Counts::Epochs),
            done: false,
            fractional: key.fractional,
        })
    }

    /// A total that is named on the same line: `"step": 5, "total_steps": 40`.
    fn total(&self, of: Counts) -> Option<f64> {
        self.values
            .iter()
            .find(|v| words::total(&v.name) == Some(of) && v.number >= 1.0)
            .map(|v| v.number)
            .or_else(|| self.in_all(of))
    }

    fn step(&self, epoch: Option<&EpochShown>) -> Option<StepShown> {
        if let Some((_, step)) = self.pair() {
            return Some(step);
        }
        if let Some((_, inner)) = self.outer_and_inner() {
            let named = inner.counts == Some(Counts::Steps);
            return Some(StepShown {
                total: inner.total.map(|t| t as u64),
                name: if named {
                    inner.name.clone()
                } else {
                    String::new()
                },
                bar: true,
                ..unnamed(inner.n as u64)
            });
        }
        let named = |counts: Counts| self.counters.iter().find(move |c| c.counts == Some(counts));
        let counter = named(Counts::Steps)
            .filter(|c| epoch.is_some() || c.name != "step" || !self.goes_on_in_words(c))
            .or_else(|| self.counters.iter().find(|c| self.is_step(c, epoch)))
            .or_else(|| named(Counts::RunSteps));
        if let Some(c) = counter {
            return Some(StepShown {
                n: c.n as u64,
                total: c.total.map(|t| t as u64),
                name: c.name.clone(),
                bar: self.bar.is_some(),
                whole_run: c.counts == Some(Counts::RunSteps),
            });
        }
        if let Some((n, unit)) = counters::without_total(self.tokens) {
            return Some(StepShown {
                n,
                total: None,
                name: unit.to_owned(),
                bar: true,
                whole_run: false,
            });
        }
        self.keyed_step(epoch).or_else(|| self.leading_step())
    }

    fn keyed_step(&self, epoch: Option<&EpochShown>) -> Option<StepShown> {
        let find = |counts: Counts| self.keyed.iter().find(move |k| k.counts == counts);
        let key = find(Counts::Steps).or_else(|| find(Counts::RunSteps))?;
        let company = self.keeps_company(key, epoch.is_some());
        (company && !self.recalls()).then(|| StepShown {
            n: key.n as u64,
            total: self
                .total(Counts::Steps)
                .map(|t| t as u64)
                .filter(|t| *t as f64 >= key.n),
            name: key.name.clone(),
            bar: false,
            whole_run: key.counts == Counts::RunSteps,
        })
    }

    /// `[59] train-auc:0.98`, `10: learn: 0.69`, a table's first column.
    fn leading_step(&self) -> Option<StepShown> {
        if let Some(n) = self.table.and_then(|t| t.step(self.tokens)) {
            return Some(unnamed(n));
        }
        if !self
            .values
            .iter()
            .any(|v| v.separated && words::is_measure(&v.name))
        {
            return None;
        }
        let at = |i: usize| self.tokens.get(self.body + i);
        let (number, after) = if at(0)?.is('[') {
            (at(1)?, at(2)?.is(']'))
        } else {
            (at(0)?, at(1)?.is(':') && at(2)?.gap)
        };
        match number.kind {
            Kind::Int(n) if after && n >= 0.0 && number.unit.is_empty() => Some(unnamed(n as u64)),
            _ => None,
        }
    }

    /// Whether a counter without a known name counts steps.
    fn is_step(&self, c: &Counter, epoch: Option<&EpochShown>) -> bool {
        if c.counts.is_some()
            || self
                .table
                .is_some_and(|t| t.epoch(self.tokens).is_some() && c.at == self.body)
        {
            return false;
        }
        let beside_bar = self.bar.is_some();
        if beside_bar {
            return true;
        }
        if c.of_measure || self.follows_noun(c) {
            return false;
        }
        let near = |i: Option<usize>| {
            i.and_then(|i| self.tokens.get(i))
                .is_some_and(|t| matches!(t.kind, Kind::Percent(_)))
        };
        let beside_percent = near(Some(c.end + 1))
            || near(Some(c.end))
            || near(c.at.checked_sub(2))
            || near(c.at.checked_sub(1));
        let nameless = c.name.is_empty() || words::is_train(&c.name);
        // "[1/4] epoch 3/10", "(0/4) Epoch 3, batch 50": a rank, a fold.
        let named = |at: usize| at > c.at && at <= c.end + 3;
        let epochs = |counts| counts == Counts::Epochs;
        let outside = self
            .counters
            .iter()
            .any(|o| o.counts.is_some_and(epochs) && named(o.at))
            || self.keyed.iter().any(|k| epochs(k.counts) && named(k.at));
        if c.name.is_empty() && outside {
            return false;
        }
        let first = c.at <= self.body + 1;
        let has_loss = self
            .values
            .iter()
            .any(|v| words::loss_fit(&v.name).is_some());
        let measured = has_loss || self.values.iter().any(|v| words::is_measure(&v.name));
        let clocked = self
            .tokens
            .get(c.end)
            .is_some_and(|t| matches!(t.kind, Kind::Clock(_)))
            && self.tokens.get(c.end + 1).is_some_and(|t| t.is('<'));
        let timed = self.tokens.get(c.end).is_some_and(|t| t.is('-'))
            && self.tokens.get(c.end + 1).is_some_and(|t| t.unit == "s");
        (nameless
            && (clocked
                || epoch.is_some()
                || (beside_percent && (measured || self.is_paced()))
                || (first && (measured || timed))))
            || has_loss
    }

    /// `357/400 correct`: the word behind it says what is counted, and it isn't steps.
    fn follows_noun(&self, c: &Counter) -> bool {
        self.tokens.get(c.end).is_some_and(|t| {
            t.is_word()
                && !words::is_measure(t.text)
                && !self.values.iter().any(|v| v.first == c.end)
        })
    }

    /// A bare `[3/50]` beside a training and a validation loss counts epochs.
    fn counts_epochs(&self) -> bool {
        let nameless = self
            .counters
            .iter()
            .all(|c| c.counts.is_none() && c.at <= self.body + 1);
        let shown = |eval: bool| {
            self.values
                .iter()
                .any(|v| words::is_eval(&v.name) == eval && v.name.to_lowercase().contains("loss"))
        };
        let paced = self
            .tokens
            .iter()
            .any(|t| t.unit.contains("s/") || t.unit.contains("/s"));
        nameless
            && !paced
            && !self.counters.is_empty()
            && self.keyed.is_empty()
            && shown(true)
            && shown(false)
    }

    fn measures(&self) -> (Option<f64>, Vec<(String, f64)>) {
        let from_table;
        let values = match self.table {
            Some(table) => {
                from_table = table.values(self.tokens);
                &from_table
            }
            None => &self.values,
        };
        let best = values
            .iter()
            .enumerate()
            .filter_map(|(i, v)| words::loss_fit(&v.name).map(|fit| (fit, i)))
            .min();
        let metrics = values
            .iter()
            .enumerate()
            .filter(|(i, v)| {
                Some(*i) != best.map(|b| b.1)
                    && words::total(&v.name).is_none()
                    && words::counter(&v.name).is_none()
                    && !words::is_remaining(&v.name)
                    && !words::is_rank(&v.name)
            })
            .take(values::MOST)
            .map(|(_, v)| (v.name.clone(), v.number))
            .collect();
        (best.map(|(_, i)| values[i].number), metrics)
    }

    /// A row of a boxed table, `| key | value |`, says one thing alone.
    pub(super) fn is_boxed(&self) -> bool {
        self.tokens.first().is_some_and(|t| t.is('|'))
            && self.tokens.last().is_some_and(|t| t.is('|'))
    }

    fn recalls(&self) -> bool {
        self.tokens
            .iter()
            .any(|t| t.is_word() && words::is_recall(t.text))
    }
}

pub(super) fn unnamed(n: u64) -> StepShown {
    StepShown {
        n,
        total: None,
        name: String::new(),
        bar: false,
        whole_run: false,
    }
}
