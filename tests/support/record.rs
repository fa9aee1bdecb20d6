//! A run's record as a reader finds it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One run directory.
pub struct Record {
    pub folder: PathBuf,
}

/// One row of `samples.csv` by column name; what is missing is empty.
pub type Row = BTreeMap<String, String>;

impl Record {
    /// The only run in a folder of runs.
    pub fn only_one_in(runs: &Path) -> Self {
        let mut found = Self::all_in(runs);
        assert_eq!(found.len(), 1, "runs in {}", runs.display());
        found.remove(0)
    }

    /// All runs in a folder of runs.
    pub fn all_in(runs: &Path) -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir(runs) else {
            return Vec::new(); // nothing was ever recorded
        };
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir())
            .map(|folder| Self { folder })
            .collect()
    }

    pub fn json(&self) -> Value {
        let text = self.text("run.json");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("run.json: {e}: {text}"))
    }

    pub fn events(&self) -> Vec<Value> {
        let text = self.text("events.jsonl");
        text.lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("events.jsonl: {e}: {l}")))
            .collect()
    }

    /// The events of one kind.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|e| e["kind"] == kind);
        events
    }

    /// What was done of one kind, in the words of the record.
    pub fn actions(&self, what: &str) -> Vec<String> {
        let mut actions = self.events_of("action");
        actions.retain(|a| a["what"] == what);
        let result = |a: &Value| a["result"].as_str().unwrap().to_owned();
        actions.iter().map(result).collect()
    }

    pub fn samples(&self) -> Vec<Row> {
        let mut reader = csv::Reader::from_path(self.folder.join("samples.csv")).unwrap();
        reader.deserialize().map(|row| row.unwrap()).collect()
    }

    pub fn output(&self) -> Vec<u8> {
        std::fs::read(self.folder.join("output.log")).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        let path = self.folder.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
}

/// Removes what runs of this name left in the place for records of those who have no home,
/// which is the same for all tests and perhaps for people.
pub struct InTemp(pub String);

impl Drop for InTemp {
    fn drop(&mut self) {
        let place = format!("/tmp/gpuwatch-{}", nix::unistd::geteuid());
        let place = Path::new(&place);
        let mut others = 0;
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().contains(&self.0) {
                let _ = std::fs::remove_dir_all(entry.path());
            } else if entry.path().is_dir() {
                others += 1;
            }
        }
        if others == 0 {
            let _ = std::fs::remove_file(place.join("index.jsonl"));
            let _ = std::fs::remove_dir(place);
        }
    }
}
