//! Claims in a directory of the test's own.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn claims() -> (tempfile::TempDir, Claims) {
    let root = tempfile::tempdir().unwrap();
    let claims = Claims::at(&root.path().join("claims")).unwrap();
    (root, claims)
}

#[test]
fn one_has_it_and_it_is_known_who() {
    let (_root, claims) = claims();
    assert_eq!(claims.claimed("GPU-1"), None);
    let claim = claims.take("GPU-1").unwrap().unwrap();
    assert!(claims.take("GPU-1").unwrap().is_none());
    assert!(claims.take("GPU-2").unwrap().is_some());
    let us = Some(std::process::id());
    assert_eq!(claims.claimed("GPU-1"), Some(Claimed { pid: us }));
    drop(claim);
    assert_eq!(claims.claimed("GPU-1"), None);
    assert!(claims.take("GPU-1").unwrap().is_some());
}

#[test]
fn a_name_is_a_file_in_there_whatever_it_holds() {
    let (root, claims) = claims();
    assert!(claims.take("MIG-GPU-1/../../x").unwrap().is_some());
    assert!(root.path().join("claims/MIG-GPU-1_______x").is_file());
}

#[test]
fn a_place_that_others_could_tamper_with_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let said = |path: &Path| Claims::at(path).unwrap_err().to_string();
    let (real, link, file) = (
        root.path().join("real"),
        root.path().join("link"),
        root.path().join("file"),
    );
    fs::create_dir(&real).unwrap();
    for mode in [0o777, 0o1755, 0o700] {
        fs::set_permissions(&real, fs::Permissions::from_mode(mode)).unwrap();
        assert!(said(&real).contains("is not sticky"), "{mode:o}");
    }
    fs::set_permissions(&real, fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(Claims::at(&real).is_ok());
    symlink(&real, &link).unwrap();
    assert!(said(&link).contains("is a link"));
    fs::write(&file, "").unwrap();
    assert!(said(&file).contains("no directory"));
    assert!(said(&root.path().join("no/where")).contains("can't be made"));
}

#[test]
fn a_file_that_is_none_is_refused_and_left() {
    let (root, claims) = claims();
    let dir = root.path().join("claims");
    fs::write(root.path().join("theirs"), "precious").unwrap();
    symlink(root.path().join("theirs"), dir.join("GPU-1")).unwrap();
    fs::create_dir(dir.join("GPU-2")).unwrap();
    assert!(
        claims
            .take("GPU-1")
            .unwrap_err()
            .to_string()
            .contains("is a link")
    );
    assert!(
        claims
            .take("GPU-2")
            .unwrap_err()
            .to_string()
            .contains("no plain file")
    );
    assert_eq!(
        fs::read_to_string(root.path().join("theirs")).unwrap(),
        "precious"
    );
}

#[test]
fn who_waits_alone_is_first() {
    let (_root, claims) = claims();
    let line = claims.line_up().unwrap();
    assert!(line.is_our_turn());
}
