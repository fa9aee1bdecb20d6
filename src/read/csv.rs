//! Rows of a CSV that a logger writes: a header of names, then numbers between commas.
//!
//! Owns such headers. Must not know what was read from earlier rows.

use super::reading::{EpochShown, Reading, StepShown};
use super::words::{self, Counts};
use crate::model::Phase;

/// A longer line is no row of a log.
const MOST: usize = 4096;
/// More columns than this are left out.
const COLUMNS: usize = 64;

/// The header that is in force.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Csv {
    names: Vec<String>,
    epoch: Option<usize>,
    step: Option<usize>,
    loss: Option<usize>,
}

impl Csv {
    /// The header, if this line is one: names alone, among them a counter and a measure.
    pub fn header(line: &str) -> Option<Self> {
        // Most lines with a comma are told by their first cells.
        let is_name = |cell: &str| cell.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !fields(line)?.all(is_name) {
            return None;
        }
        let names: Vec<String> = fields(line)?.map(str::to_owned).collect();
        let numbers = |name: &String| name.parse::<f64>().is_ok();
        if names.len() < 2 || names.len() > COLUMNS || names.iter().any(numbers) {
            return None;
        }
        let counter = |wanted: &[Counts]| {
            names.iter().position(|name| {
                words::counter(name).is_some_and(|(c, plural)| !plural && wanted.contains(&c))
            })
        };
        let epoch = counter(&[Counts::Epochs]);
        let step = counter(&[Counts::Steps]).or_else(|| counter(&[Counts::RunSteps]));
        let fits = names.iter().enumerate();
        let loss = fits.filter_map(|(i, name)| words::loss_fit(name).map(|fit| (fit, i)));
        let loss = loss.min().map(|(_, i)| i);
        let measured = loss.is_some() || names.iter().any(|name| words::is_measure(name));
        ((epoch.is_some() || step.is_some()) && measured).then_some(Self {
            names,
            epoch,
            step,
            loss,
        })
    }

    /// What a row says; None where the line is no row of this table.
    pub fn read(&self, line: &str) -> Option<Reading> {
        let cells: Vec<Option<f64>> = fields(line)?
            .map(|cell| match cell {
                "" => Some(None),
                cell => cell.parse().ok().map(Some),
            })
            .collect::<Option<_>>()?;
        if cells.len() != self.names.len() {
            return None;
        }
        let whole = |at: Option<usize>| at.and_then(|at| cells[at]).filter(|n| *n >= 0.0);
        let (epoch, step) = (whole(self.epoch), whole(self.step));
        if epoch.is_none() && step.is_none() {
            return None;
        }
        let metrics = self.names.iter().zip(&cells).enumerate();
        let metrics =
            metrics.filter(|(i, _)| ![self.epoch, self.step, self.loss].contains(&Some(*i)));
        Some(Reading {
            source: "table".into(),
            phase: Phase::Train,
            says_train: true,
            is_told: false,
            rank: None,
            epoch: epoch.map(|value| EpochShown {
                value,
                total: None,
                done: false,
                fractional: value.fract() != 0.0,
            }),
            step: step.map(|n| StepShown {
                n: n as u64,
                total: None,
                name: "step".to_owned(),
                bar: false,
                whole_run: false,
            }),
            percent: None,
            loss: self.loss.and_then(|at| cells[at]),
            metrics: metrics
                .filter_map(|(_, (name, cell))| Some((name.clone(), (*cell)?)))
                .collect(),
            rate: None,
            eta_s: None,
            redrawn: false,
            repeated: false,
        })
    }
}

/// The cells between commas; None where there are none.
fn fields(line: &str) -> Option<impl Iterator<Item = &str>> {
    let row = line.len() <= MOST && line.contains(',');
    row.then(|| {
        line.trim_start_matches(['#', ' '])
            .split(',')
            .map(|cell| cell.trim().trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_by_its_header() {
        let csv = Csv::header("epoch,step,train_loss,val_loss").unwrap();
        let row = csv.read("1,149,0.8012,").unwrap();
        assert_eq!(row.epoch.map(|e| e.value), Some(1.0));
        assert_eq!(row.step.map(|s| s.n), Some(149));
        assert_eq!(row.loss, Some(0.8012));
        assert!(csv.read("0,99,,0.8812").unwrap().loss.is_none());
        let spaced =
            Csv::header("#        Time,    Epoch,    Learning rate,    Train loss").unwrap();
        let row = spaced
            .read("   52.1203,        4,        1.000e-04,        0.3820")
            .unwrap();
        assert_eq!(
            (row.epoch.map(|e| e.value), row.loss),
            (Some(4.0), Some(0.382))
        );
        assert_eq!(spaced.read("1,2,3"), None);
        assert_eq!(spaced.read("1,2,3,x"), None);
    }

    #[test]
    fn other_tables_are_none() {
        for line in [
            "name,age,city",
            "epoch",
            "1,2,3",
            "epoch,name",
            "step,",
            "loss,accuracy",
            "Epochs, steps, loss",
            "for each epoch, the loss is shown",
        ] {
            assert_eq!(Csv::header(line), None, "{line}");
        }
    }
}
