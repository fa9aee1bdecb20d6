//! A main process that ends and leaves a worker.

use std::time::{Duration, Instant};

use serde_json::json;

use super::support::fake_driver::python_path;
use super::support::http_server::{Answer, Server};
use super::support::{FakeDriver, Live, Sandbox, alive, content, python, wait_until};
use super::training::alert;

const SCRIPT: &str = r#"
import os, time
import fake_gpu

folder = os.getcwd()
said = lambda name: os.path.exists(name) or not os.path.isdir(folder)
if os.fork() == 0:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    fake_gpu.hold(0, 6144)
    with open("worker", "w") as file:
        print(os.getpid(), file=file)
    while not said("gone"):
        time.sleep(0.05)
    os._exit(0)
while not said("end"):
    time.sleep(0.05)
print("over", flush=True)
"#;

#[test]
fn a_worker_that_keeps_memory_is_told_within_five_seconds() {
    let server = Server::start(&[Answer::status(204)]);
    let sandbox = Sandbox::new();
    let driver = FakeDriver::new(&json!({"gpus": [{}]}));
    let url = server.url("/x");
    let live = sandbox
        .watched(&["--notify", &url], &[python(), "-c", SCRIPT])
        .with(&driver)
        .env("PYTHONPATH", python_path())
        .start();
    let worker: i32 = content(&sandbox.path("worker")).parse().unwrap();
    wait_until("its memory is seen", || {
        sandbox
            .samples_so_far()
            .iter()
            .any(|r| r["job_mem_mib"] == "6144")
    });
    // Somebody else's job on the same GPU is none of ours.
    let mut stranger = Live::stranger();
    driver.hold(stranger.pid() as u32, 0, 2048, 0);
    wait_until("its memory is seen, too", || {
        sandbox
            .samples_so_far()
            .iter()
            .any(|r| r["mem_used_mib"] == "8192")
    });
    std::fs::write(sandbox.path("end"), "").unwrap();
    live.wait_for_out("over");
    let since = Instant::now();
    let raised = alert(&server, "job.orphans", "raised");
    let late = raised.at.saturating_duration_since(since);
    assert!(late <= Duration::from_secs(5), "{late:?} after the end");
    let ended = live.end();
    assert!(stranger.running(), "a stranger's process was ended");
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    assert!(alive(worker), "it is the user's: nobody ended it");
    std::fs::write(sandbox.path("gone"), "").unwrap();

    let data = raised.json()["data"].clone();
    assert_eq!(data["evidence"]["pids"], json!([worker]), "{data}");
    assert_eq!(data["evidence"]["gpu_mem_mib"], 6144, "{data}");
    assert_eq!(data["severity"], "critical", "{data}");
    let found = sandbox.record().events_of("finding");
    let orphans: Vec<_> = found.iter().filter(|f| f["name"] == "orphans").collect();
    assert_eq!(orphans.len(), 1, "{found:?}");
    assert_eq!(orphans[0]["evidence"]["pids"], json!([worker]));
    let told = server.requests();
    let orphans = told
        .iter()
        .filter(|r| r.json()["type"] == "job.orphans")
        .count();
    assert_eq!(orphans, 1, "one alert");
    let said = ended.own_lines().join("\n");
    assert!(
        said.contains(&format!("PID {worker}, 6.0 GiB")),
        "the summary names it: {said}"
    );
}
