//! What stands before the program on a command line.

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[test]
fn wrappers_are_looked_through() {
    for line in [
        "nohup python train.py",
        "/usr/bin/nice -n 5 python train.py",
        "nice -10 python train.py",
        "timeout -k 5 1h python train.py",
        "taskset -c 0-3 python train.py",
        "stdbuf -oL python train.py",
        "gpuwatch run --gpus 1 -- python train.py",
        "time -- python train.py",
    ] {
        let line = words(line);
        assert_eq!(
            step(&line),
            Step::Inner(&words("python train.py")),
            "{line:?}"
        );
    }
    assert_eq!(step(&words("python train.py")), Step::Program);
    assert_eq!(step(&words("timeout")), Step::Inner(&[]));
    assert_eq!(step(&[]), Step::Program);
}

#[test]
fn env_changes_the_environment_before_the_command() {
    let line = words("env -i -u HOME A=1 B= python -u x=y");
    assert_eq!(
        step(&line),
        Step::Env {
            clear: true,
            changes: vec![
                ("HOME".to_owned(), None),
                ("A".to_owned(), Some("1".into())),
                ("B".to_owned(), Some("".into())),
            ],
            inner: words("python -u x=y"),
        }
    );
    let Step::Env { inner, .. } = step(&words("env -S python3")) else {
        unreachable!()
    };
    assert_eq!(inner, words("python3"));
}

#[test]
fn launchers_are_known() {
    let line = words("uv run --extra gpu -m pkg.train");
    let Step::Uv {
        inner,
        module,
        fresh,
    } = step(&line)
    else {
        unreachable!()
    };
    assert_eq!(
        (inner, module, fresh),
        (&words("pkg.train")[..], true, false)
    );
    let line = words("uv run --with torch train.py");
    assert!(matches!(step(&line), Step::Uv { fresh: true, .. }));
    let line = words("conda run -n tf --no-capture-output python t.py");
    let Step::Conda { environment, inner } = step(&line) else {
        unreachable!()
    };
    assert_eq!(
        (environment, inner),
        (Some("tf".into()), &words("python t.py")[..])
    );
    assert_eq!(
        step(&words("poetry run python t.py")),
        Step::Launcher("poetry run".to_owned())
    );
    assert_eq!(step(&words("poetry lock")), Step::Program);
}

#[test]
fn a_first_line_names_an_interpreter() {
    let of = |text: &str| first_line(text.as_bytes());
    let named = |words: &[&str]| Some(words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
    assert_eq!(of("#!/v/bin/python\nimport x"), named(&["/v/bin/python"]));
    assert_eq!(
        of("#! /usr/bin/env python3\n"),
        named(&["/usr/bin/env", "python3"])
    );
    let long = "#!/bin/sh\n'''exec' \"/long way/bin/python\" \"$0\" \"$@\"\n' '''\n";
    assert_eq!(of(long), named(&["/long way/bin/python"]));
    let plain = "#!/bin/sh\n'''exec' /long/bin/python \"$0\" \"$@\"\n' '''\n";
    assert_eq!(of(plain), named(&["/long/bin/python"]));
    assert_eq!(of("\u{7f}ELF"), None);
    assert_eq!(of("#!"), None);
}

#[test]
fn pythons_are_known_by_name() {
    for name in ["python", "python3", "python3.12", "python3.13t", "pypy3"] {
        assert!(is_python(name), "{name}");
    }
    for name in ["python-config", "pythonw.exe", "ipython", "bash", ""] {
        assert!(!is_python(name), "{name}");
    }
}
