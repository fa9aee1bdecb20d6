//! The thread that writes: everything that goes to the run's directory passes through here,
//! so that a slow disk holds up nothing else. Whoever hands something over never waits.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::act::stacks::Evidence;
use crate::judge::{self, Input, Judge};
use crate::model::{
    Event, Exit, GpuInfo, Inventory, Logged, RunRecord, RunState, Sample, SourceState, Stamp,
};
use crate::read::fingerprint::Quote;
use crate::record::{
    EventWriter, FindingFold, OutputLog, RecordError, RunDir, SampleWriter, Sequencer,
    SummaryBuilder, UsageBuilder, rounded,
};
use crate::sys::defect::{caught, sentence};
use crate::sys::fault;
use crate::tell::Teller;

use super::alarm::Alarm;
use super::desk::{Entry, Tray};
use super::evidence::written;
use super::last_words::{Afterwards, LastWords};
use super::metrics::Feed;

#[path = "scribe_again.rs"]
mod again;
#[path = "scribe_end.rs"]
mod end;

/// What the last alerts may take.
pub const TELLING: Duration = Duration::from_secs(4);

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
    quotes: Vec<Quote>,
    problems: Vec<String>,
    /// Bytes of output: relayed until the last sample, and kept or said to be lost.
    relayed: u64,
    accounted: u64,
    order: Sequencer,
    /// How the command ended, until it is started again.
    ended: Option<Exit>,
    /// What it ended of is asked for, as soon as that can be told.
    is_asked: bool,
    /// Of what the judge was fed with last.
    judged: Stamp,
    /// The judge has said its last word.
    is_judged: bool,
    words: LastWords,
    /// What would have been sent, where nothing is.
    previews: String,
    afterwards: Afterwards,
    /// None after a defect of ours in it.
    judge: Option<Judge>,
    alarm: Alarm,
    teller: Option<Teller>,
    metrics: Feed,
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
        afterwards: Afterwards,
        (judge, alarm, teller, metrics): (Judge, Alarm, Option<Teller>, Feed),
    ) -> Self {
        Self {
            judge: Some(judge),
            alarm,
            teller,
            metrics,
            dir,
            at_home,
            record,
            files: None,
            summary: SummaryBuilder::default(),
            usage: UsageBuilder::default(),
            findings: FindingFold::default(),
            quotes: Vec::new(),
            problems,
            relayed: 0,
            accounted: 0,
            order: Sequencer::default(),
            ended: None,
            is_asked: false,
            judged: Stamp::default(),
            is_judged: false,
            words,
            previews: String::new(),
            afterwards,
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
        self.export_record();
        self.metrics.put();
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
            Entry::Quotes(quotes) => self.quotes = quotes,
            Entry::Problem(text) => self.problem(text),
            Entry::Cancelling => {
                self.record.state = RunState::Cancelled;
                self.write_run();
            }
            Entry::AttemptOver => self.is_asked = true,
            Entry::WhyNow(exit) => self.say_why(exit),
            Entry::Stopping(finding) => {
                self.record.stopped_for = Some(finding);
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
        self.alarm.sampled(&sample);
        self.judge(|judge| judge.step(Input::Sample(&sample)));
        let problem = self.metrics.show(|board| board.sample(&sample));
        self.problems.extend(problem);
        self.metrics.put();
        // What was counted at the end (a kill for memory) is known with the sample after it.
        if let Some(exit) = self.ended.filter(|_| self.is_asked) {
            self.say_why(exit);
        }
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
            self.export_record();
            self.write_run();
        }
        self.attempts(&logged);
        if !is_for_judge {
            return;
        }
        self.judged.clone_from(&logged.stamp);
        self.judge(|judge| judge.step(Input::Event(&logged)));
    }

    fn log(&mut self, logged: &Logged) {
        self.findings.absorb(logged);
        let problem = self.metrics.show(|board| board.event(logged));
        self.problems.extend(problem);
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

    fn evidence(&mut self, finding: &str, evidence: Evidence) {
        if let Some(dir) = &self.dir {
            let result = match written(dir.path(), &evidence) {
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
        self.export_record();
        self.write_run();
    }

    fn export_record(&mut self) {
        let record = &self.record;
        let problem = self.metrics.show(|board| board.know(record));
        self.problems.extend(problem);
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
}
