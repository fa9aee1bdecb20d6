//! Profiles case by case.

use super::keys::{CHANNEL, KeyOf, Kind, PROFILE};
use super::layer::merge;
use super::*;
use crate::model::names::{FINDINGS, NAMES, SUMMARY_NAMES};
use crate::model::{Action, Channel, Limit, Repeat, RunNews, SecretRef, Severity, Switch};

const SECRET: &str = "s3cr3t-t0k3n";

fn tree(text: &str) -> Node {
    Layer::parse(text, "test.yaml").unwrap().tree
}

fn read(text: &str) -> Profile {
    profile(&tree(text)).unwrap()
}

/// What is said about a text, from its first mistake.
fn said(text: &str) -> String {
    let read = Layer::parse(text, "test.yaml").and_then(|layer| profile(&layer.tree));
    match read {
        Ok(_) => panic!("nothing is wrong with {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_default_is_what_the_code_does_by_itself() {
    let default = built_in(DEFAULT).unwrap().unwrap();
    assert_eq!(profile(&default.tree).unwrap(), embedded_default());
    // Only a profile can name variables and actions.
    let mut code = embedded_default();
    code.env = Env::default();
    code.act.0.clear();
    assert_eq!(code, read(""));
}

#[test]
fn the_default_explains_every_key_and_name() {
    let text = built_in_text(DEFAULT);
    let mut sections = vec![PROFILE];
    while let Some(section) = sections.pop() {
        for key in section {
            assert!(
                text.contains(&format!("{}:", key.name)),
                "{} is not explained",
                key.name
            );
            sections.extend(inner(&key.kind));
        }
    }
    let names = NAMES.iter().chain(SUMMARY_NAMES).map(|(name, ..)| *name);
    for name in names.chain(FINDINGS.iter().copied()) {
        assert!(text.contains(name), "{name} is not explained");
    }
}

fn built_in_text(name: &str) -> &'static str {
    BUILT_IN
        .iter()
        .find(|(known, ..)| *known == name)
        .unwrap()
        .2
}

fn inner(kind: &'static Kind) -> Option<&'static [KeyOf]> {
    match kind {
        Kind::List(kind) | Kind::Map(kind) => inner(kind),
        Kind::Section(keys) | Kind::Findings(keys) => Some(keys),
        _ => None,
    }
}

#[test]
fn every_built_in_profile_is_sound() {
    for (name, about, _) in BUILT_IN {
        let layer = built_in(name).unwrap().unwrap();
        let base = built_in(DEFAULT).unwrap().unwrap();
        let merged = merge([layer.tree, base.tree]).unwrap();
        assert!(profile(&merged).is_ok() && !about.is_empty(), "{name}");
        let extends = layer.extends.map(|(name, _)| name);
        assert_eq!(extends.is_none(), *name == DEFAULT, "{name}");
    }
    assert!(built_in("horses").is_none());
}

#[test]
fn what_is_written_is_understood() {
    let profile = read(
        r#"
sample: {interval: 500ms}
judge:
  stalled: {after: 5s, severity: warning}
  idle_holding: {on: false, below: 20, for: 10m}
rules:
  - {name: low-util, when: "gpu.util < 20 and job.mem > 1GiB", for: 10m, severity: critical, say: "slow"}
tell:
  language: zh
  channels:
    team: {type: feishu, url: "env:FEISHU_URL", secret: "file:~/.feishu"}
    mail: {type: email, url: "smtps://me:pw@mail:465", from: a@b, to: [c@d]}
    bell: {type: command, argv: [play, alarm.wav]}
    hook: {type: webhook, url: "http://[::1]:8080/x", headers: {X-Key: "env:KEY"}, template: "{}"}
  routes: [{severity: critical, to: [team, bell], findings: [idle_holding, low-util], runs: failed}]
  repeat: 30m
  desktop: true
act: {stalled: [stacks, {command: [true]}], low_util: [stacks]}
"#
        .replace("[true]", "[\"true\"]")
        .as_str(),
    );
    assert_eq!(profile.interval, Duration::from_millis(500));
    let stalled = profile.judge.of("stalled");
    assert_eq!(stalled.after, Limit::After(Duration::from_secs(5)));
    assert_eq!(stalled.severity, Some(Severity::Warning));
    assert!(!profile.judge.of("idle-holding").on);
    let rule = &profile.rules[0];
    assert_eq!(
        (rule.name.as_str(), rule.lasting.as_secs()),
        ("low-util", 600)
    );
    let tell = &profile.tell;
    assert_eq!(
        (tell.repeat, tell.desktop),
        (Repeat::Every(Duration::from_secs(1800)), Switch::On)
    );
    let team = Channel::Feishu {
        url: SecretRef::Env("FEISHU_URL".into()),
        secret: Some(SecretRef::File("~/.feishu".into())),
    };
    assert_eq!(tell.channels["team"], team);
    let route = &tell.routes[0];
    assert_eq!(route.findings, ["idle-holding", "low-util"]);
    assert_eq!(
        (route.severity, route.runs),
        (Severity::Critical, RunNews::Failed)
    );
    let command = Action::Command(vec!["true".into()]);
    assert_eq!(profile.act.of("stalled"), [Action::Stacks, command]);
    assert_eq!(profile.act.of("low-util"), [Action::Stacks]);
}

/// A text, the place of its mistake, and what is said.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "judge:\n  stalled: {afer: 5s}\n",
        "test.yaml:2:13: judge.stalled.afer",
        "did you mean 'after'?",
    ),
    (
        "judge: {stalld: {}}",
        "1:9: judge.stalld",
        "did you mean 'stalled'?",
    ),
    ("tel: {}", "1:1: tel", "did you mean 'tell'?"),
    ("horses: {}", "1:1: horses", "known are extends, env"),
    (
        "judge: {stalled: {on: yes}}",
        "judge.stalled.on",
        "'yes' won't do: write true or false",
    ),
    (
        "judge: {stalled: {on: 1}}",
        "judge.stalled.on",
        "a number won't do",
    ),
    (
        "judge: {stalled: {after: 5parsecs}}",
        "judge.stalled.after",
        "unknown unit 'parsecs'",
    ),
    (
        "judge: {stalled: {after: 5}}",
        "judge.stalled.after",
        "write it like 30s",
    ),
    (
        "judge: {stalled: {below: 5}}",
        "judge.stalled",
        "idle_holding alone",
    ),
    (
        "judge: {idle_holding: {below: 500}}",
        "below",
        "from 0 to 100",
    ),
    ("judge: []", "1:8: judge", "not a list"),
    (
        "sample: {interval: 1ms}",
        "sample.interval",
        "100ms is the least",
    ),
    ("gpus: {min_free: 5}", "gpus.min_free", "has no unit"),
    ("gpus: {min_free: 5GB}", "gpus.min_free", "512MiB or 20GiB"),
    ("gpus: {choose: fre}", "gpus.choose", "did you mean 'free'?"),
    ("env: {set: {A: 1}}", "env.set.A", "put it in quotes"),
    ("env: {set: {A B: x}}", "1:13: env.set", "can't be a name"),
    (
        "a: 1\na: 2\n",
        "test.yaml:2:1",
        "the key 'a' stands here twice",
    ),
    ("a: [1\n", "1:4", "not YAML"),
    ("a: *x\n", "1:4", "in quotes"),
    ("<<: {a: 1}\n", "1:1", "use 'extends: NAME'"),
    ("a: 1\n---\nb: 1\n", "test.yaml:", "one document"),
    ("a: !!python/object x\n", "1:", "tags"),
    ("rules: [{name: a}]", "rules[0]", "'when' is missing"),
    (
        "rules: [{name: stalled, when: gpu.util < 1}]",
        "rules[0].name",
        "a finding's name already",
    ),
    (
        "rules: [{name: A B, when: gpu.util < 1}]",
        "rules[0].name",
        "small letters",
    ),
    (
        "rules: [{name: a, when: gpu.utl < 1}]",
        "1:25: rules[0].when",
        "did you mean 'gpu.util'?\n    gpu.utl < 1\n    ^^^^^^^",
    ),
    (
        "end: {fail_if: [gpu.util < 1]}",
        "end.fail_if[0]",
        "is a value of 'rules'",
    ),
    (
        r"progress: {patterns: [{name: a, regex: 'it (?<step>\d+'}]}",
        "regex",
        "no regular expression: unclosed group\n    it (\n       ^",
    ),
    (
        "progress: {patterns: [{name: a, regex: '(?<stp>x)'}]}",
        "regex",
        "did you mean 'step'?\n    (?<stp\n       ^^^",
    ),
    ("act: {stalld: [stacks]}", "act", "did you mean 'stalled'?"),
    (
        "act: {stalled: [{command: []}]}",
        "act.stalled[0]",
        "must name a program",
    ),
    ("tell: {repeat: 1x}", "tell.repeat", "above 1"),
    ("tell: {repeat: 5s}", "tell.repeat", "a storm"),
    (
        "tell: {routes: [{to: [x]}]}",
        "tell.routes[0].to",
        "no channel of this name",
    ),
    (
        "tell: {routes: [{}]}",
        "tell.routes[0]",
        "must name a channel",
    ),
    (
        "tell: {channels: {a: {url: 'http://x'}}}",
        "tell.channels.a",
        "'type' is missing",
    ),
    (
        "tell: {channels: {a: {type: slack}}}",
        "tell.channels.a",
        "needs 'url'",
    ),
    (
        "tell: {channels: {a: {type: desktop, url: 'http://x'}}}",
        "tell.channels.a.url",
        "takes nothing else",
    ),
    (
        "tell: {channels: {a: {type: email, url: 'https://x', from: a@b, to: [a@b]}}}",
        "url",
        "smtp://HOST",
    ),
    (
        "tell: {channels: {a: {type: email, url: 'smtp://x', from: ab, to: [a@b]}}}",
        "tell.channels.a",
        "name@example.com",
    ),
];

