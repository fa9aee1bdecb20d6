//! The library's memory between calls: the scenario as last read, counters, what is due.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::live::{self, Live};
use crate::scenario::Scenario;

/// How long what the processes' files said may be used again.
const LIVE_FOR: Duration = Duration::from_millis(10);

/// Everything that outlives a call.
pub struct State {
    /// How often the caller initialised minus how often it shut down.
    pub initialised: u32,
    /// When it first did.
    pub since: Option<Instant>,
    /// Calls that a fault concerned, by the fault's place in the scenario.
    pub concerned: BTreeMap<usize, u64>,
    /// What GPUs have counted up.
    pub counters: BTreeMap<u32, Counters>,
    /// Places of the scenario's XIDs that were delivered.
    pub delivered: Vec<usize>,
    seen: Option<Identity>,
    scenario: Option<Arc<Scenario>>,
    live: Option<(Instant, Arc<Vec<Live>>)>,
}

/// Tells one version of a file from another: device, inode, change time.
type Identity = (u64, u64, i64, i64);

/// Integrals over time of one GPU.
#[derive(Clone, Copy, Default)]
pub struct Counters {
    pub energy_j: f64,
    pub pcie_bytes: f64,
    pub at: Option<Instant>,
}

static STATE: Mutex<State> = Mutex::new(State {
    initialised: 0,
    since: None,
    concerned: BTreeMap::new(),
    counters: BTreeMap::new(),
    delivered: Vec::new(),
    seen: None,
    scenario: None,
    live: None,
});

/// The state. Never hold it while a fault hangs or sleeps: other calls go on in a real driver.
pub fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file that `FAKE_NVML_SCENARIO` names.
pub fn scenario_path() -> Option<PathBuf> {
    env::var_os("FAKE_NVML_SCENARIO").map(PathBuf::from)
}

impl State {
    /// The scenario, read again if its file is another one than last time.
    ///
    /// A file that can't be read or parsed leaves the last good one in force; without any,
    /// the machine has a driver and no GPU.
    pub fn scenario(&mut self) -> Arc<Scenario> {
        let identity = scenario_path()
            .and_then(|p| fs::metadata(p).ok())
            .map(|m| (m.dev(), m.ino(), m.ctime(), m.ctime_nsec()));
        if identity.is_some() && identity != self.seen {
            let parsed = scenario_path()
                .and_then(|p| fs::read(p).ok())
                .and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if let Some(scenario) = parsed {
                self.scenario = Some(Arc::new(scenario));
                self.concerned.clear();
            }
            self.seen = identity;
        }
        Arc::clone(self.scenario.get_or_insert_default())
    }

    /// What live processes say they hold and use.
    pub fn live(&mut self) -> Arc<Vec<Live>> {
        if let Some((at, live)) = &self.live
            && at.elapsed() < LIVE_FOR
        {
            return Arc::clone(live);
        }
        let dir = scenario_path().map(|p| live::directory(&p));
        let live = Arc::new(dir.map(|d| live::read(&d)).unwrap_or_default());
        self.live = Some((Instant::now(), Arc::clone(&live)));
        live
    }

    /// Seconds since the library was initialised.
    pub fn elapsed_s(&self) -> f64 {
        self.since.map_or(0.0, |s| s.elapsed().as_secs_f64())
    }
}
