//! Values in a rule's message: `say: "only {gpu.util}"`.
//!
//! Owns which text in braces is one, and what is said about a wrong one. Pure.

use super::{Names, Scope, parse};
use crate::model::{Condition, Term, filled};

/// A message with each value in braces as its condition has it. Braces around anything that
/// can't be a value are text like any other.
///
/// # Errors
/// The first that the condition doesn't compare, and what may stand there.
pub fn say(text: &str, condition: &Condition) -> Result<String, String> {
    let terms = condition.terms().into_iter();
    let known: Vec<&Term> = terms.filter(|t| !t.name.starts_with("finding.")).collect();
    let mut wrong = None;
    let said = filled(text, |inner| {
        if !may_be_a_value(inner) {
            return None;
        }
        match named(inner) {
            Ok(term) if known.contains(&&term) => return Some(format!("{{{term}}}")),
            Ok(_) => {
                let terms: Vec<String> = known.iter().map(|term| format!("{{{term}}}")).collect();
                let what = format!("'when' doesn't compare it, but {}", terms.join(", "));
                wrong.get_or_insert(format!("'{{{inner}}}': {what}"));
            }
            Err(what) => {
                wrong.get_or_insert(format!("'{{{inner}}}': {what}"));
            }
        }
        None
    });
    wrong.map_or(Ok(said), Err)
}

/// A dotted name, or a function of one.
fn may_be_a_value(inner: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-(),".contains(&b);
    let named = inner.starts_with(|c: char| c.is_ascii_alphabetic());
    named && inner.contains('.') && inner.bytes().all(plain)
}

fn named(inner: &str) -> Result<Term, String> {
    let names = Names {
        scope: Scope::Rules,
        findings: &[],
    };
    match parse(&format!("{inner} > 0"), names) {
        Ok(Condition::Compare { term, .. }) => Ok(term),
        Ok(_) => Err("this is no value".to_owned()),
        Err(error) => Err(error.what),
    }
}