#[test]
fn a_mistake_has_a_place_and_a_cure() {
    for (text, place, part) in MISTAKES {
        let said = said(text);
        assert!(
            said.contains(place) && said.contains(part),
            "{text}\n{said}"
        );
    }
}

#[test]
fn no_message_repeats_what_may_be_a_secret() {
    let wrong = [
        "tell: {channels: {a: {type: slack, url: S}}}",
        "tell: {channels: {a: {type: slack, url: 'ftp://S'}}}",
        "tell: {channels: {a: {type: slack, url: 'https://h/S', secret: x}}}",
        "tell: {channels: {a: {type: 'https://h/S'}}}",
        "tell: {channels: {a: 'https://h/S'}}",
        "tell: {channels: 'https://h/S'}",
        "tell: 'https://h/S'",
        "tell: {channels: {a: {type: slack, url: [S]}}}",
        "tell: {channels: {a: {type: webhook, url: 'https://h/x', headers: {A: \"S\\n\"}}}}",
        "tell: {channels: {a: {type: slack, url: 'https://h/S'}}, routes: [{to: ['https://h/S']}]}",
        "tell: {repeat: 'https://h/S'}",
        "tell: {desktop: 'https://h/S'}",
        "judge: {stalled: {after: 'https://h/S'}}",
        "judge: {'https://h/S': {}}",
        "'https://h/S': 1",
        "'https://h/S': 1\n'https://h/S': 1",
        "tell: {channels: {'https://h/S': {}}}",
        "env: {set: {A: ['S']}}",
        "a: 'https://h/S\n",
        "url: https://h/S: x",
        "tell: !S x",
        "gpus: {min_free: 'https://h/S'}",
        "progress: {patterns: [{name: 'a', regex: '(S'}]}",
        "progress: {patterns: [{name: 'a', regex: 'https://h/S'}]}",
        "act: {stalled: [{command: 'https://h/S'}]}",
        "act: {stalled: ['https://h/S']}",
    ];
    for text in wrong {
        let text = text.replace('S', SECRET);
        let said = said(&text);
        assert!(
            !said.contains("s3cr3t") && said.contains("test.yaml:"),
            "{text}\n{said}"
        );
    }
    let fine = format!(
        "tell: {{channels: {{a: {{type: slack, url: 'https://h/{SECRET}'}}}}}}\nenv: {{set: {{A_TOKEN: '{SECRET}'}}}}"
    );
    let tree = tree(&fine);
    for shown in [
        shown(&tree),
        format!("{:?}", profile(&tree)),
        format!("{tree:?}"),
    ] {
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }
}

