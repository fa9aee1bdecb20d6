//! A step of a pipeline: gates, and what a runner is told.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use serde_json::{Value, json};
use support::fake_driver::python_path;
use support::{Ended, FakeDriver, Job, Sandbox, alive, content, for_each, kill, python};

/// What a step of a pipeline is: a script, run as a runner runs it.
fn step(sandbox: &Sandbox, script: &str) -> Job {
    let gpuwatch = Path::new(env!("CARGO_BIN_EXE_gpuwatch")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    sandbox
        .direct(&[
            "bash",
            "--noprofile",
            "--norc",
            "-eo",
            "pipefail",
            "-c",
            script,
        ])
        .env("PATH", format!("{}:{path}", gpuwatch.display()))
}

/// The same with the variables of GitHub's runner.
fn on_github(sandbox: &Sandbox, script: &str) -> Job {
    step(sandbox, script)
        .env("CI", "true")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", sandbox.path("summary.md"))
}

/// Trains for so many seconds on GPU 0, with this much memory and use.
fn training(seconds: f64, mib: u32, sm: u32) -> String {
    format!(
        "import fake_gpu, time, sys\n\
         fake_gpu.hold(0, {mib}); fake_gpu.use(0, {sm})\n\
         for i in range(int({seconds} / 0.1)):\n\
         \x20   print('step %d/100' % (i + 1), flush=True)\n\
         \x20   time.sleep(0.1)\n"
    )
}

fn with_gpu(job: Job, driver: &FakeDriver) -> Job {
    job.with(driver).env("PYTHONPATH", python_path())
}

fn gate(run: &Value, n: usize) -> &Value {
    &run["gates"][n]
}

#[test]
fn a_step_is_green_when_fine_and_3_with_the_reason_for_each_gate() {
    let cases: [(&str, Option<&str>); 7] = [
        ("gpu.util.mean >= 0 and duration > 1h", None),
        ("job.mem.peak > 22GiB", None),
        ("finding.orphans", None),
        ("job.mem.peak > 4GiB", Some("job.mem.peak was 6.0 GiB")),
        ("gpu.util.mean < 90", Some("gpu.util.mean was ")),
        ("power.mean < 1000", Some("power.mean was ")),
        ("duration < 1h", Some("duration was ")),
    ];
    for_each(&cases, |(gate_text, reason)| {
        let (sandbox, driver) = (Sandbox::new(), FakeDriver::new(&json!({"gpus": [{}]})));
        let argv = [python(), "-c", &training(3.0, 6144, 60)];
        let options = ["--interval", "200ms", "--fail-if", gate_text];
        let ended = with_gpu(sandbox.watched(&options, &argv), &driver).run();
        let run = sandbox.record().json();
        assert_eq!(run["exit"]["code"], 0, "{gate_text}: {}", ended.err());
        assert_eq!(run["verdict"]["outcome"], "ok");
        assert_eq!(gate(&run, 0)["when"], *gate_text);
        assert_eq!(gate(&run, 0)["holds"], reason.is_some(), "{run}");
        let line = reason.map(|reason| format!("gpuwatch: gate failed: {gate_text} ({reason}"));
        let said = ended.own_lines();
        let found = said.iter().filter(|l| l.contains("gate")).count();
        assert_eq!(found, usize::from(reason.is_some()), "{said:?}");
        assert!(
            line.is_none_or(|line| said.iter().any(|l| l.starts_with(&line))),
            "{said:?}"
        );
        assert_eq!(
            ended.code(),
            Some(if reason.is_some() { 3 } else { 0 }),
            "{gate_text}"
        );
    });
}

#[test]
fn a_gpu_that_was_not_used_fails_the_step() {
    let (sandbox, driver) = (Sandbox::new(), FakeDriver::new(&json!({"gpus": [{}]})));
    let script =
        "for i in range(130):\n print('step %d/130' % (i + 1), flush=True)\n time.sleep(0.1)";
    let argv = [python(), "-c", &format!("import time\n{script}")];
    let options = ["-q", "--fail-if", "finding.gpu_unused"];
    let ended = sandbox.watched(&options, &argv).with(&driver).run();
    assert_eq!(ended.code(), Some(3), "{}", ended.err());
    assert_eq!(
        ended.err(),
        "gpuwatch: gate failed: finding.gpu_unused (finding.gpu_unused was raised)\n"
    );
}

#[test]
fn what_the_step_leaves_behind_fails_it_whether_it_is_ended_or_not() {
    for_each(&["report", "kill"], |leftovers| {
        let sandbox = Sandbox::new();
        let argv = ["sh", "-c", "sleep 3600 > /dev/null 2>&1 & echo $! > pid"];
        let options = ["--fail-if", "finding.orphans", "--leftovers", leftovers];
        let ended = sandbox.watched(&options, &argv).run();
        let pid: i32 = content(&sandbox.path("pid")).trim().parse().unwrap();
        let lives = alive(pid);
        if lives {
            kill(pid, 9);
        }
        assert_eq!(lives, *leftovers == "report");
        assert_eq!(ended.code(), Some(3), "{leftovers}: {}", ended.err());
        assert!(
            ended.err().contains("gate failed: finding.orphans"),
            "{}",
            ended.err()
        );
    });
}

#[test]
fn a_command_that_fails_by_itself_keeps_its_own_end() {
    type Check = fn(&Ended) -> bool;
    let cases: [(&str, &[&str], Check); 4] = [
        ("exit 7", &[], |e| e.code() == Some(7)),
        ("kill -SEGV $$", &[], |e| e.status.signal() == Some(11)),
        ("exec sleep 60", &["--time-limit", "200ms"], |e| {
            e.code() == Some(124)
        }),
        ("exit 3", &["-q"], |e| {
            e.code() == Some(3) && e.err().is_empty()
        }),
    ];
    for (script, more, check) in cases {
        let sandbox = Sandbox::new();
        let options = [more, &["--fail-if", "duration < 1h"]].concat();
        let ended = sandbox.watched(&options, &["sh", "-c", script]).run();
        assert!(
            check(&ended),
            "{script}: {:?} {}",
            ended.status,
            ended.err()
        );
        let run = sandbox.record().json();
        assert_eq!(gate(&run, 0)["holds"], true, "{script}");
    }
}

#[test]
fn a_gate_needs_no_record_and_no_word_of_ours() {
    let sandbox = Sandbox::new();
    let options = ["-q", "--no-record", "--fail-if", "duration < 1h"];
    let ended = sandbox
        .watched(&options, &["sh", "-c", "printf out; printf err >&2"])
        .run();
    assert_eq!((ended.code(), ended.out()), (Some(3), "out".to_owned()));
    let (own, line) = ended
        .err()
        .split_once('\n')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(own, "err");
    assert!(
        line.starts_with("gpuwatch: gate failed: duration < 1h (duration was "),
        "{line}"
    );
}

#[test]
fn what_there_is_no_reading_of_fails_nothing_and_is_said() {
    let sandbox = Sandbox::new();
    let options = [
        "-q",
        "--fail-if",
        "gpu.util.mean < 30",
        "--fail-if",
        "not finding.oom and gpu.util.p95 < 5",
    ];
    let ended = sandbox.watched(&options, &["true"]).run();
    assert_eq!(ended.code(), Some(0));
    assert_eq!(
        ended.err(),
        "gpuwatch: gate not checked: gpu.util.mean < 30 (there is no reading of gpu.util.mean)\n\
         gpuwatch: gate not checked: not finding.oom and gpu.util.p95 < 5 (there is no reading of gpu.util.p95)\n"
    );
    let run = sandbox.record().json();
    assert_eq!(
        gate(&run, 0),
        &json!({"when": "gpu.util.mean < 30", "holds": null, "found": {"gpu.util.mean": null}})
    );
    let shown = sandbox.gpuwatch(&["show", "last"]).run();
    assert!(
        shown
            .assert_ok()
            .out()
            .contains("gates      gate not checked: gpu.util.mean"),
        "{}",
        shown.out()
    );
}

#[test]
fn a_wrong_gate_starts_nothing_and_is_underlined() {
    for (text, line) in [
        ("gpu.utl.mean < 30", "there is no value 'gpu.utl.mean'"),
        ("finding.gpu_unusd", "did you mean 'finding.gpu_unused'?"),
        ("duration <", "a number is missing here"),
        ("gpu.util < 30", "'gpu.util' is a value of 'rules'"),
        ("", "a condition is missing here"),
    ] {
        let sandbox = Sandbox::new();
        let ended = sandbox
            .watched(&["--fail-if", text], &["touch", "started"])
            .run();
        assert_eq!(ended.code(), Some(125), "{text}");
        assert!(
            ended.err().starts_with("gpuwatch: --fail-if: "),
            "{}",
            ended.err()
        );
        assert!(
            ended.err().contains(line) && ended.err().contains('^'),
            "{}",
            ended.err()
        );
        assert!(!sandbox.path("started").exists());
    }
}

#[test]
fn a_profile_has_gates_too_and_names_its_own_rules() {
    let sandbox = Sandbox::new();
    let text = "rules: [{name: long, when: out.age >= 0, for: 0s}]\n\
                end: {fail_if: [duration < 1h]}\n";
    std::fs::write(sandbox.path("gpuwatch.yaml"), text).unwrap();
    let options = ["--fail-if", "finding.long and duration > 1h"];
    let ended = sandbox.watched(&options, &["true"]).run();
    assert_eq!(ended.code(), Some(3), "{}", ended.err());
    let run = sandbox.record().json();
    assert_eq!(
        (&gate(&run, 0)["holds"], &gate(&run, 1)["holds"]),
        (&json!(true), &json!(false))
    );
}

#[test]
fn the_profile_for_pipelines_ends_what_is_left() {
    let sandbox = Sandbox::new();
    let script = "gpuwatch run -- sh -c 'sleep 3600 & echo $! > pid'";
    let ended = step(&sandbox, script).env("GPUWATCH_PROFILE", "ci").run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let pid = content(&sandbox.path("pid")).trim().parse().unwrap();
    assert!(!alive(pid), "{}", ended.err());
}

/// A line that GitHub's runner takes for a command: `::` at its beginning, `##[` anywhere.
fn commands(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|l| l.trim_start().starts_with("::") || l.contains("##["))
        .collect()
}

