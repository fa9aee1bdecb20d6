//! What expressions mean, what is said about wrong ones, and that no text is too odd.

use proptest::prelude::*;

use super::{Names, Scope, parse, text};
use crate::model::names::{FINDINGS, NAMES};
use crate::model::{Comparison, Condition};

const RULES: Names<'_> = Names {
    scope: Scope::Rules,
    findings: &[],
};

fn compare(name: &str, op: Comparison, number: f64) -> Condition {
    Condition::Compare {
        name: name.to_owned(),
        op,
        number,
    }
}

fn said(expression: &str) -> String {
    parse(expression, RULES).unwrap_err().to_string()
}

#[test]
fn units_become_base_units() {
    use Comparison::{Greater, GreaterOrEqual, Less};
    for (expression, meant) in [
        ("gpu.util < 20", compare("gpu.util", Less, 20.0)),
        ("gpu.util<20%", compare("gpu.util", Less, 20.0)),
        ("gpu.util < 20 %", compare("gpu.util", Less, 20.0)),
        ("job.mem > 1GiB", compare("job.mem", Greater, 1024.0)),
        ("job.mem > 1.5 GiB", compare("job.mem", Greater, 1536.0)),
        ("job.mem > 300 MiB", compare("job.mem", Greater, 300.0)),
        (
            "progress.age >= 2m",
            compare("progress.age", GreaterOrEqual, 120.0),
        ),
        (
            "progress.age > 1h",
            compare("progress.age", Greater, 3600.0),
        ),
        ("gpu.power > 250W", compare("gpu.power", Greater, 250.0)),
        ("gpu.temp > 85C", compare("gpu.temp", Greater, 85.0)),
        (
            "progress.loss > 1e-3",
            compare("progress.loss", Greater, 0.001),
        ),
        (
            "progress.loss > -1",
            compare("progress.loss", Greater, -1.0),
        ),
    ] {
        assert_eq!(parse(expression, RULES), Ok(meant), "{expression}");
    }
}

#[test]
fn not_binds_closest_and_or_last() {
    let a = || compare("gpu.util", Comparison::Less, 20.0);
    let b = || Condition::Holds("finding.stalled".to_owned());
    let c = || compare("gpu.temp", Comparison::NotEqual, 0.0);
    let and = |x, y| Condition::And(Box::new(x), Box::new(y));
    let or = |x, y| Condition::Or(Box::new(x), Box::new(y));
    let not = |x| Condition::Not(Box::new(x));
    let (at, bt, ct) = ("gpu.util < 20", "finding.stalled", "gpu.temp != 0");
    for (expression, meant) in [
        (format!("{at} or {bt} and {ct}"), or(a(), and(b(), c()))),
        (format!("({at} or {bt}) and {ct}"), and(or(a(), b()), c())),
        (format!("not {bt} and {ct}"), and(not(b()), c())),
        (format!("not ({bt} and {ct})"), not(and(b(), c()))),
        (format!("{at} and {bt} and {ct}"), and(and(a(), b()), c())),
        (format!("not not {bt}"), not(not(b()))),
        (format!("{at}\n  and {bt}"), and(a(), b())),
    ] {
        assert_eq!(parse(&expression, RULES), Ok(meant), "{expression}");
    }
}

#[test]
fn a_mistake_is_underlined_and_the_right_name_given() {
    assert_eq!(
        said("job.mem > 1GiB and gpu.utl < 20"),
        "there is no value 'gpu.utl'; did you mean 'gpu.util'?\n\
         job.mem > 1GiB and gpu.utl < 20\n\
         \x20                  ^^^^^^^"
    );
    assert_eq!(
        said("gpu.util < 20GiB"),
        "'gpu.util' is in %: 'GiB' is no unit of it\n\
         gpu.util < 20GiB\n\
         \x20          ^^^^^"
    );
    for (expression, part) in [
        ("", "a condition is missing here"),
        ("gpu.util <", "a number is missing here"),
        ("gpu.util", "must be compared with a number"),
        ("gpu.util < gpu.mem", "a number must stand here"),
        ("20 < gpu.util", "a name must come first"),
        ("gpu.util = 20", "write '==' for '='"),
        ("gpu.util < 2 && gpu.mem > 1", "write 'and' for '&&'"),
        ("(gpu.util < 2", "this '(' is never closed"),
        ("gpu.util < 2)", "must stand between two conditions"),
        (
            "gpu.util < 2 gpu.mem > 1",
            "must stand between two conditions",
        ),
        (
            "gpu.util < 2 andd gpu.mem > 1",
            "must stand between two conditions",
        ),
        ("and gpu.util < 2", "missing before 'and'"),
        ("gpu.util < 1.2.3", "this is no number"),
        ("gpu.util < 1e999", "this is no number"),
        ("progress.step > 5s", "is a plain number"),
        ("progress.age > 5d", "is in s or m or h"),
        ("finding.stalled > 1", "is true or false"),
        ("finding.stalld", "did you mean 'finding.stalled'?"),
        ("gpu.util.mean < 2", "is a value of 'fail_if'"),
        ("horses > 2", "known are gpu.util"),
        ("gpu.util < 2 # why", "means nothing here"),
    ] {
        let said = said(expression);
        assert!(said.contains(part), "{expression}: {said}");
    }
}