#[test]
fn what_is_shown_is_a_profile_with_origins() {
    let text = "tell: {channels: {a: {type: command, argv: [curl, --token, abc]}}}\nact: {stalled: [{command: [x, --password=y]}]}\nrules: [{name: a, when: 'gpu.util < 1'}]";
    let base = built_in(DEFAULT).unwrap().unwrap().tree;
    let merged = merge([tree(text), base]).unwrap();
    let shown = shown(&merged);
    for part in [
        "argv: [\"curl\", \"--token\", \"***\"]  # test.yaml:1",
        "- {command: [\"x\", \"--password=***\"]}",
        "- {name: a, when: \"gpu.util < 1\"}",
        "interval: \"1s\"  # default:",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let again = Layer::parse(&shown, "again.yaml").unwrap();
    assert_eq!(
        profile(&again.tree).unwrap().judge,
        profile(&merged).unwrap().judge
    );
}

#[test]
fn stronger_layers_win_key_by_key() {
    let strong = "judge: {stalled: {after: 5s}}\ntell: {channels: {a: {type: slack, url: 'https://s'}}}\nenv: {set: {B: null}}\nrules:\n";
    let weak = "judge: {stalled: {severity: note, after: 9s}, oom: {on: false}}\ntell: {channels: {a: {type: feishu, url: 'https://f', secret: x}, b: {type: desktop}}}\nenv: {set: {A: a, B: b}}\nrules: [{name: r, when: gpu.util < 1}]\n";
    let merged = merge([tree(strong), tree(weak), tree("sample: {interval: 7s}")]).unwrap();
    let profile = profile(&merged).unwrap();
    let stalled = profile.judge.of("stalled");
    assert_eq!(stalled.after, Limit::After(Duration::from_secs(5)));
    assert_eq!(stalled.severity, Some(Severity::Note));
    assert!(!profile.judge.of("oom").on);
    // A channel is a whole, and an empty value takes one away.
    assert_eq!(profile.tell.channels["a"].kind(), "slack");
    assert_eq!(profile.tell.channels["b"].kind(), "desktop");
    let names: Vec<_> = profile.env.set.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["A"]);
    assert_eq!(profile.rules, []);
    assert_eq!(profile.interval, Duration::from_secs(7));
}

