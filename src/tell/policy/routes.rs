//! Which channels hear of what.

use crate::model::{Channel, Route, RunNews, Severity, TellSettings};

/// The name of the desktop that hears alarms without being a channel of a profile.
pub const DESKTOP: &str = "desktop";

/// The routes of a profile; where it has none, every channel has one.
#[derive(Clone, Debug, Default)]
pub struct Routes(Vec<Route>);

impl Routes {
    /// Without routes every channel hears alarms and the run's end; the desktop, if it is told
    /// besides, alarms alone.
    pub fn new(settings: &TellSettings, desktop: bool) -> Self {
        let mut routes = settings.routes.clone();
        // A switch hears of life and of the end, and of nothing else.
        let hears =
            |name: &String| !matches!(settings.channels.get(name), Some(Channel::Heartbeat { .. }));
        for route in &mut routes {
            route.to.retain(hears);
        }
        let alarms = |name: &str, runs| Route {
            severity: Severity::Warning,
            findings: Vec::new(),
            runs,
            to: vec![name.to_owned()],
        };
        if routes.is_empty() {
            let all = settings.channels.keys().filter(|name| hears(name));
            routes.extend(all.map(|name| alarms(name, RunNews::Always)));
        }
        if desktop && Self::desktop_is_free(settings) {
            routes.push(alarms(DESKTOP, RunNews::Never));
        }
        Self(routes)
    }

    /// Whether the desktop isn't a channel already, and its name isn't another's.
    pub fn desktop_is_free(settings: &TellSettings) -> bool {
        !settings
            .channels
            .iter()
            .any(|(name, channel)| name == DESKTOP || matches!(channel, Channel::Desktop))
    }

    /// Who hears of a finding.
    pub fn of_finding(&self, name: &str, severity: Severity) -> Vec<String> {
        self.channels(|route| {
            let named = route.findings.is_empty() || route.findings.iter().any(|f| f == name);
            named && severity >= route.severity
        })
    }

    /// Who hears of a run's start: only who hears everything.
    pub fn of_start(&self) -> Vec<String> {
        self.channels(|r| r.runs == RunNews::Always && r.severity == Severity::Note)
    }

    /// Who hears of a run's end.
    pub fn of_end(&self, well: bool) -> Vec<String> {
        self.channels(|route| match route.runs {
            RunNews::Always => true,
            RunNews::Failed => !well,
            RunNews::Never => false,
        })
    }

    /// Each channel once, sorted.
    fn channels(&self, takes: impl Fn(&Route) -> bool) -> Vec<String> {
        let routes = self.0.iter().filter(|route| takes(route));
        let mut names: Vec<String> = routes.flat_map(|route| route.to.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}
