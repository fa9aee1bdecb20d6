//! `--once`: what an administrator types.

use serde_json::{Value, json};

use super::machine::{Machine, fast};
use super::support::{FakeDriver, Sandbox};

fn once(sandbox: &Sandbox, driver: &FakeDriver, options: &[&str]) -> super::support::Ended {
    let mut words = vec!["patrol", "--once", "--window", "3s", "--interval", "200ms"];
    words.extend(options);
    sandbox.gpuwatch(&words).with(driver).run()
}

#[test]
fn one_look_tells_by_its_exit_code_and_as_a_document() {
    let machine = Machine::new(2);
    let free = once(&machine.sandbox, &machine.driver, &[]);
    assert_eq!(
        (free.code(), &*free.out()),
        (Some(0), "nobody holds a GPU\n")
    );
    let idle = machine.mine("train sleep 3600", (0, 7000, 0));
    let found = once(&machine.sandbox, &machine.driver, &["--json"]);
    assert_eq!(found.code(), Some(1), "{}", found.err());
    let document: Value = serde_json::from_str(&found.out()).unwrap();
    let job = &document["jobs"][0];
    assert_eq!(document["schema"], 1);
    assert_eq!(
        (&job["pid"], &job["gpus"], &job["mem_mib"]),
        (&json!(idle.pid()), &json!(["0"]), &json!(7000.0))
    );
    assert_eq!(job["findings"][0]["name"], "idle-holding");
    assert_eq!(document["gpus"].as_array().unwrap().len(), 2);
    let text = once(&machine.sandbox, &machine.driver, &[]);
    assert_eq!(text.code(), Some(1));
    assert!(text.out().contains("train 3600 (PID"), "{}", text.out());
    assert!(
        text.out().contains("  warning: idle-holding: "),
        "{}",
        text.out()
    );
    machine.driver.hold(idle.pid() as u32, 0, 7000, 95);
    let busy = once(&machine.sandbox, &machine.driver, &[]);
    assert_eq!(busy.code(), Some(0), "{}", busy.out());
    assert!(!machine.sandbox.runs().exists(), "nothing is recorded");
}

#[test]
fn without_a_driver_it_says_so_by_another_code() {
    let sandbox = Sandbox::new();
    let none = sandbox.gpuwatch(&["patrol", "--once"]).run();
    assert_eq!(none.code(), Some(3));
    assert!(none.err().contains("gpuwatch: "), "{}", none.err());
    let usage = sandbox.gpuwatch(&["patrol", "--window", "3s"]).run();
    assert_eq!(usage.code(), Some(2));
}

#[test]
fn a_mistake_in_the_settings_is_one_sentence() {
    let machine = Machine::new(1);
    for (patrol, words) in [
        (
            json!({"exempt": [{"why": "x"}]}),
            "it needs 'user' or 'command'",
        ),
        (json!({"exmpt": []}), "exempt"),
        (
            json!({"owners": {"mail": "post"}}),
            "no channel of this name",
        ),
        (json!({"owners": {"domain": "a@b"}}), "this is no domain"),
    ] {
        let mut profile = fast();
        profile["patrol"] = patrol;
        let file = machine.sandbox.arg("p.yaml");
        std::fs::write(&file, profile.to_string()).unwrap();
        let ended = machine
            .sandbox
            .gpuwatch(&["patrol", "--profile", &file])
            .run();
        assert_eq!(ended.code(), Some(1));
        assert!(ended.err().contains(words), "{}", ended.err());
        assert!(ended.err().contains("p.yaml:1:"), "{}", ended.err());
    }
}
