//! The environment, case by case.

use super::*;

const TF: &str = "TF_FORCE_GPU_ALLOW_GROWTH";
const UUID: &str = "GPU-5c1e0f7a";

fn chosen(asked: bool) -> Chosen {
    Chosen {
        indices: "2".to_owned(),
        uuids: Some(UUID.to_owned()),
        how: "free".to_owned(),
        asked,
    }
}

fn variable() -> Variable {
    Variable {
        name: TF.to_owned(),
        value: "true".to_owned(),
        source: "default".to_owned(),
    }
}

/// What is decided with this inherited environment and these `--env`, for a run with one
/// chosen GPU, the built-in profile and stdout on a pipe; `adapt` changes the case.
fn decide(
    inherited: &[(&str, &str)],
    user: &[(&str, &str)],
    adapt: impl Fn(&mut EnvInputs<'_>),
) -> Vec<(String, String, String)> {
    let lookup = |name: &str| {
        let (_, value) = inherited.iter().find(|(known, _)| *known == name)?;
        Some(OsString::from(value))
    };
    let user: Vec<_> = user
        .iter()
        .map(|(name, value)| ((*name).to_owned(), OsString::from(value)))
        .collect();
    let chosen = chosen(false);
    let profile = [variable()];
    let mut inputs = EnvInputs {
        inherited: &lookup,
        user: &user,
        chosen: Some(&chosen),
        profile: &profile,
        framework: None,
        memory: None,
        stdout_is_pipe: true,
        record: None,
        no_env: false,
    };
    adapt(&mut inputs);
    environment(&inputs)
        .into_iter()
        .map(|c| (c.name, c.value.into_string().unwrap(), c.why))
        .collect()
}

fn names_and_values(changes: &[(String, String, String)]) -> Vec<(&str, &str)> {
    changes
        .iter()
        .map(|(name, value, _)| (name.as_str(), value.as_str()))
        .collect()
}

#[test]
fn into_an_empty_environment_goes_everything_with_its_reason() {
    let changes = decide(&[], &[], |_| ());
    let expected = [
        (VISIBLE, "2", "chosen: free"),
        (
            ORDER,
            NVML_ORDER,
            "CUDA_VISIBLE_DEVICES holds NVML's indices",
        ),
        (TF, "true", "profile default"),
        ("PYTHONUNBUFFERED", "1", "stdout is a pipe"),
    ];
    assert_eq!(
        changes,
        expected.map(|(n, v, w)| (n.to_owned(), v.to_owned(), w.to_owned()))
    );
}

#[test]
fn an_inherited_value_wins_even_an_empty_one() {
    let inherited = [(VISIBLE, ""), (TF, "false"), ("PYTHONUNBUFFERED", "")];
    assert_eq!(decide(&inherited, &[], |_| ()), []);
}

#[test]
fn indices_and_their_order_belong_together() {
    for (inherited, user, expected) in [
        // The order is NVML's already.
        (&[(ORDER, NVML_ORDER)][..], &[][..], &[(VISIBLE, "2")][..]),
        // Another order stays, and UUIDs mean the same in every order.
        (&[(ORDER, "FASTEST_FIRST")], &[], &[(VISIBLE, UUID)]),
        (&[(ORDER, "")], &[], &[(VISIBLE, UUID)]),
        (
            &[],
            &[(ORDER, "FASTEST_FIRST")],
            &[(VISIBLE, UUID), (ORDER, "FASTEST_FIRST")],
        ),
        (
            &[(ORDER, "FASTEST_FIRST")],
            &[(ORDER, NVML_ORDER)],
            &[(VISIBLE, "2"), (ORDER, NVML_ORDER)],
        ),
        // Devices that the user typed leave nothing to choose.
        (&[], &[(VISIBLE, "7")], &[(VISIBLE, "7")]),
    ] {
        let changes = decide(inherited, user, |inputs| {
            inputs.profile = &[];
            inputs.stdout_is_pipe = false;
        });
        assert_eq!(
            names_and_values(&changes),
            expected,
            "{inherited:?} {user:?}"
        );
    }
}

#[test]
fn without_uuids_no_wrong_device_is_named() {
    let nameless = Chosen {
        uuids: None,
        ..chosen(true)
    };
    let lookup = |name: &str| (name == ORDER).then(|| OsString::from("FASTEST_FIRST"));
    let inputs = EnvInputs {
        inherited: &lookup,
        user: &[],
        chosen: Some(&nameless),
        profile: &[],
        framework: None,
        memory: None,
        stdout_is_pipe: false,
        record: None,
        no_env: false,
    };
    assert_eq!(environment(&inputs), []);
}

#[test]
fn asked_for_gpus_narrow_an_inherited_set() {
    let asked = chosen(true);
    let lookup = |name: &str| (name == VISIBLE).then(|| OsString::from("0,1,2"));
    for no_env in [false, true] {
        let inputs = EnvInputs {
            inherited: &lookup,
            user: &[],
            chosen: Some(&asked),
            profile: &[variable()],
            framework: None,
            memory: None,
            stdout_is_pipe: false,
            record: None,
            no_env,
        };
        let changes = environment(&inputs);
        let names: Vec<_> = changes.iter().map(|c| c.name.as_str()).collect();
        let expected: &[_] = if no_env {
            &[VISIBLE, ORDER]
        } else {
            &[VISIBLE, ORDER, TF]
        };
        assert_eq!(names, expected);
    }
}

#[test]
fn the_users_word_overrides() {
    let user = [(TF, "false"), ("A", "1"), ("A", "2")];
    let changes = decide(&[("A", "0")], &user, |inputs| {
        inputs.chosen = None;
        inputs.stdout_is_pipe = false;
    });
    assert_eq!(names_and_values(&changes), [(TF, "false"), ("A", "2")]);
    assert!(changes.iter().all(|(_, _, why)| why == "--env"));
}

#[test]
fn no_env_leaves_what_was_asked_for_and_the_record() {
    let record = RecordPaths {
        id: "20261130-091502-train-7f3a".to_owned(),
        dir: "/runs/x".into(),
        progress: "/runs/x/progress".into(),
    };
    let names: Vec<_> = {
        let lookup = |_: &str| Some(OsString::from("inherited"));
        let inputs = EnvInputs {
            inherited: &lookup,
            user: &[("A".to_owned(), "1".into())],
            chosen: Some(&chosen(false)),
            profile: &[variable()],
            framework: None,
            memory: None,
            stdout_is_pipe: true,
            record: Some(&record),
            no_env: true,
        };
        environment(&inputs).into_iter().map(|c| c.name).collect()
    };
    // A nested run gets its own record's, whatever the outer one left.
    assert_eq!(
        names,
        [
            "GPUWATCH_RUN_ID",
            "GPUWATCH_RUN_DIR",
            "GPUWATCH_PROGRESS",
            "A"
        ]
    );
}

#[test]
fn the_record_hides_secrets() {
    let changes = [
        change("HF_TOKEN", OsStr::new("abc"), "--env"),
        change("DATA", OsStr::from_bytes(b"/d\xff"), "--env"),
    ];
    let shown = recorded(&changes);
    assert_eq!(shown["HF_TOKEN"].value, "***");
    assert_eq!(shown["HF_TOKEN"].why, "--env");
    assert_eq!(shown["DATA"].value, r"/d\xff");
}

#[test]
fn env_arguments() {
    let parse = |text: &str| parse_env_arg(OsStr::new(text));
    assert_eq!(parse("A=b=c"), Ok(("A".to_owned(), "b=c".into())));
    assert_eq!(parse("A="), Ok(("A".to_owned(), OsString::new())));
    assert_eq!(
        parse_env_arg(OsStr::from_bytes(b"A=\xff")),
        Ok(("A".to_owned(), OsStr::from_bytes(b"\xff").to_owned()))
    );
    let said = |text| parse(text).unwrap_err().to_string();
    assert_eq!(
        said("HF_HOME"),
        "'HF_HOME' has no '=' in it: write NAME=VALUE (NAME= sets it empty)"
    );
    assert_eq!(
        said("=x"),
        "'=x' has no name before the '=': write NAME=VALUE"
    );
    assert_eq!(
        said("A B=x"),
        "'A B' can't be a variable's name: use letters, digits and '_'"
    );
}

fn named(name: &str, value: &str) -> Variable {
    Variable {
        name: name.to_owned(),
        value: value.to_owned(),
        source: "default".to_owned(),
    }
}

fn value_of<'a>(changes: &'a [(String, String, String)], name: &str) -> Option<&'a str> {
    let found = changes.iter().find(|(known, ..)| known == name);
    found.map(|(_, value, _)| value.as_str())
}

