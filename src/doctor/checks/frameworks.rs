//! The frameworks in the interpreter: built for CUDA, and do they find what they need.

use super::versions::{self, major, two};
use super::{Check, State};
use crate::doctor::facts::{Answer, Asked, Facts, Python, Runs};

const TF: &str = "TensorFlow";
const TORCH: &str = "PyTorch";
const JAX: &str = "JAX";

/// The names under which TensorFlow is installed.
const TENSORFLOWS: [&str; 8] = [
    "tensorflow",
    "tensorflow-gpu",
    "tensorflow-cpu",
    "tensorflow-cpu-aws",
    "intel-tensorflow",
    "tf-nightly",
    "tf-nightly-cpu",
    "tensorflow-rocm",
];

/// One framework as it is installed.
struct Found {
    name: &'static str,
    /// Its package and version.
    what: String,
    build: Build,
}

enum Build {
    /// Without CUDA: why we say so, and what to do.
    Cpu(String, String),
    /// For CUDA of this major version (or one that isn't known), and cuDNN of that.
    Cuda(Option<u32>, Option<u32>),
    /// For AMD's GPUs.
    Rocm,
}

pub fn checks(facts: &Facts) -> Vec<Check> {
    let Some(Answer::Said(python)) = &facts.python else {
        return libcuda(facts).into_iter().collect();
    };
    let mut checks: Vec<Check> = libcuda(facts).into_iter().collect();
    if python.blind {
        return checks;
    }
    let found: Vec<Found> = [tensorflow(python), torch(python), jax(facts, python)]
        .into_iter()
        .flatten()
        .collect();
    if found.is_empty() {
        checks.push(none(facts, python));
    }
    let can = |f: &Found| !matches!(f.build, Build::Cpu(..));
    let one_can = found.iter().any(can);
    for framework in &found {
        let mut of_it = build(facts, python, framework);
        for check in &mut of_it {
            soften(check, facts, framework, one_can);
        }
        checks.extend(of_it);
    }
    checks
}

/// What isn't the script's framework is said and doesn't count; where nobody knows which is, one
/// that can use the GPU may be the one that is used.
fn soften(check: &mut Check, facts: &Facts, framework: &Found, one_can: bool) {
    let named = facts.command.imports.as_ref().filter(|i| !i.is_empty());
    let most = match named {
        Some(named) if named.contains(framework.name) => State::Bad,
        Some(_) => State::Note,
        None if one_can && matches!(framework.build, Build::Cpu(..)) => State::Warning,
        None => State::Bad,
    };
    check.state = check.state.min(most);
}

/// The driver's library that CUDA itself is in.
fn libcuda(facts: &Facts) -> Option<Check> {
    let name = "libcuda.so.1";
    let libraries = facts.libraries.as_ref()?;
    if !matches!(facts.asked, Asked::Answered { .. }) {
        return None;
    }
    Some(if libraries.contains(name) {
        Check::ok(name, "the loader finds it")
    } else {
        let cure = if facts.machine.container {
            "start the container with -e NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        } else {
            "install the driver's CUDA part (Debian: libcuda1; else the driver's compute libraries), then 'ldconfig'"
        };
        Check::bad(
            name,
            "the driver answers, but the loader finds no libcuda.so.1",
            cure,
        )
    })
}

fn none(facts: &Facts, python: &Python) -> Check {
    let name = "frameworks";
    let found = format!("{} has no TensorFlow, PyTorch or JAX", python.executable);
    let wanted = facts.command.imports.iter().flatten().next();
    match wanted {
        Some(wanted) => Check::bad(
            name,
            format!("{found}, and the script imports {wanted}"),
            "activate the environment that has it, or install it into this one",
        ),
        None if facts.command.typed.is_some() => Check::warning(
            name,
            found,
            "if the command needs one, this is another Python than you think: activate its environment",
        ),
        None => Check::note(name, found),
    }
}

fn pip(python: &Python) -> String {
    format!("{} -m pip", python.executable)
}

fn tensorflow(python: &Python) -> Option<Found> {
    let dists = &python.dists;
    let (package, version) = TENSORFLOWS
        .iter()
        .find_map(|name| Some((*name, dists.get(*name)?)))?;
    let what = format!("{package} {version}");
    let pip = pip(python);
    let cure =
        format!("'{pip} uninstall {package}', then '{pip} install \"tensorflow[and-cuda]\"'");
    let table = versions::tensorflow(version);
    let build = if package.ends_with("-rocm") {
        Build::Rocm
    } else if python.tf_cuda_build == Some(false) {
        Build::Cpu("its build_info says that it has no CUDA".to_owned(), cure)
    } else if package.contains("-cpu") || package.starts_with("intel-") {
        Build::Cpu("the package is the CPU build".to_owned(), cure)
    } else {
        let cuda = python.tf_cuda.as_deref().and_then(major);
        let cudnn = python.tf_cudnn.as_deref().and_then(major);
        Build::Cuda(
            cuda.or(table.map(|t| t.cuda.0)),
            cudnn.or(table.map(|t| t.cudnn.0)),
        )
    };
    Some(Found {
        name: TF,
        what,
        build,
    })
}

