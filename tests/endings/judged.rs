//! Lines and an end, judged without a run.

use gpuwatch::judge::{Finding, Input, JobFacts, Judge, is_alarm};
use gpuwatch::model::{
    Event, Exit, FindingState, JudgeSettings, LineSource, Logged, Outcome, Sample, Stamp, Stream,
};
use gpuwatch::read::fingerprint::{Lines, Quote};
use serde_json::Value;

/// A judge that is told lines and steps.
pub struct Told {
    judge: Judge,
    lines: Lines,
    at: f64,
    step: u64,
    alarms: Vec<String>,
}

impl Told {
    pub fn new() -> Self {
        Self {
            judge: Judge::new(JudgeSettings::default(), Vec::new(), JobFacts::default()),
            lines: Lines::new(),
            at: 0.0,
            step: 0,
            alarms: Vec::new(),
        }
    }

    fn stamp(&mut self) -> Stamp {
        self.at += 0.25;
        Stamp {
            time: String::new(),
            elapsed_s: self.at,
        }
    }

    fn said(&mut self, findings: Vec<Finding>) {
        let raised = |f: &Finding| f.state == FindingState::Raised && is_alarm(f.severity);
        let names = findings.into_iter().filter(raised).map(|f| f.name);
        self.alarms.extend(names);
    }

    /// This was printed.
    pub fn print(&mut self, text: &str) -> &mut Self {
        for text in self.lines.feed(Stream::Err, text.as_bytes()) {
            let logged = Logged {
                stamp: self.stamp(),
                event: Event::Line {
                    stream: LineSource::Err,
                    text,
                    file: None,
                },
            };
            let found = self.judge.step(Input::Event(&logged));
            self.said(found);
        }
        self
    }

    /// So many seconds of training.
    pub fn train(&mut self, seconds: u32) -> &mut Self {
        for _ in 0..seconds {
            self.at = self.at.ceil() + 1.0;
            self.step += 10;
            let mut sample = Sample::default();
            sample.stamp.elapsed_s = self.at;
            sample.progress.step = Some(self.step);
            let found = self.judge.step(Input::Sample(&sample));
            self.said(found);
        }
        self
    }

    /// The end, as `run.json` would have it, and the alarms on the way.
    pub fn end(&mut self, end: &Value) -> (Value, Vec<String>) {
        self.print("\n");
        let exit = exit(end);
        let outcome = match exit {
            Exit { code: Some(0), .. } => Outcome::Ok,
            Exit { code: Some(_), .. } => Outcome::Failed,
            Exit { .. } => Outcome::Killed,
        };
        let mut verdict = self.judge.verdict(outcome, exit);
        self.lines.finish();
        let quotes = self.lines.quotes();
        let quote = quotes
            .iter()
            .find(|q| Some(&q.text) == verdict.line.as_ref());
        verdict.around = quote.map(Quote::lines).unwrap_or_default();
        let verdict = serde_json::to_value(verdict).unwrap();
        (verdict, std::mem::take(&mut self.alarms))
    }
}

/// An exit code, or a signal by its name.
fn exit(end: &Value) -> Exit {
    let signal = end.as_str().map(|name| {
        let signal: nix::sys::signal::Signal = format!("SIG{name}").parse().unwrap();
        signal as i32
    });
    Exit {
        code: end.as_i64().map(|code| i32::try_from(code).unwrap()),
        signal,
    }
}
