//! Profiles on top of each other.
//!
//! Owns merging and what a file that nobody has vouched for may not say. Pure: finding and
//! reading the files is done elsewhere.

use super::check::check;
use super::error::ProfileError;
use super::keys::PROFILE;
use super::node::{Key, Node, Place, Value};
use super::yaml;

/// One file's worth, its keys and types checked.
#[derive(Clone, Debug)]
pub struct Layer {
    /// What it says.
    pub tree: Node,
    /// What it extends, and where that is written.
    pub extends: Option<(String, Place)>,
}

impl Layer {
    /// Reads and checks a text. `source` is the name that messages give it.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(text: &str, source: &str) -> Result<Self, ProfileError> {
        let mut tree = yaml::read(text, source)?;
        check(&tree, PROFILE)?;
        let extends = tree
            .get("extends")
            .and_then(|node| Some((node.text()?.to_owned(), node.place.clone())));
        if let Value::Map(entries) = &mut tree.value {
            entries.retain(|(key, _)| key.name != "extends");
        }
        Ok(Self { tree, extends })
    }

    /// What a file may not say before somebody has vouched for it: commands to run, what is done
    /// to the job (a signal, a stop, another start), places to send to, write to or listen at, and
    /// variables that make programs load code or send elsewhere.
    ///
    /// # Errors
    /// The first such thing. `cure` tells what to do.
    pub fn harmless(&self, cure: &str) -> Result<(), ProfileError> {
        let refuse = |place: &Place, path: &str, what: &str| {
            let what = format!("{what}, and nobody has vouched for this file yet: {cure}");
            Err(ProfileError::new(place, path, what))
        };
        let channels = self.tree.at(&["tell", "channels"]);
        for (key, channel) in channels.map_or(&[][..], Node::entries) {
            let kind = channel.get("type").and_then(Node::text);
            if kind != Some("desktop") && !channel.is_null() {
                return refuse(
                    &key.place,
                    "tell.channels",
                    "it names a place to send to or a command to run",
                );
            }
        }
        for (key, actions) in self.tree.get("act").map_or(&[][..], Node::entries) {
            let has = |what: fn(&Node) -> bool| actions.items().iter().any(what);
            if has(|action| action.get("command").is_some()) {
                return refuse(&key.place, "act", "it names a command to run");
            }
            if has(|action| action.text() != Some("stacks")) {
                return refuse(&key.place, "act", "it signals, ends or restarts the job");
            }
        }
        if let Some(on) = self.tree.at(&["end", "restart", "on"])
            && !on.items().is_empty()
        {
            return refuse(&on.place, "end.restart", "it starts the command again");
        }
        for (key, place) in self.tree.get("metrics").map_or(&[][..], Node::entries) {
            if !place.is_null() {
                return refuse(
                    &key.place,
                    "metrics",
                    "it names a folder to write to or an address to listen at",
                );
            }
        }
        let env = self.tree.get("env");
        let set = env.and_then(|env| env.get("set")).into_iter();
        let frameworks = env.and_then(|env| env.get("frameworks"));
        let more = frameworks
            .into_iter()
            .flat_map(Node::entries)
            .map(|(_, set)| set);
        for (key, _) in set.chain(more).flat_map(Node::entries) {
            if is_dangerous(&key.name) {
                return refuse(
                    &key.place,
                    "env",
                    "it sets a variable that can make programs run other code or send elsewhere",
                );
            }
        }
        Ok(())
    }
}

/// Names of variables by which a file that came with some code could run commands in a shell,
/// an interpreter or the loader, or turn traffic aside.
fn is_dangerous(name: &str) -> bool {
    const BEGINNINGS: [&str; 8] = [
        "LD_",
        "PYTHON",
        "GCONV_",
        "GIT_",
        "PERL5",
        "NODE_",
        "GPUWATCH_",
        "BASH_",
    ];
    const NAMES: [&str; 9] = [
        "PATH", "ENV", "HOME", "SHELL", "IFS", "PAGER", "EDITOR", "RUBYOPT", "PS4",
    ];
    const ENDS: [&str; 3] = ["_PROXY", "_BASE_URL", "_ENDPOINT"];
    let upper = name.to_ascii_uppercase();
    BEGINNINGS.iter().any(|begin| upper.starts_with(begin))
        || NAMES.contains(&upper.as_str())
        || ENDS.iter().any(|end| upper.ends_with(end))
}

/// Merges layers, strongest first: maps key by key, everything else as a whole. An empty value
/// takes a weaker layer's value away; an empty section says nothing.
pub fn merge(layers: impl IntoIterator<Item = Node>) -> Option<Node> {
    layers
        .into_iter()
        .reduce(|strong, weak| over(strong, weak, ""))
}

fn over(strong: Node, weak: Node, path: &str) -> Node {
    match (strong.value, weak.value) {
        (Value::Map(strong_entries), Value::Map(weak_entries)) => Node {
            place: strong.place,
            value: Value::Map(merged(strong_entries, weak_entries, path)),
        },
        (Value::Null, value @ Value::Map(_)) => Node {
            place: weak.place,
            value,
        },
        (value, _) => Node {
            place: strong.place,
            value,
        },
    }
}

type Entries = Vec<(Key, Node)>;

fn merged(strong: Entries, weak: Entries, path: &str) -> Entries {
    // Half of one service's keys and half of another's would make no channel.
    let whole = path == "tell.channels";
    let mut rest = weak;
    let mut merged = Vec::with_capacity(strong.len() + rest.len());
    for (key, node) in strong {
        let weaker = rest.iter().position(|(known, _)| known.name == key.name);
        let weaker = weaker.map(|at| rest.remove(at).1);
        let node = match weaker {
            Some(weaker) if !whole => {
                let inner = if path.is_empty() {
                    key.name.clone()
                } else {
                    format!("{path}.{}", key.name)
                };
                over(node, weaker, &inner)
            }
            _ => node,
        };
        merged.push((key, node));
    }
    merged.extend(rest);
    merged
}