fn torch(python: &Python) -> Option<Found> {
    let version = python.dists.get("torch")?;
    let pip = pip(python);
    let cure = format!(
        "'{pip} uninstall torch', then '{pip} install torch' (pytorch.org/get-started names the index for an older driver)"
    );
    let build = if python.torch_hip.is_some() {
        Build::Rocm
    } else if version.ends_with("+cpu") {
        Build::Cpu("its version ends in +cpu".to_owned(), cure)
    } else if python.torch_without_cuda {
        Build::Cpu("its torch/version.py has no CUDA".to_owned(), cure)
    } else {
        let dnn = python.dists.keys().any(|n| n.starts_with("nvidia-cudnn-"));
        Build::Cuda(
            python.torch_cuda.as_deref().and_then(major),
            // Only wheels that ask for cuDNN's wheel tell that they don't bring their own.
            dnn.then_some(9),
        )
    };
    Some(Found {
        name: TORCH,
        what: format!("torch {version}"),
        build,
    })
}

fn jax(facts: &Facts, python: &Python) -> Option<Found> {
    let version = python.dists.get("jax")?;
    let what = format!("jax {version}");
    let plugin = |n: u32| {
        let names = [format!("jax-cuda{n}-plugin"), format!("jax-cuda{n}-pjrt")];
        names.iter().all(|name| python.dists.contains_key(name))
    };
    let old = |jaxlib: &String| jaxlib.contains("+cuda");
    let build = if let Some(cuda) = [11, 12, 13, 14].into_iter().find(|n| plugin(*n)) {
        Build::Cuda(Some(cuda), Some(9))
    } else if python.dists.get("jaxlib").is_some_and(old) {
        Build::Cuda(None, None)
    } else if python.dists.keys().any(|n| n.starts_with("jax-rocm")) {
        Build::Rocm
    } else {
        let newest = match &facts.asked {
            Asked::Answered { inventory, .. } => inventory.cuda.as_deref().and_then(major),
            _ => None,
        };
        let extra = if newest.is_some_and(|n| n >= 13) {
            "cuda13"
        } else {
            "cuda12"
        };
        Build::Cpu(
            format!("no CUDA plugin (jax-{extra}-plugin) is installed beside it"),
            format!("'{} install -U \"jax[{extra}]\"'", pip(python)),
        )
    };
    Some(Found {
        name: JAX,
        what,
        build,
    })
}

fn build(facts: &Facts, python: &Python, found: &Found) -> Vec<Check> {
    let Found { name, what, .. } = found;
    match &found.build {
        Build::Cpu(why, cure) => vec![Check::bad(
            name,
            format!("{what} runs on the CPU alone: {why}"),
            cure.clone(),
        )],
        Build::Rocm => vec![Check::note(
            name,
            format!("{what} is built for AMD's GPUs, which isn't looked at"),
        )],
        Build::Cuda(cuda, cudnn) => {
            let wants = cuda.map_or_else(|| "CUDA".to_owned(), |n| format!("CUDA {n}"));
            let mut checks = vec![Check::ok(name, format!("{what} is built for {wants}"))];
            checks.extend(cuda.and_then(|cuda| driver(facts, found, cuda)));
            checks.extend(libraries(facts, python, found, *cuda, *cudnn));
            checks.extend(if *name == TF {
                tested(python)
            } else {
                Vec::new()
            });
            checks
        }
    }
}

/// Whether the driver is new enough.
fn driver(facts: &Facts, found: &Found, cuda: u32) -> Option<Check> {
    let Asked::Answered { inventory, .. } = &facts.asked else {
        return None;
    };
    let driver = inventory.driver.as_deref()?;
    let newest = inventory.cuda.as_deref().and_then(major);
    let old = versions::too_old(driver, cuda).or(newest.map(|newest| newest < cuda))?;
    let least = versions::least_driver(cuda).unwrap_or_else(|| "a newer one".to_owned());
    let (name, what) = (found.name, &found.what);
    Some(if old {
        Check::bad(
            name,
            format!("{what} needs CUDA {cuda} and so driver {least}; this one is {driver}"),
            format!(
                "update the driver to {least} or newer, or install a {name} that is built for CUDA {}",
                newest.unwrap_or(cuda - 1)
            ),
        )
    } else {
        Check::ok(
            name,
            format!("driver {driver} is new enough for CUDA {cuda} ({least})"),
        )
    })
}

