//! Commands in a folder made for the purpose.

use std::fs;

use super::*;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        place.program("bin/python", "#!/bin/sh\n");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        self.put(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn look(&self, line: &str) -> Looked {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let env = [("PATH", self.path("bin")), ("HOME", self.path("home"))];
        let env = env.map(|(n, v)| (n.into(), v.into()));
        look(&words, env.into(), self.folder.path())
    }

    fn interpreter(&self, line: &str) -> PathBuf {
        match self.look(line).runs {
            Runs::Python { file, .. } => file.strip_prefix(self.folder.path()).unwrap().to_owned(),
            other => unreachable!("{line}: {other:?}"),
        }
    }
}

#[test]
fn the_interpreter_is_found_however_it_is_started() {
    let place = Place::new();
    place.program("v/bin/python3", "");
    let venv = place.path("v/bin/python3");
    place.program("bin/torchrun", &format!("#!{}\n", venv.display()));
    place.program("bin/envy", "#!/usr/bin/env -S python\n");
    place.program("home/.conda/envs/tf/bin/python", "");
    for (line, file) in [
        ("", "bin/python"),
        ("python train.py", "bin/python"),
        ("nohup env A=1 python -m pkg", "bin/python"),
        ("v/bin/python3 -u x.py", "v/bin/python3"),
        ("torchrun --nproc-per-node 2 train.py", "v/bin/python3"),
        ("envy", "bin/python"),
        (
            "conda run -n tf python t.py",
            "home/.conda/envs/tf/bin/python",
        ),
    ] {
        assert_eq!(place.interpreter(line), Path::new(file), "{line}");
    }
}

#[test]
fn uv_uses_the_projects_environment() {
    let place = Place::new();
    place.put("pyproject.toml", "");
    let Runs::NoEnvironment { wants, cure, .. } = place.look("uv run train.py").runs else {
        unreachable!("there is none yet")
    };
    assert!(wants.ends_with("/.venv"), "{wants}");
    assert!(cure.contains("uv sync"));
    place.program(".venv/bin/python", "");
    for line in ["uv run train.py", "uv run python t.py", "uv run -m pkg"] {
        assert_eq!(
            place.interpreter(line),
            Path::new(".venv/bin/python"),
            "{line}"
        );
    }
}

#[test]
fn what_cannot_run_is_told_apart() {
    let place = Place::new();
    place.put("train.py", "import torch\n");
    place.program("moved", "#!/no/such/python\n");
    place.program("job.sh", "#!/bin/bash\n");
    assert_eq!(
        place.look("python9 x").runs,
        Runs::Missing("python9".to_owned())
    );
    assert_eq!(
        place.look("./train.py").runs,
        Runs::NotExecutable(place.path("./train.py"))
    );
    assert!(
        matches!(place.look("./moved").runs, Runs::BadInterpreter { wants, .. } if wants == "/no/such/python")
    );
    assert!(matches!(place.look("./job.sh").runs, Runs::Other(what) if what.contains("bash")));
    assert!(matches!(
        place.look("env -u PATH python").runs,
        Runs::Missing(_)
    ));
    assert!(matches!(
        place.look("poetry run python").runs,
        Runs::Unknown { .. }
    ));
}

#[test]
fn a_scripts_imports_and_options_are_read() {
    let place = Place::new();
    let text = "import os, sys\nfrom torch.nn import Module\n    import jax.numpy as jnp\n# import tensorflow\n";
    place.put("train.py", text);
    let looked = place.look("env CUDA_VISIBLE_DEVICES= python -s -X dev train.py --lr 1");
    let imports: Vec<String> = looked.imports.unwrap().into_iter().collect();
    assert_eq!(imports, ["JAX", "PyTorch"]);
    assert_eq!(looked.env[OsStr::new("CUDA_VISIBLE_DEVICES")], "");
    assert!(matches!(looked.runs, Runs::Python { options, .. } if options == ["-s"]));
    assert_eq!(place.look("python -m train").imports, None);
    assert_eq!(place.look("python gone.py").imports, None);
}
