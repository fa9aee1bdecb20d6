//! What a webhook receives.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gpuwatch::model::FindingState;
use gpuwatch::tell::Happening;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use super::harness::{
    Run, SECRET, ended, finding, progress, run_facts, secret, settings, webhook, webhook_with,
};
use super::support::http_server::{Answer, Request, Server};

fn signature(key: &[u8], request: &Request) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    let (id, time) = (
        request.header("webhook-id"),
        request.header("webhook-timestamp"),
    );
    mac.update(format!("{id}.{time}.{}", request.body).as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[test]
fn a_stall_is_raised_and_cleared_with_all_that_is_known() {
    let server = Server::start(&[Answer::status(204)]);
    let run = Run::with(vec![webhook(&server.url("/hook/t0ken"))]);
    run.tell(Happening::Started);
    run.tell(progress(512, 0.0));
    let Happening::Finding {
        finding: stalled,
        severity,
        state,
        ..
    } = finding("stalled", FindingState::Raised)
    else {
        unreachable!()
    };
    run.tell(Happening::Finding {
        finding: stalled,
        severity,
        state,
        awaits_evidence: true,
    });
    run.tell(Happening::Evidence {
        finding: "stalled".into(),
        stacks: vec!["42 python: hang (train.py:7)".into()],
    });
    server.wait_for(1);
    run.tell(finding("stalled", FindingState::Cleared));
    run.tell(ended(0));
    let end = run.end();
    let requests = server.requests();
    let said: Vec<_> = requests
        .iter()
        .map(|r| (r.json()["type"].clone(), r.json()["data"]["state"].clone()))
        .collect();
    assert_eq!(
        said,
        [
            (json!("job.stalled"), json!("raised")),
            (json!("job.stalled"), json!("cleared")),
            (json!("run.finished"), json!(null)),
        ]
    );
    let data = &requests[0].json()["data"];
    assert_eq!(data["progress"]["step"], 512);
    assert!(data["progress"]["age_s"].as_f64().unwrap() >= 0.0);
    assert_eq!(data["stacks"], json!(["42 python: hang (train.py:7)"]));
    assert_eq!(data["run"]["id"], run_facts().id);
    assert_eq!(
        requests[0].json()["timestamp"],
        "2026-11-30T09:15:02.000+08:00"
    );
    assert_eq!(requests[0].method, "POST");
    assert_eq!(requests[0].header("content-type"), "application/json");
    assert_eq!(end.told.sent, 3);
    assert_eq!(end.told.problem(), None);
}

#[test]
fn with_a_secret_it_is_signed_and_headers_are_sent() {
    let server = Server::start(&[Answer::status(200)]);
    let key = b"a t0ken of 24 bytes ....";
    let channels = [
        format!("whsec_{}", STANDARD.encode(key)),
        "plain t0ken".to_owned(),
    ]
    .map(|key| {
        webhook_with(&server.url("/"), |hook| {
            hook.secret = Some(secret(&key));
            hook.headers = BTreeMap::from([("Authorization".into(), secret("Bearer t0ken"))]);
        })
    });
    let run = Run::with(channels.into());
    run.raise("oom");
    run.wait_for_fates(2);
    run.end();
    let mut requests = server.requests();
    requests.sort_by_key(|r| signature(key, r) != r.header("webhook-signature"));
    assert_eq!(
        requests[0].header("webhook-signature"),
        signature(key, &requests[0])
    );
    assert_eq!(
        requests[1].header("webhook-signature"),
        signature(b"plain t0ken", &requests[1])
    );
    for request in &requests {
        assert_eq!(request.header("authorization"), "Bearer t0ken");
        assert!(!request.body.contains(SECRET));
    }
    // One alert: a receiver of both can tell that it is the same.
    assert_eq!(
        requests[0].header("webhook-id"),
        requests[1].header("webhook-id")
    );
}

#[test]
fn a_template_makes_the_body_and_valid_json_of_any_name() {
    let server = Server::start(&[Answer::status(200)]);
    let template = r#"{"text": "{{ title }}", "n": {{ data.progress.step }},
        "run": {{ data.run | tojson }}, "exit": {{ data.exit }}, "all": {{ data }}}"#;
    let plain = "{{ type }} {{ data.run.name }}{% if data.stacks %}!{% endif %}";
    let channels = [template, plain].map(|template| {
        webhook_with(&server.url("/"), |hook| {
            hook.template = Some(template.to_owned());
        })
    });
    let mut facts = run_facts();
    facts.name = "训练 \"quoted\"\\ \n🎉".into();
    let run = Run::of(settings(channels.into()), facts.clone());
    run.tell(progress(7, 0.0));
    run.raise("stalled");
    run.wait_for_fates(2);
    run.end();
    let mut requests = server.requests();
    requests.sort_by_key(|r| r.header("content-type").to_owned());
    let json = requests[0].json();
    assert_eq!(json["text"], "stalled: 训练 \"quoted\"\\  🎉 on gpu-01");
    assert_eq!((&json["n"], &json["exit"]), (&json!(7), &json!(null)));
    assert_eq!(json["run"]["name"], facts.name);
    assert_eq!(json["all"]["finding"], "stalled");
    assert_eq!(requests[1].body, format!("job.stalled {}", facts.name));
}

#[test]
fn what_cant_work_is_refused_before_the_start() {
    let refuse = |change: &dyn Fn(&mut gpuwatch::model::Webhook)| {
        let channel = webhook_with("http://127.0.0.1:1/t0ken", change);
        let error = gpuwatch::tell::Channels::open(settings(vec![channel])).unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with("the channel 'c0' can't be used: "),
            "{said}"
        );
        assert!(!said.contains(SECRET), "{said}");
        assert!(!said.contains('\n'), "{said}");
        said
    };
    refuse(&|hook| hook.url = secret("not an address t0ken"));
    refuse(&|hook| hook.url = secret("ftp://t0ken"));
    refuse(&|hook| hook.secret = Some(secret("whsec_!t0ken")));
    assert!(refuse(&|hook| hook.template = Some("{{ oops".into())).contains("line 1"));
    assert!(refuse(&|hook| hook.template = Some("{\"a\": {{ title }}}".into())).contains("JSON"));
    let endless = "{% for i in range(9999) %}{% for i in range(9999) %}x{% endfor %}{% endfor %}";
    refuse(&|hook| hook.template = Some(endless.into()));
    refuse(&|hook| {
        hook.headers.insert("Host".into(), secret("t0ken"));
    });
    refuse(&|hook| {
        hook.headers.insert("X-Key".into(), secret("t0ken 训"));
    });
}

#[test]
fn a_huge_alert_is_cut_well() {
    let server = Server::start(&[Answer::status(200)]);
    let mut facts = run_facts();
    facts.argv = vec![
        "python".into(),
        format!("{}ValueError: 训练", "🎉\n\"".repeat(150_000)),
    ];
    let run = Run::of(settings(vec![webhook(&server.url("/"))]), facts);
    run.raise("stalled");
    run.wait_for_fates(1);
    run.end();
    let request = &server.requests()[0];
    assert!(request.body.len() <= 20_000, "{}", request.body.len());
    let argv = &request.json()["data"]["run"]["argv"];
    assert!(argv[1].as_str().unwrap().ends_with("ValueError: 训练"));
}
