//! What becomes of `--mem-limit`: variables, and a folder with a start-up hook for Python.
//!
//! Owns the hook's text and what is said where a limit can't be kept.

use std::path::{Path, PathBuf};

use super::request::{Refused, Request};
use crate::plan::env::Memory;
use crate::plan::memory::{Limited, limited};
use crate::record::{HookFile, hook_at_home, make_hook};

/// The hook, as it stands in its folder.
const HOOK: &[HookFile] = &[
    ("sitecustomize.py", include_str!("python/sitecustomize.py")),
    ("limits.py", include_str!("python/limits.py")),
];

/// A limit that was asked for.
pub struct MemoryLimit {
    limited: Limited,
    hook: Option<PathBuf>,
    why: String,
}

impl MemoryLimit {
    /// What is set for this run, on GPUs with so much memory. Nothing is written yet.
    ///
    /// # Errors
    /// It was asked for, and no GPU has as much.
    pub fn of(
        request: &Request,
        totals_mib: Option<&[u64]>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Self>, Refused> {
        let settings = &request.settings;
        let Some(limit) = settings.mem_limit else {
            return Ok(None);
        };
        let asked = settings.mem_limit_asked;
        if request.no_env && !asked {
            return Ok(None);
        }
        match limited(limit, totals_mib) {
            Ok(limited) => {
                let named = settings.framework.as_ref().map(|(name, _)| name.as_str());
                let note = limited.note.clone();
                let note = note.filter(|(about, _)| named.is_none_or(|name| name == *about));
                notes.extend(note.map(|(_, why)| why));
                let source = if asked {
                    "--mem-limit"
                } else {
                    "gpus.mem_limit"
                };
                Ok(Some(Self {
                    limited,
                    hook: hook_at_home(),
                    why: format!("{source} {limit}"),
                }))
            }
            Err(why) if asked => Err(Refused::own(format!(
                "--mem-limit: {why}: give less, or a share like 80%"
            ))),
            // A profile is for many machines.
            Err(why) => {
                notes.push(format!(
                    "gpus.mem_limit of the profile limits nothing: {why}"
                ));
                Ok(None)
            }
        }
    }

    /// Writes the hook; where that can't be done, what needs it isn't limited.
    pub fn write_hook(&mut self, run_dir: Option<&Path>, notes: &mut Vec<String>) {
        self.hook = match make_hook(HOOK, run_dir) {
            Ok(place) => Some(place),
            Err(error) => {
                notes.push(format!(
                    "the memory limit is not kept by TensorFlow and PyTorch: {error}"
                ));
                None
            }
        };
    }

    /// For the environment.
    pub fn memory(&self) -> Memory<'_> {
        Memory {
            limited: &self.limited,
            hook: self.hook.as_deref().map(Path::as_os_str),
            why: &self.why,
        }
    }
}
