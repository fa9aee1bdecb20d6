//! The profiles of this machine: which files there are, in which order, and what they hold.
//!
//! Owns finding and reading them; what they mean is `plan::profile`'s. A project's file may not
//! name commands or places until somebody has vouched for it (`trust`).

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use super::trust;
use crate::plan::profile::{
    BUILT_IN, DEFAULT, Layer, MAX_BYTES, Node, Place, ProfileError, TOO_LARGE, built_in,
};

/// The file that a project may have.
const PROJECT: &str = "gpuwatch.yaml";

/// The machine's.
const MACHINE: &str = "/etc/gpuwatch/config.yaml";

/// How many profiles may extend each other.
const MAX_EXTENDS: usize = 8;

/// Layers, strongest first, and the name of the strongest that was asked for.
#[derive(Debug)]
pub struct Layers {
    /// What they say.
    pub trees: Vec<Node>,
    /// For the record.
    pub name: String,
}

/// All layers of a run.
///
/// # Errors
/// The first mistake in the first file that has one, or a file that can't be read.
pub fn load(profile: Option<&str>) -> Result<Layers, ProfileError> {
    let mut layers = over_default(profile)?;
    layers.trees.extend(embedded(DEFAULT)?);
    Ok(layers)
}

/// As `load`, but without any tree where nothing lies over the embedded default.
///
/// # Errors
/// As of [`load`].
pub fn brief(profile: Option<&str>) -> Result<Layers, ProfileError> {
    let mut layers = over_default(profile)?;
    if !layers.trees.is_empty() {
        layers.trees.extend(embedded(DEFAULT)?);
    }
    Ok(layers)
}

fn over_default(profile: Option<&str>) -> Result<Layers, ProfileError> {
    let mut trees = Vec::new();
    if let Some(profile) = profile {
        trees.extend(named(profile, None)?);
    }
    let asked = profile.filter(|p| is_path(p)).map(Path::new).map(real);
    // What was asked for by hand needs nobody's word, and is there already.
    if asked.as_ref() != Some(&real(Path::new(PROJECT))) {
        trees.extend(found(Path::new(PROJECT), Trust::OnlyIfVouched)?);
    }
    let config = etcetera::base_strategy::Xdg::new().ok();
    let config = config.map(|base| base.config_dir().join("gpuwatch/config.yaml"));
    if let Some(path) = config.filter(|path| path.is_absolute()) {
        trees.extend(found(&path, Trust::Given)?);
    }
    trees.extend(found(Path::new(MACHINE), Trust::Given)?);
    let name = profile.unwrap_or(DEFAULT).to_owned();
    Ok(Layers { trees, name })
}

/// One profile over the embedded default, whatever files this machine has.
///
/// # Errors
/// As of [`load`].
pub fn alone(profile: &str) -> Result<Layers, ProfileError> {
    let mut trees = named(profile, None)?;
    trees.extend(embedded(DEFAULT)?);
    Ok(Layers {
        trees,
        name: profile.to_owned(),
    })
}

/// Whether a file needs somebody's word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Given,
    OnlyIfVouched,
}

/// Text that is a file and no name.
fn is_path(text: &str) -> bool {
    let ends = |end: &str| text.to_ascii_lowercase().ends_with(end);
    text.contains('/') || ends(".yaml") || ends(".yml")
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// What `--profile` names, and what that extends.
fn named(text: &str, at: Option<&Place>) -> Result<Vec<Node>, ProfileError> {
    if is_path(text) {
        return file(Path::new(text), Trust::Given);
    }
    if !BUILT_IN.iter().any(|(known, ..)| *known == text) {
        return Err(no_profile(text, at));
    }
    embedded(text)
}

fn no_profile(text: &str, at: Option<&Place>) -> ProfileError {
    let names: Vec<&str> = BUILT_IN.iter().map(|(name, ..)| *name).collect();
    let what = format!(
        "there is no profile '{text}': known are {}; a file is written with its folder, like ./{text}.yaml",
        names.join(", ")
    );
    match at {
        Some(place) => ProfileError::new(place, "extends", what),
        None => ProfileError::general(what),
    }
}

fn embedded(name: &str) -> Result<Vec<Node>, ProfileError> {
    let mut trees = Vec::new();
    let mut next = Some(name.to_owned());
    while let Some(name) = next.take().filter(|_| trees.len() < MAX_EXTENDS) {
        let Some(layer) = built_in(&name) else { break };
        let layer = layer?;
        trees.push(layer.tree);
        // The default is everybody's last layer.
        next = layer
            .extends
            .map(|(name, _)| name)
            .filter(|name| name != DEFAULT);
    }
    Ok(trees)
}

/// A layer that need not be there.
fn found(path: &Path, trust: Trust) -> Result<Vec<Node>, ProfileError> {
    match path.metadata() {
        // A home that is somebody else's (a container's user, for one) holds nothing of ours.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
            ) =>
        {
            Ok(Vec::new())
        }
        Ok(metadata) if !metadata.is_file() => Err(ProfileError::general(format!(
            "{} is no file: move it away",
            path.display()
        ))),
        _ => file(path, trust),
    }
}

/// A file and what it extends.
fn file(path: &Path, trust: Trust) -> Result<Vec<Node>, ProfileError> {
    let mut trees = Vec::new();
    let mut path = path.to_owned();
    loop {
        let layer = read(&path, trust)?;
        trees.push(layer.tree);
        let Some((extends, place)) = layer.extends else {
            return Ok(trees);
        };
        if trees.len() >= MAX_EXTENDS {
            let what = "profiles extend each other in a circle, or too many times";
            return Err(ProfileError::new(&place, "extends", what));
        }
        if !is_path(&extends) {
            if extends != DEFAULT {
                trees.extend(named(&extends, Some(&place))?);
            }
            return Ok(trees);
        }
        path = path.parent().unwrap_or(Path::new("")).join(extends);
    }
}

fn read(path: &Path, trust: Trust) -> Result<Layer, ProfileError> {
    let bytes = bytes(path)?;
    let layer = parse(path, &bytes)?;
    if trust == Trust::OnlyIfVouched && !trust::is_trusted(path, &bytes) {
        let cure = format!(
            "look at it, then run 'gpuwatch profile trust {}'",
            path.display()
        );
        layer.harmless(&cure)?;
    }
    Ok(layer)
}

/// What a file says by itself.
///
/// # Errors
/// The first mistake.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Layer, ProfileError> {
    let source = path.display().to_string();
    let text = std::str::from_utf8(bytes)
        .map_err(|_| ProfileError::general(format!("{source}: the file is not UTF-8 text")))?;
    Layer::parse(text, &source)
}

/// What is in a file, if it can be a profile.
///
/// # Errors
/// It can't be read, or is too large.
pub fn bytes(path: &Path) -> Result<Vec<u8>, ProfileError> {
    let mut bytes = Vec::new();
    let limit = MAX_BYTES as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() > MAX_BYTES => {
            let what = format!("{}: {TOO_LARGE}", path.display());
            Err(ProfileError::general(what))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(ProfileError::general(format!(
            "cannot read the profile {}: {}",
            path.display(),
            reason(&error)
        ))),
    }
}

/// The system's word without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text.get(..end).unwrap_or_default().to_owned()
}
