//! Which interpreter a command would use: PATH, first lines, environments of uv and conda.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::python::Variables;
use super::within;
use super::words::{Step, base, first_line, is_python, step};
use crate::doctor::facts::Runs;

/// Programs that start programs: more than this is a loop.
const DEEPEST: usize = 10;
/// So much of a script is looked at for its imports.
const SCRIPT: u64 = 256 * 1024;
/// So much of a program tells what starts it.
const FIRST_LINE: u64 = 4096;

/// What a command turns out to be.
#[derive(Debug, Default)]
pub struct Looked {
    /// What runs it.
    pub runs: Runs,
    /// Frameworks that its script imports; none if there is no script to read.
    pub imports: Option<BTreeSet<String>>,
    /// The environment that it would have.
    pub env: Variables,
}

/// Looks at this command; without one, for the Python of PATH.
pub fn look(words: &[OsString], env: Variables, cwd: &Path) -> Looked {
    let mut walk = Walk {
        env,
        cwd,
        how: Vec::new(),
        script: None,
    };
    let runs = if words.is_empty() {
        let names = ["python", "python3"].map(OsString::from);
        let found = names.iter().find(|name| walk.find(name).is_some());
        found.map_or(Runs::Nothing, |name| {
            walk.resolve(std::slice::from_ref(name), 0)
        })
    } else {
        walk.resolve(words, 0)
    };
    let script = walk.script.take();
    Looked {
        runs,
        imports: script.and_then(|path| within(move || imports(&path))?),
        env: walk.env,
    }
}

/// A program by its name in this environment's PATH.
pub fn in_path(name: &str, env: &Variables) -> Option<PathBuf> {
    let path = env.get(OsStr::new("PATH"))?;
    let file = |folder: PathBuf| folder.join(name);
    std::env::split_paths(path)
        .map(file)
        .find(|f| executable(f))
}

fn executable(file: &Path) -> bool {
    let meta = file.metadata();
    meta.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

struct Walk<'a> {
    env: Variables,
    cwd: &'a Path,
    how: Vec<String>,
    script: Option<PathBuf>,
}

