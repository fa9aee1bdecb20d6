//! Words of a command line that stand before the program: wrappers and their options. Knows no
//! files.

use std::ffi::OsString;

/// A program that starts another: its name, its options that take a value in the next word, how
/// many words stand between the options and the other.
const WRAPPERS: [(&str, &[&str], usize); 9] = [
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    ("time", &["-f", "-o", "--format", "--output"], 0),
    ("timeout", &["-k", "-s", "--kill-after", "--signal"], 1),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("taskset", &[], 1),
    ("numactl", &["-N", "-m", "-C", "-i", "-p", "-P"], 0),
];

/// Programs that look for an interpreter of their own when they are told to `run`.
const LAUNCHERS: [&str; 6] = ["poetry", "pipenv", "pdm", "hatch", "pixi", "rye"];

/// Options of `uv run` and of `conda run` that take a value in the next word.
const UV_VALUES: [&str; 14] = [
    "-p",
    "--python",
    "--project",
    "--directory",
    "--env-file",
    "--extra",
    "--group",
    "--only-group",
    "--no-group",
    "--package",
    "--index",
    "--config-file",
    "--cache-dir",
    "--link-mode",
];
const CONDA_VALUES: [&str; 5] = ["-n", "--name", "-p", "--prefix", "--cwd"];

/// What the first word of a command asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'w> {
    /// It is the program itself.
    Program,
    /// A wrapper: the command that it starts.
    Inner(&'w [OsString]),
    /// `env`: changes of the environment, and the command; none of a value takes it away.
    Env {
        /// All is taken away first.
        clear: bool,
        /// In their order.
        changes: Vec<(String, Option<OsString>)>,
        /// What is started.
        inner: Vec<OsString>,
    },
    /// `uv run`: the command, and whether it is a Python module.
    Uv {
        /// What is started.
        inner: &'w [OsString],
        /// `-m`
        module: bool,
        /// It makes an environment for this one start.
        fresh: bool,
    },
    /// `conda run`: the environment's name or path, and the command.
    Conda {
        /// `-n` or `-p`
        environment: Option<OsString>,
        /// What is started.
        inner: &'w [OsString],
    },
    /// It looks for an interpreter in its own way.
    Launcher(String),
}

/// The last part of a path, as text.
pub fn base(word: &OsString) -> String {
    let text = word.to_string_lossy();
    text.rsplit('/').next().unwrap_or_default().to_owned()
}

/// `python`, `python3.12`, `pypy3`
pub fn is_python(name: &str) -> bool {
    let rest = name.strip_prefix("python").or(name.strip_prefix("pypy"));
    rest.is_some_and(|rest| {
        rest.chars()
            .all(|c| c.is_ascii_digit() || c == '.' || c == 't')
    })
}

/// What this command begins with.
pub fn step(words: &[OsString]) -> Step<'_> {
    let Some(first) = words.first() else {
        return Step::Program;
    };
    let (name, rest) = (base(first), &words[1..]);
    if name == "env" {
        return env(rest);
    }
    if let Some((_, values, between)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) {
        let at = options(rest, values) + between;
        return Step::Inner(rest.get(at..).unwrap_or_default());
    }
    let runs = rest.first().is_some_and(|word| word == "run");
    let after = rest.get(1..).unwrap_or_default();
    match name.as_str() {
        "gpuwatch" if runs => {
            let inner = after.iter().position(|word| word == "--");
            Step::Inner(inner.map_or(&[], |at| &after[at + 1..]))
        }
        "uv" if runs => uv(after),
        "conda" | "mamba" | "micromamba" if runs => {
            let at = options(after, &CONDA_VALUES);
            let place = |word: &OsString| CONDA_VALUES[..4].iter().any(|o| word == o);
            let named = after[..at].iter().position(place);
            Step::Conda {
                environment: named.and_then(|n| after.get(n + 1)).cloned(),
                inner: &after[at..],
            }
        }
        "uvx" => Step::Launcher("uvx".to_owned()),
        _ if runs && LAUNCHERS.contains(&name.as_str()) => Step::Launcher(format!("{name} run")),
        _ => Step::Program,
    }
}

/// How many words are options and their values.
fn options(words: &[OsString], values: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).map(|w| w.to_string_lossy()) {
        if word == "--" {
            return at + 1;
        }
        if !word.starts_with('-') {
            break;
        }
        at += if values.contains(&word.as_ref()) {
            2
        } else {
            1
        };
    }
    at.min(words.len())
}

fn uv(words: &[OsString]) -> Step<'_> {
    let is_module = |word: &OsString| word == "-m" || word == "--module";
    let at = options(words, &UV_VALUES);
    let fresh = words[..at].iter().any(|word| {
        ["--with", "--isolated", "--script", "-s"]
            .iter()
            .any(|option| word.to_string_lossy().starts_with(option) && !is_module(word))
    });
    Step::Uv {
        inner: &words[at..],
        module: words[..at].iter().any(is_module),
        fresh,
    }
}

fn env(words: &[OsString]) -> Step<'_> {
    let (mut clear, mut changes, mut at) = (false, Vec::new(), 0);
    let mut split: Vec<OsString> = Vec::new();
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        at += 1;
        match text.as_ref() {
            "-" | "-i" | "--ignore-environment" => clear = true,
            "-u" | "--unset" | "-C" | "--chdir" => {
                let value = words.get(at).map(|w| w.to_string_lossy().into_owned());
                at += 1;
                if text.starts_with("-u") || text == "--unset" {
                    changes.extend(value.map(|name| (name, None)));
                }
            }
            "-S" | "--split-string" => {
                let text = words
                    .get(at)
                    .map(|w| w.to_string_lossy())
                    .unwrap_or_default();
                split = text.split_whitespace().map(OsString::from).collect();
                at += 1;
            }
            "--" => break,
            other if other.starts_with("-S") => {
                split = other[2..].split_whitespace().map(OsString::from).collect();
            }
            other if other.starts_with("--unset=") => {
                changes.push((other["--unset=".len()..].to_owned(), None));
            }
            other if other.starts_with('-') => {}
            other => {
                let Some((name, value)) = other.split_once('=') else {
                    at -= 1;
                    break;
                };
                changes.push((name.to_owned(), Some(value.into())));
            }
        }
    }
    split.extend(words.get(at..).unwrap_or_default().iter().cloned());
    Step::Env {
        clear,
        changes,
        inner: split,
    }
}

/// The interpreter that a script's first line names, and the words after it.
pub fn first_line(start: &[u8]) -> Option<Vec<String>> {
    let rest = start.strip_prefix(b"#!")?;
    let text = String::from_utf8_lossy(rest);
    let mut lines = text.lines();
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let first = words(lines.next()?);
    // How pip names an interpreter whose path is too long for a first line, or has a blank.
    let second = lines.next().unwrap_or_default();
    if let Some(named) = second.strip_prefix("'''exec' ") {
        let named = named.strip_prefix('"').and_then(|n| n.split_once('"'));
        let named = named.map_or_else(|| second.split_whitespace().nth(1), |(n, _)| Some(n));
        return Some(vec![named?.to_owned()]);
    }
    (!first.is_empty()).then_some(first)
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
