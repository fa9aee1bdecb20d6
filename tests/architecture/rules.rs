//! The rules of the house, each a function of a file's path and text.

use super::lexer::{Token, matching, tokens, without_test_modules};
use super::paths::{Path, paths};

/// Every room, and the rooms that it may name. `model` holds the nouns that all speak.
pub const ROOMS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("sys", &[]),
    ("plan", &["model"]),
    ("nvml", &["model", "sys"]),
    ("place", &["model", "sys"]),
    ("launch", &["model", "sys"]),
    ("observe", &["model", "nvml", "sys"]),
    ("read", &["model"]),
    ("judge", &["model", "read"]),
    ("act", &["model", "sys"]),
    ("tell", &["model"]),
    ("record", &["model"]),
    ("report", &["model", "record"]),
    ("export", &["model", "record"]),
    ("serve", &["model", "export", "record", "sys"]),
    (
        "patrol",
        // The chain of a run without a launch; of `supervise` it is the run's clock.
        &[
            "model",
            "sys",
            "nvml",
            "plan",
            "observe",
            "judge",
            "act",
            "tell",
            "record",
            "report",
            "export",
            "serve",
            "supervise",
        ],
    ),
    ("live", &["record", "report", "sys"]),
    ("doctor", &["model", "nvml", "place", "plan", "sys"]),
    ("supervise", ANY_BUT_CLI),
    ("cli", ANY),
];

const ANY_BUT_CLI: &[&str] = &[
    "model", "sys", "plan", "nvml", "place", "launch", "observe", "read", "judge", "act", "tell",
    "record", "report", "export", "serve", "patrol", "live", "doctor",
];
const ANY: &[&str] = &[
    "model",
    "sys",
    "plan",
    "nvml",
    "place",
    "launch",
    "observe",
    "read",
    "judge",
    "act",
    "tell",
    "record",
    "report",
    "export",
    "serve",
    "patrol",
    "live",
    "doctor",
    "supervise",
];

/// Code without clocks and I/O: same events, same findings.
const PURE: &[&str] = &[
    "doctor/checks",
    "doctor/facts",
    "model",
    "read",
    "judge",
    "report",
    "export",
    "plan",
    "launch/stop",
    "patrol/exempt",
    "patrol/group",
    "patrol/machine",
    "patrol/metrics",
    "patrol/present",
    "patrol/unit",
    "tell/alert",
    "tell/cut",
    "tell/payload",
    "tell/policy",
    "tell/ranks",
    "tell/text",
    "tell/words",
    "supervise/state",
];

/// What pure code never names, as the beginning of a path.
const IMPURE_PATHS: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "env"],
    &["std", "net"],
    &["std", "process"],
    &["std", "thread"],
    &["std", "os"],
    &["env", "var"],
    &["env", "var_os"],
    &["env", "vars"],
    &["tokio"],
    &["nix"],
    &["rustix"],
    &["libc"],
    &["nvml_wrapper"],
    &["nvml_wrapper_sys"],
];

/// What pure code may name all the same: the names of signals, and text as bytes.
const PURE_PATHS: &[&[&str]] = &[
    &["nix", "sys", "signal", "Signal"],
    &["std", "os", "unix", "ffi"],
];

/// What pure code never names, wherever it stands in a path.
const IMPURE_WORDS: &[&str] = &["Instant", "SystemTime"];

/// What pure code never calls, as the end of a path: the clock and the machine's time zone.
const IMPURE_CALLS: &[&[&str]] = &[
    &["Timestamp", "now"],
    &["Zoned", "now"],
    &["ZonedDateTime", "now"],
    &["TimeZone", "system"],
];

/// `model` may use the standard library, serde, and the derive for error texts.
const MODEL_CRATES: &[&str] = &["std", "core", "alloc", "serde", "serde_json", "thiserror"];

const MAX_LINES: usize = 500;

/// Everything that is wrong with one file, each as `path:line: what`.
///
/// `path` is relative to the package and tells which rules hold: all of them under `src/`,
/// the ones about `unsafe` and `allow` everywhere. `test_only` says that the file is compiled
/// into tests alone, where a room may look at its neighbours.
pub fn violations(path: &str, text: &str, test_only: bool) -> Vec<String> {
    let all = tokens(text);
    let mut found = Vec::new();
    found.extend(misplaced_unsafe(path, &all));
    found.extend(silent_allow(&all));
    if let Some(inside) = path.strip_prefix("src/") {
        found.extend(undocumented(text));
        found.extend(too_long(text));
        if !test_only {
            let code = without_test_modules(&all);
            found.extend(neighbours(inside, &code));
            found.extend(impurities(inside, &code));
        }
    }
    found
        .into_iter()
        .map(|(line, what)| format!("{path}:{line}: {what}"))
        .collect()
}

type Found = Vec<(usize, String)>;

fn undocumented(text: &str) -> Found {
    let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or("");
    if first.starts_with("//!") {
        return Vec::new();
    }
    vec![(1, "begins without `//!`: say what the file owns".into())]
}

fn too_long(text: &str) -> Found {
    let lines = text.lines().count();
    if lines < MAX_LINES {
        return Vec::new();
    }
    vec![(
        lines,
        format!("{lines} lines, allowed are {}", MAX_LINES - 1),
    )]
}

fn misplaced_unsafe(path: &str, code: &[Token]) -> Found {
    if path.starts_with("src/sys/") || path.starts_with("tests/fake-nvml/") {
        return Vec::new();
    }
    code.iter()
        .filter(|t| t.text == "unsafe" || t.text == "unsafe_code")
        .map(|t| {
            (
                t.line,
                format!("`{}` outside src/sys and the simulated driver", t.text),
            )
        })
        .collect()
}

