//! Whatever comes: no panic, the same words for the same inputs, lives in their order.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::run::{on_cpu, quiet, spinning, training};
use crate::judge::{Finding, Input, JobFacts, Judge};
use crate::model::FindingState::{Cleared, Raised};
use crate::model::{
    Aggregate, Comparison, Condition, Event, Exit, GpuChange, JudgeSettings, LineSource, Logged,
    Metric, ProcessChange, Reading, Rule, Sample, Severity, Stamp, Term,
};

#[derive(Clone, Debug)]
enum Thing {
    Sample(Box<Sample>),
    Event(Box<Logged>),
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(100.0),
        -1e3..1e6_f64,
        Just(f64::MAX),
        Just(f64::MIN)
    ]
}

fn maybe() -> impl Strategy<Value = Reading<f64>> {
    prop_oneof![Just(Reading::default()), number().prop_map(Reading::Value)]
}

fn sample() -> impl Strategy<Value = Sample> {
    let kind = prop_oneof![
        Just(quiet()),
        Just(training()),
        Just(spinning()),
        Just(on_cpu(3.0)),
        Just(Sample::default())
    ];
    let odd = (maybe(), maybe(), maybe(), maybe(), 0_u8..40);
    let shown = (
        prop::option::of(0_u64..50),
        prop::option::of(prop_oneof![Just(f64::NAN), number()]),
        0_u64..5,
    );
    (kind, odd, shown).prop_map(|(mut s, (a, b, c, d, which), (step, loss, out))| {
        if which < 4 {
            if let Some(gpu) = s.gpus.first_mut() {
                gpu.power_w = a;
                gpu.mem_util_pct = b;
                gpu.power_limit_w = c.clone();
            }
            s.job_mem_mib = vec![d.clone(); usize::from(which)];
            s.job.cpu_cores = c;
            s.job.rss_mib = d;
            s.job.n_stopped = Reading::Value(u32::from(which));
        }
        s.progress.step = step;
        s.progress.loss = loss.map(Metric);
        s.out_bytes = out;
        s
    })
}

fn event() -> impl Strategy<Value = Event> {
    let change = prop_oneof![
        Just(ProcessChange::Started),
        Just(ProcessChange::Exited),
        Just(ProcessChange::Zombie),
        Just(ProcessChange::Stopped),
        Just(ProcessChange::Reparented),
        Just(ProcessChange::Blocked),
    ];
    prop_oneof![
        (1_u32..4).prop_map(|pid| Event::Started { pid }),
        (1_u32..4, change).prop_map(|(pid, change)| Event::Process {
            pid,
            ppid: None,
            name: None,
            rank: Some(pid),
            change,
            on: Some("terminal".into()),
            code: None,
            signal: None,
        }),
        prop::option::of(0_u64..200).prop_map(|code| Event::Gpu {
            gpu: "MIG-1".into(),
            change: GpuChange::Xid,
            code,
        }),
        "\\PC{0,60}".prop_map(|text| Event::Line {
            stream: LineSource::Out,
            text,
            file: None,
        }),
        Just(Event::Line {
            stream: LineSource::Out,
            text: "(Pdb) ".into(),
            file: None,
        }),
        Just(Event::Clock {
            suspended_s: Some(-1.0),
            step_s: None
        }),
        Just(Event::Exited {
            code: None,
            signal: Some(9)
        }),
    ]
}

fn things() -> impl Strategy<Value = Vec<Thing>> {
    let jump = prop_oneof![8 => Just(1.0), 1 => 0.0..900.0_f64, 1 => Just(-5.0)];
    let thing = prop_oneof![
        4 => sample().prop_map(|s| Thing::Sample(Box::new(s))),
        1 => event().prop_map(|event| Thing::Event(Box::new(Logged { stamp: Stamp::default(), event }))),
    ];
    // Each a few times over, so that silences become long.
    prop::collection::vec((thing, jump, 1_usize..150), 0..12).prop_map(|list| {
        let mut t = 0.0;
        let mut all = Vec::new();
        for (thing, jump, times) in list {
            for _ in 0..times {
                t += jump;
                let mut thing = thing.clone();
                match &mut thing {
                    Thing::Sample(s) => s.stamp.elapsed_s = t,
                    Thing::Event(e) => e.stamp.elapsed_s = t,
                }
                all.push(thing);
            }
        }
        all
    })
}

fn feed(judge: &mut Judge, things: &[Thing]) -> Vec<Finding> {
    let step = |thing: &Thing| match thing {
        Thing::Sample(s) => judge.step(Input::Sample(s)),
        Thing::Event(e) => judge.step(Input::Event(e)),
    };
    things.iter().flat_map(step).collect()
}

/// A rule of each function, which comes and goes with what is odd.
fn rules() -> Vec<Rule> {
    let names = [
        "job.rss",
        "gpu.power",
        "gpu.util",
        "progress.loss",
        "job.mem",
    ];
    let rule = |(i, (how, name)): (usize, (Aggregate, &'static str))| Rule {
        name: format!("rule-{name}"),
        when: String::new(),
        condition: Condition::Compare {
            term: Term {
                name: names[i].to_owned(),
                over: Some((how, Duration::from_secs(60))),
            },
            op: Comparison::Greater,
            number: 80.0,
        },
        lasting: Duration::from_secs(5),
        severity: Severity::Warning,
        say: None,
    };
    Aggregate::ALL.into_iter().enumerate().map(rule).collect()
}

fn new() -> Judge {
    Judge::new(JudgeSettings::default(), rules(), JobFacts::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_judge_is_a_function_of_its_inputs(things in things(), cut in 0_usize..600) {
        let mut whole = new();
        let mut said = feed(&mut whole, &things);
        // The same in two parts, the second by a copy of the judge.
        let cut = cut.min(things.len());
        let mut first = new();
        let mut again = feed(&mut first, &things[..cut]);
        let mut second = first.clone();
        again.extend(feed(&mut second, &things[cut..]));
        prop_assert_eq!(&said, &again);
        said.extend(whole.finish(&Exit { code: Some(1), signal: None }, 1e4));
        let mut open: BTreeMap<String, bool> = BTreeMap::new();
        for finding in said {
            let was = open.insert(finding.name.clone(), finding.state != Cleared).unwrap_or(false);
            prop_assert_eq!(was, finding.state != Raised, "{:?}", finding);
            prop_assert!(finding.since_s.is_finite());
        }
    }
}
