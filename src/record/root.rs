//! Where records are kept.
//!
//! Owns the choice of place: `--dir`, else the user's state directory, else a private one in
//! `/tmp`. Must not know what is in it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use rustix::fs::Access;

use super::error::RecordError;
use super::files;

const CURE_DIR: &str = "give a directory that can be written with --dir, or use --no-record";

/// The place for a new run's record, made if it is missing (0700).
///
/// # Errors
/// An `explicit` place that can't be used; without one, [`RecordError::NoPlace`] or
/// [`RecordError::NotPrivate`] where neither home nor `/tmp` will do.
pub fn root_for_writing(explicit: Option<&Path>) -> Result<PathBuf, RecordError> {
    match explicit {
        Some(dir) => {
            let dir = absolute(dir)?;
            make_writable(&dir).map_err(RecordError::io("use", &dir, CURE_DIR))?;
            Ok(dir)
        }
        None => first_usable(home_root(), &temp_root()),
    }
}

/// The place to look for records: the one given, else the default one that exists; `None`
/// where no default one does.
///
/// # Errors
/// An `explicit` place that isn't a directory.
pub fn root_for_reading(explicit: Option<&Path>) -> Result<Option<PathBuf>, RecordError> {
    if let Some(dir) = explicit {
        let dir = absolute(dir)?;
        fs::read_dir(&dir).map_err(RecordError::io(
            "read",
            &dir,
            "give the directory that holds the runs with --dir",
        ))?;
        return Ok(Some(dir));
    }
    let home = home_root().filter(|dir| dir.is_dir());
    Ok(home.or_else(|| Some(temp_root()).filter(|dir| is_private(dir))))
}

/// `$XDG_STATE_HOME/gpuwatch/runs`, else `~/.local/state/gpuwatch/runs`.
fn home_root() -> Option<PathBuf> {
    let base = etcetera::base_strategy::Xdg::new().ok()?;
    Some(base.state_dir()?.join("gpuwatch/runs"))
}

fn temp_root() -> PathBuf {
    PathBuf::from(format!("/tmp/gpuwatch-{}", user()))
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn absolute(dir: &Path) -> Result<PathBuf, RecordError> {
    std::path::absolute(dir).map_err(RecordError::io("use", dir, CURE_DIR))
}

fn first_usable(home: Option<PathBuf>, temp: &Path) -> Result<PathBuf, RecordError> {
    if let Some(dir) = home
        && dir.is_absolute()
        && make_writable(&dir).is_ok()
    {
        return Ok(dir);
    }
    match files::create_dir(temp) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(RecordError::NoPlace),
        _ => {}
    }
    // Whoever owns a directory in /tmp can put links into it: only our own will do.
    if !is_private(temp) {
        return Err(RecordError::NotPrivate {
            path: temp.to_owned(),
        });
    }
    Ok(temp.to_owned())
}

fn make_writable(dir: &Path) -> io::Result<()> {
    files::create_dirs(dir)?;
    rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(())
}

/// A real directory of ours that nobody else may enter.
fn is_private(dir: &Path) -> bool {
    fs::symlink_metadata(dir)
        .is_ok_and(|m| m.is_dir() && m.uid() == user() && m.mode() & 0o777 == 0o700)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn home_first_then_a_private_place_in_tmp() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home/state/gpuwatch/runs");
        let fallback = temp.path().join("gpuwatch-0");
        assert_eq!(first_usable(Some(home.clone()), &fallback).unwrap(), home);
        assert!(!fallback.exists());
        let file = temp.path().join("file");
        fs::write(&file, "").unwrap();
        let blocked = Some(file.join("gpuwatch/runs"));
        assert_eq!(first_usable(blocked, &fallback).unwrap(), fallback);
        assert_eq!(first_usable(None, &fallback).unwrap(), fallback);
        let mode = fs::metadata(&fallback).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700);
    }

    #[test]
    fn a_link_or_an_open_directory_in_tmp_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let real = temp.path().join("real");
        files::create_dir(&real).unwrap();
        let link = temp.path().join("link");
        symlink(&real, &link).unwrap();
        assert!(matches!(
            first_usable(None, &link),
            Err(RecordError::NotPrivate { .. })
        ));
        fs::set_permissions(&real, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(
            first_usable(None, &real),
            Err(RecordError::NotPrivate { .. })
        ));
        assert!(matches!(
            first_usable(None, &temp.path().join("no/such")),
            Err(RecordError::NoPlace)
        ));
    }

    #[test]
    fn a_place_that_was_asked_for_is_used_or_refused() {
        let temp = tempfile::tempdir().unwrap();
        let asked = temp.path().join("with space\nand newline/runs");
        assert_eq!(root_for_writing(Some(&asked)).unwrap(), asked);
        let file = temp.path().join("file");
        fs::write(&file, "").unwrap();
        let said = root_for_writing(Some(&file.join("runs")))
            .unwrap_err()
            .to_string();
        assert!(said.starts_with("cannot use "), "{said}");
        assert!(said.contains("--dir"), "{said}");
        assert!(root_for_reading(Some(&file)).is_err());
    }
}
