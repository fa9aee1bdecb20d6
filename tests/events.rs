//! Event files as real writers of TensorBoard's format leave them, against what TensorBoard's own
//! reader found in them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

use std::path::{Path, PathBuf};

use gpuwatch::read::{EventFile, Scalar, Scalars};
use serde_json::Value;

/// Folders of event files with a `truth.json`.
fn folders() -> Vec<(PathBuf, Value)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/events");
    let folders = dir.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let truth = |folder: PathBuf| {
        let text = std::fs::read(folder.join("truth.json")).unwrap();
        (folder, serde_json::from_slice(&text).unwrap())
    };
    folders.map(truth).collect()
}

/// What our reader finds, fed in pieces of this size.
fn scalars(path: &Path, piece: usize) -> Vec<Scalar> {
    let mut file = EventFile::default();
    let bytes = std::fs::read(path).unwrap();
    let found = bytes.chunks(piece).flat_map(|piece| file.feed(piece));
    let found = found.collect();
    assert!(!file.is_damaged());
    found
}

#[test]
fn every_scalar_is_found_with_its_step_and_value() {
    let mut files = 0;
    for (folder, truth) in folders() {
        for (name, truth) in truth["files"].as_object().unwrap() {
            let found = scalars(&folder.join(name), 7);
            let tags = truth["scalars"].as_object().unwrap();
            let known: usize = tags
                .values()
                .map(|t| t["count"].as_u64().unwrap() as usize)
                .sum();
            assert_eq!(found.len(), known, "{name}");
            for (tag, truth) in tags {
                let of_tag: Vec<&Scalar> = found.iter().filter(|s| s.tag == *tag).collect();
                let (first, last) = (of_tag[0], of_tag[of_tag.len() - 1]);
                for (scalar, which) in [(first, "first"), (last, "last")] {
                    assert_eq!(truth[format!("{which}_step")], scalar.step, "{name} {tag}");
                    let value = truth[format!("{which}_value")].as_f64().unwrap();
                    let off = (scalar.value - value).abs();
                    // Written in single precision.
                    assert!(
                        off <= 1e-6 * value.abs(),
                        "{name} {tag}: {scalar:?}, {value}"
                    );
                }
            }
            files += 1;
        }
    }
    assert!(files >= 4, "only {files} files");
}

#[test]
fn the_last_step_and_loss_of_training_stand() {
    for (folder, truth) in folders() {
        let own = &truth["own_log"];
        let mut scalars_of = Scalars::default();
        for name in truth["files"].as_object().unwrap().keys() {
            let place = Path::new(name).parent().unwrap().to_str().unwrap();
            scalars_of.absorb(place, None, &scalars(&folder.join(name), 1 << 20));
        }
        let state = scalars_of.state();
        assert_eq!(own["step"], state.step.unwrap(), "{}", folder.display());
        let (loss, known) = (state.loss.unwrap().0, own["loss"].as_f64().unwrap());
        assert!(
            (loss - known).abs() <= 1e-6 * known.abs(),
            "{loss}, {known}"
        );
    }
}
