//! Made-up environments.

use super::*;
use crate::model::Inventory;

fn python(dists: &[(&str, &str)], libraries: &[&str]) -> Python {
    let pair = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
    let place = |lib: &&str| ((*lib).to_owned(), "/env/lib".to_owned());
    Python {
        executable: "/env/bin/python".to_owned(),
        version: (3, 11, 2),
        dists: dists.iter().map(pair).collect(),
        libraries: libraries.iter().map(place).collect(),
        ..Python::default()
    }
}

fn facts(python: Python, driver: &str, cuda: &str) -> Facts {
    Facts {
        python: Some(Answer::Said(python)),
        asked: Asked::Answered {
            inventory: Inventory {
                driver: Some(driver.to_owned()),
                cuda: Some(cuda.to_owned()),
                ..Inventory::default()
            },
            samples: Vec::new(),
        },
        libraries: Some(["libcuda.so.1".to_owned()].into()),
        ..Facts::default()
    }
}

fn new(python: Python) -> Facts {
    facts(python, "580.95.05", "13.0")
}

fn wrong(facts: &Facts) -> Vec<Check> {
    checks(facts).into_iter().filter(Check::is_wrong).collect()
}

/// The only thing that is wrong.
fn one(facts: &Facts) -> (State, String, String) {
    let wrong = wrong(facts);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    let cure = wrong[0].cure.clone().unwrap_or_default();
    (wrong[0].state, wrong[0].found.clone(), cure)
}

const TF_LIBS: [&str; 2] = ["libcudart.so.12", "libcudnn.so.9"];

#[test]
fn a_tensorflow_that_fits_is_fine() {
    let env = python(
        &[("tensorflow", "2.20.0"), ("nvidia-cudnn-cu12", "9.10.2.21")],
        &TF_LIBS,
    );
    assert_eq!(wrong(&new(env)), []);
}

#[test]
fn builds_for_the_cpu_are_named_with_the_packages_that_help() {
    let (state, found, cure) = one(&new(python(&[("tensorflow-cpu", "2.21.0")], &[])));
    assert_eq!(state, State::Bad);
    assert!(found.contains("tensorflow-cpu 2.21.0"), "{found}");
    assert!(cure.contains("tensorflow[and-cuda]"), "{cure}");
    let mut aarch = python(&[("tensorflow", "2.20.0")], &[]);
    aarch.tf_cuda_build = Some(false);
    assert!(one(&new(aarch)).1.contains("build_info"));
    assert!(
        one(&new(python(&[("torch", "2.9.0+cpu")], &[])))
            .1
            .contains("+cpu")
    );
    let mut torch = python(&[("torch", "2.9.0")], &[]);
    torch.torch_without_cuda = true;
    assert!(one(&new(torch)).1.contains("version.py"));
    let jax = [("jax", "0.7.0"), ("jaxlib", "0.7.0")];
    assert!(one(&new(python(&jax, &[]))).2.contains("jax[cuda13]"));
    let old = facts(python(&jax, &[]), "550.54.14", "12.4");
    assert!(one(&old).2.contains("jax[cuda12]"));
}

#[test]
fn missing_libraries_are_named() {
    let env = python(&[("tensorflow", "2.20.0")], &["libcudart.so.12"]);
    let mut facts = new(env);
    let (_, found, cure) = one(&facts);
    assert!(found.contains("doesn't find libcudnn.so.9"), "{found}");
    assert!(cure.contains("tensorflow[and-cuda]"), "{cure}");
    facts.toolkit.insert("libcudnn.so.9".to_owned());
    assert!(one(&facts).2.contains("LD_LIBRARY_PATH"));
    facts
        .libraries
        .as_mut()
        .unwrap()
        .insert("libcudnn.so.9".to_owned());
    assert_eq!(wrong(&facts), []);
}

#[test]
fn an_old_cudnn_an_old_python_and_an_old_driver_are_named() {
    let env = python(
        &[("tensorflow", "2.20.0"), ("nvidia-cudnn-cu12", "9.1.0.70")],
        &TF_LIBS,
    );
    let (_, found, cure) = one(&new(env));
    assert!(found.contains("needs cuDNN 9.3"), "{found}");
    assert!(cure.contains("nvidia-cudnn-cu12>=9.3,<10"), "{cure}");
    let mut env = python(&[("tensorflow", "2.20.0")], &TF_LIBS);
    env.version = (3, 14, 0);
    let (state, found, _) = one(&new(env));
    assert_eq!(state, State::Warning);
    assert!(found.contains("Python 3.9 to 3.13"), "{found}");
    let mut env = python(&[("torch", "2.15.0")], &["libcudart.so.13"]);
    env.torch_cuda = Some("13.2".to_owned());
    let (_, found, cure) = one(&facts(env, "550.54.14", "12.4"));
    assert!(
        found.contains("needs CUDA 13 and so driver 580.65.06"),
        "{found}"
    );
    assert!(cure.contains("built for CUDA 12"), "{cure}");
}

#[test]
fn only_the_scripts_framework_counts() {
    let both = [("tensorflow-cpu", "2.21.0"), ("torch", "2.15.0")];
    let mut env = python(&both, &["libcudart.so.13"]);
    env.torch_cuda = Some("13.2".to_owned());
    let mut facts = new(env);
    assert_eq!(one(&facts).0, State::Warning, "either may be meant");
    facts.command.imports = Some(["PyTorch".to_owned()].into());
    assert_eq!(wrong(&facts), []);
    facts.command.imports = Some(["TensorFlow".to_owned()].into());
    assert_eq!(one(&facts).0, State::Bad);
}

#[test]
fn a_driver_without_its_cuda_part_is_named() {
    let mut facts = new(python(&[], &[]));
    facts.libraries = Some(std::collections::BTreeSet::new());
    assert!(one(&facts).1.contains("libcuda.so.1"));
    facts.libraries = None;
    assert_eq!(wrong(&facts), [], "what can't be looked at isn't missing");
}

#[test]
fn no_framework_matters_where_one_is_wanted() {
    let mut facts = new(python(&[], &[]));
    assert_eq!(wrong(&facts), []);
    facts.command.typed = Some("python".to_owned());
    assert_eq!(one(&facts).0, State::Warning);
    facts.command.imports = Some(["JAX".to_owned()].into());
    assert!(one(&facts).1.contains("imports JAX"));
}
