//! The run's clock: the edge at which wall and monotonic time are read, together.

use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};
use rustix::time::{ClockId, clock_gettime};

use crate::model::{Event, Stamp};

/// Clocks are compared once a sample; less than this is the time that the comparison takes.
const NOTICEABLE_S: f64 = 1.0;

/// Made when the run starts; every stamp of the run comes from it.
#[derive(Clone, Debug)]
pub struct RunClock {
    start: Instant,
}

impl RunClock {
    /// Starts now.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// The wall time of the start.
    pub fn started(&self) -> String {
        self.at(self.start).time
    }

    /// Now.
    pub fn now(&self) -> Stamp {
        self.at(Instant::now())
    }

    /// An instant of the past. Its wall time is now's, moved back.
    pub fn at(&self, when: Instant) -> Stamp {
        let ago = SignedDuration::try_from(when.elapsed()).unwrap_or_default();
        let wall = zoned_now().saturating_sub(ago);
        Stamp {
            time: rfc3339(&wall),
            elapsed_s: self.elapsed_s(when),
        }
    }

    /// Monotonic seconds from the start to an instant, to the millisecond; time in suspend
    /// is left out (Linux's `CLOCK_MONOTONIC` stands still then).
    pub fn elapsed_s(&self, when: Instant) -> f64 {
        let ms = when.saturating_duration_since(self.start).as_millis();
        ms as f64 / 1000.0
    }
}

/// The wall time, RFC 3339 with milliseconds and the local offset.
pub fn wall_now() -> String {
    rfc3339(&zoned_now())
}

fn zoned_now() -> ZonedDateTime {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let zone = ZONE.get_or_init(|| zone_file().unwrap_or_else(TimeZone::system));
    Timestamp::now().to_zoned_datetime(zone.clone())
}

/// The local time zone from the one file that says it (tzset(3)). jiff would first list the
/// whole zone database for a name that nobody asks for, which costs as much as our start.
fn zone_file() -> Option<TimeZone> {
    let path = match env::var_os("TZ") {
        None => PathBuf::from("/etc/localtime"),
        Some(zone) => {
            let zone = zone.to_str()?;
            named_zone(Path::new(zone.strip_prefix(':').unwrap_or(zone)))?
        }
    };
    TimeZone::tzif("", &fs::read(path).ok()?).ok()
}

/// None for a name that leads out of the database, or is none: those are left to jiff.
fn named_zone(name: &Path) -> Option<PathBuf> {
    let mut parts = name.components().peekable();
    parts.peek()?;
    let inside = parts.all(|part| matches!(part, Component::Normal(_)));
    (inside || name.is_absolute()).then(|| Path::new("/usr/share/zoneinfo").join(name))
}

fn rfc3339(time: &ZonedDateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}

/// Notices when the clocks move apart: the machine slept, or the wall clock was set.
#[derive(Debug)]
pub struct Drift {
    asleep_s: f64,
    wall_s: f64,
}

impl Default for Drift {
    fn default() -> Self {
        Self::read()
    }
}

impl Drift {
    fn read() -> Self {
        let seconds = |id| {
            let time = clock_gettime(id);
            Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32).as_secs_f64()
        };
        let boot = seconds(ClockId::Boottime);
        // The same clock as the stamps'; before 1970 it is as good as 1970.
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            asleep_s: boot - seconds(ClockId::Monotonic),
            // Against the clock that counts sleep, or every suspend would look like a step.
            wall_s: wall.as_secs_f64() - boot,
        }
    }

    /// What moved since the last look.
    pub fn look(&mut self) -> Option<Event> {
        let now = Self::read();
        let before = std::mem::replace(self, now);
        let noticed = |seconds: f64| {
            (seconds.abs() >= NOTICEABLE_S).then(|| (seconds * 1000.0).round() / 1000.0)
        };
        let suspended_s = noticed(self.asleep_s - before.asleep_s);
        let step_s = noticed(self.wall_s - before.wall_s);
        (suspended_s.is_some() || step_s.is_some()).then_some(Event::Clock {
            suspended_s,
            step_s,
        })
    }
}
