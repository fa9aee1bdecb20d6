//! Shared memory, disks, the cgroup's limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FILES_WITHIN, Run};
use crate::doctor::facts::{Answer, Machine, Place, Space};

/// A limit as large as this is none: version 1 of cgroups writes 2^63 less a page.
const NO_LIMIT: u64 = 1 << 60;
const MIB: u64 = 1 << 20;

/// Looks below this root, and at these places as they are.
pub fn look(root: &Path, run: &Run<'_>, places: &[(&'static str, PathBuf)]) -> Machine {
    let shm = root.join("dev/shm");
    let (limit, used) = memory(root);
    let scope = fs::read_to_string(root.join("proc/sys/kernel/yama/ptrace_scope"));
    Machine {
        container: container(root),
        places: places
            .iter()
            .map(|(role, path)| Place {
                role,
                path: path.clone(),
                space: space(run, path),
            })
            .collect(),
        shm: shm.exists().then(|| space(run, &shm)),
        memory_limit_mib: limit,
        memory_used_mib: used,
        ptrace_scope: scope.ok().and_then(|text| text.trim().parse().ok()),
    }
}

fn container(root: &Path) -> bool {
    let marks = [".dockerenv", "run/.containerenv"];
    let mut groups = fs::read_to_string(root.join("proc/1/cgroup")).unwrap_or_default();
    groups.make_ascii_lowercase();
    marks.iter().any(|mark| root.join(mark).exists())
        || root.join("run/secrets/kubernetes.io").exists()
        || ["docker", "kubepods", "libpod", "lxc"]
            .iter()
            .any(|name| groups.contains(name))
}

/// What of a path exists: whether it may be written, and its file system's numbers.
const ASK: &str = r#"p=$1; while [ ! -e "${p:=/}" ]; do p=${p%/*}; done
[ -w "$p" ] && echo yes || echo no; exec stat -f -c '%S %b %a %c %d' "$p""#;

/// The file system of this directory, or of what of it exists.
///
/// Another process asks: a thread that waits for a dead server would keep us from ending.
fn space(run: &Run<'_>, path: &Path) -> Answer<Space> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", ASK, "sh"]).arg(path);
    // The user's may be what is wrong.
    command.env("PATH", "/usr/bin:/bin");
    match run(command, FILES_WITHIN) {
        Ok(ended) if ended.hung => Answer::Hung(FILES_WITHIN.as_secs()),
        Ok(ended) => numbers(&ended.stdout).map_or(Answer::Failed(ended.stderr), Answer::Said),
        Err(why) => Answer::Failed(why),
    }
}

fn numbers(said: &str) -> Option<Space> {
    let mut words = said.split_whitespace();
    let writable = words.next()? == "yes";
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let [size, blocks, free, files, free_files] = numbers.try_into().ok()?;
    Some(Space {
        total_mib: blocks.saturating_mul(size) / MIB,
        free_mib: free.saturating_mul(size) / MIB,
        // File systems without such a number say that they have none in all.
        no_files_left: files > 0 && free_files == 0,
        writable,
    })
}

/// The tightest limit from our cgroup up, and what is used where it stands.
fn memory(root: &Path) -> (Option<u64>, Option<u64>) {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut tightest: Option<(u64, Option<u64>)> = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, kinds, path) = (parts.next(), parts.next(), parts.next());
        let (mount, limit, used) = match kinds {
            Some("") => ("", "memory.max", "memory.current"),
            Some(kinds) if kinds.split(',').any(|k| k == "memory") => {
                ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        let base = root.join("sys/fs/cgroup").join(mount);
        let below = path.unwrap_or_default().trim_start_matches('/');
        for group in Path::new(below).ancestors() {
            let number = |file: &str| -> Option<u64> {
                let text = fs::read_to_string(base.join(group).join(file)).ok()?;
                text.trim().parse().ok()
            };
            if let Some(bytes) = number(limit).filter(|bytes| *bytes < NO_LIMIT)
                && tightest.is_none_or(|(least, _)| bytes < least)
            {
                tightest = Some((bytes, number(used)));
            }
        }
    }
    let (limit, used) = tightest.unzip();
    (limit.map(|b| b / MIB), used.flatten().map(|b| b / MIB))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_above_us_counts() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(memory(root.path()), (None, None));
        put("proc/self/cgroup", "0::/a/b\n");
        put("sys/fs/cgroup/a/b/memory.max", "max\n");
        put("sys/fs/cgroup/a/memory.max", "1073741824\n");
        put("sys/fs/cgroup/a/memory.current", "104857600\n");
        assert_eq!(memory(root.path()), (Some(1024), Some(100)));
        put("proc/self/cgroup", "5:memory:/a\n0::/\n");
        put(
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(memory(root.path()), (None, None));
    }

    #[test]
    fn a_container_shows() {
        let root = tempfile::tempdir().unwrap();
        assert!(!container(root.path()));
        fs::write(root.path().join(".dockerenv"), "").unwrap();
        assert!(container(root.path()));
    }

    #[test]
    fn what_stat_prints_is_read() {
        let space = numbers("yes\n4096 262144 25600 1000 0\n").unwrap();
        assert_eq!((space.total_mib, space.free_mib), (1024, 100));
        assert!(space.no_files_left && space.writable);
        let without_files = numbers("no\n4096 0 0 0 0\n").unwrap();
        assert!(!without_files.no_files_left && !without_files.writable);
        assert!(numbers("yes\nstat: no such option\n").is_none());
        assert!(numbers("").is_none());
    }
}