#[test]
fn on_github_gates_and_alarms_are_annotations_and_the_summary_is_a_page() {
    let sandbox = Sandbox::new();
    let script = "gpuwatch run --name '::error::x' --tag '##[error]y' --fail-if 'duration < 1h' -- \
                  sh show.sh";
    let show = "echo '````'; echo '</details><b>bold</b>'; echo '| a | b |'; printf last";
    std::fs::write(sandbox.path("show.sh"), show).unwrap();
    let ended = on_github(&sandbox, script).run();
    assert_eq!(ended.code(), Some(3), "{}", ended.err());
    assert_eq!(ended.out(), "````\n</details><b>bold</b>\n| a | b |\nlast");
    let said = ended.err();
    let told = commands(&said);
    assert_eq!(told.len(), 1, "{said}");
    assert!(
        told[0].starts_with("::error title=gpuwatch gate::gate failed: duration < 1h ("),
        "{said}"
    );
    let page = content(&sandbox.path("summary.md"));
    assert!(
        page.starts_with("### gpuwatch: &#58;&#58;error&#58;&#58;x: ok, failed by a gate\n"),
        "{page}"
    );
    let inside = "`````text\n````\n</details><b>bold</b>\n| a | b |\nlast\n`````\n";
    let (before, after) = page.split_once(inside).unwrap_or_else(|| panic!("{page}"));
    assert_eq!(before.matches("</").count(), 1, "{before}");
    assert_eq!(after, "\n</details>");
}

