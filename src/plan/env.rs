//! Which environment variables the child gets beyond ours, and why.
//!
//! Owns the rule: only what is unset is set (an inherited value wins, even an empty one), except
//! what the user asks for with `--env` or `--gpus`. Pure: the inherited environment is an
//! argument.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use thiserror::Error;

use crate::model::EnvSetting;

use super::profile::Variable;
use super::{argv, secrets};

/// The variable that chooses a CUDA program's devices.
pub const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// The variable that tells what its indices mean.
pub const ORDER: &str = "CUDA_DEVICE_ORDER";
/// The order in which NVML counts devices; CUDA's own default is `FASTEST_FIRST`.
pub const NVML_ORDER: &str = "PCI_BUS_ID";

/// A variable that the child gets, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvChange {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: OsString,
    /// The reason, for the record and `--dry-run`.
    pub why: String,
}

/// GPUs that were chosen for the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The value of `CUDA_VISIBLE_DEVICES` in NVML's indices; MIG devices by UUID.
    pub indices: String,
    /// The same by UUID, which every device order understands; `None` where the driver
    /// doesn't tell them.
    pub uuids: Option<String>,
    /// How they were chosen: `free`, `auto`, `id:0,1`.
    pub how: String,
    /// Whether the user asked for them (`--gpus`) and so narrows an inherited value.
    pub asked: bool,
}

/// The record, as the child may know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordPaths {
    /// The run's id.
    pub id: String,
    /// The run's directory.
    pub dir: OsString,
    /// The file to which the child may write its progress.
    pub progress: OsString,
}

/// All that the decision depends on.
#[derive(Clone, Copy)]
pub struct EnvInputs<'a> {
    /// The inherited environment.
    pub inherited: &'a dyn Fn(&str) -> Option<OsString>,
    /// `--env`, in the order typed: the last one of a name counts.
    pub user: &'a [(String, OsString)],
    /// The chosen GPUs; `None` leaves the device variables alone.
    pub chosen: Option<&'a Chosen>,
    /// The profiles'.
    pub profile: &'a [Variable],
    /// Whether stdout is relayed by a pipe: Python would hold its output back.
    pub stdout_is_pipe: bool,
    /// The record; `None` where there is none.
    pub record: Option<&'a RecordPaths>,
    /// `--no-env`: nothing but what was asked for (`--env`, `--gpus`) and what names the record.
    pub no_env: bool,
}

/// The changes, each name once: devices, profile, Python, the record, the user's own.
pub fn environment(inputs: &EnvInputs<'_>) -> Vec<EnvChange> {
    let mut changes = Vec::new();
    if let Some(chosen) = inputs.chosen {
        devices(inputs, chosen, &mut changes);
    }
    if !inputs.no_env {
        for variable in inputs.profile {
            let why = format!("profile {}", variable.source);
            if_unset(inputs, &variable.name, &variable.value, &why, &mut changes);
        }
        if inputs.stdout_is_pipe {
            let why = "stdout is a pipe";
            if_unset(inputs, "PYTHONUNBUFFERED", "1", why, &mut changes);
        }
    }
    if let Some(record) = inputs.record {
        let values = [
            ("GPUWATCH_RUN_ID", OsStr::new(&record.id)),
            ("GPUWATCH_RUN_DIR", &record.dir),
            ("GPUWATCH_PROGRESS", &record.progress),
        ];
        // An inherited one is an outer run's.
        for (name, value) in values {
            put(&mut changes, change(name, value, "record"));
        }
    }
    for (name, value) in inputs.user {
        put(&mut changes, change(name, value, "--env"));
    }
    changes
}

fn devices(inputs: &EnvInputs<'_>, chosen: &Chosen, changes: &mut Vec<EnvChange>) {
    let taken = (inputs.inherited)(VISIBLE).is_some() || inputs.no_env;
    if typed(inputs, VISIBLE).is_some() || (taken && !chosen.asked) {
        return;
    }
    let order = typed(inputs, ORDER)
        .cloned()
        .or_else(|| (inputs.inherited)(ORDER));
    let why = format!("chosen: {}", chosen.how);
    match order {
        None => {
            changes.push(change(VISIBLE, OsStr::new(&chosen.indices), &why));
            let why = "CUDA_VISIBLE_DEVICES holds NVML's indices";
            changes.push(change(ORDER, OsStr::new(NVML_ORDER), why));
        }
        Some(order) if order == NVML_ORDER => {
            changes.push(change(VISIBLE, OsStr::new(&chosen.indices), &why));
        }
        // Another order is kept, so indices would name other devices. Without UUIDs nothing is
        // set: all devices are better than wrong ones.
        Some(_) => {
            let uuids = chosen.uuids.iter();
            changes.extend(uuids.map(|uuids| change(VISIBLE, OsStr::new(uuids), &why)));
        }
    }
}

fn typed<'a>(inputs: &EnvInputs<'a>, name: &str) -> Option<&'a OsString> {
    let mut typed = inputs.user.iter().rev();
    typed
        .find(|(known, _)| known == name)
        .map(|(_, value)| value)
}

fn if_unset(
    inputs: &EnvInputs<'_>,
    name: &str,
    value: &str,
    why: &str,
    changes: &mut Vec<EnvChange>,
) {
    if (inputs.inherited)(name).is_none() {
        put(changes, change(name, OsStr::new(value), why));
    }
}

fn change(name: &str, value: &OsStr, why: &str) -> EnvChange {
    EnvChange {
        name: name.to_owned(),
        value: value.to_owned(),
        why: why.to_owned(),
    }
}

/// The later one of a name counts.
fn put(changes: &mut Vec<EnvChange>, change: EnvChange) {
    changes.retain(|known| known.name != change.name);
    changes.push(change);
}

/// The changes as `run.json` shows them: bytes escaped as in `argv`, secrets masked.
pub fn recorded(changes: &[EnvChange]) -> BTreeMap<String, EnvSetting> {
    let setting = |change: &EnvChange| EnvSetting {
        value: secrets::mask_variable(&change.name, &argv::escape(&change.value)),
        why: change.why.clone(),
    };
    changes
        .iter()
        .map(|change| (change.name.clone(), setting(change)))
        .collect()
}

/// What is wrong with a value of `--env`.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EnvArgError {
    /// No `=`.
    #[error("'{0}' has no '=' in it: write NAME=VALUE (NAME= sets it empty)")]
    NoValue(String),
    /// Nothing before the `=`.
    #[error("'{0}' has no name before the '=': write NAME=VALUE")]
    NoName(String),
    /// A name that no program could look up.
    #[error("'{0}' can't be a variable's name: use letters, digits and '_'")]
    Name(String),
}

/// Parses the value of `--env NAME=VALUE`: the first `=` ends the name, and the value may be
/// any bytes. The name is printable ASCII without blanks.
pub fn parse_env_arg(arg: &OsStr) -> Result<(String, OsString), EnvArgError> {
    let bytes = arg.as_bytes();
    let shown = || argv::escape(arg);
    let at = memchr::memchr(b'=', bytes).ok_or_else(|| EnvArgError::NoValue(shown()))?;
    let (name, value) = bytes.split_at(at);
    let value = OsString::from_vec(value.get(1..).unwrap_or_default().to_vec());
    match std::str::from_utf8(name) {
        Ok("") => Err(EnvArgError::NoName(shown())),
        Ok(name) if name.bytes().all(|b| b.is_ascii_graphic()) => Ok((name.to_owned(), value)),
        _ => Err(EnvArgError::Name(argv::escape(OsStr::from_bytes(name)))),
    }
}

#[cfg(test)]
#[path = "env_tests.rs"]
mod tests;
