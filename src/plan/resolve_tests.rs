//! What flags do to profiles.

use super::*;
use crate::plan::profile::{Layer, built_in};

fn resolve(texts: &[&str], flags: &Flags) -> Resolved {
    let mut layers: Vec<Node> = texts
        .iter()
        .map(|text| Layer::parse(text, "test.yaml").unwrap().tree)
        .collect();
    layers.push(built_in("default").unwrap().unwrap().tree);
    settings(layers, "default", flags).unwrap()
}

fn webhook() -> Channel {
    profile::channel_for("https://example.com/hook").unwrap()
}

#[test]
fn without_anything_it_is_the_default() {
    let resolved = resolve(&[], &Flags::default());
    assert_eq!(resolved.interval, Duration::from_secs(1));
    assert_eq!(resolved.gpus, GpuWish::default());
    assert_eq!(resolved.unheeded, [""; 0]);
    assert_eq!(resolved.tell, TellSettings::default());
    let idle = resolved.judge.of("idle-holding");
    assert_eq!((idle.below, idle.lasting), (None, None));
    assert_eq!(resolved.env[0].source, "default");
}

#[test]
fn flags_are_the_strongest_layer() {
    let text = "sample: {interval: 5s}\njudge: {stalled: {on: false, after: 1h}}\n";
    let flags = Flags {
        interval: Some(Duration::from_secs(2)),
        stall_after: Some(Duration::from_secs(5)),
        ..Flags::default()
    };
    let resolved = resolve(&[text], &flags);
    assert_eq!(resolved.interval, Duration::from_secs(2));
    let stalled = resolved.judge.of("stalled");
    assert!(stalled.on);
    assert_eq!(stalled.after, Limit::After(Duration::from_secs(5)));
}

#[test]
fn a_wish_for_gpus_comes_from_flags_and_profiles() {
    let wish = |text: &str, flags: &Flags| resolve(&[text], flags).gpus;
    let typed = Flags {
        gpus: Some(GpuChoice::Count(2)),
        ..Flags::default()
    };
    let got = wish("gpus: {choose: none, min_free: 8GiB, wait: 10m}", &typed);
    assert_eq!(
        got,
        GpuWish {
            choice: Some(GpuChoice::Count(2)),
            min_free_mib: 8192.0,
            gpu_type: None,
            wait: Wait::For(Duration::from_secs(600)),
            asked: true,
        }
    );
    for (text, choice, asked) in [
        ("gpus: {choose: free, min_free: 1GiB}", None, false),
        ("gpus: {choose: none}", Some(GpuChoice::None), false),
        ("gpus: {choose: 2}", Some(GpuChoice::Count(2)), true),
        ("gpus: {choose: auto}", Some(GpuChoice::Count(1)), true),
        ("gpus: {wait: 1s}", None, true),
        (
            "gpus: {choose: 'id:0,1'}",
            Some("id:0,1".parse().unwrap()),
            true,
        ),
    ] {
        let got = wish(text, &Flags::default());
        assert_eq!((got.choice, got.asked), (choice, asked), "{text}");
    }
}

#[test]
fn half_of_the_literal_rule_is_completed() {
    let minutes = |m: u64| Some(Duration::from_secs(60 * m));
    let idle = |text: &str, below, lasting| {
        let flags = Flags {
            idle_below: below,
            idle_for: lasting,
            ..Flags::default()
        };
        let idle = resolve(&[text], &flags).judge.of("idle_holding");
        (idle.below, idle.lasting)
    };
    assert_eq!(idle("", Some(5.0), None), (Some(5.0), minutes(10)));
    assert_eq!(idle("", None, minutes(3)), (Some(20.0), minutes(3)));
    let text = "judge: {idle_holding: {below: 30}}";
    assert_eq!(idle(text, None, None), (Some(30.0), minutes(10)));
    assert_eq!(idle(text, None, minutes(1)), (Some(30.0), minutes(1)));
    assert_eq!(idle(text, Some(7.0), None), (Some(7.0), minutes(10)));
}

#[test]
fn channels_without_routes_hear_of_alarms() {
    let flags = Flags {
        notify: vec![webhook(), webhook()],
        desktop: true,
        ..Flags::default()
    };
    let text = "tell: {channels: {notify-1: {type: desktop}}}";
    let tell = resolve(&[text], &flags).tell;
    assert_eq!(tell.desktop, Switch::On);
    let names: Vec<_> = tell.channels.keys().map(String::as_str).collect();
    assert_eq!(names, ["notify-1", "notify-2", "notify-3"]);
    assert_eq!(tell.channels["notify-1"], Channel::Desktop);
    let to: Vec<_> = tell.routes.iter().map(|route| route.to.join(" ")).collect();
    assert_eq!(to, ["notify-1", "notify-2 notify-3"]);
}

#[test]
fn what_does_nothing_is_named() {
    let text = "end: {time_limit: 1h}\nrecord: {output: false}\n";
    assert_eq!(resolve(&[text], &Flags::default()).unheeded, ["record"]);
}