#[test]
fn a_frameworks_variables_are_set_where_neither_they_nor_their_rivals_are() {
    // `decide` takes what lives for ever.
    let variables: &'static [Variable] = Vec::leak(vec![
        named("TORCH_FR_BUFFER_SIZE", "2000"),
        named("NCCL_DEBUG", "WARN"),
        named("NCCL_DEBUG_FILE", "{run_dir}/nccl.log"),
    ]);
    let record: &'static RecordPaths = Box::leak(Box::new(RecordPaths {
        id: "id".to_owned(),
        dir: "/runs/id".into(),
        progress: "/runs/id/progress.jsonl".into(),
    }));
    let set = |inherited: &[(&str, &str)], user: &[(&str, &str)], recorded: bool| {
        let changes = decide(inherited, user, |inputs| {
            inputs.framework = Some(("pytorch", variables));
            inputs.record = recorded.then_some(record);
        });
        ["TORCH_FR_BUFFER_SIZE", "NCCL_DEBUG", "NCCL_DEBUG_FILE"]
            .map(|name| value_of(&changes, name).unwrap_or("-").to_owned())
            .join(" ")
    };
    assert_eq!(set(&[], &[], true), "2000 WARN /runs/id/nccl.log");
    // NCCL's words would be among the output.
    assert_eq!(set(&[], &[], false), "2000 - -");
    // What the user wants to see on the terminal isn't turned aside.
    assert_eq!(set(&[("NCCL_DEBUG", "INFO")], &[], true), "2000 - -");
    assert_eq!(set(&[], &[("NCCL_DEBUG", "INFO")], true), "2000 INFO -");
    let older = [("TORCH_NCCL_TRACE_BUFFER_SIZE", "9")];
    assert_eq!(set(&older, &[], true), "- WARN /runs/id/nccl.log");
    assert_eq!(set(&[], &older, true), "- WARN /runs/id/nccl.log");
    let changes = decide(&[], &[], |inputs| {
        inputs.framework = Some(("pytorch", variables));
        inputs.no_env = true;
    });
    assert_eq!(changes, []);
}

