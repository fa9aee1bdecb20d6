//! Files that the user has vouched for, by path and content.
//!
//! Owns `$XDG_STATE_HOME/gpuwatch/trusted`: lines as `sha256sum` writes them, 0600. A file that
//! changes loses its trust.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};

/// Whether somebody has vouched for this file with this content.
pub fn is_trusted(path: &Path, content: &[u8]) -> bool {
    let Some(line) = path.canonicalize().ok().and_then(|p| line(&p, content)) else {
        return false;
    };
    let own = |store: &PathBuf| {
        // What others can write proves nothing.
        let metadata = fs::metadata(store).ok();
        metadata.is_some_and(|m| m.uid() == user() && m.mode() & 0o022 == 0)
    };
    let known = store()
        .filter(own)
        .and_then(|store| fs::read_to_string(store).ok());
    known.is_some_and(|known| known.lines().any(|known| known == line))
}

/// Vouches for a file with this content.
///
/// # Errors
/// Why it can't be kept.
pub fn trust(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    let line = line(&path, content).ok_or_else(|| {
        io::Error::other("the file's path is not plain text on one line: move it elsewhere")
    })?;
    let store =
        store().ok_or_else(|| io::Error::other("there is no home directory to keep it in"))?;
    let dir = store.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let known = match fs::read_to_string(&store) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        known => known.unwrap_or_default(),
    };
    let same_path = |known: &&str| known.get(HASH..) == line.get(HASH..);
    let others = known.lines().filter(|known| !same_path(known));
    let lines: Vec<&str> = others.chain([line.as_str(), ""]).collect();
    let text = lines.join("\n");
    let new = store.with_extension(format!("new-{}", std::process::id()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| fs::rename(&new, &store));
    if written.is_err() {
        // It is of no use, and the first error says why.
        let _ = fs::remove_file(&new);
    }
    written.map(|()| path)
}

/// Characters of a hash in hexadecimal.
const HASH: usize = 64;

fn line(path: &Path, content: &[u8]) -> Option<String> {
    let path = path.to_str().filter(|path| !path.contains(['\n', '\r']))?;
    let hash = Sha256::digest(content);
    let hex: Vec<String> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let hex = hex.concat();
    Some(format!("{hex}  {path}"))
}

fn store() -> Option<PathBuf> {
    let base = etcetera::base_strategy::Xdg::new().ok()?;
    let store = base.state_dir()?.join("gpuwatch/trusted");
    store.is_absolute().then_some(store)
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}
