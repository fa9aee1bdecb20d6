//! Each service's request, held against what the real service checks: schema, limits as it counts
//! them, signature, clock; and what its answers lead to.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gpuwatch::model::{Channel, FindingState};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::harness::{Ended, Run, ended, finding, progress, run_facts, secret, settings};
use super::support::http_server::{Answer, Request, Server};

/// A run whose texts are as long and as odd as they get: a giant traceback as its command.
fn talkative(channel: Channel) -> Run {
    let mut facts = run_facts();
    facts.name = "<@everyone> **训练** 🎉 \"q\" \\".into();
    facts.argv = vec!["训🎉\n<x>&\"\\_*`".repeat(100_000)];
    Run::of(settings(vec![channel]), facts)
}

/// What one alert to a channel was, and what became of it.
fn one(answer: &'static str, channel: impl Fn(&Server) -> Channel) -> (Request, Ended) {
    let server = Server::start(&[Answer::Say(200, Vec::new(), answer)]);
    let run = talkative(channel(&server));
    run.raise("stalled");
    run.wait_for_fates(1);
    let told = run.end();
    (server.requests()[0].clone(), told)
}

fn keys(value: &Value) -> Vec<&str> {
    let keys = value.as_object().unwrap().keys();
    keys.map(String::as_str).collect()
}

fn is_near_now(seconds: u64, within: u64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs().abs_diff(seconds) <= within
}

fn hmac(key: &str, message: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(message.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

#[test]
fn discord_takes_it() {
    let (request, told) = one("", |server| Channel::Discord {
        url: secret(&server.url("/api/webhooks/1/t0ken")),
    });
    assert_eq!(told.fates(), ["c0 stalled sent"]);
    let sent = request.json();
    assert_eq!(keys(&sent), ["content", "allowed_mentions"]);
    assert_eq!(sent["allowed_mentions"], json!({"parse": []}));
    let content = sent["content"].as_str().unwrap();
    assert!((1..=2000).contains(&content.encode_utf16().count()));
    assert!(content.contains(r"\*\*训练\*\*"), "{content}");
}

#[test]
fn teams_takes_it() {
    let (request, told) = one("", |server| Channel::Teams {
        url: secret(&server.url("/workflows/t0ken")),
    });
    assert_eq!(told.fates(), ["c0 stalled sent"]);
    assert!(request.body.len() < 21_000, "{}", request.body.len());
    let sent = request.json();
    assert_eq!(sent["type"], "message");
    let attachment = &sent["attachments"][0];
    assert_eq!(
        attachment["contentType"],
        "application/vnd.microsoft.card.adaptive"
    );
    let card = &attachment["content"];
    assert_eq!(
        (&card["type"], &card["version"]),
        (&json!("AdaptiveCard"), &json!("1.4"))
    );
    for block in card["body"].as_array().unwrap() {
        assert_eq!(block["type"], "TextBlock");
        assert_eq!(block["wrap"], true);
        assert!(!block["text"].as_str().unwrap().contains('\n'));
    }
}

#[test]
fn dingtalk_takes_it_signed() {
    let ok = r#"{"errcode":0,"errmsg":"ok"}"#;
    let (request, told) = one(ok, |server| Channel::DingTalk {
        url: secret(&server.url("/robot/send?access_token=t0ken")),
        secret: Some(secret("SECt0ken")),
    });
    assert_eq!(told.fates(), ["c0 stalled sent"]);
    let query = request.path.split_once('?').unwrap().1;
    let asked = reqwest::Url::parse(&format!("http://x/?{query}")).unwrap();
    let query: BTreeMap<String, String> = asked.query_pairs().into_owned().collect();
    let ms: u64 = query["timestamp"].parse().unwrap();
    assert!(is_near_now(ms / 1000, 3600), "it is refused an hour off");
    assert_eq!(query["sign"], hmac("SECt0ken", &format!("{ms}\nSECt0ken")));
    assert_eq!(query["access_token"], "t0ken");
    let sent = request.json();
    assert_eq!(sent["msgtype"], "text");
    let content = sent["text"]["content"].as_str().unwrap();
    assert!(content.contains("gpuwatch") && request.body.len() <= 20_000);
}

#[test]
fn wecom_takes_it_by_bytes() {
    let (request, told) = one(r#"{"errcode":0,"errmsg":"ok"}"#, |server| Channel::WeCom {
        url: secret(&server.url("/cgi-bin/webhook/send?key=t0ken")),
    });
    assert_eq!(told.fates(), ["c0 stalled sent"]);
    let sent = request.json();
    assert_eq!(keys(&sent), ["msgtype", "text"]);
    let content = sent["text"]["content"].as_str().unwrap();
    assert!(content.len() <= 2048, "{}", content.len());
    assert!(
        content.ends_with("+08:00"),
        "the last line stays: {content}"
    );
}

#[test]
fn telegram_takes_it() {
    let (request, told) = one(r#"{"ok":true,"result":{}}"#, |server| Channel::Telegram {
        server: secret(&server.url("")),
        token: secret("123:t0ken"),
        chat: "-100123".into(),
    });
    assert_eq!(told.fates(), ["c0 stalled sent"]);
    assert_eq!(request.path, "/bot123:t0ken/sendMessage");
    let sent = request.json();
    assert_eq!(sent["chat_id"], "-100123");
    assert!(sent.get("parse_mode").is_none(), "nothing is markup");
    let text = sent["text"].as_str().unwrap();
    assert!((1..=4096).contains(&text.encode_utf16().count()));
}

