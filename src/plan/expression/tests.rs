//! What expressions mean, what is said about wrong ones, and that no text is too odd.

use std::time::Duration;

use proptest::prelude::*;

use super::{Names, Scope, parse, say, text};
use crate::model::names::{FINDINGS, NAMES};
use crate::model::{Aggregate, Comparison, Condition, Term};

const RULES: Names<'_> = Names {
    scope: Scope::Rules,
    findings: &[],
};

fn compare(name: &str, op: Comparison, number: f64) -> Condition {
    let term = Term::now(name);
    Condition::Compare { term, op, number }
}

fn over(how: Aggregate, name: &str, seconds: u64) -> Term {
    Term {
        name: name.to_owned(),
        over: Some((how, Duration::from_secs(seconds))),
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
fn a_function_is_of_a_value_and_a_window() {
    use Aggregate::{Max, Mean, Min, P95, Rise};
    for (expression, term, number) in [
        (
            "mean(gpu.util, 10m) > 20",
            over(Mean, "gpu.util", 600),
            20.0,
        ),
        (
            "max( job.mem ,1h30m )>70GiB",
            over(Max, "job.mem", 5400),
            70.0 * 1024.0,
        ),
        (
            "min(gpu.temp, 90 s) > 85 C",
            over(Min, "gpu.temp", 90),
            85.0,
        ),
        (
            "p95(gpu.pcie, 24h) > 5 MB/s",
            over(P95, "gpu.pcie", 86_400),
            5.0,
        ),
        (
            "rise(gpu.clock, 10.0005s) > 5MHz",
            over(Rise, "gpu.clock", 10),
            5.0,
        ),
        (
            "rise(progress.eta, 1d) > 2h",
            over(Rise, "progress.eta", 86_400),
            7200.0,
        ),
    ] {
        let op = Comparison::Greater;
        let meant = Condition::Compare { term, op, number };
        assert_eq!(parse(expression, RULES), Ok(meant), "{expression}");
    }
    let both = parse(
        "not mean(gpu.util, 1m) < 2 and (max(job.rss, 10s) > 1)",
        RULES,
    )
    .unwrap();
    let terms: Vec<String> = both.terms().iter().map(ToString::to_string).collect();
    assert_eq!(terms, ["mean(gpu.util, 1m)", "max(job.rss, 10s)"]);
}

/// What is wrong, what is said, and the characters below which marks stand.
const IN_FUNCTIONS: &[(&str, &str, usize, usize)] = &[
    ("meen(gpu.util, 1m) < 2", "did you mean 'mean'?", 0, 4),
    ("Rise(gpu.util, 1m) < 2", "did you mean 'rise'?", 0, 4),
    ("peak(gpu.util, 1m) < 2", "did you mean 'max'?", 0, 4),
    (
        "horses(gpu.util, 1m) < 2",
        "known are mean, min, max, p95, rise",
        0,
        6,
    ),
    ("gpu.util(1m) < 2", "is a value and no function", 0, 8),
    ("mean(gpu.utl, 1m) < 2", "did you mean 'gpu.util'?", 5, 7),
    (
        "mean(gpu.util) < 2",
        "a comma and a window are missing",
        13,
        1,
    ),
    (
        "mean(gpu.util 1m) < 2",
        "a comma and a window are missing",
        14,
        2,
    ),
    ("mean(gpu.util,) < 2", "a window must stand here", 14, 1),
    ("mean(gpu.util,", "a window is missing here", 14, 1),
    ("mean(gpu.util", "a comma and a window are missing", 13, 1),
    ("mean(", "a value is missing here", 5, 1),
    ("mean() < 2", "the name of a value must stand here", 5, 1),
    (
        "mean(10m, gpu.util) < 2",
        "the name of a value must stand here",
        5,
        3,
    ),
    ("mean(gpu.util, 10) < 2", "has no unit", 15, 2),
    ("mean(gpu.util, 10GiB) < 2", "the unknown unit 'GiB'", 15, 5),
    ("mean(gpu.util, 5s) < 2", "from 10s to 24h", 15, 2),
    ("mean(gpu.util, 2d) < 2", "from 10s to 24h", 15, 2),
    ("mean(gpu.util, -5m) < 2", "must start with a number", 15, 3),
    ("mean(gpu.util, 10m < 2", "')' is missing here", 19, 1),
    ("mean(gpu.util, 10m", "')' is missing here", 18, 1),
    ("mean(gpu.util, 10m, 5m) < 2", "')' is missing here", 18, 1),
    ("mean(mean(gpu.util, 1m), 1m) < 2", "is a function", 5, 4),
    ("mean(finding.stalled, 1m) < 2", "is true or false", 5, 15),
    ("mean(gpu.util, 1m) < 20GiB", "'gpu.util' is in %", 21, 5),
    (
        "mean(gpu.util, 1m) < max(gpu.util, 1m)",
        "a number must stand here",
        21,
        3,
    ),
    ("mean < 2", "'mean' is a function: write it like", 0, 4),
    (
        "gpu.util < 2, job.mem > 1",
        "must stand between two conditions",
        12,
        1,
    ),
    (
        ", gpu.util < 2",
        "a comma belongs into a function alone",
        0,
        1,
    ),
    ("gpu.pcie > 2GB/s", "'gpu.pcie' is in MB/s", 11, 5),
];

#[test]
fn a_mistake_in_a_function_is_underlined() {
    assert_eq!(
        said("job.mem > 1GiB and avg(gpu.util, 10m) < 20"),
        "there is no function 'avg'; did you mean 'mean'?\n\
         job.mem > 1GiB and avg(gpu.util, 10m) < 20\n\
         \x20                  ^^^"
    );
    assert_eq!(
        said("mean(gpu.util, 10m)"),
        "'mean(gpu.util, 10m)' must be compared with a number, like 'mean(gpu.util, 10m) < 20'\n\
         mean(gpu.util, 10m)\n\
         ^^^^^^^^^^^^^^^^^^^"
    );
    for (expression, part, from, length) in IN_FUNCTIONS {
        let error = parse(expression, RULES).unwrap_err();
        assert!(error.what.contains(part), "{expression}: {error}");
        let marks = format!("{}{}", " ".repeat(*from), "^".repeat(*length));
        assert_eq!(error.underlined(), format!("{expression}\n{marks}"));
    }
    let gates = Names {
        scope: Scope::Gates,
        ..RULES
    };
    let error = parse("mean(gpu.util, 1m) < 2", gates).unwrap_err();
    assert!(error.what.contains("'mean' is for 'rules'"), "{error}");
}

#[test]
fn a_message_names_values_of_its_condition() {
    let condition = parse(
        "mean(gpu.util, 60s) < 2 and job.mem > 1 and finding.oom",
        RULES,
    );
    let condition = condition.unwrap();
    for (text, meant) in [
        ("plain", "plain"),
        (
            "{ mean(gpu.util,1m) } of {job.mem}",
            "{mean(gpu.util, 1m)} of {job.mem}",
        ),
        (
            "{} {x} {\"gpu.util\": 1} {job.mem",
            "{} {x} {\"gpu.util\": 1} {job.mem",
        ),
        ("{{job.mem}}", "{{job.mem}}"),
    ] {
        assert_eq!(say(text, &condition).as_deref(), Ok(meant), "{text}");
    }
    for (text, part) in [
        ("{gpu.utl}", "did you mean 'gpu.util'?"),
        (
            "{gpu.util}",
            "'when' doesn't compare it, but {mean(gpu.util, 1m)}, {job.mem}",
        ),
        ("{mean(gpu.util, 2m)}", "'when' doesn't compare it"),
        ("{avg(gpu.util, 1m)}", "did you mean 'mean'?"),
        ("{finding.oom}", "is true or false"),
        ("{mean(gpu.util)}", "a window"),
    ] {
        let error = say(text, &condition).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn not_binds_closest_and_or_last() {
    let a = || compare("gpu.util", Comparison::Less, 20.0);
    let b = || Condition::Holds(Term::now("finding.stalled"));
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
    let milliseconds = prop_oneof![
        10_000_u64..=86_400_000,
        (10_u64..=86_400).prop_map(|s| 1000 * s)
    ];
    let window = prop::option::of((0..Aggregate::ALL.len(), milliseconds));
    let compared = (0..NAMES.len(), window, op, number).prop_map(|(i, window, op, number)| {
        let term = match window {
            Some((how, milliseconds)) => Term {
                name: NAMES[i].0.to_owned(),
                over: Some((Aggregate::ALL[how].0, Duration::from_millis(milliseconds))),
            },
            None => Term::now(NAMES[i].0),
        };
        Condition::Compare { term, op, number }
    });
    let holds = (0..FINDINGS.len())
        .prop_map(|i| Condition::Holds(Term::now(&format!("finding.{}", FINDINGS[i]))));
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
        Just("20%"), Just("%"), Just("1e"), Just("."), Just("-.e+"), Just("mean"), Just("mean("),
        Just(","), Just("10m"), Just("mean(gpu.util, 10m)"), Just("gpu.pcie"), Just("MB/s"),
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
