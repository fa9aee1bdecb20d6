//! A run's name, from its command.
//!
//! Owns which programs only start another one, and where in their arguments that one is. Pure.

use std::ffi::OsString;
use std::path::Path;

/// The longest name.
const LONGEST: usize = 40;

/// Programs that run the command which follows.
const WRAPPERS: [&str; 34] = [
    "catchsegv",
    "chrt",
    "compute-sanitizer",
    "conda",
    "doas",
    "env",
    "firejail",
    "gdb",
    "ionice",
    "mamba",
    "micromamba",
    "mpiexec",
    "mpirun",
    "ncu",
    "nice",
    "nohup",
    "nsys",
    "numactl",
    "pdm",
    "pipenv",
    "poetry",
    "prlimit",
    "py-spy",
    "setsid",
    "srun",
    "stdbuf",
    "strace",
    "sudo",
    "taskset",
    "time",
    "timeout",
    "uv",
    "valgrind",
    "xvfb-run",
];

/// Programs (and modules of Python) that run a script, with its own arguments after it.
const LAUNCHERS: [&str; 18] = [
    "accelerate",
    "accelerate.commands.launch",
    "cProfile",
    "colossalai",
    "composer",
    "coverage",
    "debugpy",
    "deepspeed",
    "horovodrun",
    "ipdb",
    "kernprof",
    "memray",
    "pdb",
    "scalene",
    "torch.distributed.launch",
    "torch.distributed.run",
    "torchrun",
    "viztracer",
];

/// Programs that interpret a script.
const INTERPRETERS: [&str; 15] = [
    "bash", "dash", "fish", "ipython", "julia", "ksh", "lua", "node", "perl", "pypy", "python",
    "Rscript", "ruby", "sh", "zsh",
];

/// Options of interpreters whose value is a word of its own.
const WITH_VALUE: [&str; 5] = ["-W", "-X", "-o", "--check-hash-based-pycs", "--rcfile"];

/// Endings of scripts: not part of a name.
const SCRIPTS: [&str; 9] = [
    ".py", ".pyc", ".pyz", ".sh", ".bash", ".ipynb", ".jl", ".R", ".pl",
];

/// The name: what the command runs, not what runs it. At most 40 of `A-Z a-z 0-9 . _ -`,
/// beginning with a letter, a digit or `_`; `run` where nothing better can be told.
pub fn run_name(argv: &[OsString]) -> String {
    let words: Vec<_> = argv.iter().map(|arg| arg.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let program = words.first().map_or("", |word| base(word));
    [candidate(&words), stem(program)]
        .into_iter()
        .map(clean)
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "run".to_owned())
}

fn candidate<'a>(mut words: &[&'a str]) -> &'a str {
    while let [first, rest @ ..] = words {
        let program = base(first);
        if WRAPPERS.contains(&program) {
            match inner(rest) {
                Some(inner) => words = inner,
                None => return stem(program),
            }
        } else if LAUNCHERS.contains(&program) {
            return launched(rest).unwrap_or_else(|| stem(program));
        } else if INTERPRETERS.contains(&plain(program)) {
            match interpreted(rest) {
                Target::Script(script) => return stem(base(script)),
                // `python -m torch.distributed.run train.py`
                Target::Module(module, rest) if LAUNCHERS.contains(&module) => {
                    return launched(rest).unwrap_or(module);
                }
                Target::Module(module, _) => return module,
                Target::Nothing => return plain(program),
            }
        } else {
            return stem(program);
        }
    }
    ""
}

/// What a wrapper's arguments run: from the first program that is known or a script, else from
/// the first word that is no option, number or assignment.
fn inner<'a, 'b>(words: &'b [&'a str]) -> Option<&'b [&'a str]> {
    let known = |word: &&str| {
        let program = base(word);
        WRAPPERS.contains(&program)
            || LAUNCHERS.contains(&program)
            || INTERPRETERS.contains(&plain(program))
            || is_script(program)
    };
    // `conda run`, `uv run`: a subcommand, not the program.
    let other = |word: &&str| {
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        !word.starts_with('-') && !number && !word.contains('=') && *word != "run"
    };
    let at = words
        .iter()
        .position(known)
        .or_else(|| words.iter().position(other))?;
    words.get(at..)
}

/// The script or module that a launcher's arguments name.
fn launched<'a>(words: &[&'a str]) -> Option<&'a str> {
    for (i, word) in words.iter().enumerate() {
        if matches!(*word, "-m" | "--module") {
            return words.get(i + 1).copied();
        }
        if is_script(word) {
            return Some(stem(base(word)));
        }
    }
    None
}