#[test]
fn a_stranger_may_not_name_commands_places_or_loaders() {
    for harmful in [
        "tell: {channels: {a: {type: slack, url: 'https://s'}}}",
        "tell: {channels: {a: {type: command, argv: [x]}}}",
        "tell: {channels: {a: {}}}",
        "act: {stalled: [stacks, {command: [x]}]}",
        "env: {set: {LD_PRELOAD: ./x.so}}",
        "env: {set: {PATH: ./bin}}",
        "env: {set: {https_proxy: 'http://x'}}",
        "env: {frameworks: {jax: {PYTHONSTARTUP: x.py}}}",
    ] {
        let layer = Layer::parse(harmful, "gpuwatch.yaml").unwrap();
        let error = layer.harmless("trust it").unwrap_err().to_string();
        assert!(
            error.contains("trust it") && error.contains("gpuwatch.yaml:1:"),
            "{error}"
        );
    }
    for fine in [
        "tell: {channels: {a: {type: desktop}}, desktop: true}",
        "act: {stalled: [stacks]}",
        "env: {set: {XLA_FLAGS: '--xla_x'}}",
        "rules: [{name: a, when: gpu.util < 1}]",
    ] {
        assert!(
            Layer::parse(fine, "x").unwrap().harmless("").is_ok(),
            "{fine}"
        );
    }
}

#[test]
fn addresses_are_told_from_other_text() {
    for fine in [
        "https://hooks.slack.com/services/T/B/x",
        "http://localhost:8080",
        "HTTP://127.0.0.1/x?y=z",
        "https://user:pw@host/x",
        "https://[::1]:80/x",
        "https://[::1]/x",
        "env:HOOK_URL",
        "file:~/.hook",
    ] {
        assert!(channel_for(fine).is_ok(), "{fine}");
    }
    for wrong in [
        "",
        "slack",
        "https://",
        "https:///x",
        "ftp://host",
        "https://ho st/",
        "//host",
        "https://host:99999/",
        "https://host:x",
        "https://hé",
        "env:",
        "env:A B",
        "file:",
        "https://a\nb",
    ] {
        assert!(channel_for(wrong).is_err(), "{wrong}");
    }
    let kind = |text| channel_for(text).unwrap().kind();
    assert_eq!(kind("https://hooks.slack.com/services/T/B/x"), "slack");
    assert_eq!(
        kind("https://open.feishu.cn/open-apis/bot/v2/hook/x"),
        "feishu"
    );
    assert_eq!(kind("https://example.com/hooks.slack.com"), "webhook");
}

#[test]
fn the_schema_knows_every_key_and_no_other() {
    fn compare(schema: &serde_json::Value, keys: &'static [KeyOf]) {
        let properties = schema["properties"].as_object().unwrap();
        let names: Vec<_> = properties.keys().map(String::as_str).collect();
        assert_eq!(names, keys.iter().map(|key| key.name).collect::<Vec<_>>());
        assert_eq!(schema["additionalProperties"], false);
    }
    let schema = schema();
    compare(&schema, PROFILE);
    let tell = &schema["properties"]["tell"]["anyOf"][0];
    let channel = &tell["properties"]["channels"]["anyOf"][0]["additionalProperties"]["anyOf"][0];
    compare(channel, CHANNEL);
    let judge = &schema["properties"]["judge"]["anyOf"][0]["properties"];
    assert_eq!(judge.as_object().unwrap().len(), FINDINGS.len());
}
