//! The profiles that come with the program.

use super::ProfileError;
use super::layer::Layer;

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