/// What an interpreter runs.
enum Target<'a, 'b> {
    Script(&'a str),
    Module(&'a str, &'b [&'a str]),
    Nothing,
}

fn interpreted<'a, 'b>(words: &'b [&'a str]) -> Target<'a, 'b> {
    let mut rest = words;
    while let [word, after @ ..] = rest {
        rest = after;
        match *word {
            "-m" => {
                return match after {
                    [module, after @ ..] => Target::Module(module, after),
                    [] => Target::Nothing,
                };
            }
            "-" => return Target::Nothing,
            option if WITH_VALUE.contains(&option) => rest = after.get(1..).unwrap_or_default(),
            option if option.starts_with('-') => {
                // `-c` and `-lc`: what follows is a text, not a file.
                if !option.starts_with("--") && option.ends_with('c') {
                    return Target::Nothing;
                }
            }
            script => return Target::Script(script),
        }
    }
    Target::Nothing
}

/// The last part of a path, as it stands.
fn base(word: &str) -> &str {
    Path::new(word)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or(word)
}

fn is_script(word: &str) -> bool {
    SCRIPTS
        .iter()
        .any(|ending| word.len() > ending.len() && word.ends_with(ending))
}

/// Without a script's ending.
fn stem(name: &str) -> &str {
    SCRIPTS
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .filter(|stem| !stem.is_empty())
        .unwrap_or(name)
}

/// `python` for `python3.11`.
fn plain(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Only what a directory and a URL can hold without quotes; everything else becomes one `-`.
fn clean(name: &str) -> String {
    let mut clean = String::new();
    for c in name.chars() {
        let kept = c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        match kept {
            true => clean.push(c),
            false if clean.ends_with('-') => {}
            false => clean.push('-'),
        }
    }
    let trimmed = clean.trim_start_matches(['.', '-']);
    let end = trimmed.len().min(LONGEST);
    trimmed
        .get(..end)
        .unwrap_or_default()
        .trim_end_matches(['.', '-'])
        .to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_script_names_the_run() {
        for (command, name) in [
            ("python train.py", "train"),
            (
                "/usr/bin/python3.11 -u -X dev ./src/train.py --lr 1",
                "train",
            ),
            ("python -m pkg.train --epochs 2", "pkg.train"),
            ("python -W ignore -m pkg.train", "pkg.train"),
            ("python -c print(1)", "python"),
            ("python3", "python"),
            ("python -", "python"),
            ("python3.12 训练.py", "python3.12"),
            ("python -m cProfile -o out train.py", "train"),
            ("python -m debugpy --listen 5678 -m pkg.train", "pkg.train"),
            ("bash run.sh", "run"),
            ("bash -o pipefail job.sh", "job"),
            ("bash -lc train", "bash"),
            ("bash -e scripts/run.bash", "run"),
            ("torchrun --nproc 2 train.py --x y.py", "train"),
            ("torchrun --nproc-per-node 8 -m pkg.train", "pkg.train"),
            (
                "python -m torch.distributed.run --nproc 2 train.py",
                "train",
            ),
            ("torchrun --nproc 2", "torchrun"),
            ("env A=b python x.py", "x"),
            ("env", "env"),
            ("accelerate launch --num_processes 2 x.py", "x"),
            ("deepspeed --num_gpus 4 finetune.py", "finetune"),
            ("nice -n 5 python train.py", "train"),
            ("timeout 1h ./a.out", "a.out"),
            ("srun -n 8 torchrun train.py", "train"),
            ("sudo -u li env X=1 nohup python train.py", "train"),
            ("conda run -n pt python train.py", "train"),
            ("uv run train.py", "train"),
            ("mpirun -np 4 ./bin/solver input.cfg", "solver"),
            ("coverage run train.py", "train"),
            ("/bin/true", "true"),
            ("./train", "train"),
            ("jupyter lab", "jupyter"),
            ("python .hidden.py", "hidden"),
            ("./weird;name$(x)", "weird-name-x"),
            ("", "run"),
        ] {
            let argv: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
            assert_eq!(run_name(&argv), name, "{command}");
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        let argv = [OsString::from(format!("./{}", "ab".repeat(50)))];
        assert_eq!(run_name(&argv), "ab".repeat(20));
    }

    proptest! {
        #[test]
        fn every_command_has_a_name_that_fits_a_path(
            argv in proptest::collection::vec(".{0,60}", 0..5)
        ) {
            let argv: Vec<OsString> = argv.into_iter().map(OsString::from).collect();
            let name = run_name(&argv);
            prop_assert!(!name.is_empty() && name.len() <= LONGEST);
            prop_assert!(!name.starts_with(['.', '-']));
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)));
        }
    }
}
