//! A run's samples and events as one stream, in the order in which a judge is fed.
//!
//! Owns that order, for records that are read back ([`Replay`]) and for a run that is being
//! recorded ([`Sequencer`]): events come in the file's order, each before the first sample
//! that is later than it. Must not know what anything means.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use super::error::RecordError;
use super::events::EventReader;
use super::load::read_run;
use super::samples::{Rows, SampleReader};
use crate::model::{Event, Logged, RunRecord, Sample, Stamp};

/// One entry of the stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Recorded {
    /// One tick.
    Sample(Box<Sample>),
    /// One event. Findings, alerts and actions, which came of judging, are left out.
    Event(Box<Logged>),
}

/// Reads a run's stream. `samples.csv`, or what became of it, alone is
/// required.
pub struct Replay {
    record: Option<RunRecord>,
    samples: SampleReader<Rows>,
    events: Option<EventReader<BufReader<File>>>,
    sample: Option<Box<Sample>>,
    event: Option<Box<Logged>>,
    tells_framework: bool,
}

impl Replay {
    /// Opens a run's directory.
    ///
    /// # Errors
    /// No `samples.csv`, or a file that is there and can't be read.
    pub fn open(run_dir: &Path) -> Result<Self, RecordError> {
        let record = optional(read_run(run_dir))?;
        let gpus = record.as_ref().map_or(&[][..], |r| &r.gpus);
        let mut replay = Self {
            samples: SampleReader::open(run_dir, gpus)?,
            events: optional(EventReader::open(run_dir))?,
            record,
            sample: None,
            event: None,
            tells_framework: tells_framework(run_dir)?,
        };
        replay.next_event()?;
        replay.next_sample()?;
        Ok(replay)
    }

    /// `run.json`, if there is one.
    pub fn record(&self) -> Option<&RunRecord> {
        self.record.as_ref()
    }

    /// Whether an event tells the framework. `run.json` has it as it was known in the end, which a
    /// judge may not know before.
    pub fn tells_framework(&self) -> bool {
        self.tells_framework
    }

    fn next_sample(&mut self) -> Result<(), RecordError> {
        self.sample = self.samples.next().transpose()?.map(Box::new);
        Ok(())
    }

