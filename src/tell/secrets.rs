//! Reading secrets from where a profile says they are, before a run starts.
//!
//! Owns the rules for files that hold them. Nothing here repeats a secret, nor a part of one.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::{Hidden, SecretRef};

/// No secret is longer, bytes.
const MOST: u64 = 64 * 1024;

/// Why a secret can't be had: one sentence that says what to do.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The variable isn't there, or isn't text.
    #[error("the variable {0} is not set: export it before the run")]
    Unset(String),
    /// The file can't be read.
    #[error("its secret file {} can't be read: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Others can read the file.
    #[error("its secret file {0} can be read by others: chmod 600 {0}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing in it.
    #[error("its secret {0} is empty")]
    Empty(SecretRef),
    /// It can't be what it should be.
    #[error("its secret {0} is not text of one line")]
    NotALine(SecretRef),
}

/// The secret, without blanks around it.
///
/// # Errors
/// Why it can't be had.
pub fn read(secret: &SecretRef) -> Result<Hidden, SecretError> {
    let text = match secret {
        SecretRef::Literal(hidden) => hidden.expose().to_owned(),
        SecretRef::Env(name) => {
            std::env::var(name).map_err(|_| SecretError::Unset(name.clone()))?
        }
        SecretRef::File(path) => from_file(&at_home(path), secret)?,
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(SecretError::Empty(secret.clone()));
    }
    if text.contains(char::is_control) {
        return Err(SecretError::NotALine(secret.clone()));
    }
    Ok(Hidden::new(text))
}

/// `~/` is the home directory.
fn at_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

fn from_file(path: &Path, secret: &SecretRef) -> Result<String, SecretError> {
    let unreadable = |why: &dyn std::fmt::Display| SecretError::Unreadable {
        path: path.to_owned(),
        why: why.to_string(),
    };
    // Opening a pipe or a device must not wait.
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => unreadable(&"there is no such file"),
            kind => unreadable(&kind),
        })?;
    let about = file.metadata().map_err(|e| unreadable(&e.kind()))?;
    if !about.is_file() {
        return Err(unreadable(&"it is not a regular file"));
    }
    if about.mode() & 0o044 != 0 {
        return Err(SecretError::Open {
            path: path.to_owned(),
        });
    }
    if about.len() > MOST {
        return Err(unreadable(&"it is longer than 64 KiB"));
    }
    let mut bytes = Vec::new();
    file.by_ref()
        .take(MOST)
        .read_to_end(&mut bytes)
        .map_err(|e| unreadable(&e.kind()))?;
    // The error of the conversion would hold the bytes.
    String::from_utf8(bytes).map_err(|_| SecretError::NotALine(secret.clone()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_of_ones_own_is_read_and_any_other_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hook");
        let secret = SecretRef::File(path.clone());
        let said = |secret: &SecretRef| read(secret).unwrap_err().to_string();
        assert!(said(&secret).contains("no such file"));
        fs::write(&path, "https://example.org/t0ken\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&secret).unwrap().expose(), "https://example.org/t0ken");
        for mode in [0o644, 0o640, 0o604] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(said(&secret).contains("chmod 600"), "{mode:o}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let long = vec![b'x'; 70_000];
        for content in [&b"\n"[..], b"t0ken\nmore", b"t0ken\xff", &long] {
            fs::write(&path, content).unwrap();
            assert!(!said(&secret).contains("t0ken"));
        }
        assert!(said(&SecretRef::File(dir.path().into())).contains("regular file"));
        let unset = said(&SecretRef::parse("env:GPUWATCH_TEST_NO_SUCH"));
        assert!(unset.contains("GPUWATCH_TEST_NO_SUCH"));
    }
}
