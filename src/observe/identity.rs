//! Who runs this, where, and out of which working tree: facts of a run's record.
//!
//! Owns asking the system for them. Some answers come from a network (user directories, network
//! file systems), so nothing here belongs on the path to the child's start.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

/// The login name of the real user, else its number.
pub fn user() -> String {
    let uid = Uid::current();
    match User::from_uid(uid) {
        Ok(Some(user)) if !user.name.is_empty() => user.name,
        _ => uid.to_string(),
    }
}

/// The machine's name; `None` where the kernel doesn't tell.
pub fn host() -> Option<String> {
    nix::unistd::gethostname()
        .ok()
        .filter(|name| !name.is_empty())
        .map(|name| name.to_string_lossy().into_owned())
}

/// The machine's main memory, MiB; `None` where the kernel doesn't tell.
pub fn host_mem_mib() -> Option<f64> {
    let text = fs::read("/proc/meminfo").ok()?;
    let kib = super::parse::keyed(&text, b"MemTotal")?;
    // As `samples.csv` rounds what it is compared with.
    Some((kib as f64 / 1024.0 * 10.0).round() / 10.0)
}

/// The working directory; `None` where it was deleted or may not be looked up.
pub fn cwd() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

/// The git work tree that holds `from`: the nearest directory above with a `.git` in it.
///
/// Stays on one file system, as git does: further up, a look may mount something.
pub fn work_tree(from: &Path) -> Option<PathBuf> {
    let device = fs::metadata(from).ok()?.dev();
    from.ancestors()
        .take_while(|dir| fs::metadata(dir).is_ok_and(|found| found.dev() == device))
        .find(|dir| dir.join(".git").exists())
        .map(Path::to_owned)
}

/// The project: the git work tree's root, else the directory itself.
pub fn project(cwd: &Path) -> PathBuf {
    work_tree(cwd).unwrap_or_else(|| cwd.to_owned())
}

/// The abbreviated commit (7 hexadecimal digits) that the work tree at `root` is on.
///
/// Reads the files of gitrepository-layout(5) without git. `None` on a branch without commits,
/// and for the rare repository whose references aren't files.
pub fn commit(root: &Path) -> Option<String> {
    let private = git_dir(root)?;
    let common = fs::read_to_string(private.join("commondir"))
        .map_or_else(|_| private.clone(), |path| private.join(path.trim_end()));
    let head = fs::read_to_string(private.join("HEAD")).ok()?;
    let mut text = head.trim().to_owned();
    // A reference may name another one; git gives up after five.
    for _ in 0..5 {
        let Some(name) = text.strip_prefix("ref: ").map(str::trim) else {
            return abbreviated(&text);
        };
        if Path::new(name).is_absolute() || name.split('/').any(|part| part == "..") {
            return None;
        }
        let target = [&private, &common]
            .iter()
            .find_map(|dir| fs::read_to_string(dir.join(name)).ok())
            .or_else(|| packed(&common, name))?;
        target.trim().clone_into(&mut text);
    }
    None
}

/// `.git`, or the directory that the file `.git` of a worktree or submodule names.
fn git_dir(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = fs::read_to_string(dot_git).ok()?;
    let path = text.strip_prefix("gitdir:")?.trim();
    (!path.is_empty()).then(|| root.join(OsStr::new(path)))
}

/// A reference in `packed-refs`: lines of `hash name`.
fn packed(common: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(common.join("packed-refs")).ok()?;
    text.lines().find_map(|line| {
        let (hash, found) = line.split_once(' ')?;
        (found == name).then(|| hash.to_owned())
    })
}

fn abbreviated(hash: &str) -> Option<String> {
    let whole = hash.len() >= 40 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    if whole {
        hash.get(..7).map(str::to_owned)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "9b1c4de0123456789abcdef0123456789abcdef0";
    const OTHER: &str = "1111111111111111111111111111111111111111";

    fn file(dir: &Path, relative: &str, text: &str) {
        let path = dir.join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn every_user_and_host_has_a_name() {
        assert!(!user().is_empty());
        assert!(host().is_some_and(|name| !name.is_empty()));
        assert_eq!(cwd(), std::env::current_dir().ok());
    }

    #[test]
    fn the_commit_is_found_wherever_git_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert_eq!(commit(root), None);
        file(root, ".git/HEAD", "ref: refs/heads/main\n");
        assert_eq!(commit(root), None, "a branch without commits");
        let packed = format!("# pack-refs with: peeled\n{HASH} refs/heads/main\n^{OTHER}\n");
        file(root, ".git/packed-refs", &packed);
        assert_eq!(commit(root).as_deref(), Some("9b1c4de"));
        file(root, ".git/refs/heads/main", &format!("{OTHER}\n"));
        assert_eq!(commit(root).as_deref(), Some("1111111"));
        file(root, ".git/HEAD", &format!("{HASH}\n"));
        assert_eq!(commit(root).as_deref(), Some("9b1c4de"));
        file(root, ".git/HEAD", "ref: ../../secret\n");
        assert_eq!(commit(root), None);
    }

    #[test]
    fn a_linked_worktree_shares_the_references() {
        let dir = tempfile::tempdir().unwrap();
        let main = dir.path().join("main/.git");
        file(&main, "refs/heads/fix", HASH);
        file(&main, "worktrees/fix/HEAD", "ref: refs/heads/fix\n");
        file(&main, "worktrees/fix/commondir", "../..\n");
        let linked = dir.path().join("fix");
        file(&linked, ".git", "gitdir: ../main/.git/worktrees/fix\n");
        assert_eq!(commit(&linked).as_deref(), Some("9b1c4de"));
        file(&linked, "src/a", "");
        assert_eq!(work_tree(&linked.join("src")), Some(linked));
    }

    #[test]
    fn without_git_the_directory_is_the_project() {
        let dir = tempfile::tempdir().unwrap();
        // The temporary directory itself might lie in somebody's work tree.
        if work_tree(dir.path()).is_none() {
            assert_eq!(project(dir.path()), dir.path());
        }
        fs::create_dir_all(dir.path().join(".git")).unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        assert_eq!(project(&dir.path().join("a/b")), dir.path());
        assert_eq!(work_tree(&dir.path().join("gone")), None);
    }
}
