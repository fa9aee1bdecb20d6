//! Keeps the borders of the rooms (ARCHITECTURE.md): who may name whom, what is pure, where
//! `unsafe` lives. The checker reads the sources; below, each rule is broken once to show
//! that it would be noticed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "architecture/lexer.rs"]
mod lexer;
#[path = "architecture/paths.rs"]
mod paths;
#[path = "architecture/rules.rs"]
mod rules;

use std::collections::BTreeMap;
use std::path::Path;

use rules::violations;

#[test]
fn the_sources_keep_the_rules() {
    let sources = sources();
    for must in [
        "src/main.rs",
        "src/model/mod.rs",
        "src/sys/mod.rs",
        "tests/architecture.rs",
    ] {
        assert!(sources.contains_key(must), "{must} was not looked at");
    }
    let test_only = test_only(&sources);
    let broken: Vec<String> = sources
        .iter()
        .flat_map(|(path, text)| violations(path, text, test_only.contains(path)))
        .collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

/// Every Rust file of the package, by its path relative to it.
fn sources() -> BTreeMap<String, String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    let mut folders: Vec<_> = ["src", "tests", "benches", "examples"]
        .map(|folder| package.join(folder))
        .into_iter()
        .filter(|folder| folder.exists())
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(package).unwrap().to_str().unwrap();
                found.insert(name.to_owned(), std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// Files that some `#[cfg(test)] mod name;` makes part of test builds alone.
fn test_only(sources: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources {
        let folder = match path
            .strip_suffix("/mod.rs")
            .or(path.strip_suffix("/lib.rs"))
        {
            Some(folder) => folder,
            None => path.trim_end_matches(".rs"),
        };
        for name in lexer::test_only_files(&lexer::tokens(text)) {
            found.extend([
                format!("{folder}/{name}.rs"),
                format!("{folder}/{name}/mod.rs"),
            ]);
        }
    }
    found
}

/// What the checker says about a file that is documented and otherwise as given.
fn said(path: &str, code: &str) -> String {
    violations(path, &format!("//! Owns nothing.\n{code}"), false).join("\n")
}

#[test]
fn a_room_may_name_only_its_neighbours() {
    let forbidden = [
        ("src/read/screen.rs", "use crate::record::Writer;"),
        ("src/read/screen.rs", "use crate::{model::Mark, record};"),
        ("src/read/screen.rs", "fn f() { crate::record::write() }"),
        (
            "src/read/screen.rs",
            "fn f() { super::super::record::write() }",
        ),
        (
            "src/read/screen.rs",
            "use super::super::{model, record::Writer};",
        ),
        ("src/read/mod.rs", "use super::record;"),
        ("src/read/mod.rs", "use gpuwatch::record;"),
        ("src/model/event.rs", "use crate::sys::fd;"),
        ("src/supervise/wire.rs", "use crate::cli::Args;"),
        (
            "src/launch/mod.rs",
            "mod inner { use super::super::record; }",
        ),
        (
            "src/plan/mod.rs",
            "#[cfg(not(test))] mod a { use crate::sys; }",
        ),
        (
            "src/read/mod.rs",
            "macro_rules! m { () => { $crate::record::write() } }",
        ),
    ];
    for (path, code) in forbidden {
        assert!(said(path, code).contains("may not know"), "{path}: {code}");
    }
    let allowed = [
        (
            "src/read/screen.rs",
            "use crate::model::Mark; pub(crate) fn f() {}",
        ),
        (
            "src/read/screen.rs",
            "use crate::read::grammar; use super::record;",
        ),
        (
            "src/read/screen.rs",
            "// use crate::record;\nconst S: &str = \"crate::record\";",
        ),
        (
            "src/read/mod.rs",
            "#[cfg(test)] mod tests { use crate::record; }",
        ),
        (
            "src/supervise/wire.rs",
            "use crate::{launch, nvml::Helper};",
        ),
        ("src/cli/run.rs", "use crate::supervise;"),
        ("src/main.rs", "fn main() { gpuwatch::cli::main() }"),
        ("src/lib.rs", "pub mod cli;"),
    ];
    for (path, code) in allowed {
        assert_eq!(said(path, code), "", "{path}: {code}");
    }
}

#[test]
fn the_whole_crate_is_no_import() {
    for code in [
        "use crate::*;",
        "use crate as all;",
        "use crate::{self as all};",
        "use super::super::*;",
    ] {
        assert!(
            said("src/read/screen.rs", code).contains("whole crate"),
            "{code}"
        );
    }
    assert_eq!(said("src/read/screen.rs", "use super::*;"), "");
}

#[test]
fn a_room_must_be_in_the_table() {
    assert!(said("src/cellar/mod.rs", "").contains("no room of the table"));
}

#[test]
fn pure_code_names_no_clock_and_no_io() {
    let impure = [
        "use std::time::Instant;",
        "use std::time::{Duration, Instant};",
        "fn f() -> std::time::SystemTime { todo() }",
        "use std::{collections::HashMap, fs};",
        "fn f() { std::fs::read(p) }",
        "fn f() { std::env::var(\"HOME\") }",
        "use std::env::{self};",
        "use tokio::sync::mpsc;",
        "use nvml_wrapper::Nvml;",
        "fn f() { jiff::Timestamp::now() }",
        "fn f() { Zoned::now() }",
        "use nix::unistd;",
        "use nix::sys::signal::{Signal, kill};",
    ];
    let pure_places = [
        "src/model/event.rs",
        "src/read/mod.rs",
        "src/judge/stalled.rs",
        "src/report/text.rs",
        "src/export/csv.rs",
        "src/plan/resolve.rs",
        "src/launch/stop.rs",
        "src/tell/policy.rs",
        "src/tell/text.rs",
        "src/supervise/state.rs",
    ];
    for place in pure_places {
        for code in impure {
            assert!(
                said(place, code).contains("in pure code"),
                "{place}: {code}"
            );
        }
        let innocent = "use std::time::Duration; use nix::sys::signal::Signal; fn now() -> f64 { stamp.elapsed_s } // Instant";
        assert_eq!(said(place, innocent), "", "{place}");
    }
    for place in [
        "src/launch/relay.rs",
        "src/supervise/wire.rs",
        "src/tell/outbox.rs",
    ] {
        assert_eq!(said(place, "use std::time::Instant;"), "", "{place}");
    }
}

#[test]
fn the_nouns_know_std_and_serde() {
    assert!(said("src/model/stamp.rs", "use jiff::Timestamp;").contains("std and serde"));
    assert!(said("src/model/stamp.rs", "fn f(t: jiff::Zoned) {}").contains("std and serde"));
    assert_eq!(
        said(
            "src/model/stamp.rs",
            "use serde::Serialize; use serde_json::Value;"
        ),
        ""
    );
    assert_eq!(said("src/read/screen.rs", "use vte::Parser;"), "");
}

#[test]
fn unsafe_has_one_place() {
    let code = "fn f() { unsafe { g() } }";
    for path in [
        "src/launch/relay.rs",
        "tests/signals.rs",
        "src/systems/mod.rs",
    ] {
        assert!(said(path, code).contains("`unsafe` outside"), "{path}");
    }
    let allow = "#![allow(unsafe_code, reason = \"I need it\")]";
    assert!(said("src/launch/relay.rs", allow).contains("`unsafe_code` outside"));
    for path in ["src/sys/fd.rs", "tests/fake-nvml/src/lib.rs"] {
        assert_eq!(said(path, code), "", "{path}");
    }
    let words = "// unsafe\nfn f() { g(\"unsafe\", r#\"unsafe\"#, 'u') } /* unsafe /* */ unsafe */";
    assert_eq!(said("src/launch/relay.rs", words), "");
}

#[test]
fn an_allow_has_a_reason() {
    for code in [
        "#[allow(dead_code)] fn f() {}",
        "#![allow(clippy::all)]",
        "#[cfg_attr(test, allow(dead_code))] fn f() {}",
        "#[expect(dead_code)] fn f() {}",
        "#[cfg(test)] mod tests { #[allow(dead_code)] fn f() {} }",
    ] {
        assert!(
            said("tests/signals.rs", code).contains("without a reason"),
            "{code}"
        );
    }
    let fine = "#[allow(dead_code, reason = \"why\")] fn f() { allow(1); x.expect(\"y\") }";
    assert_eq!(said("src/launch/relay.rs", fine), "");
}

#[test]
fn a_file_is_documented_and_short() {
    let check = |text: &str| violations("src/read/screen.rs", text, false).join("\n");
    assert!(check("use std::fmt;\n").contains("//!"));
    assert!(check("/// Not the module's.\n").contains("//!"));
    assert_eq!(check("\n//! Owns the screen.\n"), "");
    let lines = |n: usize| format!("//! Long.\n{}", "fn f() {}\n".repeat(n - 1));
    assert_eq!(check(&lines(499)), "");
    assert!(check(&lines(500)).contains("500 lines"));
}

#[test]
fn files_for_tests_alone_may_look_around() {
    let sources = BTreeMap::from([
        (
            "src/read/mod.rs".to_owned(),
            "#[cfg(test)]\nmod tests;\nmod screen;".to_owned(),
        ),
        (
            "src/read/screen.rs".to_owned(),
            "#[cfg(test)] pub(super) mod cases;".to_owned(),
        ),
    ]);
    let found = test_only(&sources);
    assert!(found.contains(&"src/read/tests.rs".to_owned()), "{found:?}");
    assert!(
        found.contains(&"src/read/screen/cases.rs".to_owned()),
        "{found:?}"
    );
    assert!(
        !found.iter().any(|f| f == "src/read/screen.rs"),
        "{found:?}"
    );
    let code = "//! Tests.\nuse crate::record;";
    assert_eq!(
        violations("src/read/tests.rs", code, true),
        Vec::<String>::new()
    );
    assert_eq!(violations("src/read/tests.rs", code, false).len(), 1);
}
