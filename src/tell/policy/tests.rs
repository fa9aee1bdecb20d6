//! The policy, second by second.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::model::{Channel, Exit, Hidden, Outcome, Route, RunNews, SecretRef, Verdict};

fn slack() -> Channel {
    Channel::Slack {
        url: SecretRef::Literal(Hidden::new("https://example.org")),
    }
}

fn settings(routes: &[(Severity, RunNews, &str)]) -> TellSettings {
    TellSettings {
        channels: BTreeMap::from([("a".into(), slack()), ("b".into(), slack())]),
        routes: routes
            .iter()
            .map(|(severity, runs, to)| Route {
                severity: *severity,
                findings: Vec::new(),
                runs: *runs,
                to: vec![(*to).to_owned()],
            })
            .collect(),
        ..TellSettings::default()
    }
}

fn policy() -> Policy {
    Policy::new(&settings(&[]), false)
}

fn at(elapsed_s: f64) -> Stamp {
    Stamp {
        time: "2026-11-30T09:15:02.000+08:00".into(),
        elapsed_s,
    }
}

fn finding(name: &str, since_s: f64, severity: Severity, state: FindingState) -> Happening {
    Happening::Finding {
        finding: Finding {
            name: name.into(),
            cause: None,
            because: None,
            since_s,
            evidence: serde_json::Map::new(),
            advice: None,
        },
        severity,
        state,
        awaits_evidence: false,
    }
}

fn raised(name: &str) -> Happening {
    finding(name, 0.0, Severity::Warning, FindingState::Raised)
}

fn cleared(name: &str) -> Happening {
    finding(name, 0.0, Severity::Warning, FindingState::Cleared)
}

fn because(happening: Happening, why: Option<&str>) -> Happening {
    let Happening::Finding {
        mut finding,
        severity,
        state,
        awaits_evidence,
    } = happening
    else {
        return happening;
    };
    finding.because = why.map(str::to_owned);
    Happening::Finding {
        finding,
        severity,
        state,
        awaits_evidence,
    }
}

/// `channel,channel: state subject`
fn said(sends: &[Send]) -> Vec<String> {
    let one = |send: &Send| {
        format!(
            "{}: {:?} {}",
            send.to.join(","),
            send.alert.state,
            send.alert.subject()
        )
    };
    sends.iter().map(one).collect()
}

/// Lets time pass until then; what was said, each with its second.
fn until(policy: &mut Policy, end_s: f64) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(due_s) = policy.due_s().filter(|due_s| *due_s <= end_s) {
        let sends = policy.handle(&at(due_s), Happening::Tick);
        all.extend(said(&sends).into_iter().map(|s| format!("{due_s} {s}")));
    }
    all
}

fn ended(exit: Exit, outcome: Outcome) -> Happening {
    Happening::Ended(End {
        exit,
        verdict: Verdict {
            outcome: Some(outcome),
            ..Verdict::default()
        },
    })
}

#[test]
fn a_finding_is_raised_once_and_cleared_once() {
    let mut p = policy();
    assert_eq!(
        said(&p.handle(&at(1.0), raised("stalled"))),
        ["a,b: Raised stalled"]
    );
    let updated = finding("stalled", 0.0, Severity::Warning, FindingState::Updated);
    assert!(p.handle(&at(2.0), updated).is_empty());
    assert_eq!(
        said(&p.handle(&at(3.0), cleared("stalled"))),
        ["a,b: Cleared stalled"]
    );
    assert!(p.handle(&at(4.0), cleared("stalled")).is_empty());
    assert_eq!(p.due_s(), None);
}