/// Whether CUDA's libraries are there.
fn libraries(
    facts: &Facts,
    python: &Python,
    found: &Found,
    cuda: Option<u32>,
    cudnn: Option<u32>,
) -> Option<Check> {
    // The names carry the major version; CUDA 11's runtime is `libcudart.so.11.0`.
    let runtime = cuda.map(|n| {
        if n == 11 {
            "libcudart.so.11.0".to_owned()
        } else {
            format!("libcudart.so.{n}")
        }
    });
    let dnn = cudnn.map(|n| format!("libcudnn.so.{n}"));
    let system = facts.libraries.as_ref();
    let here =
        |lib: &String| python.libraries.contains_key(lib) || system.is_none_or(|s| s.contains(lib));
    // A wheel of PyTorch that brings its own libraries gives them names of its own.
    let own = found.name == TORCH && python.libraries.keys().any(|l| l.starts_with("libcudart-"));
    let missing: Vec<&String> = [&runtime, &dnn]
        .into_iter()
        .flatten()
        .filter(|lib| !own && !here(lib))
        .collect();
    if missing.is_empty() {
        let from = |lib: &String| {
            let place = python
                .libraries
                .get(lib)
                .map_or("the loader's path", String::as_str);
            format!("{lib} in {place}")
        };
        let list: Vec<String> = [&runtime, &dnn].into_iter().flatten().map(from).collect();
        return (!list.is_empty() && !own).then(|| Check::ok(found.name, list.join(", ")));
    }
    let list: Vec<&str> = missing.iter().map(|s| s.as_str()).collect();
    let list = list.join(" and ");
    let cure = if missing.iter().all(|lib| facts.toolkit.contains(*lib)) {
        "it lies in /usr/local/cuda/lib64, where the loader isn't told to look: add that to LD_LIBRARY_PATH".to_owned()
    } else {
        let pip = pip(python);
        let cuda = cuda.unwrap_or(12);
        match found.name {
            TF => format!(
                "'{pip} install \"tensorflow[and-cuda]\"' brings them, or install CUDA {cuda} and cuDNN"
            ),
            TORCH => format!("'{pip} install --force-reinstall torch' brings them"),
            _ => format!("'{pip} install -U \"jax[cuda{cuda}]\"' brings them"),
        }
    };
    Some(Check::bad(
        found.name,
        format!("{} doesn't find {list}", found.what),
        cure,
    ))
}

/// TensorFlow's own table: the Python, and cuDNN's minor version.
fn tested(python: &Python) -> Vec<Check> {
    let installed = TENSORFLOWS.iter().find_map(|n| python.dists.get(*n));
    let Some((version, needs)) = installed.and_then(|v| Some((v, versions::tensorflow(v)?))) else {
        return Vec::new();
    };
    let mut checks = Vec::new();
    let (_, minor, _) = python.version;
    let (first, last) = needs.python;
    if !(first..=last).contains(&minor) {
        checks.push(Check::warning(
            TF,
            format!(
                "TensorFlow {version} is made for Python 3.{first} to 3.{last}; this is 3.{minor}"
            ),
            format!("make an environment with Python 3.{last}"),
        ));
    }
    let (a, b) = needs.cudnn;
    let wheel = format!("nvidia-cudnn-cu{}", needs.cuda.0);
    if let Some(has) = python.dists.get(&wheel)
        && two(has).is_some_and(|has| has < needs.cudnn)
    {
        checks.push(Check::bad(
            TF,
            format!("TensorFlow {version} needs cuDNN {a}.{b} or newer, and {wheel} is {has}"),
            format!(
                "'{} install -U \"{wheel}>={a}.{b},<{}\"'",
                pip(python),
                a + 1
            ),
        ));
    }
    checks
}

/// Frameworks that could be imported, as the names under which Python knows them.
pub fn importable(facts: &Facts) -> Vec<&'static str> {
    let (Some(Answer::Said(python)), Runs::Python { .. }) = (&facts.python, &facts.command.runs)
    else {
        return Vec::new();
    };
    let named = facts.command.imports.as_ref().filter(|i| !i.is_empty());
    [
        (tensorflow(python), "tensorflow"),
        (torch(python), "torch"),
        (jax(facts, python), "jax"),
    ]
    .into_iter()
    .filter_map(|(found, module)| Some((found?, module)))
    .filter(|(found, _)| matches!(found.build, Build::Cuda(..)))
    .filter(|(found, _)| named.is_none_or(|named| named.contains(found.name)))
    .map(|(_, module)| module)
    .collect()
}

#[cfg(test)]
#[path = "frameworks_tests.rs"]
mod tests;
