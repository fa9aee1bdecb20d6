//! What is done to the job because of a finding.

use crate::launch::signals;
use crate::supervise::state::{Deed, Order};

use super::Run;

impl Run {
    /// To the main process alone, as the user's own `kill` would be.
    pub(super) fn send_for(&self, order: &Order) {
        let Deed::Signal(name) = order.deed else {
            return;
        };
        let Some(signal) = signals::number(name) else {
            return;
        };
        let (pid, finding) = (self.child.pid(), &order.finding);
        let mut result = format!("{name} to PID {pid}, because of {finding}");
        if let Err(error) = self.child.order(signal) {
            result = format!("{result}: {error}");
        }
        self.watchers.act("signal", result);
    }
}
