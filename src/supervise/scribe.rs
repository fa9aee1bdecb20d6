//! The thread that writes: everything that goes to the run's directory passes through here,
//! so that a slow disk holds up nothing else. Whoever hands something over never waits.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::act::stacks::Evidence;
use crate::judge::{self, Input, Judge};
use crate::model::{
    Event, GpuInfo, Inventory, Logged, RunRecord, RunState, Sample, SourceState, Stamp, Verdict,
};
use crate::record::{
    EventWriter, FindingFold, IndexEntry, OutputLog, RecordError, RunDir, SampleWriter, Sequencer,
    SummaryBuilder, UsageBuilder, index, rounded,
};
use crate::report::{Kept, Leftover, Notes, summary};
use crate::sys::defect::{caught, sentence};
use crate::sys::fault;
use crate::tell::{self, Happening, Teller};

use super::alarm::Alarm;
use super::desk::{Entry, Final, Tray};
use super::state::End;

/// What the last alerts may take.
pub const TELLING: Duration = Duration::from_secs(4);

/// What to say at the end; there before the last slow steps, and readable by others.
pub type LastWords = Arc<Mutex<Option<String>>>;

/// The scribe.
pub struct Scribe {
    dir: Option<RunDir>,
    /// Whether commands find the record without `--dir`.
    at_home: bool,
    record: RunRecord,
    files: Option<Files>,
    summary: SummaryBuilder,
    usage: UsageBuilder,
    findings: FindingFold,
    problems: Vec<String>,
    /// Bytes of output: relayed until the last sample, and kept or said to be lost.
    relayed: u64,
    accounted: u64,
    order: Sequencer,
    /// Of what the judge was fed with last.
    judged: Stamp,
    /// The judge has said its last word.
    is_judged: bool,
    words: LastWords,
    /// None after a defect of ours in it.
    judge: Option<Judge>,
    alarm: Alarm,
    teller: Option<Teller>,
}

struct Files {
    samples: SampleWriter,
    events: EventWriter,
    output: OutputLog,
    /// Files that failed: said once.
    failed: BTreeSet<&'static str>,
}

impl Files {
    fn create(dir: &RunDir) -> Result<Self, RecordError> {
        Ok(Self {
            samples: SampleWriter::create(dir.path())?,
            events: EventWriter::create(dir.path())?,
            output: OutputLog::create(dir.path())?,
            failed: BTreeSet::new(),
        })
    }
}

impl Scribe {
    /// For this run; `problems` are said in the summary.
    pub fn new(
        dir: Option<RunDir>,
        at_home: bool,
        record: RunRecord,
        problems: Vec<String>,
        words: LastWords,
        (judge, alarm, teller): (Judge, Alarm, Option<Teller>),
    ) -> Self {
        Self {
            judge: Some(judge),
            alarm,
            teller,
            dir,
            at_home,
            record,
            files: None,
            summary: SummaryBuilder::default(),
            usage: UsageBuilder::default(),
            findings: FindingFold::default(),
            problems,
            relayed: 0,
            accounted: 0,
            order: Sequencer::default(),
            judged: Stamp::default(),
            is_judged: false,
            words,
        }
    }

    /// Writes until the end; after a defect of ours that end alone.
    pub fn run(mut self, tray: &Tray) {
        if let Err(why) = caught(|| self.write_all(tray)) {
            self.files = None;
            self.problem(sentence("the record is incomplete", &why));
            self.say(&[]);
            while let Some(entry) = tray.next() {
                match entry {
                    Entry::Final(last) => return self.close_plainly(*last),
                    Entry::Problem(text) => self.problem(text),
                    _ => {}
                }
            }
        }
    }

    /// Nothing but how it ended.
    fn close_plainly(&mut self, last: Final) {
        self.record.ended = Some(last.ended.time);
        self.record.state = last.end.state;
        self.record.exit = last.end.exit;
        self.record.verdict.outcome = Some(last.end.outcome);
        self.record.summary.duration_s = Some(last.ended.elapsed_s);
        self.write_run();
        self.index();
        self.say(&last.leftovers);
    }