#[test]
fn notes_alarm_nobody_who_didnt_ask() {
    let mut p = policy();
    let note = |state| finding("starting", 0.0, Severity::Note, state);
    assert!(p.handle(&at(1.0), note(FindingState::Raised)).is_empty());
    assert!(p.handle(&at(2.0), note(FindingState::Cleared)).is_empty());
    assert!(p.handle(&at(2.0), Happening::Started).is_empty());
    let mut p = Policy::new(&settings(&[(Severity::Note, RunNews::Always, "a")]), false);
    assert_eq!(
        said(&p.handle(&at(0.0), Happening::Started)),
        ["a: Raised run.started"]
    );
    assert_eq!(
        said(&p.handle(&at(1.0), note(FindingState::Raised))),
        ["a: Raised starting"]
    );
}

#[test]
fn what_another_finding_explains_is_no_alarm_until_it_stands_alone() {
    let mut p = policy();
    let explained = because(raised("idle-holding"), Some("stalled"));
    assert!(p.handle(&at(1.0), explained.clone()).is_empty());
    assert_eq!(until(&mut p, 1e6), Vec::<String>::new());
    assert_eq!(
        said(&p.handle(&at(5.0), because(explained, None))),
        ["a,b: Raised idle-holding"]
    );
}

#[test]
fn evidence_is_waited_for_but_not_for_long() {
    let stalled = || {
        let Happening::Finding {
            finding,
            severity,
            state,
            ..
        } = raised("stalled")
        else {
            unreachable!()
        };
        Happening::Finding {
            finding,
            severity,
            state,
            awaits_evidence: true,
        }
    };
    let mut p = policy();
    assert!(p.handle(&at(10.0), stalled()).is_empty());
    let evidence = Happening::Evidence {
        finding: "stalled".into(),
        stacks: vec!["hang".into()],
    };
    let sends = p.handle(&at(11.0), evidence);
    assert_eq!(sends[0].alert.stacks, ["hang"]);
    let mut p = policy();
    p.handle(&at(10.0), stalled());
    assert_eq!(until(&mut p, 20.0), ["15 a,b: Raised stalled"]);
    // Over before anybody heard of it.
    let mut p = policy();
    p.handle(&at(10.0), stalled());
    assert!(p.handle(&at(12.0), cleared("stalled")).is_empty());
    // The end doesn't wait.
    let mut p = policy();
    p.handle(&at(10.0), stalled());
    let end = p.handle(&at(11.0), ended(Exit::default(), Outcome::Failed));
    assert_eq!(
        said(&end),
        ["a,b: Raised stalled", "a,b: Raised run.finished"]
    );
}

#[test]
fn reminders_come_when_the_age_has_doubled() {
    let mut p = policy();
    p.handle(&at(600.0), raised("stalled"));
    assert_eq!(
        until(&mut p, 2400.0),
        ["1200 a,b: Reminded stalled", "2400 a,b: Reminded stalled"]
    );
    assert_eq!(until(&mut p, 1e9).len(), 3, "five in all");
    // A short limit doesn't make them come fast.
    let mut p = policy();
    p.handle(&at(5.0), raised("stalled"));
    assert_eq!(
        until(&mut p, 1200.0),
        ["600 a,b: Reminded stalled", "1200 a,b: Reminded stalled"]
    );
    let mut every = settings(&[]);
    every.repeat = Repeat::Every(Duration::from_secs(3600));
    let mut p = Policy::new(&every, false);
    p.handle(&at(0.0), raised("stalled"));
    assert_eq!(until(&mut p, 36_000.0).len(), 10);
    every.repeat = Repeat::Never;
    let mut p = Policy::new(&every, false);
    p.handle(&at(0.0), raised("stalled"));
    assert_eq!(p.due_s(), None);
}

