//! What a person means by RUN: an id, a unique prefix of one, a name, `last`, `@-2`, or a
//! directory.
//!
//! Owns the order in which these are tried, and what is said when none fits. Never writes.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::RecordError;
use super::list::{directories, list};
use super::run_dir::RUN_JSON;

/// How many names a message lists.
const SHOWN: usize = 5;

/// The directory of the run that `what` names, in `root` (see [`super::root_for_reading`];
/// `None` where nothing has been recorded yet).
///
/// `last` and `@-1` are the run that started last, `@-2` the one before it. A word with a
/// slash in it is a directory; another is an id, else the unique beginning of one, else a
/// name (the newest run that has it), else a directory.
///
/// # Errors
/// [`RecordError::NotFound`] with near matches, [`RecordError::Ambiguous`],
/// [`RecordError::NoRuns`], or what the system refused.
pub fn find(root: Option<&Path>, what: &str) -> Result<PathBuf, RecordError> {
    if what.contains('/') || matches!(what, "." | "..") {
        return directory(Path::new(what));
    }
    let Some(root) = root else {
        if is_run(Path::new(what)) {
            return directory(Path::new(what));
        }
        return Err(RecordError::NoRuns {
            place: "the default place".to_owned(),
        });
    };
    if let Some(back) = from_the_end(what) {
        return nth_newest(root, back, what);
    }
    if !what.is_empty() && is_run(&root.join(what)) {
        return Ok(root.join(what));
    }
    by_prefix_or_name(root, what)
}

fn is_run(dir: &Path) -> bool {
    dir.join(RUN_JSON).exists()
}

fn directory(dir: &Path) -> Result<PathBuf, RecordError> {
    let cure = "give the directory of a run, the one that holds run.json";
    fs::metadata(dir.join(RUN_JSON)).map_err(RecordError::io("find a run in", dir, cure))?;
    std::path::absolute(dir).map_err(RecordError::io("find a run in", dir, cure))
}

/// `last` is 1, `@-2` is 2.
fn from_the_end(what: &str) -> Option<usize> {
    if what == "last" {
        return Some(1);
    }
    what.strip_prefix("@-")?.parse().ok().filter(|n| *n > 0)
}

fn nth_newest(root: &Path, back: usize, what: &str) -> Result<PathBuf, RecordError> {
    let runs = list(root, Some(back), |_| true)?.runs;
    match runs.get(back - 1) {
        Some(entry) => Ok(PathBuf::from(&entry.dir)),
        None if runs.is_empty() => Err(no_runs(root)),
        None => Err(not_found(
            root,
            what,
            format!("there are only {}", runs.len()),
        )),
    }
}

fn by_prefix_or_name(root: &Path, what: &str) -> Result<PathBuf, RecordError> {
    let mut ids: Vec<String> = directories(root, |_| true)?.into_iter().collect();
    if ids.is_empty() {
        return Err(no_runs(root));
    }
    ids.sort_by(|a, b| b.cmp(a));
    let fitting: Vec<&String> = ids.iter().filter(|id| id.starts_with(what)).collect();
    if let [only] = fitting[..]
        && !what.is_empty()
    {
        return Ok(root.join(only));
    }
    let named = list(root, Some(1), |entry| entry.name == what)?.runs;
    if let Some(entry) = named.first() {
        return Ok(PathBuf::from(&entry.dir));
    }
    if !what.is_empty() && is_run(Path::new(what)) {
        return directory(Path::new(what));
    }
    if fitting.len() > 1 {
        return Err(RecordError::Ambiguous {
            what: what.to_owned(),
            n: fitting.len(),
            candidates: some(fitting.into_iter()),
        });
    }
    Err(not_found(root, what, near(&ids, what)))
}

fn no_runs(root: &Path) -> RecordError {
    RecordError::NoRuns {
        place: root.display().to_string(),
    }
}

