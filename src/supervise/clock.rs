//! The run's clock: the edge at which wall and monotonic time are read, together.

use std::time::Instant;

use jiff::ZonedDateTime;

use crate::model::Stamp;

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

    /// Now.
    pub fn now(&self) -> Stamp {
        self.at(Instant::now())
    }

    /// An instant of which the wall time isn't known any more: that of now is moved back.
    pub fn at(&self, when: Instant) -> Stamp {
        let ago = when.elapsed();
        let wall = ZonedDateTime::now()
            .saturating_sub(jiff::SignedDuration::try_from(ago).unwrap_or_default());
        Stamp {
            time: rfc3339(&wall),
            elapsed_s: self.elapsed_s(when),
        }
    }

    /// Monotonic seconds from the start to an instant, to the millisecond.
    pub fn elapsed_s(&self, when: Instant) -> f64 {
        let ms = when.saturating_duration_since(self.start).as_millis();
        ms as f64 / 1000.0
    }
}

/// RFC 3339 with milliseconds and the local offset.
pub fn rfc3339(time: &ZonedDateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}
