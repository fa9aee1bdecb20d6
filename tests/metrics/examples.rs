//! The rules and the dashboard in `examples`: nothing in them names what isn't there.

use std::collections::BTreeSet;
use std::process::Command;

use gpuwatch::export::METRICS;
use gpuwatch::model::names::FINDINGS;
use serde_json::Value;

use crate::formats::has;
use crate::support::in_package;

const RULES: &str = "examples/prometheus/gpuwatch.rules.yml";
const CASES: &str = "examples/prometheus/gpuwatch.rules.test.yml";
const CONFIG: &str = "examples/prometheus/prometheus.yml";
const DASHBOARD: &str = "examples/grafana/gpuwatch.json";

fn text(path: &str) -> String {
    std::fs::read_to_string(in_package(path)).unwrap()
}

/// Words that look like metrics of ours.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("gpuwatch_")).collect()
}

#[test]
fn every_metric_that_is_named_is_exported() {
    let exported: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    for path in [RULES, CASES, CONFIG, DASHBOARD] {
        let text = text(path);
        let unknown: Vec<_> = named(&text).difference(&exported).copied().collect();
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
    assert!(named(&text(RULES)).len() > 5);
    assert!(named(&text(DASHBOARD)).len() > 25);
}

#[test]
fn every_finding_that_is_named_is_one() {
    let rules = text(RULES);
    let mut n = 0;
    for part in rules
        .split("finding=\"")
        .skip(1)
        .chain(rules.split("finding!~\"").skip(1))
    {
        let (names, _) = part.split_once('"').unwrap();
        for name in names.split('|') {
            let known = FINDINGS.contains(&name.replace('-', "_").as_str());
            assert!(known, "there is no finding '{name}'");
            n += 1;
        }
    }
    assert!(n > 10, "{n} names of findings were found");
}

#[test]
fn promtool_is_content_with_rules_their_cases_and_the_configuration() {
    if !has("promtool") {
        return;
    }
    for words in [
        ["check", "rules", RULES],
        ["test", "rules", CASES],
        ["check", "config", CONFIG],
    ] {
        let mut promtool = Command::new("promtool");
        promtool.args(&words[..2]).arg(in_package(words[2]));
        let out = promtool.output().unwrap();
        let said = [out.stdout, out.stderr].concat();
        assert!(
            out.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&said)
        );
    }
}

#[test]
fn the_dashboard_is_json_with_a_query_in_every_panel() {
    let dashboard: Value = serde_json::from_str(&text(DASHBOARD)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(
            ids.insert(panel["id"].as_i64().unwrap()),
            "{}",
            panel["title"]
        );
        if panel["type"] == "row" {
            continue;
        }
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{}", panel["title"]);
        for target in targets {
            let expr = target["expr"].as_str().unwrap();
            assert_eq!(
                expr.matches('(').count(),
                expr.matches(')').count(),
                "{expr}"
            );
            assert!(!named(expr).is_empty(), "{expr}");
        }
    }
    assert!(panels.len() > 20);
}
