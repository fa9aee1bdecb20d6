//! `--idle-below` and `--idle-for` mean what they say.

use serde_json::json;

use super::support::fake_driver::python_path;
use super::support::http_server::{Answer, Server};
use super::support::{FakeDriver, Live, Sandbox, python};
use super::training::{alarms, alert, end, kinds, sampled_until};

const SCRIPT: &str = r#"
import os, sys, time
import fake_gpu

folder = os.getcwd()
fake_gpu.hold(0, 6144)
fake_gpu.use(0, int(sys.argv[1]), 5)
while not os.path.exists("end") and os.path.isdir(folder):
    time.sleep(0.05)
"#;

fn used(sandbox: &Sandbox, driver: &FakeDriver, percent: &str, server: &Server) -> Live {
    let url = server.url("/x");
    let options = ["--idle-below", "20", "--idle-for", "10s", "--notify", &url];
    let job = sandbox.watched(&options, &[python(), "-c", SCRIPT, percent]);
    job.with(driver).env("PYTHONPATH", python_path()).start()
}

#[test]
fn fifteen_percent_is_below_twenty() {
    let (sandbox, server) = (Sandbox::new(), Server::start(&[Answer::status(204)]));
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let live = used(&sandbox, &driver, "15", &server);
    let data = alert(&server, "job.idle-holding", "raised").json()["data"].clone();
    let mean = data["evidence"]["use_pct"].as_f64().unwrap();
    assert!((14.0..16.0).contains(&mean), "{data}");
    assert_eq!(data["evidence"]["job_mem_mib"], 6144, "{data}");
    let at = data["elapsed_s"].as_f64().unwrap();
    assert!((10.0..16.0).contains(&at), "after ten seconds: {data}");
    std::fs::write(sandbox.path("end"), "").unwrap();
    end(live, 0);
    let raised = alarms(&sandbox);
    let raised: Vec<_> = raised.iter().filter(|a| a.ends_with(" raised")).collect();
    assert_eq!(raised, ["idle-holding warning raised"]);
}

#[test]
fn twenty_five_percent_is_not() {
    let (sandbox, server) = (Sandbox::new(), Server::start(&[Answer::status(204)]));
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let live = used(&sandbox, &driver, "25", &server);
    sampled_until(&sandbox, 16.0);
    std::fs::write(sandbox.path("end"), "").unwrap();
    end(live, 0);
    assert!(alarms(&sandbox).is_empty(), "{:?}", alarms(&sandbox));
    assert_eq!(kinds(&server), ["run.finished -"]);
}
