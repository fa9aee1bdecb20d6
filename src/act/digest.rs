//! A few lines for an alert: the function in which each rank sits, and the rank that differs.
//!
//! Owns what is said first, and when a rank is said to differ. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::seen::{Place, Seen};
use super::stacks::clean;

/// Lines of the digest.
pub const LINES: usize = 5;
/// Characters of one line of it.
pub const WIDTH: usize = 160;

/// Processes at one place.
struct Group<'a> {
    /// Ranks, then Python, then others.
    order: u8,
    words: String,
    members: Vec<&'a Seen>,
}

/// Processes that stand at the same place share a line: ranks first, then others of which the
/// stack is known.
pub fn digest(seen: &[Seen]) -> Vec<String> {
    let different = different(seen);
    let mut lines: Vec<String> = different.iter().map(|group| differs(group)).collect();
    let is_said = |one: &Seen| different.iter().flatten().any(|other| other.pid == one.pid);
    let alive = seen.iter().filter(|s| s.standing.state != 'Z');
    let rest: Vec<&Seen> = alive.clone().filter(|one| !is_said(one)).collect();
    let mut groups = grouped(&rest);
    groups.sort_by_key(|group| group.order);
    lines.extend(
        groups
            .iter()
            .map(|group| shorten(&format!("{} {}", who(&group.members), group.words))),
    );
    let missing = alive.filter_map(|one| one.dump.as_ref()?.as_ref().err());
    let missing = missing.min_by_key(|why| !why.contains("pip install"));
    let room = LINES - usize::from(missing.is_some());
    if lines.len() > room {
        let more = lines.len() - (room - 1);
        lines.truncate(room - 1);
        lines.push(format!("and {more} more places; see the run's evidence"));
    }
    lines.extend(missing.map(|why| shorten(why)));
    lines
}

fn grouped<'a>(seen: &[&'a Seen]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut at: BTreeMap<(u8, String), usize> = BTreeMap::new();
    for one in seen {
        let place = one.place();
        let order = match (one.rank, &place) {
            (Some(_), _) => 0,
            (None, Some(_)) => 1,
            (None, None) => 2,
        };
        let place = place.map_or_else(|| one.waits(), |place| place.words);
        let words = format!("{}: {place}", one.standing.name);
        let n = *at.entry((order, words.clone())).or_insert_with(|| {
            groups.push(Group {
                order,
                words,
                members: Vec::new(),
            });
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(n) {
            group.members.push(one);
        }
    }
    groups
}

/// The ranks that are not where the others are, by their places.
///
/// Said only where it can't be the other way round: where most stand together and few don't, or
/// where all others wait for somebody, and these do something else.
fn different(seen: &[Seen]) -> Vec<Vec<&Seen>> {
    let ranks: Vec<(&Seen, Place)> = seen
        .iter()
        .filter(|one| one.rank.is_some())
        .filter_map(|one| Some((one, one.place()?)))
        .collect();
    let mut places: BTreeMap<&str, Vec<&(&Seen, Place)>> = BTreeMap::new();
    for rank in &ranks {
        places.entry(&rank.1.function).or_default().push(rank);
    }
    if places.len() < 2 {
        return Vec::new();
    }
    let meets = |group: &[&(&Seen, Place)]| group.iter().all(|(_, place)| place.meets);
    let waiting: usize = places.values().filter(|g| meets(g)).map(Vec::len).sum();
    let most = places.values().map(Vec::len).max().unwrap_or_default();
    let all = ranks.len();
    let is_different = |group: &[&(&Seen, Place)]| {
        if waiting > 0 && 2 * waiting >= all {
            !meets(group)
        } else {
            2 * most > all && group.len() < most
        }
    };
    let groups = places.values().filter(|group| is_different(group));
    groups
        .map(|group| group.iter().map(|(one, _)| *one).collect())
        .collect()
}

/// `rank 1 differs: next_batch (train.py:40) in wait (queue.py:7)`
fn differs(group: &[&Seen]) -> String {
    let place = group.first().and_then(|one| one.place());
    let verb = if group.len() == 1 {
        "differs"
    } else {
        "differ"
    };
    let words = place.map_or_else(String::new, |place| place.words);
    shorten(&format!("{} {verb}: {words}", ranks(group)))
}

/// `rank 1 (4242)`, `ranks 0, 2-7`
fn ranks(members: &[&Seen]) -> String {
    let mut numbers: Vec<u32> = members.iter().filter_map(|one| one.rank).collect();
    numbers.sort_unstable();
    if let ([one], [number]) = (members, &numbers[..]) {
        return format!("rank {number} ({})", one.pid);
    }
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if number <= *last + 1 => *last = number,
            _ => spans.push((number, number)),
        }
    }
    let spans: Vec<String> = spans
        .iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            _ => format!("{first}-{last}"),
        })
        .collect();
    format!("ranks {}", spans.join(", "))
}

/// `4242`, or `4 processes (4242, ...)`, or their ranks
fn who(members: &[&Seen]) -> String {
    match members {
        [first, ..] if first.rank.is_some() => ranks(members),
        [one] => one.pid.to_string(),
        [first, ..] => format!("{} processes ({}, ...)", members.len(), first.pid),
        [] => String::new(),
    }
}

fn shorten(text: &str) -> String {
    let text = clean(text);
    if text.chars().count() <= WIDTH {
        return text;
    }
    let mut kept: String = text.chars().take(WIDTH - 3).collect();
    let _ = write!(kept, "...");
    kept
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