#[test]
fn a_storm_becomes_a_count() {
    let mut p = policy();
    let mut sends = Vec::new();
    for i in 0..50 {
        let severity = if i == 40 {
            Severity::Critical
        } else {
            Severity::Warning
        };
        let raise = finding(&format!("f{i}"), 0.0, severity, FindingState::Raised);
        sends.extend(p.handle(&at(1.0 + f64::from(i) / 50.0), raise));
    }
    assert_eq!(sends.len(), 3);
    let due_s = p.due_s().unwrap();
    assert!(due_s < 12.0, "{due_s}");
    let late = p.handle(&at(due_s), Happening::Tick);
    assert_eq!(said(&late), ["a,b: Raised f40"]);
    assert_eq!((late[0].alert.more, late[0].alert.others.len()), (46, 20));
    // What is held when it is over is never told.
    let mut p = policy();
    (0..5).for_each(|i| drop(p.handle(&at(0.0), raised(&format!("f{i}")))));
    assert!(p.handle(&at(1.0), cleared("f4")).is_empty());
    assert_eq!(until(&mut p, 60.0), ["10 a,b: Raised f3"]);
}

#[test]
fn many_alerts_in_an_hour_are_gathered_for_longer() {
    let mut p = policy();
    let mut sent = 0;
    for second in 0..3600 {
        let name = format!("f{}", second / 20);
        let happening = if second % 20 == 0 {
            raised(&name)
        } else {
            Happening::Tick
        };
        sent += p.handle(&at(f64::from(second)), happening).len();
    }
    assert!((31..=36).contains(&sent), "{sent} of 180");
}

#[test]
fn what_comes_and_goes_is_told_ever_more_seldom() {
    let mut p = policy();
    let mut told = 0;
    for minute in 0..240 {
        let second = f64::from(minute) * 30.0;
        told += p.handle(&at(second), raised("data-starved")).len();
        told += p.handle(&at(second + 15.0), cleared("data-starved")).len();
    }
    assert!((6..30).contains(&told), "{told}");
    // When it stays, it is told in the end.
    let mut late = said(&p.handle(&at(8000.0), raised("data-starved")));
    late.extend(until(&mut p, 12_000.0));
    assert!(late[0].contains("Raised data-starved"), "{late:?}");
}

#[test]
fn routes_choose_by_severity_and_kind() {
    let routes = [
        (Severity::Warning, RunNews::Failed, "a"),
        (Severity::Critical, RunNews::Never, "b"),
    ];
    let mut p = Policy::new(&settings(&routes), true);
    assert_eq!(
        said(&p.handle(&at(0.0), raised("low-use"))),
        ["a,desktop: Raised low-use"]
    );
    // It got worse: only whoever doesn't know hears of it.
    let worse = finding("low-use", 0.0, Severity::Critical, FindingState::Updated);
    assert_eq!(said(&p.handle(&at(20.0), worse)), ["b: Raised low-use"]);
    assert_eq!(
        said(&p.handle(&at(40.0), cleared("low-use"))),
        ["a,b,desktop: Cleared low-use"]
    );
    let exit = Exit {
        code: Some(1),
        signal: None,
    };
    assert_eq!(
        said(&p.handle(&at(60.0), ended(exit, Outcome::Failed))),
        ["a: Raised run.finished"]
    );
    assert!(p.handle(&at(61.0), raised("late")).is_empty());
    let mut p = Policy::new(&settings(&routes), true);
    assert!(
        p.handle(&at(60.0), ended(Exit::default(), Outcome::Ok))
            .is_empty()
    );
}

#[test]
fn the_age_of_progress_is_counted_from_its_last_change() {
    let mut p = policy();
    let now = ProgressState {
        step: Some(512),
        ..ProgressState::default()
    };
    let progress = Happening::Progress {
        now,
        moved_s: Some(100.0),
    };
    p.handle(&at(101.0), progress);
    let sends = p.handle(&at(700.0), raised("stalled"));
    assert_eq!(sends[0].alert.progress.step, Some(512));
    assert_eq!(sends[0].alert.progress.age_s, Some(600.0));
}

/// The same of one of several jobs.
fn of(job: &str, happening: Happening) -> Happening {
    let run = RunFacts {
        id: job.into(),
        name: "train".into(),
        user: Some("ana".into()),
        ..RunFacts::default()
    };
    Happening::Of {
        run: Arc::new(run),
        finding: Box::new(happening),
    }
}