fn silent_allow(code: &[Token]) -> Found {
    let mut found = Vec::new();
    for (i, hash) in code.iter().enumerate().filter(|(_, t)| t.text == "#") {
        let open = i + 1 + usize::from(code.get(i + 1).is_some_and(|t| t.text == "!"));
        if code.get(open).is_none_or(|t| t.text != "[") {
            continue;
        }
        let Some(close) = matching(code, open) else {
            continue;
        };
        for at in open..close {
            let lint = &code[at].text;
            if (lint == "allow" || lint == "expect") && code[at + 1].text == "(" {
                let end = matching(code, at + 1).unwrap_or(close);
                let reason = code[at..end]
                    .windows(2)
                    .any(|w| w[0].text == "reason" && w[1].text == "=");
                if !reason {
                    found.push((hash.line, format!("`{lint}` without a reason")));
                }
            }
        }
    }
    found
}

/// The rooms that a file names although its own may not know them.
fn neighbours(inside: &str, code: &[Token]) -> Found {
    let module = module_path(inside);
    let Some(room) = module.first() else {
        return Vec::new(); // lib.rs and main.rs join everything
    };
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| name == room) else {
        return vec![(
            1,
            format!("`{room}` is no room of the table in tests/architecture"),
        )];
    };
    let mut found = Vec::new();
    for path in paths(code) {
        let Some(from_root) = below_crate_root(&path, module.len()) else {
            continue;
        };
        match from_root.first().map(String::as_str) {
            Some("*" | "self") => found.push((path.line, WHOLE_CRATE.into())),
            Some(named) if named != *room && !allowed.contains(&named) && is_room(named) => {
                found.push((path.line, format!("`{room}` may not know `{named}`")));
            }
            Some("read")
                if *room == "judge" && from_root.get(1).is_none_or(|n| n != "fingerprint") =>
            {
                found.push((
                    path.line,
                    "`judge` may not know `read` but its fingerprints".into(),
                ));
            }
            _ => {} // `pub(crate)`, an item of the root, a neighbour that is allowed
        }
    }
    for pair in code.windows(2) {
        let names_root = matches!(pair[0].text.as_str(), "crate" | "super" | "gpuwatch");
        if names_root && pair[1].text == "as" {
            found.push((pair[1].line, WHOLE_CRATE.into()));
        }
    }
    found
}

const WHOLE_CRATE: &str = "names the whole crate: name the room";

fn is_room(name: &str) -> bool {
    ROOMS.iter().any(|(room, _)| *room == name)
}

/// `src/launch/pty/mod.rs` is `[launch, pty]`.
fn module_path(inside: &str) -> Vec<&str> {
    let stem = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    match stem {
        "lib" | "main" => Vec::new(),
        _ => stem.split('/').collect(),
    }
}

/// What follows `crate::`, `gpuwatch::`, or as many `super::` as lead to the crate's root.
fn below_crate_root(path: &Path, depth: usize) -> Option<&[String]> {
    let segments = &path.segments;
    match segments.first()?.as_str() {
        "crate" => Some(&segments[1..]),
        "gpuwatch" if segments.len() > 1 => Some(&segments[1..]),
        "self" | "super" => {
            let start = usize::from(segments[0] == "self");
            let ups = segments[start..]
                .iter()
                .take_while(|s| *s == "super")
                .count();
            // In an inline module one `super` more is needed; what it then names first is
            // an item of the room, which is no room's name.
            (ups >= depth && segments.len() > start + ups).then(|| &segments[start + ups..])
        }
        _ => None,
    }
}

fn impurities(inside: &str, code: &[Token]) -> Found {
    let stem = inside.trim_end_matches(".rs");
    let within = |place: &str| stem == place || stem.starts_with(&format!("{place}/"));
    if !PURE.iter().any(|place| within(place)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for path in paths(code) {
        if PURE_PATHS.iter().any(|p| path.starts_with(p)) {
            continue;
        }
        let named = IMPURE_PATHS.iter().any(|p| path.starts_with(p))
            || IMPURE_WORDS.iter().any(|w| path.names(w))
            || IMPURE_CALLS.iter().any(|call| ends_with(&path, call));
        if named {
            found.push((
                path.line,
                format!("`{}` in pure code", path.segments.join("::")),
            ));
        }
        if within("model") && foreign_crate(&path) {
            found.push((
                path.line,
                format!("`{}` in `model`, which is std and serde", path.segments[0]),
            ));
        }
    }
    found
}

fn ends_with(path: &Path, end: &[&str]) -> bool {
    let from = path.segments.len().checked_sub(end.len());
    from.is_some_and(|from| path.segments[from..].iter().zip(end).all(|(a, b)| a == b))
}

/// Whether a path begins with a dependency of the package that `model` may not use.
fn foreign_crate(path: &Path) -> bool {
    let manifest = include_str!("../../Cargo.toml");
    let first = &path.segments[0];
    path.segments.len() > 1
        && !MODEL_CRATES.contains(&first.as_str())
        && dependencies(manifest).any(|name| name == *first)
}

/// The names under `[dependencies]`, as code spells them.
fn dependencies(manifest: &str) -> impl Iterator<Item = String> {
    manifest
        .lines()
        .skip_while(|l| l.trim() != "[dependencies]")
        .skip(1)
        .take_while(|l| !l.starts_with('['))
        .filter_map(|l| l.split_once('='))
        .map(|(name, _)| name.trim().replace('-', "_"))
}