#[test]
fn a_green_step_has_a_summary_and_no_annotation() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("summary.md"), "# before\n").unwrap();
    let ended = on_github(&sandbox, "gpuwatch run -- echo fine").run();
    assert_eq!(ended.code(), Some(0));
    assert_eq!(commands(&ended.err()), [""; 0], "{}", ended.err());
    let page = content(&sandbox.path("summary.md"));
    assert!(
        page.starts_with("# before\n\n### gpuwatch: echo: ok\n"),
        "{page}"
    );
}

#[test]
fn a_summary_that_can_not_be_written_costs_a_line() {
    let sandbox = Sandbox::new();
    let job = on_github(&sandbox, "gpuwatch run -- echo fine");
    let ended = job.env("GITHUB_STEP_SUMMARY", "/no/such/place").run();
    assert_eq!(ended.code(), Some(0));
    let about = ended.own_lines();
    let about: Vec<_> = about.iter().filter(|l| l.contains("summary")).collect();
    assert_eq!(about.len(), 1, "{about:?}");
    assert!(
        about[0].contains("/no/such/place can't be written"),
        "{about:?}"
    );
}

#[test]
fn elsewhere_nothing_is_written_for_github() {
    let sandbox = Sandbox::new();
    for (name, value) in [("GITHUB_ACTIONS", "false"), ("GPUWATCH_RUN_ID", "outer")] {
        let job = on_github(&sandbox, "gpuwatch run --fail-if 'duration < 1h' -- true");
        let ended = job.env(name, value).run();
        assert_eq!(ended.code(), Some(3));
        assert!(commands(&ended.err()).is_empty(), "{}", ended.err());
        assert!(!sandbox.path("summary.md").exists());
    }
}

