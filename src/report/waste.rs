//! What GPUs were used for over many runs: `gpuwatch waste`.
//!
//! Owns what counts as lost and wasted, grouping, order and the table. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::lined_up;
use super::text::command;
use crate::model::{Origin, Outcome};
use crate::record::{GpuUsage, IndexEntry, Spent};

/// What runs are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Whose they were.
    User,
    /// The command, with its arguments.
    Command,
    /// The git work tree's root, else the working directory.
    Project,
    /// Host and GPU.
    Gpu,
}

/// GPU seconds of one group; the kinds in `spent` add up to its `reserved_s`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    /// What they have in common; null where the record doesn't tell.
    pub key: Option<String>,
    /// How many runs had a GPU.
    pub runs: usize,
    /// Seconds by what they were.
    #[serde(flatten)]
    pub spent: Spent,
    /// What was reserved by runs that failed, were killed or lost, whatever it was used for.
    pub lost_s: f64,
    /// Lost, and of the other runs what was stalled or held idle.
    pub wasted_s: f64,
}

impl Group {
    fn add(&mut self, run: &IndexEntry, usage: &GpuUsage) {
        let spent = &usage.spent;
        self.spent.add(spent);
        let is_lost = matches!(
            run.outcome,
            Some(Outcome::Failed | Outcome::Killed | Outcome::Lost)
        );
        if is_lost {
            self.lost_s += spent.reserved_s;
            self.wasted_s += spent.reserved_s;
        } else {
            self.wasted_s += spent.held_s + spent.stalled_s;
        }
    }
}

/// The groups, most wasted first, and all of them together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waste {
    /// What runs are grouped by.
    pub by: By,
    /// Most wasted first, then most reserved.
    pub groups: Vec<Group>,
    /// All runs.
    pub total: Group,
}

/// Adds up runs whose usage is known; those without a GPU have nothing to add. A record of the
/// machine is left out: what its GPUs did is in the records of their jobs.
pub fn waste<'a>(runs: impl IntoIterator<Item = &'a IndexEntry>, by: By) -> Waste {
    let mut groups: BTreeMap<Option<String>, Group> = BTreeMap::new();
    let mut total = Group::default();
    let of_jobs = |run: &&IndexEntry| run.origin != Some(Origin::Machine);
    for run in runs.into_iter().filter(of_jobs) {
        let used = run.usage.as_deref().unwrap_or_default();
        total.runs += usize::from(!used.is_empty());
        let mut counted = Vec::new();
        for usage in used {
            let key = key(run, usage, by);
            let group = groups.entry(key.clone()).or_default();
            group.add(run, usage);
            total.add(run, usage);
            if !counted.contains(&key) {
                group.runs += 1;
                counted.push(key);
            }
        }
    }
    let mut groups: Vec<Group> = groups
        .into_iter()
        .map(|(key, group)| Group { key, ..group })
        .collect();
    let order = |group: &Group| (group.wasted_s, group.spent.reserved_s);
    // Stable: equals stay in the order of their names.
    groups.sort_by(|a, b| {
        let ((a, a_all), (b, b_all)) = (order(a), order(b));
        b.total_cmp(&a).then(b_all.total_cmp(&a_all))
    });
    Waste { by, groups, total }
}

