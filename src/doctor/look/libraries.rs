//! Which of CUDA's libraries the loader finds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::{Run, within};

const WITHIN: Duration = Duration::from_secs(1);

/// The loader's own folders, then those of `LD_LIBRARY_PATH`; none if the loader's list can't be
/// had.
pub fn loader(run: &Run<'_>, library_path: Option<&str>) -> Option<BTreeSet<String>> {
    let listed = ["/sbin/ldconfig", "/usr/sbin/ldconfig"]
        .iter()
        .find(|program| Path::new(program).exists())?;
    let mut command = Command::new(listed);
    command.arg("-p");
    let ended = run(command, WITHIN).ok().filter(|ended| ended.success)?;
    let mut found: BTreeSet<String> = ended
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| is_ours(name))
        .map(str::to_owned)
        .collect();
    let folders = library_path.unwrap_or_default().split(':');
    for folder in folders.filter(|f| f.starts_with('/')) {
        found.extend(in_folder(Path::new(folder)));
    }
    Some(found)
}

/// Those of the CUDA toolkit, wherever it is told to look.
pub fn toolkit() -> BTreeSet<String> {
    in_folder(Path::new("/usr/local/cuda/lib64"))
}

fn in_folder(folder: &Path) -> BTreeSet<String> {
    let folder: PathBuf = folder.to_owned();
    let names = within(move || {
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .filter(|name| is_ours(name))
            .collect()
    });
    names.unwrap_or_default()
}

fn is_ours(name: &str) -> bool {
    ["libcuda.so.", "libcudart.so.", "libcudnn.so."]
        .iter()
        .any(|start| name.starts_with(start))
}
