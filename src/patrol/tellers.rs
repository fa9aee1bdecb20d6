//! Who is told: the administrator by the profile's channels, and the owner of each job.
//!
//! Owns that nobody but these two hears of a job. A gpuwatch that watches a run tells its user
//! itself, so of runs the administrator alone is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use nix::unistd::Uid;

use crate::act::Commands;
use crate::judge;
use crate::model::{
    Channel, Event, FindingState, OwnProcesses, PatrolSettings, Programs, Route, RunNews, Severity,
    Stamp, Switch, TellSettings,
};
use crate::supervise::RunClock;
use crate::tell::{Channels, Edges, Happening, Outbox, RunFacts, Teller};

use super::job::Job;

/// The hidden command that shows a message as the user that runs it.
pub const DELIVER: &str = "deliver";

/// All of them.
pub struct Tellers {
    settings: TellSettings,
    patrol: PatrolSettings,
    clock: RunClock,
    admin: Option<Teller>,
    owners: BTreeMap<u32, Teller>,
    events: (Sender<Event>, Receiver<Event>),
    problems: Vec<String>,
}

impl Tellers {
    /// The administrator's channels are open already.
    pub fn new(channels: Channels, patrol: PatrolSettings, clock: RunClock) -> Self {
        let mut tellers = Self {
            settings: channels.settings.clone(),
            patrol,
            clock,
            admin: None,
            owners: BTreeMap::new(),
            events: channel(),
            problems: Vec::new(),
        };
        if !channels.is_empty() {
            let programs = Arc::new(Commands::default());
            let outbox = Outbox::at_home();
            tellers.admin = tellers.start(channels, "the administrator", (programs, outbox));
        }
        tellers
    }

    /// What became of alerts since the last call.
    pub fn events(&self) -> Vec<Event> {
        self.events.1.try_iter().collect()
    }

    /// What went wrong since the last call.
    pub fn problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// The judge's word on a job; on the machine where there is none.
    /// `begun_s`: when the judge's seconds began, on the patrol's clock.
    pub fn tell(
        &mut self,
        job: Option<&Job>,
        facts: &Arc<RunFacts>,
        begun_s: f64,
        finding: &judge::Finding,
    ) {
        let mut finding = finding.clone();
        // Alerts count from the patrol's start.
        finding.since_s += begun_s;
        let Some(happening) = Happening::of_event(&finding.clone().into(), false) else {
            return;
        };
        let happening = Happening::Of {
            run: Arc::clone(facts),
            finding: Box::new(happening),
        };
        let owner = job
            .filter(|job| !job.group.is_watched())
            .map(|job| job.group.uid);
        if let Some(uid) = owner.filter(|uid| *uid != Uid::effective().as_raw()) {
            let alarm = finding.severity > Severity::Note;
            let user = job.map_or("", |job| &job.who.user);
            if !self.owners.contains_key(&uid) && alarm && finding.state == FindingState::Raised {
                self.meet(uid, user);
            }
            if let Some(teller) = self.owners.get(&uid) {
                teller.tell(happening.clone());
            }
        }
        if let Some(admin) = &self.admin {
            admin.tell(happening);
        }
    }

    /// This job is over.
    pub fn over(&self, facts: &RunFacts) {
        for teller in self.owners.values().chain(&self.admin) {
            teller.tell(Happening::Over(facts.id.clone()));
        }
    }

    /// The end: what was handed over before is still sent, within this time in all.
    pub fn finish(self, within: Duration) -> Vec<String> {
        let tellers = self.owners.into_values().chain(self.admin);
        // All at once: one that doesn't answer takes no time from the others.
        let ends: Vec<_> = tellers
            .map(|teller| {
                teller.tell(Happening::Closing);
                std::thread::spawn(move || teller.finish(within).problem())
            })
            .collect();
        ends.into_iter()
            .filter_map(|end| end.join().ok().flatten())
            .collect()
    }

    /// The first alarm of this user.
    fn meet(&mut self, uid: u32, user: &str) {
        let settings = self.owner_settings(uid, user);
        if settings.channels.is_empty() {
            return;
        }
        match Channels::open(settings) {
            Ok(channels) => {
                let programs = Arc::new(Commands::as_user(OwnProcesses::default(), uid));
                // What is kept for one owner must never go to another.
                let outbox = Outbox::at_home().map(|all| all.below(&format!("of-{uid}")));
                if let Some(teller) = self.start(channels, user, (programs, outbox)) {
                    self.owners.insert(uid, teller);
                }
            }
            Err(error) => self
                .problems
                .push(format!("{user} is told nothing: {error}")),
        }
    }

    /// The owner's own channels, and nobody else's.
    fn owner_settings(&self, uid: u32, user: &str) -> TellSettings {
        let mut channels = BTreeMap::new();
        let root = Uid::effective().is_root();
        if self.patrol.desktop && root && Commands::has_session(uid) {
            let argv = vec!["/proc/self/exe".to_owned(), DELIVER.to_owned()];
            channels.insert("desktop".to_owned(), Channel::Command { argv });
        }
        let named = user.parse::<u32>().is_err();
        let by = self
            .patrol
            .mail
            .as_ref()
            .and_then(|name| self.settings.channels.get(name));
        if let (Some(Channel::Email { url, from, .. }), Some(domain), true) =
            (by, &self.patrol.domain, named)
        {
            let email = Channel::Email {
                url: url.clone(),
                from: from.clone(),
                to: vec![format!("{user}@{domain}")],
            };
            channels.insert("mail".to_owned(), email);
        }
        let alarms = Route {
            severity: Severity::Warning,
            findings: Vec::new(),
            runs: RunNews::Never,
            to: channels.keys().cloned().collect(),
        };
        TellSettings {
            language: self.settings.language,
            routes: vec![alarms],
            repeat: self.settings.repeat,
            desktop: Switch::Off,
            channels,
            texts: self.settings.texts.clone(),
            dry_run: false,
        }
    }

    fn start(
        &mut self,
        channels: Channels,
        who: &str,
        (programs, outbox): (Arc<dyn Programs>, Option<Outbox>),
    ) -> Option<Teller> {
        let (clock, events) = (self.clock.clone(), self.events.0.clone());
        let to = who.to_owned();
        let edges = Edges {
            clock: Box::new(move || -> Stamp { clock.now() }),
            report: Box::new(move |event| {
                // Nobody listens any more once the patrol has ended.
                let _ = events.send(named(event, &to));
            }),
            programs,
            outbox,
            seat: None,
        };
        match Teller::start(channels, RunFacts::default(), edges) {
            Ok(teller) => Some(teller),
            Err(error) => {
                let text = format!("{who} is told nothing: no thread to be had: {error}");
                self.problems.push(text);
                None
            }
        }
    }
}

/// Whose channel it was.
fn named(event: Event, who: &str) -> Event {
    match event {
        Event::Alert {
            channel,
            about,
            state,
            why,
        } => Event::Alert {
            channel: format!("{channel} of {who}"),
            about,
            state,
            why,
        },
        other => other,
    }
}
