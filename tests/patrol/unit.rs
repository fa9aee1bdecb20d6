//! The unit file that is shipped: systemd takes it, and it gives away no more than it says.

use std::process::Command;

use super::support::{in_package, skipped};

const UNIT: &str = "examples/systemd/gpuwatch-patrol.service";

#[test]
fn systemd_takes_the_unit_file() {
    let folder = tempfile::tempdir().unwrap();
    // The program that it names must be there.
    let text = std::fs::read_to_string(in_package(UNIT)).unwrap();
    let ours = text.replace("/usr/local/bin/gpuwatch", env!("CARGO_BIN_EXE_gpuwatch"));
    assert_ne!(text, ours);
    let file = folder.path().join("gpuwatch-patrol.service");
    std::fs::write(&file, ours).unwrap();
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&file)
        .output();
    let Ok(verified) = verified else {
        return skipped("systemd is not installed");
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success(), "{said}");
    assert!(!said.contains("gpuwatch-patrol"), "{said}");
    let exposure = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--threshold=35"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&exposure.stdout).into_owned();
    assert!(exposure.status.success(), "more exposed than 3.5:\n{said}");
}
