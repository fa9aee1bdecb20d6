//! Tables: a header that names the columns, then rows of numbers.
//!
//! Owns the header. Must not know what was read from earlier rows.

use super::token::{Kind, Token};
use super::values::Value;
use super::words::{self, Counts};

/// The header of a table that is being printed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    columns: Vec<String>,
    epoch: Option<usize>,
    step: Option<usize>,
}

impl Table {
    /// The header, if this line is one: its first column is a counter and another a measure.
    pub fn header(tokens: &[Token<'_>]) -> Option<Self> {
        let mut columns: Vec<String> = Vec::new();
        let mut parted = false;
        for t in tokens {
            if t.is('|') {
                parted = true;
                continue;
            }
            match columns.last_mut() {
                Some(cell) if t.blanks < 2 && !std::mem::take(&mut parted) => {
                    if t.gap {
                        cell.push(' ');
                    }
                    cell.push_str(t.text);
                }
                _ => columns.push(t.text.to_owned()),
            }
        }
        let loss = columns.iter().any(|c| c.to_lowercase().contains("loss"));
        let measured = loss || columns.iter().any(|c| words::is_measure(c));
        if columns.len() < 2 || (columns.len() == 2 && !loss) || !measured {
            return None;
        }
        let find = |wanted: Counts, short: &str| {
            columns.iter().take(2).position(|c| {
                words::counter(c).is_some_and(|(counts, _)| counts == wanted)
                    || (loss && c == short)
            })
        };
        let (epoch, step) = (find(Counts::Epochs, "E"), find(Counts::Steps, "#"));
        if epoch.or(step) != Some(0) && step != Some(0) {
            return None;
        }
        Some(Self {
            columns,
            epoch,
            step,
        })
    }

    /// Whether a line is a row: numbers in as many cells as there are columns, and nothing
    /// behind them but a bar.
    pub fn fits(&self, tokens: &[Token<'_>]) -> bool {
        let cells = cells(tokens);
        let numeric = cells
            .iter()
            .take(self.columns.len())
            .all(|c| is_value(&tokens[*c]));
        let exact = cells.len() == self.columns.len();
        let barred = cells.len() > self.columns.len() && tokens.iter().any(|t| t.kind == Kind::Bar);
        numeric && (exact || barred) && matches!(tokens[cells[0]].kind, Kind::Int(_))
    }

    /// The epoch of a row, and its total.
    pub fn epoch(&self, tokens: &[Token<'_>]) -> Option<(f64, Option<f64>)> {
        let at = *cells(tokens).get(self.epoch?)?;
        let total = tokens
            .get(at + 2)
            .filter(|t| tokens[at + 1].is('/') && !t.gap)
            .and_then(Token::number);
        Some((tokens[at].number()?, total))
    }

    /// The step of a row.
    pub fn step(&self, tokens: &[Token<'_>]) -> Option<u64> {
        let at = *cells(tokens).get(self.step?)?;
        tokens[at].number().filter(|n| *n >= 0.0).map(|n| n as u64)
    }

    /// The other columns of a row.
    pub fn values(&self, tokens: &[Token<'_>]) -> Vec<Value> {
        let named = self.columns.iter().zip(cells(tokens)).enumerate();
        named
            .filter(|(i, _)| Some(*i) != self.epoch && Some(*i) != self.step)
            .filter_map(|(_, (name, at))| {
                let number = tokens[at].number().filter(|_| tokens[at].unit.is_empty())?;
                Some(Value {
                    name: name.clone(),
                    number,
                    first: at,
                    at,
                    separated: true,
                })
            })
            .collect()
    }
}

/// The first token of each cell: what whitespace parts.
fn cells(tokens: &[Token<'_>]) -> Vec<usize> {
    (0..tokens.len())
        .filter(|i| tokens[*i].gap && !tokens[*i].is('|'))
        .collect()
}

fn is_value(token: &Token<'_>) -> bool {
    matches!(
        token.kind,
        Kind::Int(_) | Kind::Float(_) | Kind::Percent(_) | Kind::Clock(_) | Kind::Mark('-' | '+')
    )
}