    fn next_event(&mut self) -> Result<(), RecordError> {
        let Some(events) = &mut self.events else {
            return Ok(());
        };
        let seen = |read: &Result<Logged, RecordError>| {
            read.as_ref()
                .map_or(true, |logged| !logged.event.is_judged())
        };
        self.event = events.find(seen).transpose()?.map(Box::new);
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Recorded>, RecordError> {
        let event_first = match (&self.event, &self.sample) {
            (Some(event), Some(sample)) => event.stamp.elapsed_s <= sample.stamp.elapsed_s,
            (event, _) => event.is_some(),
        };
        if event_first {
            let event = self.event.take();
            self.next_event()?;
            return Ok(event.map(Recorded::Event));
        }
        let sample = self.sample.take();
        if sample.is_some() {
            self.next_sample()?;
        }
        Ok(sample.map(Recorded::Sample))
    }
}

impl Iterator for Replay {
    type Item = Result<Recorded, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

fn tells_framework(run_dir: &Path) -> Result<bool, RecordError> {
    let Some(mut events) = optional(EventReader::open(run_dir))? else {
        return Ok(false);
    };
    // What can't be read is said when the entries are.
    Ok(events.any(|read| read.is_ok_and(|l| matches!(l.event, Event::Framework { .. }))))
}

fn optional<T>(read: Result<T, RecordError>) -> Result<Option<T>, RecordError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(RecordError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Stamps the samples and events of a live run so that [`Replay`] will give them in the order
/// in which they are written and fed.
///
/// They come from several threads. One that is stamped earlier than what stands before it is
/// stamped like that, and after a sample a millisecond later: so it is recorded, and so it
/// will be replayed.
#[derive(Clone, Debug, Default)]
pub struct Sequencer {
    last: Stamp,
    after_sample: bool,
}

impl Sequencer {
    /// The stamp of the last entry.
    pub fn last(&self) -> &Stamp {
        &self.last
    }

    /// A sample comes next.
    pub fn sample(&mut self, stamp: &mut Stamp) {
        self.next(stamp);
        self.after_sample = true;
    }

    /// An event comes next.
    pub fn event(&mut self, stamp: &mut Stamp) {
        self.next(stamp);
        self.after_sample = false;
    }

    fn next(&mut self, stamp: &mut Stamp) {
        let ms = (self.last.elapsed_s * 1000.0).round() + if self.after_sample { 1.0 } else { 0.0 };
        let earliest = ms / 1000.0;
        if stamp.elapsed_s < earliest {
            stamp.time.clone_from(&self.last.time);
            stamp.elapsed_s = earliest;
        }
        self.last.clone_from(stamp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Event;
    use crate::record::{EventWriter, SampleWriter};

    fn stamp(elapsed_s: f64) -> Stamp {
        Stamp {
            time: String::new(),
            elapsed_s,
        }
    }

    fn sample(elapsed_s: f64) -> Sample {
        Sample {
            stamp: stamp(elapsed_s),
            ..Sample::default()
        }
    }

    fn event(elapsed_s: f64, event: Event) -> Logged {
        Logged {
            stamp: stamp(elapsed_s),
            event,
        }
    }

    fn order(dir: &Path) -> Vec<String> {
        let show = |r: Result<Recorded, RecordError>| match r.unwrap() {
            Recorded::Sample(s) => format!("s{}", s.stamp.elapsed_s),
            Recorded::Event(e) => format!("e{}", e.stamp.elapsed_s),
        };
        Replay::open(dir).unwrap().map(show).collect()
    }

    /// A reader that is off by the last bit would judge a record otherwise than the run.
    #[test]
    fn numbers_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut events = EventWriter::create(dir.path()).unwrap();
        let times = [
            0.3,
            1.7,
            8.41,
            1234.567,
            604_799.999,
            1.111_111_111_111_111e81,
        ];
        for time in times {
            events
                .append(&event(time, Event::Host { oom_kill: 1 }))
                .unwrap();
        }
        SampleWriter::create(dir.path()).unwrap();
        let read: Vec<f64> = Replay::open(dir.path())
            .unwrap()
            .map(|entry| match entry.unwrap() {
                Recorded::Event(event) => event.stamp.elapsed_s,
                Recorded::Sample(sample) => sample.stamp.elapsed_s,
            })
            .collect();
        assert_eq!(read, times);
    }

    #[test]
    fn events_come_before_the_first_later_sample() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Replay::open(dir.path()).is_err());
        let mut samples = SampleWriter::create(dir.path()).unwrap();
        for t in [1.0, 2.0, 3.0] {
            samples.append(&sample(t)).unwrap();
        }
        assert_eq!(order(dir.path()), ["s1", "s2", "s3"]);
        let mut events = EventWriter::create(dir.path()).unwrap();
        let finding = Event::Action {
            what: "stacks".into(),
            result: String::new(),
        };
        for e in [
            event(0.5, Event::Started { pid: 1 }),
            event(2.5, finding),
            event(2.0, Event::Host { oom_kill: 1 }),
            event(1.5, Event::Host { oom_kill: 2 }),
            event(9.0, Event::Host { oom_kill: 3 }),
        ] {
            events.append(&e).unwrap();
        }
        assert_eq!(
            order(dir.path()),
            ["e0.5", "s1", "e2", "e1.5", "s2", "s3", "e9"]
        );
    }

    #[test]
    fn whether_events_tell_the_framework_is_known_at_once() {
        let dir = tempfile::tempdir().unwrap();
        SampleWriter::create(dir.path()).unwrap();
        let tells = || Replay::open(dir.path()).unwrap().tells_framework();
        assert!(!tells());
        let mut events = EventWriter::create(dir.path()).unwrap();
        events
            .append(&event(0.0, Event::Started { pid: 1 }))
            .unwrap();
        assert!(!tells());
        let framework = Event::Framework {
            name: "jax".to_owned(),
            gpu: None,
            why: String::new(),
        };
        events.append(&event(9.0, framework)).unwrap();
        assert!(tells());
    }

    #[test]
    fn a_live_run_is_fed_in_the_order_of_its_replay() {
        let dir = tempfile::tempdir().unwrap();
        let mut samples = SampleWriter::create(dir.path()).unwrap();
        let mut events = EventWriter::create(dir.path()).unwrap();
        let mut fed = Vec::new();
        let mut sequencer = Sequencer::default();
        // What comes: samples, and events at, before and long before them.
        for (is_sample, t) in [
            (true, 1.0),
            (false, 1.0),
            (false, 0.9),
            (true, 2.0),
            (true, 2.0),
            (false, 0.8),
            (false, 2.1),
            (false, 3.5),
            (true, 3.0),
            (false, 2.2),
            (true, 4.0),
            (false, 4.0),
            (false, 3.0),
        ] {
            let mut stamp = stamp(t);
            if is_sample {
                sequencer.sample(&mut stamp);
                fed.push(format!("s{}", stamp.elapsed_s));
                samples.append(&sample(stamp.elapsed_s)).unwrap();
            } else {
                sequencer.event(&mut stamp);
                fed.push(format!("e{}", stamp.elapsed_s));
                let logged = event(stamp.elapsed_s, Event::Host { oom_kill: 1 });
                events.append(&logged).unwrap();
            }
        }
        assert_eq!(fed.get(..4).unwrap(), ["s1", "e1.001", "e1.001", "s2"]);
        assert_eq!(order(dir.path()), fed);
    }
}
