//! A mean over the last so many seconds.
//!
//! Owns the window and when readings have been missing for too long to speak of it.

use std::collections::VecDeque;

/// Without readings for so long a window begins anew, seconds.
const BLIND_S: f64 = 60.0;

/// A mean over a window of time.
#[derive(Clone, Debug, Default)]
pub struct Mean {
    entries: VecDeque<(f64, f64)>,
    seconds: f64,
    sum: f64,
    blind_s: f64,
}

impl Mean {
    /// The value that held for the last `dt` seconds; the window is `length` seconds long.
    pub fn push(&mut self, dt: f64, value: Option<f64>, length: f64) {
        let Some(value) = value else {
            self.blind_s += dt;
            if self.blind_s > BLIND_S {
                *self = Self::default();
            }
            return;
        };
        self.blind_s = 0.0;
        if dt <= 0.0 {
            return;
        }
        self.entries.push_back((dt, value));
        self.seconds += dt;
        self.sum += dt * value;
        while let Some((dt, value)) = self.entries.front().copied()
            && self.seconds - dt >= length
        {
            self.entries.pop_front();
            self.seconds -= dt;
            self.sum -= dt * value;
        }
    }

    /// The mean, once the window is full.
    pub fn mean(&self, length: f64) -> Option<f64> {
        // A sum of tenths may miss a whole number by its rounding.
        (self.seconds >= length - 1e-6 && self.seconds > 0.0).then(|| self.sum / self.seconds)
    }

    /// The mean of what there is, if that is at least so many seconds.
    pub fn partial(&self, least: f64) -> Option<f64> {
        (self.seconds >= least && self.seconds > 0.0).then(|| self.sum / self.seconds)
    }
}
