//! NVIDIA's own library, on a machine without its driver: another implementation of the interface
//! than the simulated one. `tests/run` gets it; `GPUWATCH_TEST_NVML_LIBRARY` names it.

use std::fs;

use crate::support::{Sandbox, fake_driver, provided};

fn library() -> Option<String> {
    provided("GPUWATCH_TEST_NVML_LIBRARY")
}

#[test]
fn the_real_library_without_a_driver_is_one_line() {
    let Some(library) = library() else { return };
    if fs::exists("/proc/driver/nvidia/version").unwrap() {
        return eprintln!("not tried: this machine has a driver");
    }
    let said = "the NVIDIA driver is not loaded";
    let sandbox = Sandbox::new();
    let ended = sandbox
        .watched(
            &[],
            &["sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}; exit 7"],
        )
        .env("GPUWATCH_NVML_LIBRARY", &library)
        .run();
    assert_eq!((ended.code(), ended.out()), (Some(7), "unset\n".to_owned()));
    let about: Vec<_> = ended
        .own_lines()
        .into_iter()
        .filter(|l| l.contains("GPU"))
        .collect();
    assert_eq!(about.len(), 1, "{}", ended.err());
    assert!(about[0].contains(said), "{about:?}");
    let gpus = sandbox
        .gpuwatch(&["gpus"])
        .env("GPUWATCH_NVML_LIBRARY", &library)
        .run();
    assert_eq!(
        (gpus.code(), gpus.err()),
        (Some(1), format!("gpuwatch: {said}\n"))
    );
}

#[test]
fn the_simulated_driver_has_the_real_ones_names() {
    let Some(library) = library() else { return };
    let (real, fake) = (
        exported(&fs::read(library).unwrap()),
        exported(&fs::read(fake_driver::library()).unwrap()),
    );
    assert!(fake.len() > 50, "{fake:?}");
    let invented: Vec<_> = fake.iter().filter(|name| !real.contains(name)).collect();
    assert!(invented.is_empty(), "{invented:?}");
}

/// Names of NVML's functions among a library's strings.
fn exported(bytes: &[u8]) -> Vec<String> {
    let texts = bytes.split(|b| *b == 0);
    let name = |text: &&[u8]| {
        text.starts_with(b"nvml")
            && text.len() > 6
            && text[4].is_ascii_uppercase()
            // Constants may lie one after the other without an end.
            && !text[4..].windows(4).any(|part| part == b"nvml")
            && text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
    };
    let mut names: Vec<String> = texts
        .filter(name)
        .map(|t| String::from_utf8_lossy(t).into_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}
