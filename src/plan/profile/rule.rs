//! `rules` of a profile: findings of the user's own.
//!
//! Owns what their names may be, and how many windows they may look back over.

use super::error::ProfileError;
use super::node::Node;
use super::read::{at, duration, required};
use super::values;
use crate::model::names::FINDINGS;
use crate::model::{Rule, Severity, Term};
use crate::plan::expression::{self, Names, Scope};

/// Different windows that all rules together may have.
const MOST_WINDOWS: usize = 64;

/// The rules, whose names are known already.
pub fn rules(nodes: &[Node], names: &[String]) -> Result<Vec<Rule>, ProfileError> {
    let mut windows: Vec<Term> = Vec::new();
    let mut rules = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        let rule = rule(node, i, names)?;
        for term in rule.condition.terms() {
            if term.over.is_some() && !windows.contains(term) {
                windows.push(term.clone());
            }
        }
        // Each costs memory, and time with every sample.
        if windows.len() > MOST_WINDOWS {
            let what = format!("{MOST_WINDOWS} different windows in all rules are the most");
            return Err(at(node, format!("rules[{i}].when"))(what));
        }
        rules.push(rule);
    }
    Ok(rules)
}

/// The names of the user's rules, with underscores, each of them once and none a finding's.
pub fn names(rules: &[Node]) -> Result<Vec<String>, ProfileError> {
    let mut names: Vec<String> = Vec::new();
    for (i, node) in rules.iter().enumerate() {
        let path = format!("rules[{i}]");
        let name = required(node, "name", &path)?;
        let place = node.get("name").map_or(&node.place, |name| &name.place);
        let wrong = |what: &str| Err(ProfileError::new(place, format!("{path}.name"), what));
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
        if name.len() > 64
            || !name.bytes().all(plain)
            || !name.starts_with(|c: char| c.is_ascii_lowercase())
        {
            return wrong("a rule's name is small letters, digits and '-', like low-util");
        }
        let name = name.replace('-', "_");
        if FINDINGS.contains(&name.as_str()) {
            return wrong("this is a finding's name already: choose another one");
        }
        if names.contains(&name) {
            return wrong("there is a rule of this name already: choose another one");
        }
        names.push(name);
    }
    Ok(names)
}

fn rule(node: &Node, i: usize, own: &[String]) -> Result<Rule, ProfileError> {
    let path = format!("rules[{i}]");
    let name = required(node, "name", &path)?.replace('_', "-");
    let when = required(node, "when", &path)?;
    let names = Names {
        scope: Scope::Rules,
        // A rule about a rule would depend on the order in which they are judged.
        findings: &[],
    };
    let place = node.get("when").map_or(node, |when| when);
    let condition = expression::parse(&when, names).map_err(|error| {
        let mut what = error.what.clone();
        if own
            .iter()
            .any(|rule| when.contains(&format!("finding.{rule}")))
        {
            what.push_str(" (a rule can't be about another rule)");
        }
        ProfileError::new(&place.place, format!("{path}.when"), what).marked(error.underlined())
    })?;
    let say = node.get("say").and_then(|say| Some((say, say.text()?)));
    Ok(Rule {
        name,
        when,
        lasting: duration(node.get("for"), &format!("{path}.for"))?.unwrap_or_default(),
        severity: node
            .get("severity")
            .and_then(values::severity)
            .unwrap_or(Severity::Warning),
        say: say
            .map(|(node, text)| {
                expression::say(text, &condition).map_err(at(node, format!("{path}.say")))
            })
            .transpose()?,
        condition,
    })
}

#[cfg(test)]
mod tests {
    use crate::plan::profile::{Layer, Profile, ProfileError, profile};

    fn read(text: &str) -> Result<Profile, ProfileError> {
        Layer::parse(text, "x.yaml").and_then(|layer| profile(&layer.tree))
    }

    #[test]
    fn a_wrong_rule_is_refused_where_it_is_wrong() {
        for (text, place, what) in [
            (
                "{name: a, when: 'avg(gpu.util, 1m) < 2'}",
                "x.yaml:1:25: rules[0].when",
                "did you mean 'mean'?",
            ),
            (
                "{name: a, when: gpu.util < 2, say: '{gpu.utl}'}",
                "x.yaml:1:44: rules[0].say",
                "did you mean 'gpu.util'?",
            ),
            (
                "{name: low-use, when: gpu.util < 2}",
                "x.yaml:1:16: rules[0].name",
                "is a finding's name already",
            ),
            (
                "{name: a, when: finding.a}",
                "rules[0].when",
                "about another rule",
            ),
        ] {
            let said = read(&format!("rules: [{text}]")).unwrap_err().to_string();
            assert!(said.contains(place) && said.contains(what), "{said}");
        }
    }

    #[test]
    fn a_message_is_kept_as_its_condition_is_written() {
        let text =
            "rules: [{name: a, when: 'mean(gpu.util, 60s) < 2', say: '{mean(gpu.util, 60s)}'}]";
        let rules = read(text).unwrap().rules;
        assert_eq!(rules[0].say.as_deref(), Some("{mean(gpu.util, 1m)}"));
    }

    #[test]
    fn windows_have_an_end() {
        let rules = |n: u32| {
            let rule = |i| {
                format!(
                    "- {{name: r{i}, when: 'mean(gpu.util, {}s) < 2'}}\n",
                    10 + i
                )
            };
            let again =
                "- {name: again, when: 'mean(gpu.util, 10s) < 1 or mean(gpu.util, 11s) < 1'}\n";
            read(&format!(
                "rules:\n{}{again}",
                (0..n).map(rule).collect::<String>()
            ))
        };
        assert_eq!(rules(64).unwrap().rules.len(), 65);
        let said = rules(65).unwrap_err().to_string();
        assert!(
            said.contains("rules[64].when: 64 different windows"),
            "{said}"
        );
    }
}
