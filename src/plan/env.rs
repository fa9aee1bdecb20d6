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

use super::memory::{HOOK_LIMIT, JAX_FRACTION, Limited};
use super::profile::Variable;
use super::{argv, secrets};

/// The variable that chooses a CUDA program's devices.
pub const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// The variable that tells what its indices mean.
pub const ORDER: &str = "CUDA_DEVICE_ORDER";
/// The order in which NVML counts devices; CUDA's own default is `FASTEST_FIRST`.
pub const NVML_ORDER: &str = "PCI_BUS_ID";

/// Where Python looks for modules; the start-up hook stands first in it.
const PYTHON_PATH: &str = "PYTHONPATH";

/// What stands for the run's directory in a profile's values.
const RUN_DIR: &str = "{run_dir}";

/// Names of which at most one may be set: a program refuses both, warns, or prefers ours to the
/// one that the user set.
const RIVALS: &[&[&str]] = &[
    &["XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"],
    &["XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_CLIENT_PREALLOCATE"],
    &[
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_HIP_ALLOC_CONF",
    ],
    &["TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"],
    &["TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_DUMP_ON_TIMEOUT"],
    &["TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"],
    &["NCCL_DEBUG", "NCCL_DEBUG_FILE"],
];

/// Names that a framework gets only together with the second one: without a place of their own
/// NCCL's words would be among the output, and a dump in the folder for temporary files.
const TOGETHER: &[(&str, &str)] = &[
    ("NCCL_DEBUG", "NCCL_DEBUG_FILE"),
    ("TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_DUMP_TEMP_FILE"),
];

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

/// A limit of GPU memory as it is set.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// What is set.
    pub limited: &'a Limited,
    /// What goes to the front of `PYTHONPATH`; None: it could not be made.
    pub hook: Option<&'a OsStr>,
    /// As it was written, for the record.
    pub why: &'a str,
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
    /// The profiles' for the framework that the command is said to use, and its name.
    pub framework: Option<(&'a str, &'a [Variable])>,
    /// A limit of GPU memory that was asked for, and the folder of the start-up hook.
    pub memory: Option<Memory<'a>>,
    /// Whether stdout is relayed by a pipe: Python would hold its output back.
    pub stdout_is_pipe: bool,
    /// The record; `None` where there is none.
    pub record: Option<&'a RecordPaths>,
    /// `--no-env`: nothing but what was asked for (`--env`, `--gpus`) and what names the record.
    pub no_env: bool,
}

/// The changes, each name once: devices, profile, Python, the record, the user's own, and the
/// start-up hook, which goes before whatever is set.
pub fn environment(inputs: &EnvInputs<'_>) -> Vec<EnvChange> {
    let mut changes = Vec::new();
    if let Some(chosen) = inputs.chosen {
        devices(inputs, chosen, &mut changes);
    }
    if !inputs.no_env {
        for variable in inputs.profile {
            let why = format!("profile {}", variable.source);
            from_profile(inputs, variable, &why, &mut changes);
        }
        if let Some((name, variables)) = inputs.framework {
            of_framework(inputs, name, variables, &mut changes);
        }
        if inputs.stdout_is_pipe {
            let why = "stdout is a pipe";
            if_unset(inputs, "PYTHONUNBUFFERED", "1", why, &mut changes);
        }
    }
    if let Some(memory) = inputs.memory
        && let Some(fraction) = &memory.limited.fraction
    {
        if_unset(inputs, JAX_FRACTION, fraction, memory.why, &mut changes);
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
    if let Some(memory) = inputs.memory {
        python_hook(inputs, memory, &mut changes);
    }
    changes
}

fn of_framework(
    inputs: &EnvInputs<'_>,
    name: &str,
    variables: &[Variable],
    changes: &mut Vec<EnvChange>,
) {
    let mut ours = Vec::new();
    for variable in variables {
        let why = format!("framework {name}, profile {}", variable.source);
        from_profile(inputs, variable, &why, &mut ours);
    }
    let has = |wanted: &str| ours.iter().any(|change: &EnvChange| change.name == wanted);
    let alone: Vec<&str> = TOGETHER
        .iter()
        .filter(|(_, other)| !has(other) && !is_set(inputs, other))
        .map(|(name, _)| *name)
        .collect();
    ours.retain(|change| !alone.contains(&change.name.as_str()));
    for change in ours {
        put(changes, change);
    }
}

/// The hook's folder goes before what Python's path holds by then; empty entries would be the
/// working directory.
fn python_hook(inputs: &EnvInputs<'_>, memory: Memory<'_>, changes: &mut Vec<EnvChange>) {
    let Some(hook) = memory.hook else { return };
    let set = changes.iter().find(|change| change.name == PYTHON_PATH);
    let before = set
        .map(|change| change.value.clone())
        .or_else(|| (inputs.inherited)(PYTHON_PATH))
        .unwrap_or_default();
    let rest: Vec<&[u8]> = before.as_bytes().split(|b| *b == b':').collect();
    let mut path = hook.to_owned();
    // Inside another run it may stand there already.
    let more = rest.iter().filter(|entry| **entry != hook.as_bytes());
    if !before.is_empty() {
        for entry in more {
            path.push(":");
            path.push(OsStr::from_bytes(entry));
        }
    }
    let why = format!("{}: a start-up hook, before what was set", memory.why);
    put(changes, change(PYTHON_PATH, &path, &why));
    put(
        changes,
        change(HOOK_LIMIT, OsStr::new(&memory.limited.hook), memory.why),
    );
}

/// A profile's value, with the run's directory in it; without a record such a one is left out.
fn from_profile(
    inputs: &EnvInputs<'_>,
    variable: &Variable,
    why: &str,
    changes: &mut Vec<EnvChange>,
) {
    if !variable.value.contains(RUN_DIR) {
        if_unset(inputs, &variable.name, &variable.value, why, changes);
        return;
    }
    let Some(record) = inputs.record else { return };
    let mut value = OsString::new();
    for (i, part) in variable.value.split(RUN_DIR).enumerate() {
        if i > 0 {
            value.push(&record.dir);
        }
        value.push(part);
    }
    if !is_set(inputs, &variable.name) {
        put(changes, change(&variable.name, &value, why));
    }
}

/// Whether the user, or whoever called us, has set it or one of its rivals.
fn is_set(inputs: &EnvInputs<'_>, name: &str) -> bool {
    let rivals = RIVALS.iter().find(|names| names.contains(&name));
    let rivals = rivals.map_or(&[][..], |names| names);
    let rival = |rival: &&str| {
        *rival != name && ((inputs.inherited)(rival).is_some() || typed(inputs, rival).is_some())
    };
    (inputs.inherited)(name).is_some() || rivals.iter().any(rival)
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
    if !is_set(inputs, name) {
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