    fn write_all(&mut self, tray: &Tray) {
        self.open();
        while let Some(entry) = tray.next() {
            match entry {
                Entry::Final(last) => {
                    self.say_lost(tray);
                    self.close(*last, tray);
                    return;
                }
                other => self.take(other, tray),
            }
            tray.calm(self.judge.as_ref().is_some_and(Judge::is_calm));
        }
    }

    fn open(&mut self) {
        let Some(dir) = &self.dir else { return };
        match Files::create(dir) {
            Ok(files) => self.files = Some(files),
            Err(error) => self
                .problems
                .push(format!("the record is incomplete: {error}")),
        }
        self.write_run();
    }

    fn take(&mut self, entry: Entry, tray: &Tray) {
        fault::at("scribe");
        match entry {
            Entry::Output(bytes, lost_before) => {
                tray.held.fetch_sub(bytes.len(), Ordering::Relaxed);
                if self.is_judged {
                    // Too late: it is counted as lost.
                    return;
                }
                self.output_lost(lost_before);
                self.accounted += bytes.len() as u64;
                self.alarm.printed(&bytes);
                self.write("output.log", |files| files.output.write(&bytes));
            }
            Entry::Sample(sample) => self.sample(&sample),
            Entry::Event(logged) => self.event(*logged),
            Entry::Gpus(found) => self.gpus(*found),
            Entry::Attribution(text) => self.record.attribution = Some(text),
            Entry::Git(git) => self.record.git = Some(git),
            Entry::Evidence(answer) => self.evidence(&answer.0, answer.1),
            Entry::Problem(text) => self.problem(text),
            Entry::Cancelling => {
                self.record.state = RunState::Cancelled;
                self.write_run();
            }
            // `run` keeps it for itself.
            Entry::Final(_) => {}
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let mut sample = rounded(sample);
        self.order.sample(&mut sample.stamp);
        self.judged.clone_from(&sample.stamp);
        self.relayed = sample.out_bytes;
        self.summary.absorb(&sample);
        self.usage.absorb(&sample, self.findings.list());
        self.write("samples.csv", |files| files.samples.append(&sample));
        self.alarm
            .progress(&sample.progress, sample.stamp.elapsed_s);
        self.judge(|judge| judge.step(Input::Sample(&sample)));
    }

    /// Once the judge is done, nothing is recorded that would have been judged.
    fn event(&mut self, mut logged: Logged) {
        let is_for_judge = !logged.event.is_judged();
        if is_for_judge && self.is_judged {
            return;
        }
        self.order.event(&mut logged.stamp);
        self.log(&logged);
        if let Event::Framework { name, .. } = &logged.event {
            self.record.framework = Some(name.clone());
            self.write_run();
        }
        if !is_for_judge {
            return;
        }
        self.judged.clone_from(&logged.stamp);
        self.judge(|judge| judge.step(Input::Event(&logged)));
    }

    fn log(&mut self, logged: &Logged) {
        self.findings.absorb(logged);
        self.write("events.jsonl", |files| files.events.append(logged));
    }

    /// The judge's word is recorded with the time of what made it speak.
    fn found(&mut self, findings: Vec<judge::Finding>) {
        for finding in findings {
            let stamp = self.judged.clone();
            let logged = Logged {
                stamp,
                event: finding.clone().into(),
            };
            self.log(&logged);
            self.alarm.found(&finding, &logged, &self.record.id);
        }
    }

    /// Asks the judge. A defect of ours in it costs its judgement, not the record.
    fn judge(&mut self, ask: impl FnOnce(&mut Judge) -> Vec<judge::Finding>) {
        let Some(mut judge) = self.judge.take() else {
            return;
        };
        let asked = caught(|| {
            fault::at("judge");
            ask(&mut judge)
        });
        match asked {
            Ok(findings) => {
                self.judge = Some(judge);
                self.found(findings);
            }
            Err(why) => self.problem(sentence("the run is no longer judged", &why)),
        }
    }

    fn verdict(&mut self, end: &End) -> Verdict {
        let judge = self.judge.take();
        let said = judge.and_then(|judge| caught(|| judge.verdict(end.outcome, end.exit)).ok());
        said.unwrap_or_else(|| Verdict {
            outcome: Some(end.outcome),
            ..Verdict::default()
        })
    }

    fn evidence(&mut self, finding: &str, evidence: Evidence) {
        if let Some(dir) = &self.dir {
            let result = match dir.write_evidence(&evidence.file_name, &evidence.text) {
                Ok(path) => path,
                Err(error) => error.to_string(),
            };
            let stamp = self.order.last().clone();
            let what = "stacks".to_owned();
            self.event(Logged {
                stamp,
                event: Event::Action { what, result },
            });
        }
        self.alarm.evidence(finding, evidence.digest);
    }

    fn gpus(&mut self, (inventory, watched): (Inventory, Vec<GpuInfo>)) {
        self.record.driver = inventory.driver;
        self.record.cuda = inventory.cuda;
        if let Some(files) = &mut self.files {
            files.samples.name_gpus(&watched);
        }
        if let Some(judge) = &mut self.judge {
            judge.learn(watched.clone());
        }
        self.record.gpus = watched;
        self.alarm.know(&self.record);
        self.write_run();
    }

    fn problem(&mut self, text: String) {
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    /// Bytes of output are missing here: the log and the events say so.
    fn output_lost(&mut self, n: u64) {
        if n == 0 {
            return;
        }
        self.accounted += n;
        if let Some(files) = &mut self.files {
            files.output.dropped(n);
        }
        let stamp = self.order.last().clone();
        let what = "output".to_owned();
        self.event(Logged {
            stamp,
            event: Event::Dropped { what, n },
        });
    }

    fn say_lost(&mut self, tray: &Tray) {
        self.output_lost(tray.lost_output.swap(0, Ordering::Relaxed));
        // Nobody waits for what is still on its way.
        self.output_lost(self.relayed.saturating_sub(self.accounted));
        let n = tray.lost.load(Ordering::Relaxed);
        if n > 0 {
            let stamp = self.order.last().clone();
            self.event(Logged {
                stamp,
                event: Event::Dropped {
                    what: "events".to_owned(),
                    n,
                },
            });
            self.problem(format!(
                "{n} entries of the record were lost: the disk was too slow"
            ));
        }
    }

    /// Writes to one file; its first failure is said, and the run goes on.
    fn write(
        &mut self,
        file: &'static str,
        action: impl FnOnce(&mut Files) -> Result<(), RecordError>,
    ) {
        let Some(files) = &mut self.files else { return };
        let Err(error) = action(files) else { return };
        if !files.failed.insert(file) {
            return;
        }
        let text = error.to_string();
        self.problem(format!("the record is incomplete: {text}"));
        let event = Event::Source {
            name: file.to_owned(),
            state: SourceState::Failed,
            why: Some(text),
        };
        let logged = Logged {
            // Nobody judges it: it must not come later than what is being written.
            stamp: self.judged.clone(),
            event,
        };
        if let Some(files) = &mut self.files
            && files.events.append(&logged).is_err()
        {
            // The summary has the reason; there is nowhere else to put it.
            files.failed.insert("events.jsonl");
        }
    }

    fn write_run(&mut self) {
        let Some(dir) = &self.dir else { return };
        if let Err(error) = dir.write_run(&self.record) {
            self.problem(format!("the record is incomplete: {error}"));
        }
    }

    fn close(&mut self, last: Final, tray: &Tray) {
        let at = self.judged.elapsed_s;
        self.judge(|judge| judge.finish(&last.end.exit, at));
        self.is_judged = true;
        let duration = Some(last.ended.elapsed_s);
        self.record.summary = self.summary.finish(duration, &last.progress);
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
        // The index may have something to add.
        self.say(&last.leftovers);
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
        if let Some(problem) = told.problem() {
            self.problem(problem);
        }
    }

    fn say(&self, leftovers: &[Leftover]) {
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
        let words = summary(&self.record, &notes);
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
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
