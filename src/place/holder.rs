//! Who a process on a GPU is, for people: user, command, since when.
//!
//! Owns reading that from `/proc`, under a root that tests replace. Judges nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{SysconfVar, Uid, User, sysconf};

use crate::sys::process::{children, stat_field_of};

/// What is known of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    /// The name of its user, or the number where it has none.
    pub user: Option<String>,
    /// The command line, or the short name in brackets where it has none.
    pub command: Option<String>,
    /// The short name (`comm`).
    pub name: Option<String>,
    /// Seconds since 1970 when it was started.
    pub since: Option<f64>,
    /// The gpuwatch run that it belongs to, where its environment may be read and says so.
    pub run: Option<String>,
}

/// Looks a process up; what can't be read is None.
pub fn holder(proc: &Path, pid: u32) -> Holder {
    let dir = proc.join(pid.to_string());
    // A name may be no text.
    let name = fs::read(dir.join("comm"))
        .ok()
        .map(|n| String::from_utf8_lossy(&n).trim_end().to_owned());
    Holder {
        user: fs::metadata(&dir).ok().map(|m| user_name(m.uid())),
        command: command_line(&dir).or_else(|| name.as_ref().map(|n| format!("[{n}]"))),
        name,
        since: started(proc, &dir),
        run: run_of(&dir),
    }
}

/// The gpuwatch that has claimed a GPU. Its run is the one that its command was told of.
pub fn claimant(proc: &Path, pid: u32) -> Holder {
    let mut found = holder(proc, pid);
    found.run = children(pid)
        .into_iter()
        .find_map(|child| run_of(&proc.join(child.to_string())))
        .or(found.run);
    found
}

/// `GPUWATCH_RUN_ID` in the environment that the process was started with. Another process
/// may have made it up, so only what an id can be is passed on.
fn run_of(dir: &Path) -> Option<String> {
    let environ = fs::read(dir.join("environ")).ok()?;
    let id = environ
        .split(|b| *b == 0)
        .find_map(|entry| entry.strip_prefix(b"GPUWATCH_RUN_ID="))?;
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"._-".contains(b);
    let id = std::str::from_utf8(id)
        .ok()
        .filter(|id| !id.is_empty() && id.len() <= 80)?;
    id.bytes().all(|b| plain(&b)).then(|| id.to_owned())
}

fn user_name(uid: u32) -> String {
    User::from_uid(Uid::from_raw(uid))
        .ok()
        .flatten()
        .map_or_else(|| uid.to_string(), |u| u.name)
}

/// The arguments joined by spaces, control characters taken out: it goes to a terminal.
fn command_line(dir: &Path) -> Option<String> {
    let bytes = fs::read(dir.join("cmdline")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<_> = text.split('\0').collect();
    let line: String = words
        .join(" ")
        .trim_end()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    (!line.is_empty()).then_some(line)
}

/// Boot time plus the process's start, which the kernel counts in ticks since boot.
fn started(proc: &Path, dir: &Path) -> Option<f64> {
    let ticks: f64 = stat_field_of(dir, 22)?.parse().ok()?;
    let boot = fs::read_to_string(proc.join("stat")).ok()?;
    let boot: f64 = boot
        .lines()
        .find_map(|l| l.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten()?;
    Some(boot + ticks / per_second as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_proc_says() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("42");
        fs::create_dir(&dir).unwrap();
        fs::write(root.path().join("stat"), "cpu 1 2\nbtime 1000\n").unwrap();
        fs::write(dir.join("comm"), "py (x)\n").unwrap();
        fs::write(
            dir.join("environ"),
            "A=b\0GPUWATCH_RUN_ID=20261130-1-train-7f3a\0",
        )
        .unwrap();
        fs::write(dir.join("cmdline"), "python\0train.py\0--name\0a\x1b[31m\0").unwrap();
        let fields: Vec<_> = (4..=21).map(|n| n.to_string()).collect();
        fs::write(
            dir.join("stat"),
            format!("42 (py (x)) S {} 500 9", fields.join(" ")),
        )
        .unwrap();
        let found = holder(root.path(), 42);
        assert_eq!(
            found.command.as_deref(),
            Some("python train.py --name a [31m")
        );
        assert_eq!(found.name.as_deref(), Some("py (x)"));
        let per_second = sysconf(SysconfVar::CLK_TCK).unwrap().unwrap() as f64;
        assert_eq!(found.since, Some(1000.0 + 500.0 / per_second));
        assert!(found.user.is_some());
        assert_eq!(found.run.as_deref(), Some("20261130-1-train-7f3a"));
        fs::write(dir.join("environ"), "GPUWATCH_RUN_ID=\x1b[31m\0").unwrap();
        assert_eq!(
            holder(root.path(), 42).run,
            None,
            "foreign text isn't an id"
        );
    }

    #[test]
    fn a_name_that_is_no_text_hides_nothing() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("42");
        fs::create_dir(&dir).unwrap();
        fs::write(root.path().join("stat"), "btime 1000\n").unwrap();
        fs::write(dir.join("comm"), b"train\xff\n").unwrap();
        let mut stat = b"42 (train\xff) S".to_vec();
        stat.extend(b" 0".repeat(19));
        fs::write(dir.join("stat"), stat).unwrap();
        let found = holder(root.path(), 42);
        assert_eq!(found.name.as_deref(), Some("train\u{fffd}"));
        assert_eq!(found.since, Some(1000.0));
    }

    #[test]
    fn a_kernel_thread_has_a_name_and_a_dead_process_has_nothing() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("7");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("comm"), "nvidia\n").unwrap();
        fs::write(dir.join("cmdline"), "").unwrap();
        assert_eq!(holder(root.path(), 7).command.as_deref(), Some("[nvidia]"));
        assert_eq!(holder(root.path(), 8), Holder::default());
    }
}