/// The scripts of an example's steps.
fn scripts_of(example: &str) -> Vec<String> {
    let text = std::fs::read_to_string(support::in_package(example)).unwrap();
    let tree: Value = serde_yaml::from_str(&text).unwrap();
    let mut found = Vec::new();
    let mut stack = vec![&tree];
    while let Some(node) = stack.pop() {
        match node {
            Value::Object(map) => {
                let lines = |key| map.get(key).into_iter();
                let scripts = lines("run")
                    .chain(lines("script").flat_map(|s| s.as_array().into_iter().flatten()));
                found.extend(scripts.filter_map(Value::as_str).map(str::to_owned));
                stack.extend(map.values());
            }
            Value::Array(list) => stack.extend(list),
            _ => {}
        }
    }
    found.retain(|script| script.contains("gpuwatch run"));
    found
}

#[test]
fn the_examples_are_steps_that_run() {
    for example in [
        "examples/ci/github-actions.yml",
        "examples/ci/gitlab-ci.yml",
    ] {
        let scripts = scripts_of(example);
        assert_eq!(scripts.len(), 1, "{example}");
        let text = content(Path::new(&support::in_package(example)));
        assert!(text.contains("GPUWATCH_PROFILE: ci"), "{example}");
        let (sandbox, driver) = (Sandbox::new(), FakeDriver::new(&json!({"gpus": [{}]})));
        std::fs::write(sandbox.path("train.py"), training(3.0, 6144, 90)).unwrap();
        let job = with_gpu(step(&sandbox, &scripts[0]), &driver).env("GPUWATCH_PROFILE", "ci");
        let ended = job.run();
        assert_eq!(ended.code(), Some(0), "{example}: {}", ended.err());
        assert_eq!(
            sandbox.record().json()["gates"].as_array().unwrap().len(),
            4
        );
    }
}