#[test]
fn gates_speak_of_the_whole_run_and_of_own_rules() {
    let own = ["low_util".to_owned()];
    let names = Names {
        scope: Scope::Gates,
        findings: &own,
    };
    for fine in [
        "gpu.util.mean < 30%",
        "job.mem.peak > 40GiB or duration > 2h",
        "finding.low_util",
    ] {
        assert!(parse(fine, names).is_ok(), "{fine}");
    }
    let wrong = parse("gpu.util < 30", names).unwrap_err();
    assert!(wrong.what.contains("is a value of 'rules'"), "{wrong}");
    assert!(parse("finding.low_util", RULES).is_err());
}

#[test]
fn depth_and_length_have_an_end() {
    for deep in [
        format!("{}gpu.util < 1{}", "(".repeat(400), ")".repeat(400)),
        format!("{}finding.oom", "not ".repeat(400)),
        "finding.oom and ".repeat(10_000),
    ] {
        let said = said(&deep);
        assert!(said.contains("are the most"), "{said}");
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let number = prop_oneof![
        (-1e6..1e6_f64).prop_map(|n| (n * 100.0).round() / 100.0),
        proptest::num::f64::NORMAL,
        Just(0.0),
    ];
    let op = prop_oneof![
        Just(Comparison::Less),
        Just(Comparison::LessOrEqual),
        Just(Comparison::Greater),
        Just(Comparison::GreaterOrEqual),
        Just(Comparison::Equal),
        Just(Comparison::NotEqual),
    ];
    let compared = (0..NAMES.len(), op, number).prop_map(|(i, op, n)| compare(NAMES[i].0, op, n));
    let holds =
        (0..FINDINGS.len()).prop_map(|i| Condition::Holds(format!("finding.{}", FINDINGS[i])));
    prop_oneof![compared, holds].prop_recursive(4, 12, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        let (and, or) = (two.clone(), two);
        prop_oneof![
            and.prop_map(|(a, b)| Condition::And(Box::new(a), Box::new(b))),
            or.prop_map(|(a, b)| Condition::Or(Box::new(a), Box::new(b))),
            inner.prop_map(|a| Condition::Not(Box::new(a))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_parsed_again(condition in condition()) {
        let printed = text(&condition);
        prop_assume!(printed.len() < 2000);
        prop_assert_eq!(parse(&printed, RULES), Ok(condition), "{}", printed);
    }

    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,60}") {
        let _ = parse(&text, RULES).map_err(|e| e.to_string());
    }

    #[test]
    fn no_mixture_of_words_is_too_odd(words in proptest::collection::vec(prop_oneof![
        Just("gpu.util"), Just("finding.oom"), Just("and"), Just("or"), Just("not"), Just("("),
        Just(")"), Just("<"), Just(">="), Just("20"), Just("1GiB"), Just("-"), Just("é"), Just("\n"),
        Just("20%"), Just("%"), Just("1e"), Just("."), Just("-.e+"),
    ], 0..12)) {
        for between in ["", " "] {
            let text = words.join(between);
            match parse(&text, RULES) {
                Ok(condition) => {
                    let again = parse(&super::text(&condition), RULES);
                    prop_assert_eq!(again, Ok(condition));
                }
                Err(error) => {
                    let lines = error.underlined().lines().count();
                    prop_assert_eq!(lines, 2);
                }
            }
        }
    }
}
