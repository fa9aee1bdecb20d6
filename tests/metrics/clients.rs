//! Clients of the listener: well-behaved, slow, too many, and those that talk nonsense.

use std::io::Write;
use std::net::TcpStream;

use serde_json::json;

use crate::client::{address, get, metrics, read, sampled, send, values};
use crate::support::{FakeDriver, Live, Sandbox, wait_until};

/// A run that is served until its end, and where.
fn served(sandbox: &Sandbox, options: &[&str]) -> (Live, String) {
    let options = [&["--metrics", "0", "--interval", "100ms"], options].concat();
    let live = sandbox.watched(&options, &["cat"]).start();
    let address = address(&live);
    (live, address)
}

#[test]
fn a_run_can_be_scraped_and_ends_with_its_command() {
    let sandbox = Sandbox::new();
    let (live, address) = served(&sandbox, &["--name", "mine"]);
    assert!(
        address.starts_with("127.0.0.1:"),
        "of this machine alone: {address}"
    );
    let text = sampled(&address);
    assert_eq!(values(&text, "gpuwatch_job_info", "name=\"mine\""), [1.0]);
    assert!(values(&text, "gpuwatch_gpu_info", "").is_empty(), "no GPU");
    let age = values(&text, "gpuwatch_job_sample_age_seconds", "");
    assert!(age.len() == 1 && age[0] >= 0.0, "{age:?}");
    let ended = live.end();
    ended.assert_ok();
    assert!(TcpStream::connect(&address).is_err(), "nobody listens");
}

/// Each rank of a distributed job is told apart, on whatever address it is served.
#[test]
fn a_rank_is_a_label() {
    let sandbox = Sandbox::new();
    // Not every machine has IPv6.
    let has_six = std::net::TcpListener::bind("[::1]:0").is_ok();
    let listen = if has_six { "[::1]:0" } else { "127.0.0.1:0" };
    let job = sandbox.watched(&["--metrics", listen, "--interval", "100ms"], &["cat"]);
    let live = job.env("SLURM_JOB_ID", "4711").env("RANK", "3").start();
    let address = address(&live);
    assert_eq!(address.starts_with("[::1]:"), has_six, "{address}");
    let text = sampled(&address);
    let labels = "job_id=\"4711\",rank=\"3\"";
    assert_eq!(values(&text, "gpuwatch_job_info", labels), [1.0]);
    assert_eq!(
        values(&text, "gpuwatch_job_elapsed_seconds", labels).len(),
        1
    );
    live.end().assert_ok();
}

#[test]
fn each_request_has_its_answer() {
    let sandbox = Sandbox::new();
    let (live, address) = served(&sandbox, &["--no-record"]);
    for (request, status, head) in [
        (
            "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
            200,
            "text/plain; version=0.0.4",
        ),
        (
            "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n",
            200,
            "text/plain",
        ),
        (
            "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n",
            200,
            "application/openmetrics-text; version=1.0.0",
        ),
        (
            "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
            200,
            "content-length: ",
        ),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404, ""),
        ("GET /../metrics HTTP/1.1\r\nHost: x\r\n\r\n", 404, ""),
        (
            "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd",
            405,
            "allow: get, head",
        ),
        (
            "BREW /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
            405,
            "allow: get, head",
        ),
        ("\u{0}\u{1}\u{16}\u{3}\r\n\r\n", 400, ""),
        ("GET /metrics\r\n\r\n", 400, ""),
    ] {
        let answer = send(&address, request.as_bytes());
        let answer = answer.unwrap_or_else(|| panic!("no answer to {request:?}"));
        assert_eq!(answer.status, status, "{request:?}: {}", answer.head);
        assert!(answer.head.contains(head), "{request:?}: {}", answer.head);
        if request.starts_with("HEAD") {
            assert_eq!(answer.body, "");
        }
    }
    let long = format!(
        "GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    let answer = send(&address, long.as_bytes());
    // It may be cut off before it can read why.
    assert!(answer.is_none_or(|answer| answer.status == 431));
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(300));
    assert_eq!(send(&address, many.as_bytes()).unwrap().status, 431);
    assert_eq!(get(&address, "/metrics").unwrap().status, 200);
    live.end().assert_ok();
}

#[test]
fn neither_slow_clients_nor_many_keep_a_scraper_out() {
    let sandbox = Sandbox::new();
    let (live, address) = served(&sandbox, &[]);
    let mut slow: Vec<TcpStream> = Vec::new();
    for n in 0..200 {
        let mut stream = TcpStream::connect(&address).unwrap();
        // Some say nothing, some half of it; those that were sent away can't be told so.
        if n % 2 == 0 {
            let _ = stream.write_all(b"GET /metrics HTT");
        }
        slow.push(stream);
    }
    metrics(&address);
    // Those that stay are sent away, too, whether or not anybody else comes.
    let mut last = slow.pop().unwrap();
    assert!(read(&mut last).is_none_or(|answer| answer.status == 408));
    metrics(&address);
    live.end().assert_ok();
}

/// N03
#[test]
fn while_the_driver_hangs_the_age_of_its_readings_is_told() {
    let gpus = json!([{"util": 40}]);
    let driver = FakeDriver::new(&json!({"gpus": gpus}));
    let sandbox = Sandbox::new();
    let options = ["--metrics", "0", "--interval", "100ms"];
    let job = sandbox.watched(&options, &["cat"]).with(&driver);
    let live = job.start();
    let address = address(&live);
    let util = |text: &str| values(text, "gpuwatch_gpu_utilization_ratio", "gpu=\"0\"");
    wait_until("the GPU is read", || util(&metrics(&address)) == [0.4]);
    let hang = json!([{"call": "nvmlDeviceGetUtilizationRates", "hang": "until_removed"}]);
    driver.set(&json!({"gpus": gpus, "faults": hang}));
    wait_until("its readings are gone", || {
        util(&metrics(&address)).is_empty()
    });
    let text = metrics(&address);
    assert_eq!(values(&text, "gpuwatch_gpu_info", "gpu=\"0\""), [1.0]);
    let read = values(&text, "gpuwatch_gpu_last_reading_timestamp_seconds", "");
    let sampled = |text: &str| values(text, "gpuwatch_job_last_sample_timestamp_seconds", "")[0];
    assert_eq!(read.len(), 1);
    wait_until("the job is still looked at", || {
        sampled(&metrics(&address)) > read[0]
    });
    driver.set(&json!({"gpus": gpus}));
    wait_until("the GPU is read again", || {
        util(&metrics(&address)) == [0.4]
    });
    live.end().assert_ok();
}