#[test]
fn a_memory_limit_goes_to_jax_and_to_pythons_start() {
    let limited: &'static Limited = Box::leak(Box::new(Limited {
        fraction: Some("0.25".to_owned()),
        hook: "6144".to_owned(),
        note: None,
    }));
    let set = |inherited: &[(&str, &str)], user: &[(&str, &str)], hook: Option<&'static str>| {
        let changes = decide(inherited, user, |inputs| {
            inputs.memory = Some(Memory {
                limited,
                hook: hook.map(OsStr::new),
                why: "--mem-limit 6GiB",
            });
        });
        [JAX_FRACTION, PYTHON_PATH, HOOK_LIMIT]
            .map(|name| value_of(&changes, name).unwrap_or("-").to_owned())
            .join(" ")
    };
    assert_eq!(set(&[], &[], Some("/h")), "0.25 /h 6144");
    assert_eq!(set(&[], &[], None), "0.25 - -");
    let path = [("PYTHONPATH", "/a:/b")];
    assert_eq!(set(&path, &[], Some("/h")), "0.25 /h:/a:/b 6144");
    assert_eq!(set(&[], &path, Some("/h")), "0.25 /h:/a:/b 6144");
    assert_eq!(set(&[("PYTHONPATH", "")], &[], Some("/h")), "0.25 /h 6144");
    let nested = [("PYTHONPATH", "/h:/a")];
    assert_eq!(set(&nested, &[], Some("/h")), "0.25 /h:/a 6144");
    // JAX refuses to start with both.
    let newer = [("XLA_CLIENT_MEM_FRACTION", ".5")];
    assert_eq!(set(&newer, &[], Some("/h")), "- /h 6144");
    assert_eq!(set(&[(JAX_FRACTION, ".5")], &[], Some("/h")), "- /h 6144");
}
