//! `--since`: how far back a history goes.
//!
//! Owns its meaning: runs that ended within this time, or still run.

use crate::model::units::duration;
use crate::record::IndexEntry;

/// The moment from which on runs count, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Since(i64);

impl Since {
    /// Whether a run ended since then, or hasn't ended.
    pub fn keeps(self, run: &IndexEntry) -> bool {
        run.ended_ms().is_none_or(|ended| ended >= self.0)
    }

    /// As it is written in JSON.
    pub fn text(self) -> Option<String> {
        let at = jiff::Timestamp::from_millisecond(self.0).ok()?;
        Some(at.to_string())
    }
}

/// For clap: `7d`, `12h`.
pub fn since(text: &str) -> Result<Since, String> {
    let back = duration(text).map_err(|e| e.to_string())?;
    let now = jiff::Timestamp::now().as_millisecond();
    Ok(Since(now - back.as_millis() as i64))
}
