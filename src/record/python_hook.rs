//! The folder that a memory limit puts on `PYTHONPATH`.
//!
//! Owns where it is and that it holds what it should. One folder serves all runs of a version and
//! stays when they end, since workers that start late, and children of a gpuwatch that was killed,
//! read it too. Must not know what is in the files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use super::error::{CURE_WRITE, RecordError};
use super::files;

/// A file of it: its name and its text.
pub type HookFile = (&'static str, &'static str);

/// Where it is in the user's state directory; None where there is no such directory.
pub fn hook_at_home() -> Option<PathBuf> {
    let base = etcetera::base_strategy::Xdg::new().ok()?;
    let home = base.state_dir()?.join("gpuwatch/python");
    let home = home.join(env!("CARGO_PKG_VERSION"));
    // An entry of PYTHONPATH ends at a colon.
    (home.is_absolute() && is_one_entry(&home)).then_some(home)
}

/// Makes sure that it is there, in the user's state directory or else in the run's, and says where.
///
/// # Errors
/// It can be written nowhere.
pub fn make_hook(files: &[HookFile], run_dir: Option<&Path>) -> Result<PathBuf, RecordError> {
    let in_run = run_dir.map(|dir| dir.join("python"));
    let mut error = RecordError::NoPlace;
    for place in hook_at_home().into_iter().chain(in_run) {
        if !is_one_entry(&place) {
            continue;
        }
        match write(&place, files) {
            Ok(()) => return Ok(place),
            Err(e) => error = RecordError::io("write", &place, CURE_WRITE)(e),
        }
    }
    Err(error)
}

fn is_one_entry(path: &Path) -> bool {
    !path.as_os_str().as_encoded_bytes().contains(&b':')
}

/// A file that is right already is left alone: others may be reading it.
fn write(place: &Path, files: &[HookFile]) -> io::Result<()> {
    files::create_dirs(place)?;
    for (name, text) in files {
        let path = place.join(name);
        let is_right = fs::read(&path).is_ok_and(|content| content == text.as_bytes());
        if !is_right {
            files::replace(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_kept_or_made_right() {
        let temp = tempfile::tempdir().unwrap();
        let place = temp.path().join("a/python");
        let read = || fs::read_to_string(place.join("x.py")).unwrap();
        write(&place, &[("x.py", "one")]).unwrap();
        assert_eq!(read(), "one");
        let written = fs::metadata(place.join("x.py"))
            .unwrap()
            .modified()
            .unwrap();
        write(&place, &[("x.py", "one")]).unwrap();
        let again = fs::metadata(place.join("x.py"))
            .unwrap()
            .modified()
            .unwrap();
        assert_eq!(again, written);
        write(&place, &[("x.py", "two")]).unwrap();
        assert_eq!(read(), "two");
    }
}
