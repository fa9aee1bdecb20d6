//! What running processes say of themselves: `<scenario>.d/<pid>.json`, one file a process.
//!
//! A file whose process has died, or whose PID now belongs to another process, counts no
//! more; nobody needs to remove it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What one process holds and uses on one GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Share {
    pub mib: u64,
    pub sm: u32,
    pub mem: u32,
    /// The MIG device that it is on.
    pub gi: Option<u32>,
    pub ci: Option<u32>,
}

/// One process's file.
#[derive(Debug, Deserialize)]
struct Said {
    pid: u32,
    /// Field 22 of `/proc/<pid>/stat`: tells a reused PID from the process that wrote this.
    start: u64,
    #[serde(default)]
    gpus: BTreeMap<u32, Share>,
}

/// A live process's share of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    pub gpu: u32,
    pub pid: u32,
    pub share: Share,
}

/// Where the processes' files are.
pub fn directory(scenario: &Path) -> PathBuf {
    let mut name = scenario.as_os_str().to_owned();
    name.push(".d");
    name.into()
}

/// Every share that a live process claims.
pub fn read(dir: &Path) -> Vec<Live> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else {
        return found;
    };
    for entry in entries.flatten() {
        // A writer's temporary file has another ending.
        if entry.path().extension().is_none_or(|e| e != "json") {
            continue;
        }
        let said = fs::read(entry.path())
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Said>(&bytes).ok());
        let Some(said) = said.filter(|s| start_time(s.pid) == Some(s.start)) else {
            continue;
        };
        found.extend(said.gpus.iter().map(|(&gpu, &share)| Live {
            gpu,
            pid: said.pid,
            share,
        }));
    }
    found.sort_by_key(|l| (l.gpu, l.pid));
    found
}

/// When a process that still runs was started, in ticks since boot; a zombie doesn't run.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_that_still_run_count() {
        let dir = std::env::temp_dir().join(format!("fake-nvml-live-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let me = std::process::id();
        let start = start_time(me).unwrap();
        let text = |start: u64| {
            format!(r#"{{"pid":{me},"start":{start},"gpus":{{"1":{{"mib":512,"sm":40}}}}}}"#)
        };
        fs::write(dir.join("1.json"), text(start)).unwrap();
        fs::write(dir.join("2.json"), text(start + 1)).unwrap();
        fs::write(dir.join("3.tmp"), text(start)).unwrap();
        fs::write(dir.join("4.json"), "torn").unwrap();
        let share = Share {
            mib: 512,
            sm: 40,
            ..Share::default()
        };
        assert_eq!(
            read(&dir),
            [Live {
                gpu: 1,
                pid: me,
                share
            }]
        );
        fs::remove_dir_all(&dir).unwrap();
    }
}
