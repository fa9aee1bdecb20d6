//! A teller with channels, as the supervisor would start it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gpuwatch::act::Commands;
use gpuwatch::model::{
    AlertState, Channel, Event, Exit, FindingState, Hidden, Outcome, ProgressState, SecretRef,
    Severity, Stamp, Switch, TellSettings, Verdict, Webhook,
};
use gpuwatch::tell::{
    Channels, Edges, End, Finding, Happening, Kept, Outbox, RunFacts, Teller, Told,
};

use super::support::wait_until;

/// A word that stands in every secret of these tests, and nowhere else.
pub const SECRET: &str = "t0ken";

pub fn secret(text: &str) -> SecretRef {
    SecretRef::Literal(Hidden::new(text))
}

pub fn webhook(url: &str) -> Channel {
    Channel::Webhook(Webhook {
        url: secret(url),
        secret: None,
        template: None,
        secrets: BTreeMap::new(),
        headers: BTreeMap::new(),
    })
}

/// What a webhook may be told besides its address.
pub fn webhook_with(url: &str, change: impl FnOnce(&mut Webhook)) -> Channel {
    let Channel::Webhook(mut settings) = webhook(url) else {
        unreachable!()
    };
    change(&mut settings);
    Channel::Webhook(settings)
}

pub fn settings(channels: Vec<Channel>) -> TellSettings {
    TellSettings {
        channels: channels
            .into_iter()
            .enumerate()
            .map(|(i, channel)| (format!("c{i}"), channel))
            .collect(),
        desktop: Switch::Off,
        ..TellSettings::default()
    }
}

pub fn run_facts() -> RunFacts {
    RunFacts {
        id: "20261130-091502-train-7f3a".into(),
        name: "train".into(),
        argv: vec!["python".into(), "train.py".into()],
        user: Some("ana".into()),
        host: Some("gpu-01".into()),
        ..RunFacts::default()
    }
}

/// A run that is told of.
pub struct Run {
    teller: Teller,
    events: Arc<Mutex<Vec<Event>>>,
    folder: tempfile::TempDir,
}

impl Run {
    pub fn with(channels: Vec<Channel>) -> Self {
        Self::of(settings(channels), run_facts())
    }

    pub fn of(settings: TellSettings, facts: RunFacts) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let seen = Arc::clone(&events);
        let begun = Instant::now();
        let edges = Edges {
            clock: Box::new(move || Stamp {
                time: "2026-11-30T09:15:02.000+08:00".into(),
                elapsed_s: begun.elapsed().as_secs_f64(),
            }),
            report: Box::new(move |event| seen.lock().unwrap().push(event)),
            programs: Arc::new(Commands::default()),
            outbox: Some(Outbox::at(&folder.path().join("outbox"))),
            seat: None,
        };
        let channels = Channels::open(settings).unwrap();
        Self {
            teller: Teller::start(channels, facts, edges).unwrap(),
            events,
            folder,
        }
    }

    pub fn tell(&self, happening: Happening) {
        self.teller.tell(happening);
    }

    pub fn raise(&self, name: &str) {
        self.tell(finding(name, FindingState::Raised));
    }

    /// `channel about State`, for every alert so far.
    pub fn fates(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        events.iter().filter_map(fate).collect()
    }

    pub fn wait_for_fates(&self, n: usize) -> Vec<String> {
        wait_until("alerts are settled", || self.fates().len() >= n);
        self.fates()
    }

    /// Why alerts did not arrive.
    pub fn whys(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter_map(|event| match event {
                Event::Alert { why, .. } => why.clone(),
                _ => None,
            })
            .collect()
    }

    /// What is kept after this was raised and the run has ended.
    pub fn keep(self, finding: &str) -> Vec<Kept> {
        self.raise(finding);
        self.end().kept
    }

    /// The run ends; what became of it all.
    pub fn end(self) -> Ended {
        let begun = Instant::now();
        let told = self.teller.finish(Duration::from_secs(5));
        let took = begun.elapsed();
        let events = self.events.lock().unwrap().clone();
        let ended = Ended {
            told,
            took,
            events,
            kept: kept(&self.folder.path().join("outbox")),
            folder: self.folder,
        };
        ended.assert_no_secret();
        ended
    }
}

/// A run that was told of.
pub struct Ended {
    pub told: Told,
    pub took: Duration,
    pub events: Vec<Event>,
    pub kept: Vec<Kept>,
    folder: tempfile::TempDir,
}

impl Ended {
    pub fn fates(&self) -> Vec<String> {
        self.events.iter().filter_map(fate).collect()
    }

    fn assert_no_secret(&self) {
        let said = format!("{:?}{:?}", self.events, self.told);
        assert!(!said.contains(SECRET), "{said}");
        for file in super::support::files_below(self.folder.path()) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(!text.contains(SECRET), "{}: {text}", file.display());
        }
    }
}

fn kept(folder: &Path) -> Vec<Kept> {
    let (kept, problems) = Outbox::at(folder).list().unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    kept.into_iter().map(|(_, kept)| kept).collect()
}

fn fate(event: &Event) -> Option<String> {
    match event {
        Event::Alert {
            channel,
            about,
            state,
            ..
        } => Some(format!(
            "{channel} {about} {}",
            match state {
                AlertState::Sent => "sent",
                AlertState::Failed => "failed",
                AlertState::Kept => "kept",
                AlertState::Shown => "shown",
            }
        )),
        _ => None,
    }
}

pub fn finding(name: &str, state: FindingState) -> Happening {
    Happening::Finding {
        finding: Finding {
            name: name.into(),
            cause: None,
            because: None,
            since_s: 0.0,
            evidence: serde_json::Map::new(),
            advice: Some("look at the loader".into()),
        },
        severity: Severity::Critical,
        state,
        awaits_evidence: false,
    }
}

pub fn ended(code: i32) -> Happening {
    Happening::Ended(End {
        exit: Exit {
            code: Some(code),
            signal: None,
        },
        verdict: Verdict {
            outcome: Some(if code == 0 {
                Outcome::Ok
            } else {
                Outcome::Failed
            }),
            ..Verdict::default()
        },
    })
}

pub fn progress(step: u64, moved_s: f64) -> Happening {
    Happening::Progress {
        now: ProgressState {
            step: Some(step),
            steps: Some(1000),
            ..ProgressState::default()
        },
        moved_s: Some(moved_s),
    }
}