fn key(run: &IndexEntry, usage: &GpuUsage, by: By) -> Option<String> {
    match by {
        By::User => run.user.clone(),
        By::Command => (!run.argv.is_empty()).then(|| command(&run.argv)),
        By::Project => run.project.clone(),
        By::Gpu => {
            let device = usage.uuid.clone().unwrap_or_else(|| usage.gpu.clone());
            let words = [run.host.clone(), Some(device), usage.name.clone()];
            Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
    }
}

impl Waste {
    /// For a person: hours, and how much of what was reserved was wasted.
    pub fn table(&self) -> String {
        let header = [
            match self.by {
                By::User => "USER",
                By::Command => "COMMAND",
                By::Project => "PROJECT",
                By::Gpu => "GPU",
            },
            "RUNS",
            "RESERVED",
            "ACTIVE",
            "HELD IDLE",
            "STALLED",
            "UNUSED",
            "UNKNOWN",
            "LOST",
            "WASTED",
            "",
        ];
        let mut rows = vec![header.map(str::to_owned)];
        let unknown = || "(not recorded)".to_owned();
        rows.extend(
            self.groups
                .iter()
                .map(|g| row(g.key.clone().unwrap_or_else(unknown), g)),
        );
        rows.push(row("total".to_owned(), &self.total));
        lined_up(rows, 1)
    }
}

fn row(name: String, group: &Group) -> [String; 11] {
    let spent = &group.spent;
    let share = 100.0 * group.wasted_s / spent.reserved_s;
    [
        name,
        group.runs.to_string(),
        hours(spent.reserved_s),
        hours(spent.active_s),
        hours(spent.held_s),
        hours(spent.stalled_s),
        hours(spent.unused_s),
        hours(spent.unknown_s),
        hours(group.lost_s),
        hours(group.wasted_s),
        if spent.reserved_s > 0.0 {
            format!("{share:.0} %")
        } else {
            String::new()
        },
    ]
}

/// GPU hours; a few seconds aren't shown as none.
fn hours(seconds: f64) -> String {
    let h = seconds / 3600.0;
    match h {
        _ if seconds <= 0.0 => "0 h".to_owned(),
        h if h < 0.01 => format!("{h:.4} h"),
        h if h < 1.0 => format!("{h:.3} h"),
        h if h < 100.0 => format!("{h:.2} h"),
        h => format!("{h:.0} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(user: &str, outcome: Outcome, spent: &[Spent]) -> IndexEntry {
        let text = include_str!("../../tests/example-run/runs.json");
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut run: IndexEntry = serde_json::from_value(document["runs"][0].clone()).unwrap();
        run.user = Some(user.into());
        run.outcome = Some(outcome);
        let usage = |(n, spent): (usize, &Spent)| GpuUsage {
            gpu: n.to_string(),
            spent: *spent,
            ..GpuUsage::default()
        };
        run.usage = Some(spent.iter().enumerate().map(usage).collect());
        run
    }

    #[test]
    fn the_most_wasted_comes_first() {
        let used = Spent {
            reserved_s: 36_000.0,
            active_s: 18_000.0,
            held_s: 7200.0,
            stalled_s: 3600.0,
            unused_s: 3600.0,
            unknown_s: 3600.0,
        };
        let idle = Spent {
            reserved_s: 36.0,
            unused_s: 36.0,
            ..Spent::default()
        };
        let runs = [
            run("an", Outcome::Ok, &[used, idle]),
            run("li", Outcome::Killed, &[used]),
            run("li", Outcome::Cancelled, &[used]),
            run("no", Outcome::Ok, &[]),
            IndexEntry {
                origin: Some(Origin::Machine),
                ..run("root", Outcome::Ok, &[used])
            },
        ];
        assert_eq!(
            waste(&runs, By::User).table(),
            "USER   RUNS  RESERVED   ACTIVE  HELD IDLE  STALLED  UNUSED  UNKNOWN     LOST   WASTED
li        2   20.00 h  10.00 h     4.00 h   2.00 h  2.00 h   2.00 h  10.00 h  13.00 h  65 %
an        1   10.01 h   5.00 h     2.00 h   1.00 h  1.01 h   1.00 h      0 h   3.00 h  30 %
total     3   30.01 h  15.00 h     6.00 h   3.00 h  3.01 h   3.00 h  10.00 h  16.00 h  53 %
"
        );
        let by_gpu = waste(&runs, By::Gpu);
        let keys: Vec<_> = by_gpu
            .groups
            .iter()
            .map(|g| (g.key.clone().unwrap(), g.runs))
            .collect();
        assert_eq!(
            keys,
            [("node01 0".to_owned(), 3), ("node01 1".to_owned(), 1)]
        );
        assert_eq!(by_gpu.total, waste(&runs, By::Project).total);
    }
}
