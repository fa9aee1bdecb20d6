//! The whole page, with records in which every string is somebody else's.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;
use crate::model::{EnvSetting, GitState, GpuInfo, Severity, Verdict};
use crate::record::FindingRecord;

/// A run in which every string is this one.
fn hostile(text: &str) -> (RunRecord, FindingRecord) {
    let some = || Some(text.to_owned());
    let mut env = std::collections::BTreeMap::new();
    let setting = EnvSetting {
        value: text.to_owned(),
        why: text.to_owned(),
    };
    env.insert(text.to_owned(), setting);
    let record = RunRecord {
        id: text.to_owned(),
        name: text.to_owned(),
        tags: vec![text.to_owned()],
        argv: vec![text.to_owned(); 3],
        cwd: some(),
        user: some(),
        host: some(),
        git: Some(GitState {
            commit: some(),
            dirty: Some(true),
        }),
        gpus: vec![GpuInfo {
            uuid: some(),
            name: some(),
            pci_bus: some(),
            ..GpuInfo::default()
        }],
        driver: some(),
        cuda: some(),
        env,
        profile: some(),
        framework: some(),
        started: text.to_owned(),
        ended: some(),
        attribution: some(),
        verdict: Verdict {
            outcome: None,
            cause: some(),
            advice: some(),
            line: some(),
            rank: Some(1),
            around: vec![text.to_owned()],
        },
        ..RunRecord::default()
    };
    let mut evidence = Map::new();
    evidence.insert(text.to_owned(), Value::String(text.to_owned()));
    let finding = FindingRecord {
        name: text.to_owned(),
        cause: some(),
        severity: Severity::Critical,
        state: crate::model::FindingState::Raised,
        because: some(),
        since_s: 1.0,
        evidence,
        advice: some(),
        raised_s: 2.0,
        cleared_s: None,
    };
    (record, finding)
}

fn made(text: &str) -> String {
    let (record, finding) = hostile(text);
    let mut curves = Curves::new(&record.gpus, Some(10.0));
    curves.absorb(&crate::model::Sample::default());
    // Output that erases itself is none, which the page says in another way.
    let output = format!("kept\n{text}");
    page(&Page {
        record: &record,
        findings: &[finding],
        curves: &curves,
        output: output.as_bytes(),
        problems: &[text.to_owned()],
    })
}

/// The page's tags, without what stands between them.
fn tags(html: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find(['>', ' ']).map_or(rest.len(), |n| at + n);
        found.push(&rest[at..end]);
        rest = &rest[end..];
    }
    found
}

#[test]
fn script_in_every_string_is_text() {
    let attack = "</script></style></title></pre><script>alert(1)</script><img src=x onerror=alert(2)>\" onload='x'";
    let html = made(attack);
    let plain = made("plain");
    assert_eq!(tags(&html), tags(&plain));
    assert_eq!(html.matches("<script").count(), 1);
    assert!(!html.contains("<img"));
    assert!(html.contains("&lt;img src=x onerror=alert(2)&gt;"));
}

#[test]
fn the_page_loads_nothing() {
    let html = made("plain");
    for reference in ["src=", "href=", "url(", "@import", "http:", "https:", "//"] {
        assert!(!html.contains(reference), "{reference}");
    }
    assert!(html.contains("default-src &#39;none&#39;"), "{html}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_foreign_string_yields_a_tag(text in ".*|[<>&\"'/a-z !=-]{0,40}") {
        // An empty name is still a row of its own.
        let text = format!("x{text}");
        let (foreign, plain) = (made(&text), made("x"));
        prop_assert_eq!(tags(&foreign), tags(&plain));
    }
}