#[test]
fn a_restart_that_is_typed_is_after_any_failure_unless_the_profile_says_which() {
    let restart = |text: &str, restart| {
        let flags = Flags {
            restart,
            ..Flags::default()
        };
        let resolved = resolve(&[text], &flags).end.restart;
        (resolved.on, resolved.max)
    };
    let chosen = "end: {restart: {on: [host_oom, collective-timeout], max: 7}}\n";
    assert_eq!(restart("{}\n", None), (vec![], 3));
    assert_eq!(restart("{}\n", Some(2)), (vec!["failure".to_owned()], 2));
    let both = vec!["host-oom".to_owned(), "collective-timeout".to_owned()];
    assert_eq!(restart(chosen, None), (both.clone(), 7));
    assert_eq!(restart(chosen, Some(0)), (both, 0));
}

#[test]
fn what_is_typed_for_a_stall_comes_after_evidence() {
    let flags = Flags {
        on_stall: Some(Action::Stop),
        ..Flags::default()
    };
    let act = |text: &str| resolve(&[text], &flags).act;
    let usual = [Action::Stacks, Action::Stop];
    assert_eq!(act("{}\n").of("stalled"), usual);
    let own = "act: {stalled: [stacks, restart], nan: [stop]}\n";
    assert_eq!(act(own).of("stalled"), usual);
    assert_eq!(act(own).of("nan"), [Action::Stop]);
}

#[test]
fn a_time_limit_is_a_deadline_unless_another_is_given() {
    let after = |layers: &[&str], limit| {
        let flags = Flags {
            time_limit: limit,
            ..Flags::default()
        };
        resolve(layers, &flags).judge.of("behind").after
    };
    let hour = Duration::from_secs(3600);
    assert_eq!(after(&[], None), Limit::Auto);
    assert_eq!(after(&[], Some(hour)), Limit::After(hour));
    assert_eq!(after(&["end: {time_limit: 1h}"], None), Limit::After(hour));
    let given = "judge: {behind: {after: 30m}}";
    assert_eq!(after(&[given], Some(hour)), Limit::After(hour / 2));
}

#[test]
fn how_a_run_may_end_is_settled_key_by_key() {
    let seconds = |s| Some(Duration::from_secs(s));
    let plain = resolve(&[], &Flags::default()).end;
    assert_eq!(plain, EndSettings::default());
    let text = "end: {leftovers: kill, time_limit: 1h}";
    let flags = Flags {
        time_limit: seconds(60),
        kill_after: seconds(5),
        ..Flags::default()
    };
    let mixed = resolve(&[text], &flags).end;
    let (leftovers, time_limit) = (Leftovers::Kill, seconds(60));
    let kill_after = seconds(5);
    let expected = EndSettings {
        leftovers,
        time_limit,
        kill_after,
        restart: Restart::default(),
    };
    assert_eq!(mixed, expected);
    let flags = Flags {
        leftovers: Some(Leftovers::Report),
        ..Flags::default()
    };
    assert_eq!(resolve(&[text], &flags).end.leftovers, Leftovers::Report);
}

/// The framework, and what it sets besides what the embedded default names.
fn framework_of(text: &str, flag: Option<&str>) -> (Option<String>, String) {
    let flags = Flags {
        framework: flag.map(str::to_owned),
        ..Flags::default()
    };
    let resolved = resolve(&[text], &flags);
    let own = resolved.framework_env.iter();
    let own = own.filter(|v| v.source != profile::DEFAULT);
    let set: Vec<_> = own.map(|v| format!("{}={}", v.name, v.value)).collect();
    (resolved.framework.map(|(name, _)| name), set.join(" "))
}

#[test]
fn a_framework_is_what_a_flag_or_else_a_profile_says() {
    let said = |name: &str, set: &str| (Some(name.to_owned()), set.to_owned());
    let jax = "env: {framework: jax, frameworks: {jax: {A: x}, pytorch: {B: y}}}";
    assert_eq!(framework_of(jax, None), said("jax", "A=x"));
    assert_eq!(framework_of(jax, Some("pytorch")), said("pytorch", "B=y"));
    let none = (None, String::new());
    assert_eq!(framework_of("env: {set: {A: x}}", None), none);
    // What is for one framework goes before what is for all.
    let both = "env: {set: {A: x}, framework: jax, frameworks: {jax: {A: z}}}";
    assert_eq!(framework_of(both, None).1, "A=z");
}

#[test]
fn what_is_embedded_for_a_framework_gives_way() {
    let names = |text: &str| -> Vec<String> {
        let resolved = resolve(&[text], &Flags::default());
        resolved.framework_env.into_iter().map(|v| v.name).collect()
    };
    let usual = names("env: {framework: jax}");
    assert_eq!(
        usual,
        ["XLA_PYTHON_CLIENT_PREALLOCATE", "PYTHONFAULTHANDLER"]
    );
    let own = "env: {framework: jax, set: {XLA_PYTHON_CLIENT_PREALLOCATE: 'true'}}";
    assert_eq!(names(own), ["PYTHONFAULTHANDLER"]);
}