#[test]
fn ntfy_takes_it_at_its_root() {
    let (request, told) = one("{}", |server| Channel::Ntfy {
        url: secret(&server.url("/t0kentopic")),
        token: Some(secret("tk_t0ken")),
    });
    assert_eq!(told.fates(), ["c0 stalled sent"]);
    assert_eq!(request.path, "/");
    assert_eq!(request.header("authorization"), "Bearer tk_t0ken");
    let sent = request.json();
    assert_eq!(
        (&sent["topic"], &sent["priority"]),
        (&json!("t0kentopic"), &json!(5))
    );
    assert!(sent["message"].as_str().unwrap().len() <= 4096);
    assert_eq!(sent["tags"], json!(["rotating_light"]));
}

#[test]
fn alertmanager_takes_it_and_its_end() {
    let server = Server::start(&[Answer::status(200)]);
    let run = talkative(Channel::Alertmanager {
        url: secret(&server.url("/t0ken")),
        headers: BTreeMap::new(),
    });
    run.raise("stalled");
    run.wait_for_fates(1);
    run.raise("data-starved");
    run.wait_for_fates(2);
    run.tell(finding("stalled", FindingState::Cleared));
    run.wait_for_fates(3);
    run.tell(ended(1));
    run.end();
    let requests = server.requests();
    let alerts: Vec<Value> = requests
        .iter()
        .map(|request| {
            assert_eq!(request.path, "/t0ken/api/v2/alerts");
            let sent = request.json();
            let list = sent.as_array().unwrap();
            assert_eq!(list.len(), 1);
            for (name, value) in list[0]["labels"].as_object().unwrap() {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
                assert!(name.chars().all(plain) && value.is_string(), "{name}");
            }
            list[0].clone()
        })
        .collect();
    let names: Vec<&str> = alerts
        .iter()
        .map(|a| a["labels"]["alertname"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "gpuwatch-stalled",
            "gpuwatch-data-starved",
            "gpuwatch-stalled",
            "gpuwatch-data-starved",
            "gpuwatch-run-failed"
        ],
        "what held is over with the run"
    );
    let ends = |n: usize| alerts[n]["endsAt"].as_str().unwrap();
    assert!(ends(2) < ends(0) && ends(3) < ends(1));
    assert_eq!(alerts[0]["labels"], alerts[2]["labels"]);
}

#[test]
fn a_switch_hears_of_life_and_of_the_end_alone() {
    let server = Server::start(&[Answer::status(200)]);
    let run = talkative(Channel::Heartbeat {
        url: secret(&server.url("/ping/t0ken")),
    });
    run.tell(gpuwatch::tell::Happening::Started);
    server.wait_for(1);
    run.tell(progress(1, 0.0));
    run.raise("stalled");
    run.tell(ended(3));
    let told = run.end();
    let paths: Vec<String> = server.requests().iter().map(|r| r.path.clone()).collect();
    assert_eq!(paths, ["/ping/t0ken/start", "/ping/t0ken/3"]);
    assert!(!told.fates().iter().any(|fate| fate.contains("stalled")));
}