fn not_found(root: &Path, what: &str, hint: String) -> RecordError {
    RecordError::NotFound {
        what: what.to_owned(),
        path: root.to_owned(),
        hint,
    }
}

fn some<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let shown = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        format!("{shown}, ...")
    } else {
        shown
    }
}

/// What may have been meant: ids that hold the word, else those whose name is like it.
fn near(ids: &[String], what: &str) -> String {
    let lower = what.to_lowercase();
    let holds = |id: &&String| !what.is_empty() && id.to_lowercase().contains(&lower);
    let mut close: Vec<&String> = ids.iter().filter(holds).collect();
    if close.is_empty() {
        let limit = (what.chars().count() / 2).clamp(1, 3);
        close = ids
            .iter()
            .filter(|id| distance(name_part(id), what) <= limit || distance(id, what) <= limit)
            .collect();
    }
    if close.is_empty() {
        return "see `gpuwatch runs`".to_owned();
    }
    format!("did you mean {}?", some(close.into_iter()))
}

/// The name in an id: what is between the time and the salt.
fn name_part(id: &str) -> &str {
    let name = id.get(16..).unwrap_or(id);
    name.rsplit_once('-').map_or(name, |(name, _)| name)
}

/// How many characters must be added, removed or changed to make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let changed = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RunRecord, RunState};
    use crate::record::RunDir;

    fn record(root: &Path, id: &str, name: &str) {
        let run = RunDir::create(root, id).unwrap();
        run.write_run(&RunRecord {
            id: id.to_owned(),
            name: name.to_owned(),
            state: RunState::Finished,
            ..RunRecord::default()
        })
        .unwrap();
    }

    fn found(root: &Path, what: &str) -> String {
        match find(Some(root), what) {
            Ok(dir) => dir.file_name().unwrap().to_string_lossy().into_owned(),
            Err(e) => e.to_string().replace(root.to_str().unwrap(), "ROOT"),
        }
    }

    #[test]
    fn a_run_goes_by_many_names() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        assert!(found(root, "last").starts_with("no run is recorded in ROOT"));
        assert!(found(root, "x").starts_with("no run is recorded in ROOT"));
        let (a, b, c) = (
            "20261130-091502-train-7f3a",
            "20261130-091503-eval-0001",
            "20261201-000000-train-0002",
        );
        record(root, a, "train");
        record(root, b, "eval");
        record(root, c, "train");
        fs::create_dir(root.join("notes")).unwrap();
        fs::write(root.join("index.jsonl"), "").unwrap();
        for (what, id) in [
            (a, a),
            ("20261130-091503", b),
            ("202612", c),
            ("train", c),
            ("eval", b),
            ("last", c),
            ("@-1", c),
            ("@-2", b),
            ("@-3", a),
        ] {
            assert_eq!(found(root, what), id, "{what}");
        }
        assert_eq!(found(root, root.join(a).to_str().unwrap()), a);
        assert_eq!(found(root, "@-4"), "no run '@-4' in ROOT: there are only 3");
        assert_eq!(
            found(root, "2026113"),
            format!("'2026113' fits 2 runs: write more of one of {b}, {a}")
        );
        assert_eq!(
            found(root, "evil"),
            format!("no run 'evil' in ROOT: did you mean {b}?")
        );
        assert_eq!(
            found(root, "7f3a"),
            format!("no run '7f3a' in ROOT: did you mean {a}?")
        );
        assert_eq!(
            found(root, "something else"),
            "no run 'something else' in ROOT: see `gpuwatch runs`"
        );
        let none = format!("{}/none", root.display());
        assert!(found(root, &none).starts_with("cannot find a run in ROOT/none: No such file"));
        assert!(find(None, "last").is_err());
    }

    #[test]
    fn words_are_compared() {
        assert_eq!(distance("eval", "evil"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("train", "rtain"), 2);
        assert_eq!(name_part("20261130-091502-my-net-7f3a"), "my-net");
    }
}
