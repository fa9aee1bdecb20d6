//! gpuwatch gives the right answer in every case of `tests/conformance`, beside the command alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::process::Command;

use support::{in_package, python};

/// The runner's whole answer, as JSON.
fn answers() -> serde_json::Value {
    let out = Command::new(python())
        .arg(in_package("tests/conformance/run"))
        .args(["--gpuwatch", env!("CARGO_BIN_EXE_gpuwatch")])
        .args(["--only", "gpuwatch", "--json"])
        .output()
        .unwrap();
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)))
}

#[test]
fn gpuwatch_fails_no_case() {
    let answers = answers();
    let cases = answers["cases"].as_array().unwrap();
    assert!(cases.len() > 60, "{} cases were tried", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        for (wrapper, modes) in case["wrappers"].as_object().unwrap() {
            for (mode, verdict) in modes.as_object().unwrap() {
                // The command alone is what everything is compared with: it has to be right.
                if verdict["answer"] == "fails" {
                    wrong.push(format!(
                        "{} {mode}, {wrapper}: {}",
                        case["id"], verdict["why"]
                    ));
                }
                if verdict["answer"] == "n/a" && wrapper == "gpuwatch" {
                    eprintln!("not tried: {} {mode}: {}", case["id"], verdict["why"]);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}
