//! Variables that hide the GPU, hide what would tell, or make it slow.

use super::Check;
use crate::doctor::facts::{Answer, Facts};

pub fn checks(facts: &Facts) -> Vec<Check> {
    let of = |name: &str| facts.variables.get(name).map(String::as_str);
    let on = |name: &str| of(name).is_some_and(|v| !matches!(v, "" | "0"));
    let mut found = Vec::new();
    found.extend(log_level(facts, of("TF_CPP_MIN_LOG_LEVEL")));
    let platforms = ["JAX_PLATFORMS", "JAX_PLATFORM_NAME"];
    for (name, value) in platforms.iter().filter_map(|n| Some((*n, of(n)?))) {
        let cpu_alone = value.split(',').all(|p| p.trim() == "cpu");
        if cpu_alone && may_have(facts, "jax") {
            found.push(Check::bad(
                "JAX_PLATFORMS",
                format!("{name} is {value}: JAX keeps off the GPU"),
                format!("'unset {name}'"),
            ));
        }
    }
    if on("CUDA_LAUNCH_BLOCKING") {
        found.push(Check::warning(
            "CUDA_LAUNCH_BLOCKING",
            "it is set: every kernel is waited for, which is for debugging and slow",
            "'unset CUDA_LAUNCH_BLOCKING'",
        ));
    }
    if on("PYTORCH_NO_CUDA_MEMORY_CACHING") && may_have(facts, "torch") {
        found.push(Check::warning(
            "PYTORCH_NO_CUDA_MEMORY_CACHING",
            "it is set: every tensor is a cudaMalloc, which is for debugging and slow",
            "'unset PYTORCH_NO_CUDA_MEMORY_CACHING'",
        ));
    }
    let stubs = |path: &&str| path.trim_end_matches('/').ends_with("/stubs");
    if let Some(stubs) = of("LD_LIBRARY_PATH").and_then(|p| p.split(':').find(stubs)) {
        found.push(Check::warning(
            "LD_LIBRARY_PATH",
            format!("{stubs} is in it: the libcuda.so there is for linking, and knows no GPU"),
            "take it out",
        ));
    }
    found
}

/// Whether the interpreter has it; where nobody knows, it may.
fn may_have(facts: &Facts, package: &str) -> bool {
    match &facts.python {
        Some(Answer::Said(python)) if !python.blind => {
            python.dists.keys().any(|name| name.starts_with(package))
        }
        _ => true,
    }
}

fn log_level(facts: &Facts, value: Option<&str>) -> Option<Check> {
    let name = "TF_CPP_MIN_LOG_LEVEL";
    let value = value?;
    let hides = value.trim().parse::<u32>().is_ok_and(|level| level >= 2);
    Some(if hides && may_have(facts, "tensorflow") {
        Check::warning(
            name,
            format!(
                "it is {value}: TensorFlow hides the warnings that tell why it doesn't use the GPU"
            ),
            "'unset TF_CPP_MIN_LOG_LEVEL' as long as you look for the reason",
        )
    } else {
        Check::ok(name, format!("it is {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    fn of(name: &str, value: &str) -> Vec<Check> {
        let mut facts = Facts::default();
        facts.variables.insert(name.to_owned(), value.to_owned());
        checks(&facts)
    }

    #[test]
    fn only_what_hides_or_slows_is_said() {
        for (name, value, state) in [
            ("TF_CPP_MIN_LOG_LEVEL", "2", Some(State::Warning)),
            ("TF_CPP_MIN_LOG_LEVEL", "1", Some(State::Ok)),
            ("JAX_PLATFORMS", "cpu", Some(State::Bad)),
            ("JAX_PLATFORMS", "cuda,cpu", None),
            ("CUDA_LAUNCH_BLOCKING", "1", Some(State::Warning)),
            ("CUDA_LAUNCH_BLOCKING", "0", None),
            (
                "LD_LIBRARY_PATH",
                "/a:/usr/local/cuda/lib64/stubs/",
                Some(State::Warning),
            ),
            ("LD_LIBRARY_PATH", "/usr/local/cuda/lib64", None),
        ] {
            let found = of(name, value);
            assert_eq!(found.first().map(|c| c.state), state, "{name}={value}");
        }
    }
}