impl Walk<'_> {
    fn find(&self, word: &OsString) -> Option<PathBuf> {
        let name = word.to_string_lossy();
        if name.contains('/') {
            let file = self.cwd.join(word);
            return file.exists().then_some(file);
        }
        in_path(&name, &self.env)
    }

    fn resolve(&mut self, words: &[OsString], depth: usize) -> Runs {
        let Some(first) = words.first() else {
            return Runs::Other("nothing is started".to_owned());
        };
        if depth > DEEPEST {
            return Runs::Other(format!("{} starts itself", base(first)));
        }
        let next = depth + 1;
        match step(words) {
            Step::Program => self.program(words, next),
            Step::Inner(inner) => self.resolve(inner, next),
            Step::Env {
                clear,
                changes,
                inner,
            } => {
                if clear {
                    self.env.clear();
                }
                for (name, value) in changes {
                    match value {
                        Some(value) => self.env.insert(name.into(), value),
                        None => self.env.remove(OsStr::new(&name)),
                    };
                }
                self.resolve(&inner, next)
            }
            Step::Uv { fresh: true, .. } => Runs::Unknown {
                launcher: "uv run".to_owned(),
            },
            Step::Uv { inner, module, .. } => self.uv(inner, module, next),
            Step::Conda { environment, inner } => self.conda(environment.as_deref(), inner, next),
            Step::Launcher(launcher) => Runs::Unknown { launcher },
        }
    }

    fn program(&mut self, words: &[OsString], depth: usize) -> Runs {
        let Some(file) = self.find(&words[0]) else {
            return Runs::Missing(words[0].to_string_lossy().into_owned());
        };
        if !executable(&file) {
            return Runs::NotExecutable(file);
        }
        if is_python(&base(&words[0])) {
            let by = if words[0].to_string_lossy().contains('/') {
                "by its path"
            } else {
                "by PATH"
            };
            self.how.push(by.to_owned());
            return self.python(file, &words[1..]);
        }
        let start = read(&file, FIRST_LINE).unwrap_or_default();
        let Some(line) = first_line(&start) else {
            return Runs::Other(format!("{} is a program", file.display()));
        };
        self.first_line(&file, &line, depth)
    }

    /// The interpreter is asked with what is given before the script; `-m` and `-c` have none.
    fn python(&mut self, file: PathBuf, rest: &[OsString]) -> Runs {
        let mut options = Vec::new();
        let mut at = 0;
        while let Some(word) = rest.get(at).map(|w| w.to_string_lossy()) {
            if !word.starts_with('-') || word == "-" {
                self.script = self
                    .script
                    .take()
                    .or(rest.get(at).map(|s| self.cwd.join(s)));
                break;
            }
            if word.starts_with("-m") || word.starts_with("-c") {
                break;
            }
            // Those that change what can be imported.
            if !word.starts_with("--") && word[1..].chars().all(|c| "EIsSP".contains(c)) {
                options.push(word.clone().into_owned());
            }
            at += if matches!(word.as_ref(), "-W" | "-X") {
                2
            } else {
                1
            };
        }
        Runs::Python {
            file,
            options,
            how: self.how.join(", "),
        }
    }

    fn first_line(&mut self, file: &Path, line: &[String], depth: usize) -> Runs {
        let words: Vec<OsString> = line.iter().map(OsString::from).collect();
        let name = base(&words[0]);
        if !is_python(&name) && name != "env" {
            return Runs::Other(format!("{} is a script of {name}", file.display()));
        }
        let with_script: Vec<OsString> = words.iter().cloned().chain([file.into()]).collect();
        self.how
            .push(format!("by the first line of {}", file.display()));
        // A console script (torchrun) isn't what imports the framework for its user.
        let is_own = file.extension().is_some_and(|e| e == "py");
        let runs = self.resolve(&with_script, depth);
        if !is_own {
            self.script = None;
        }
        match runs {
            Runs::Missing(wants) => Runs::BadInterpreter {
                file: file.to_owned(),
                wants,
            },
            other => other,
        }
    }

    /// `uv run` uses the project's environment; outside of a project, the active one.
    fn uv(&mut self, inner: &[OsString], module: bool, depth: usize) -> Runs {
        let var = |name: &str| self.env.get(OsStr::new(name)).map(PathBuf::from);
        let project = self
            .cwd
            .ancestors()
            .find(|p| p.join("pyproject.toml").exists());
        let own = project.map(|p| p.join(var("UV_PROJECT_ENVIRONMENT").unwrap_or(".venv".into())));
        let near = || {
            let mut all = self.cwd.ancestors().map(|p| p.join(".venv"));
            all.find(|venv| venv.join("bin/python").exists())
        };
        let Some(venv) = own.or_else(|| var("VIRTUAL_ENV")).or_else(near) else {
            return Runs::Unknown {
                launcher: "uv run".to_owned(),
            };
        };
        if !venv.join("bin/python").exists() {
            return Runs::NoEnvironment {
                launcher: "uv run".to_owned(),
                wants: venv.display().to_string(),
                cure: "'uv sync' makes it".to_owned(),
            };
        }
        self.how.push("by uv run".to_owned());
        self.prefer(&venv);
        let script = inner
            .first()
            .is_some_and(|w| w.to_string_lossy().ends_with(".py"));
        let mut words = inner.to_vec();
        if module || script || words.is_empty() {
            words.insert(0, "python".into());
        }
        if module {
            words.insert(1, "-m".into());
        }
        self.resolve(&words, depth)
    }

    fn conda(&mut self, environment: Option<&OsStr>, inner: &[OsString], depth: usize) -> Runs {
        let var = |name: &str| self.env.get(OsStr::new(name)).map(PathBuf::from);
        let Some(environment) = environment else {
            return self.resolve(inner, depth);
        };
        let of_program = |p: PathBuf| Some(p.parent()?.parent()?.to_owned());
        let roots = [
            var("CONDA_EXE").and_then(of_program),
            in_path("conda", &self.env).and_then(of_program),
            var("MAMBA_ROOT_PREFIX"),
            var("HOME").map(|home| home.join(".conda")),
        ];
        let named = roots
            .iter()
            .flatten()
            .map(|root| match environment.to_str() {
                Some("base") => root.clone(),
                _ => root.join("envs").join(environment),
            });
        // `join` with a path from the root is that path: `-p` needs nothing more.
        let mut candidates = [self.cwd.join(environment)].into_iter().chain(named);
        let Some(prefix) = candidates.find(|prefix| prefix.join("bin").is_dir()) else {
            let name = environment.to_string_lossy();
            return Runs::NoEnvironment {
                launcher: "conda run".to_owned(),
                wants: format!("the environment {name}"),
                cure: format!(
                    "'conda env list' shows those that there are; 'conda create -n {name} python' makes it"
                ),
            };
        };
        self.how
            .push(format!("by conda run in {}", prefix.display()));
        self.prefer(&prefix);
        self.resolve(inner, depth)
    }

    /// Puts an environment's programs first, as activating it does.
    fn prefer(&mut self, environment: &Path) {
        let old = self
            .env
            .get(OsStr::new("PATH"))
            .cloned()
            .unwrap_or_default();
        let folders = [environment.join("bin")]
            .into_iter()
            .chain(std::env::split_paths(&old));
        if let Ok(path) = std::env::join_paths(folders) {
            self.env.insert("PATH".into(), path);
        }
    }
}

fn read(file: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // A FIFO or a device would be waited for.
    let is_file = file.metadata().is_ok_and(|m| m.is_file());
    let file = is_file.then(|| File::open(file).ok())?;
    file?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Frameworks by the names that checks give them, and the packages that bring them along.
const PACKAGES: [(&str, &[&str]); 3] = [
    (
        "TensorFlow",
        &["tensorflow", "tf_keras", "tensorflow_datasets"],
    ),
    (
        "PyTorch",
        &["torch", "torchvision", "lightning", "pytorch_lightning"],
    ),
    ("JAX", &["jax", "flax", "optax"]),
];

fn imports(script: &Path) -> Option<BTreeSet<String>> {
    let bytes = read(script, SCRIPT)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let mut words = line.split(|c: char| c.is_whitespace() || c == ',' || c == '.' || c == ';');
        let mut words = words.by_ref().filter(|w| !w.is_empty());
        if !matches!(words.next(), Some("import" | "from")) {
            continue;
        }
        let package = words.next().unwrap_or_default();
        let framework = PACKAGES.iter().find(|(_, names)| names.contains(&package));
        found.extend(framework.map(|(name, _)| (*name).to_owned()));
    }
    Some(found)
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
