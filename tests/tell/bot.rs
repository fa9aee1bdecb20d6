//! Slack and Feishu.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gpuwatch::model::Channel;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::harness::{Run, run_facts, secret, settings};
use super::support::http_server::{Answer, Server};

#[test]
fn slack_gets_a_text_that_calls_nobody() {
    let server = Server::start(&[Answer::Say(200, Vec::new(), "ok")]);
    let mut facts = run_facts();
    facts.name = "<!channel> & 训练".into();
    facts.argv = vec!["x\n".repeat(100_000)];
    let channel = Channel::Slack {
        url: secret(&server.url("/services/T0/B0/t0ken")),
    };
    let run = Run::of(settings(vec![channel]), facts);
    run.raise("stalled");
    run.wait_for_fates(1);
    run.end();
    let json = server.requests()[0].json();
    let text = json["text"].as_str().unwrap();
    assert!(
        text.starts_with("*stalled: &lt;!channel&gt; &amp; 训练 on gpu-01*\n"),
        "{text}"
    );
    assert!(text.chars().count() <= 3000 + 100);
    assert!(text.ends_with("+08:00"), "the last line stays: {text}");
    assert_eq!(json.as_object().unwrap().len(), 1);
}

#[test]
fn feishu_is_signed() {
    let server = Server::start(&[Answer::Say(
        200,
        Vec::new(),
        r#"{"code":0,"msg":"success"}"#,
    )]);
    let run = Run::with(vec![Channel::Feishu {
        url: secret(&server.url("/open-apis/bot/v2/hook/t0ken")),
        secret: Some(secret("s-t0ken")),
    }]);
    run.raise("stalled");
    assert_eq!(run.wait_for_fates(1), ["c0 stalled sent"]);
    run.end();
    let json = server.requests()[0].json();
    assert_eq!(json["msg_type"], "text");
    assert!(
        json["content"]["text"]
            .as_str()
            .unwrap()
            .contains("stalled: train")
    );
    let key = format!("{}\ns-t0ken", json["timestamp"].as_str().unwrap());
    let mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    assert_eq!(json["sign"], STANDARD.encode(mac.finalize().into_bytes()));
}

#[test]
fn feishus_refusal_in_a_good_answer_is_one() {
    let refusal = r#"{"code":19021,"msg":"sign match fail t0ken"}"#;
    let server = Server::start(&[Answer::Say(200, Vec::new(), refusal)]);
    let run = Run::with(vec![Channel::Feishu {
        url: secret(&server.url("/t0ken")),
        secret: None,
    }]);
    run.raise("stalled");
    assert_eq!(run.wait_for_fates(1), ["c0 stalled failed"]);
    assert!(run.whys()[0].contains("19021"));
    run.end();
}