/// Whose each is, and where it stands.
fn whose(sends: &[Send]) -> Vec<(&str, State)> {
    assert!(sends.iter().all(|send| send.run.is_some()));
    sends
        .iter()
        .filter_map(|s| Some((s.run.as_ref()?.id.as_str(), s.alert.state)))
        .collect()
}

#[test]
fn several_jobs_have_the_same_finding_each_for_itself() {
    let mut policy = policy();
    let first = policy.handle(&at(1.0), of("a", raised("orphans")));
    let second = policy.handle(&at(2.0), of("b", raised("orphans")));
    let again = policy.handle(&at(3.0), of("a", raised("orphans")));
    assert_eq!(whose(&first), [("a", State::Raised)]);
    assert_eq!(whose(&second), [("b", State::Raised)]);
    assert_eq!(again, []);
    // One is over, with all that held of it; the other isn't.
    let over = policy.handle(&at(20.0), Happening::Over("a".into()));
    assert_eq!(whose(&over), [("a", State::Cleared)]);
    assert_eq!(policy.handle(&at(21.0), Happening::Over("a".into())), []);
    let cleared = policy.handle(&at(22.0), of("b", cleared("orphans")));
    assert_eq!(whose(&cleared), [("b", State::Cleared)]);
}

#[test]
fn a_storm_of_many_jobs_is_one_alert_that_names_them_and_goes_at_the_end() {
    let mut policy = policy();
    let mut sent = Vec::new();
    for i in 0..20 {
        let job = i.to_string();
        sent.extend(policy.handle(&at(1.0), of(&job, raised("idle-holding"))));
    }
    assert_eq!(sent.len(), 3);
    let last = policy.handle(&at(2.0), Happening::Closing);
    assert_eq!(last.len(), 1);
    assert_eq!(last[0].alert.more, 16);
    assert_eq!(last[0].alert.others[0].name, "idle-holding (train of ana)");
    assert_eq!(policy.handle(&at(3.0), of("x", raised("orphans"))), []);
    assert_eq!(policy.due_s(), None);
}

#[test]
fn a_storm_of_thousands_is_counted_and_what_matters_is_not_lost_in_it() {
    let mut policy = policy();
    for i in 0..250 {
        policy.handle(&at(0.0), raised(&format!("rule-{i}")));
    }
    let critical = finding("matters", 0.0, Severity::Critical, FindingState::Raised);
    policy.handle(&at(0.0), critical);
    for i in 250..500 {
        policy.handle(&at(0.0), raised(&format!("rule-{i}")));
    }
    let held = policy.waiting(&at(0.0));
    let sent = policy.handle(&at(10.0), Happening::Tick);
    assert_eq!(sent.len(), 1, "for both channels");
    assert_eq!(sent[0].alert.subject(), "matters");
    assert_eq!(sent[0].alert.more, 500 - 3);
    assert_eq!(
        sent[0].alert.others[0].name, "rule-3",
        "the first ones are named"
    );
    assert_eq!((said(&held), held[0].alert.more), (said(&sent), 500 - 3));
    assert!(policy.waiting(&at(10.0)).is_empty());
}

#[test]
fn what_waits_is_known_before_it_goes() {
    let mut policy = policy();
    let Happening::Finding {
        finding,
        severity,
        state,
        ..
    } = raised("stalled")
    else {
        unreachable!()
    };
    let awaits_evidence = true;
    let stalled = Happening::Finding {
        finding,
        severity,
        state,
        awaits_evidence,
    };
    assert!(policy.handle(&at(1.0), stalled).is_empty());
    let waiting = policy.waiting(&at(1.0));
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].alert.subject(), "stalled");
    let evidence = Happening::Evidence {
        finding: "stalled".into(),
        stacks: vec!["f (x.py:1)".into()],
    };
    assert_eq!(
        policy.handle(&at(2.0), evidence).len(),
        1,
        "asking changes nothing"
    );
    assert!(policy.waiting(&at(2.0)).is_empty());
}
