//! A real Alertmanager: what holds fires there under the labels that it groups by, and is over
//! when it is over.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Command;

use gpuwatch::model::{Channel, FindingState};
use serde_json::{Value, json};

use super::harness::{Run, finding, secret};
use super::support::http_client::get;
use super::support::http_server::{Answer, Server};
use super::support::{Live, Sandbox, wait_until};

/// Alertmanager with a hook of ours behind it. Somebody else may take its port first: then
/// another one is tried.
fn start(sandbox: &Sandbox, hook: &str) -> (Live, String) {
    let config = json!({
        "route": {"receiver": "hook", "group_by": ["alertname", "job_id", "run"], "group_wait": "0s",
                  "group_interval": "1s", "repeat_interval": "1h"},
        "receivers": [{"name": "hook", "webhook_configs": [{"url": hook, "send_resolved": true}]}],
    });
    let path = sandbox.arg("alertmanager.yml");
    std::fs::write(&path, config.to_string()).unwrap();
    for _ in 0..5 {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let address = format!("127.0.0.1:{port}");
        let mut live = Live::beside(Command::new("prometheus-alertmanager").args([
            format!("--config.file={path}"),
            format!("--storage.path={}", sandbox.arg("data")),
            format!("--web.listen-address={address}"),
            "--cluster.listen-address=".to_owned(),
        ]));
        let mut runs = true;
        wait_until("Alertmanager answers or ends", || {
            runs = live.running();
            !runs || get(&address, "/-/ready").is_some_and(|answer| answer.status == 200)
        });
        if runs {
            return (live, address);
        }
    }
    panic!("Alertmanager did not start");
}

/// Names of what fires there.
fn firing(address: &str) -> Vec<String> {
    let answer = get(address, "/api/v2/alerts?active=true").expect("an answer");
    let alerts: Vec<Value> = serde_json::from_str(&answer.body).unwrap();
    let name = |alert: &Value| alert["labels"]["alertname"].as_str().unwrap().to_owned();
    alerts.iter().map(name).collect()
}

#[test]
fn it_fires_while_it_holds_and_its_own_hook_hears_of_the_end() {
    let sandbox = Sandbox::new();
    let hook = Server::start(&[Answer::status(200)]);
    let (_live, address) = start(&sandbox, &hook.url("/"));
    let run = Run::with(vec![Channel::Alertmanager {
        url: secret(&format!("http://{address}")),
        headers: BTreeMap::new(),
    }]);
    run.raise("stalled");
    assert_eq!(run.wait_for_fates(1), ["c0 stalled sent"]);
    assert_eq!(firing(&address), ["gpuwatch-stalled"]);
    let news = hook.wait_for(1)[0].json();
    assert_eq!(news["status"], "firing");
    let alert = &news["alerts"][0];
    assert_eq!(alert["labels"]["severity"], "critical");
    assert_eq!(alert["labels"]["run"], "20261130-091502-train-7f3a");
    assert!(
        alert["annotations"]["summary"]
            .as_str()
            .unwrap()
            .starts_with("stalled: train")
    );
    run.tell(finding("stalled", FindingState::Cleared));
    run.wait_for_fates(2);
    let news = hook.wait_for(2)[1].json();
    assert_eq!(news["status"], "resolved");
    assert!(firing(&address).is_empty());
    run.end();
}