#[test]
fn a_switch_that_is_away_is_not_kept_for_later() {
    let server = Server::start(&[Answer::status(500)]);
    let run = talkative(Channel::Heartbeat {
        url: secret(&server.url("/t0ken")),
    });
    run.tell(gpuwatch::tell::Happening::Started);
    run.wait_for_fates(1);
    run.tell(ended(0));
    let told = run.end();
    assert!(told.kept.is_empty());
    assert_eq!(told.fates()[0], "c0 run.started failed");
}

/// Refusals in good answers: the code is said, what the server said is not.
#[test]
fn refusals_in_good_answers_are_refusals() {
    let refused = [
        (
            r#"{"errcode":310000,"errmsg":"t0ken"}"#,
            "dingtalk",
            "310000",
        ),
        (r#"{"errcode":93000,"errmsg":"t0ken"}"#, "wecom", "93000"),
        (
            r#"{"ok":false,"description":"t0ken"}"#,
            "telegram",
            "Telegram",
        ),
        ("Webhook message delivery failed: t0ken", "teams", "Teams"),
    ];
    for (answer, kind, said) in refused {
        let server = Server::start(&[Answer::Say(200, Vec::new(), answer)]);
        let url = secret(&server.url("/t0ken"));
        let run = Run::with(vec![match kind {
            "dingtalk" => Channel::DingTalk { url, secret: None },
            "wecom" => Channel::WeCom { url },
            "teams" => Channel::Teams { url },
            _ => Channel::Telegram {
                server: secret(&server.url("")),
                token: secret("1:t0ken"),
                chat: "1".into(),
            },
        }]);
        run.raise("stalled");
        assert_eq!(run.wait_for_fates(1), ["c0 stalled failed"], "{kind}");
        assert!(run.whys()[0].contains(said), "{:?}", run.whys());
        run.end();
    }
}

/// 429, with the time to wait where each service says it.
#[test]
fn each_services_own_word_on_when_to_come_back_is_heard() {
    let busy = [
        (r#"{"retry_after": 1.2, "global": false}"#, 429, ""),
        (
            r#"{"ok":false,"parameters":{"retry_after":1}}"#,
            429,
            r#"{"ok":true}"#,
        ),
    ];
    for (body, status, ok) in busy {
        let server = Server::start(&[
            Answer::Say(status, Vec::new(), body),
            Answer::Say(200, Vec::new(), ok),
        ]);
        let channel = if ok.is_empty() {
            Channel::Discord {
                url: secret(&server.url("/t0ken")),
            }
        } else {
            Channel::Telegram {
                server: secret(&server.url("")),
                token: secret("1:t0ken"),
                chat: "1".into(),
            }
        };
        let run = Run::with(vec![channel]);
        run.raise("stalled");
        assert_eq!(run.wait_for_fates(1), ["c0 stalled sent"]);
        run.end();
        let at: Vec<_> = server.requests().iter().map(|r| r.at).collect();
        assert_eq!(at.len(), 2);
        assert!(at[1] - at[0] >= Duration::from_secs(1), "not early");
    }
}

#[test]
fn an_address_that_is_kept_elsewhere_is_known_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hook");
    std::fs::write(
        &file,
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=t0ken\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, mode).unwrap();
    let url = gpuwatch::model::SecretRef::File(file.clone());
    let open = |url| {
        let channel = Channel::Known { url };
        gpuwatch::tell::Channels::open(settings(vec![channel]))
    };
    let channels = open(url.clone()).unwrap();
    assert_eq!(channels.means["c0"].kind(), "wecom");
    std::fs::write(&file, "t0ken").unwrap();
    let wrong = open(url).unwrap_err().to_string();
    assert!(
        wrong.contains("no address") && !wrong.contains("t0ken"),
        "{wrong}"
    );
}
