//! What a person reads off a display, and whether a mark says the same.

use gpuwatch::model::Mark;
use serde_json::Value;

/// What a field has to be.
#[derive(Debug)]
pub enum Expected {
    Number(f64),
    Between(f64, f64),
    Nan,
    Nothing,
}

impl Expected {
    /// As it is written down: a list is a range, a text a loss that is no number, null nothing.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Array(range) => Self::Between(
                range[0].as_f64().expect("a number"),
                range[1].as_f64().expect("a number"),
            ),
            Value::String(_) => Self::Nan,
            Value::Null => Self::Nothing,
            number => Self::Number(number.as_f64().expect("a number")),
        }
    }

    /// Whether this field of the mark says so; displays round.
    pub fn is_met(&self, mark: Option<&Mark>, field: &str) -> bool {
        let got = mark.and_then(|mark| value(mark, field));
        if matches!(self, Self::Nothing) {
            return got.is_none();
        }
        got.is_some_and(|got| match self {
            Self::Nothing => false,
            Self::Nan => got.is_nan(),
            Self::Between(low, high) => (*low..=*high).contains(&got),
            Self::Number(n) => (got - n).abs() <= (0.006 * n.abs()).max(1e-3),
        })
    }
}

/// A field by the name that expectations give it.
pub fn value(mark: &Mark, field: &str) -> Option<f64> {
    match field {
        "epoch" => mark.epoch,
        "epochs" => mark.epochs,
        "step" => mark.step.map(|n| n as f64),
        "steps" => mark.steps.map(|n| n as f64),
        "percent" => mark.percent,
        "loss" => mark.loss.map(|l| l.0),
        other => panic!("an unknown field is expected: {other}"),
    }
}
