//! A condition as text that parses to it again.

use crate::model::{Comparison, Condition};

/// The condition as an expression; numbers in base units.
pub fn text(condition: &Condition) -> String {
    match condition {
        Condition::Compare { term, op, number } => format!("{term} {} {number}", sign(*op)),
        Condition::Holds(term) => term.to_string(),
        // The right side of the same operator needs them too: it groups to the left.
        Condition::And(a, b) => format!("{} and {}", inside(a, 2), inside(b, 3)),
        Condition::Or(a, b) => format!("{} or {}", inside(a, 1), inside(b, 2)),
        Condition::Not(a) => format!("not {}", inside(a, 3)),
    }
}

/// In parentheses where it binds weaker than its place asks for.
fn inside(condition: &Condition, place: u8) -> String {
    let binds = match condition {
        Condition::Or(..) => 1,
        Condition::And(..) => 2,
        _ => 3,
    };
    if binds < place {
        format!("({})", text(condition))
    } else {
        text(condition)
    }
}

fn sign(op: Comparison) -> &'static str {
    match op {
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
        Comparison::Equal => "==",
        Comparison::NotEqual => "!=",
    }
}
