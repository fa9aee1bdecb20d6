//! The profiles that come with the program.

use super::layer::Layer;
use super::read::unwritten;
use super::{Profile, ProfileError, Variable};
use crate::model::Action;

/// The lowest layer of every run.
pub const DEFAULT: &str = "default";

/// Name, what it is for, text.
pub const BUILT_IN: &[(&str, &str, &str)] = &[
    (
        DEFAULT,
        "what holds where nothing else is said; every key, explained",
        include_str!("../../../profiles/default.yaml"),
    ),
    (
        "tensorflow",
        "TensorFlow and Keras",
        include_str!("../../../profiles/tensorflow.yaml"),
    ),
    (
        "pytorch",
        "PyTorch, torchrun, Lightning",
        include_str!("../../../profiles/pytorch.yaml"),
    ),
    (
        "jax",
        "JAX, Flax",
        include_str!("../../../profiles/jax.yaml"),
    ),
    (
        "ci",
        "a pipeline: nobody looks at a desktop or answers a prompt",
        include_str!("../../../profiles/ci.yaml"),
    ),
    (
        "workstation",
        "a machine that people share and sit at",
        include_str!("../../../profiles/workstation.yaml"),
    ),
];

/// A built-in profile by its name.
///
/// # Errors
/// A mistake in the profile, which a test rules out.
pub fn built_in(name: &str) -> Option<Result<Layer, ProfileError>> {
    let (name, _, text) = BUILT_IN.iter().find(|(known, ..)| *known == name)?;
    Some(Layer::parse(text, name))
}

type Values = &'static [(&'static str, &'static str)];

/// `env.set` of the embedded default; its reasons stand there.
const SET: Values = &[("TF_FORCE_GPU_ALLOW_GROWTH", "true")];

/// `env.frameworks` of the embedded default, likewise.
const OF_FRAMEWORKS: &[(&str, Values)] = &[
    (
        "tensorflow",
        &[
            ("TF_FORCE_GPU_ALLOW_GROWTH", "true"),
            ("PYTHONFAULTHANDLER", "1"),
        ],
    ),
    (
        "pytorch",
        &[
            ("PYTHONFAULTHANDLER", "1"),
            ("TORCH_FR_BUFFER_SIZE", "2000"),
            ("TORCH_NCCL_DUMP_ON_TIMEOUT", "1"),
            ("TORCH_FR_DUMP_TEMP_FILE", "{run_dir}/flight-recorder-"),
            ("NCCL_DEBUG", "WARN"),
            ("NCCL_DEBUG_FILE", "{run_dir}/nccl-%h-%p.log"),
        ],
    ),
    (
        "jax",
        &[
            ("XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
            ("PYTHONFAULTHANDLER", "1"),
        ],
    ),
];

/// What the embedded default says, without reading it, which would take half of the time that a
/// start may take. A test holds the two equal.
pub fn embedded_default() -> Profile {
    let variable = |(name, value): &(&str, &str)| Variable {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
        source: DEFAULT.to_owned(),
    };
    let mut profile = unwritten();
    profile.env.set = SET.iter().map(variable).collect();
    for (framework, set) in OF_FRAMEWORKS {
        let set = set.iter().map(variable).collect();
        profile.env.frameworks.insert((*framework).to_owned(), set);
    }
    let stacks = vec![Action::Stacks];
    profile.act.0.insert("stalled".to_owned(), stacks);
    profile
}
