//! The scribe's last work: the judge's last word, the gates, alerts, summary and index.

use crate::model::{Outcome, Verdict};
use crate::plan::mask_line;
use crate::record::{IndexEntry, index};
use crate::report::gates::{self, Whole};
use crate::report::{Fate, Kept, Leftover, Notes, summary};
use crate::supervise::desk::{Final, Tray};
use crate::supervise::last_words::{Gates, Words};
use crate::supervise::runner::Runner;
use crate::supervise::state::End;
use crate::sys::defect::caught;
use crate::tell::{self, Happening};

use super::{Scribe, TELLING};

impl Scribe {
    /// Nothing but how it ended.
    pub(super) fn close_plainly(&mut self, last: Final) {
        self.record.ended = Some(last.ended.time);
        self.record.state = last.end.state;
        self.record.exit = last.end.exit;
        self.record.verdict.outcome = Some(last.end.outcome);
        self.record.summary.duration_s = Some(last.ended.elapsed_s);
        self.check_gates(false, &last.leftovers);
        self.write_run();
        self.index();
        self.say(&last.leftovers);
    }

    fn verdict(&mut self, end: &End) -> Verdict {
        let judge = self.judge.take();
        let said = judge.and_then(|judge| caught(|| judge.verdict(end.outcome, end.exit)).ok());
        let said = said.unwrap_or_else(|| Verdict {
            outcome: Some(end.outcome),
            ..Verdict::default()
        });
        self.quoted(self.with_the_stop(said))
    }

    /// Of a run that a finding ended, that finding is the cause, whatever else stands.
    fn with_the_stop(&self, mut verdict: Verdict) -> Verdict {
        let Some(name) = self.record.stopped_for.as_ref() else {
            return verdict;
        };
        if verdict.outcome == Some(Outcome::Stopped) && verdict.cause.as_ref() != Some(name) {
            let found = self.findings.list().iter().rfind(|f| f.name == *name);
            verdict.advice = found.and_then(|finding| finding.advice.clone());
            verdict.cause = Some(name.clone());
            (verdict.line, verdict.rank) = (None, None);
        }
        verdict
    }

    /// With what was printed around the line that tells the cause, or at the end of a run that
    /// failed without one. It leaves the machine in reports and alerts: no secrets.
    fn quoted(&self, mut verdict: Verdict) -> Verdict {
        let line = verdict.line.as_deref();
        let quote = line.and_then(|line| self.quotes.iter().find(|quote| quote.text == line));
        let failed = matches!(
            verdict.outcome,
            Some(Outcome::Failed | Outcome::Killed | Outcome::Lost)
        );
        let around = match quote {
            Some(quote) => quote.lines(),
            None if line.is_none() && failed => self.alarm.last_drawn(),
            None => Vec::new(),
        };
        verdict.around = around.iter().map(|line| mask_line(line)).collect();
        verdict.line = verdict.line.as_deref().map(mask_line);
        verdict
    }

    pub(super) fn close(&mut self, last: Final, tray: &Tray) {
        let at = self.judged.elapsed_s;
        self.judge(|judge| judge.finish(&last.end.exit, at));
        self.is_judged = true;
        let duration = Some(last.ended.elapsed_s);
        let was_judged = self.judge.is_some();
        self.record.summary = self.summary.finish(duration, &last.progress);
        let judge = self.judge.as_ref();
        self.record.summary.time = judge.and_then(|judge| caught(|| judge.spent()).ok());
        self.check_gates(was_judged, &last.leftovers);
        self.record.ended = Some(last.ended.time);
        self.record.state = last.end.state;
        self.record.exit = last.end.exit;
        self.record.verdict = self.verdict(&last.end);
        // Before the alerts: whoever ends us while they are sent finds the run's end.
        self.write_run();
        self.tell_the_end(&last.leftovers, tray);
        if let Some(files) = self.files.take()
            && let Err(error) = files.output.finish()
        {
            self.problem(format!("the record is incomplete: {error}"));
        }
        self.write_run();
        self.say(&last.leftovers);
        self.index();
        if let Some(runner) = &self.afterwards.runner {
            let tail = self.alarm.last_lines().join("\n");
            let told = runner.hand_over(&self.record, self.findings.list(), &tail);
            told.unwrap_or_else(|why| self.problem(why));
        }
        // These two may have something to add.
        self.say(&last.leftovers);
    }

    /// Without a judge no finding says that there is nothing to be found.
    fn check_gates(&mut self, was_judged: bool, leftovers: &[Leftover]) {
        let findings = self.findings.names();
        let ended = leftovers.iter().any(|left| left.fate == Fate::Ended);
        let whole = Whole {
            summary: &self.record.summary,
            findings: was_judged.then_some(&findings[..]),
            watched: !self.record.gpus.is_empty(),
            left_behind: ended && self.afterwards.ends_leftovers,
        };
        self.record.gates = gates::judge(&self.afterwards.gates, whole);
    }

    /// The last alerts; what becomes of them is recorded.
    fn tell_the_end(&mut self, leftovers: &[Leftover], tray: &Tray) {
        let Some(teller) = self.teller.take() else {
            return;
        };
        // Whoever waits for the summary isn't kept from it by a slow server.
        self.say(leftovers);
        teller.tell(Happening::Ended(tell::End {
            exit: self.record.exit,
            verdict: self.record.verdict.clone(),
        }));
        let told = teller.finish(TELLING);
        while let Ok(entry) = tray.inbox.try_recv() {
            self.take(entry, tray);
        }
        self.previews.clone_from(&told.previews);
        if let Some(problem) = told.problem() {
            self.problem(problem);
        }
    }

    pub(super) fn say(&self, leftovers: &[Leftover]) {
        let path = self
            .dir
            .as_ref()
            .map(|dir| dir.path().to_string_lossy().into_owned());
        let kept = match &path {
            Some(path) if self.at_home => Kept::Here(path),
            Some(path) => Kept::Elsewhere(path),
            None => Kept::Nowhere,
        };
        let notes = Notes {
            kept,
            findings: self.findings.list(),
            problems: &self.problems,
            leftovers,
            they_end_with_us: std::process::id() == 1,
        };
        let summary = summary(&self.record, &notes);
        let runner = self.afterwards.runner.as_ref();
        let with_runner = runner.map(|_| Runner::words(&summary, &self.record, notes.findings));
        self.words.set(Words {
            summary: with_runner.unwrap_or(summary),
            gates: Some(Gates::of(&self.record.gates)),
            previews: self.previews.clone(),
        });
    }

    fn index(&mut self) {
        let Some(dir) = &self.dir else { return };
        let Some(root) = dir.path().parent() else {
            return;
        };
        let mut entry = IndexEntry::new(&self.record, self.findings.names(), dir.path());
        let (gpus, duration) = (&self.record.gpus, self.record.summary.duration_s);
        entry.usage = Some(self.usage.finish(gpus, self.findings.list(), duration));
        match index::append(root, &entry) {
            Ok(None) => {}
            Ok(Some(aside)) => self.problem(format!(
                "the index of runs was unreadable and is kept as {}",
                aside.display()
            )),
            Err(error) => self.problem(error.to_string()),
        }
    }
}
