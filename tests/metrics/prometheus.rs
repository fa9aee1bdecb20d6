//! Prometheus itself, on ports of this test's own.

use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::client::{address, get};
use crate::formats::has;
use crate::support::{FakeDriver, Live, Sandbox, in_package, wait_until};

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// A server that was started on a port of its own, and answers.
struct Server {
    _live: Live,
    address: String,
}

impl Server {
    /// `start` makes the command for an address. Somebody else may take the port first: then
    /// another one is tried.
    fn start(ready: &str, start: impl Fn(&str) -> Command) -> Self {
        for _ in 0..5 {
            let address = format!("127.0.0.1:{}", free_port());
            let mut live = Live::beside(&mut start(&address));
            let mut runs = true;
            wait_until("the server answers or ends", || {
                runs = live.running();
                !runs || get(&address, ready).is_some_and(|answer| answer.status == 200)
            });
            if runs {
                return Self {
                    _live: live,
                    address,
                };
            }
        }
        panic!("no server came up: {:?}", start("127.0.0.1:0"));
    }

    /// Prometheus, which scrapes this address and judges by the rules in `examples`.
    fn prometheus(sandbox: &Sandbox, target: &str) -> Self {
        let config = json!({
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "200ms"},
            "rule_files": [in_package("examples/prometheus/gpuwatch.rules.yml")],
            "scrape_configs": [{"job_name": "gpuwatch", "static_configs": [{"targets": [target]}]}],
        });
        let path = sandbox.arg("prometheus.yml");
        std::fs::write(&path, config.to_string()).unwrap();
        let data = sandbox.arg("data");
        Self::start("/-/ready", |address| {
            let mut command = Command::new("prometheus");
            command.args([
                format!("--config.file={path}"),
                format!("--storage.tsdb.path={data}"),
                format!("--web.listen-address={address}"),
            ]);
            command
        })
    }

    fn node_exporter(folder: &str) -> Self {
        Self::start("/metrics", |address| {
            let mut command = Command::new("prometheus-node-exporter");
            command.args(["--collector.disable-defaults", "--collector.textfile"]);
            command.args([
                format!("--collector.textfile.directory={folder}"),
                format!("--web.listen-address={address}"),
            ]);
            command
        })
    }

    fn ask(&self, path: &str) -> Value {
        let answer = get(&self.address, path).expect("an answer");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str::<Value>(&answer.body).unwrap()["data"].take()
    }

    /// The labels and values that a query gives now.
    fn query(&self, query: &str) -> Vec<(Value, f64)> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let encode = |b: u8| {
            if plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        };
        let query: String = query.bytes().map(encode).collect();
        let found = self.ask(&format!("/api/v1/query?query={query}"));
        let list = found["result"].as_array().unwrap().iter();
        list.map(|one| {
            (
                one["metric"].clone(),
                one["value"][1].as_str().unwrap().parse().unwrap(),
            )
        })
        .collect()
    }

    fn count(&self, query: &str) -> usize {
        self.query(query).len()
    }

    /// The names of the runs that are seen, in order.
    fn runs(&self) -> Vec<String> {
        let found = self.query("gpuwatch_job_info").into_iter();
        let mut names: Vec<String> = found
            .map(|(labels, _)| labels["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Waits until there is nothing of any run.
    fn wait_for_none(&self) {
        wait_until("nothing of a run is left", || {
            self.count("{__name__=~\"gpuwatch_.+\"}") == 0
        });
    }

    /// The names of the alerts that fire.
    fn firing(&self) -> Vec<String> {
        let found = self.ask("/api/v1/alerts");
        let alerts = found["alerts"].as_array().unwrap().iter();
        let firing = alerts.filter(|alert| alert["state"] == "firing");
        firing
            .map(|alert| alert["labels"]["alertname"].as_str().unwrap().to_owned())
            .collect()
    }
}

const LOW_UTIL: &str = "rules: [{name: low-util, when: gpu.util < 20, severity: critical}]\n";

fn gpu(util: u32) -> Value {
    json!({"gpus": [{"util": util}]})
}

/// It was agreed on, which the names of families tell.
fn assert_open_metrics(prometheus: &Server) {
    let mut types = Value::Null;
    wait_until("the families are known", || {
        types = prometheus.ask("/api/v1/metadata");
        types
            .as_object()
            .is_some_and(|families| families.len() > 10)
    });
    for (metric, kind) in [
        ("gpuwatch_gpu_utilization_ratio", "gauge"),
        ("gpuwatch_job_output_bytes", "counter"),
        ("gpuwatch_job", "info"),
    ] {
        assert_eq!(types[metric][0]["type"], kind, "{metric} of {types}");
    }
}

/// A finding raises an alert, and its end ends it; the run's end ends all of its series.
#[test]
fn an_alert_follows_a_finding() {
    if !has("prometheus") {
        return;
    }
    let driver = FakeDriver::new(&gpu(90));
    let sandbox = Sandbox::new();
    let profile = sandbox.arg("rule.yaml");
    std::fs::write(&profile, LOW_UTIL).unwrap();
    let options = [
        "--metrics",
        "0",
        "--interval",
        "100ms",
        "--profile",
        &profile,
        "--name",
        "mine",
    ];
    let live = sandbox.watched(&options, &["cat"]).with(&driver).start();
    let prometheus = Server::prometheus(&sandbox, &address(&live));

    wait_until("its GPU is seen", || {
        prometheus
            .query("gpuwatch_gpu_utilization_ratio")
            .iter()
            .any(|(_, v)| (v - 0.9).abs() < 1e-9)
    });
    assert_open_metrics(&prometheus);
    assert_eq!(prometheus.firing(), [""; 0]);

    driver.set(&gpu(5));
    wait_until("the alert fires", || {
        prometheus.firing() == ["GpuwatchCritical"]
    });
    let low_util = "gpuwatch_job_finding{finding=\"low-util\",severity=\"critical\"} == 1";
    wait_until("and its finding is there", || {
        prometheus.count(low_util) == 1
    });
    assert_eq!(prometheus.runs(), ["mine"]);

    driver.set(&gpu(90));
    wait_until("the alert clears", || prometheus.firing().is_empty());
    wait_until("so does its finding", || prometheus.count(low_util) == 0);

    live.end().assert_ok();
    prometheus.wait_for_none();
}

/// Two runs on one GPU in one directory, and one that is killed.
#[test]
fn runs_share_a_directory_of_node_exporter() {
    if !(has("prometheus") && has("prometheus-node-exporter")) {
        return;
    }
    let driver = FakeDriver::new(&gpu(40));
    let sandbox = Sandbox::new();
    let folder = sandbox.arg("collector");
    std::fs::create_dir(&folder).unwrap();
    let start = |name: &str| {
        let options = [
            "--metrics-textfile",
            &folder,
            "--interval",
            "100ms",
            "--gpus",
            "id:0",
            "--name",
            name,
        ];
        let job = sandbox.watched(&options, &["cat"]).with(&driver);
        // Each of them claims the GPU in a folder of its own.
        job.env("GPUWATCH_CLAIMS", sandbox.arg(&format!("claims-{name}")))
            .start()
    };
    let (first, second) = (start("first"), start("second"));
    let exporter = Server::node_exporter(&folder);
    let prometheus = Server::prometheus(&sandbox, &exporter.address);
    let used = "gpuwatch_gpu_utilization_ratio == 0.4";
    wait_until("the GPU is seen by both", || {
        prometheus.runs() == ["first", "second"] && prometheus.count(used) == 2
    });
    let is_healthy = || {
        let error = prometheus.query("node_textfile_scrape_error");
        error.len() == 1 && error[0].1 == 0.0
    };
    wait_until("node_exporter has nothing against it", is_healthy);

    first.end().assert_ok();
    wait_until("one is left", || prometheus.runs() == ["second"]);
    second.signal(9);
    drop(second);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    let third = start("third");
    wait_until("the killed one is swept", || prometheus.runs() == ["third"]);
    wait_until("node_exporter has nothing against it", is_healthy);
    third.end().assert_ok();
    prometheus.wait_for_none();
}
