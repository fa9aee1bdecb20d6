//! Texts and bodies of the user's own, and what would be sent.

use serde_json::{Value, json};

use super::harness::SECRET;
use super::support::http_server::{Answer, Request, Server, closed_url};
use super::support::{Job, Sandbox, content, files_below, in_package};

/// A job in which a rule of the profile raises an alarm and ends it.
fn alarmed(sandbox: &Sandbox, profile: &str, options: &[&str]) -> Job {
    let rules = "rules: [{name: loud, when: progress.step == 3, severity: critical, say: 'three \"!\" <b>'}]\n";
    std::fs::write(sandbox.path("rules.yaml"), rules.to_owned() + profile).unwrap();
    let rules = sandbox.arg("rules.yaml");
    let options = [&["--profile", &rules, "--interval", "200ms"], options].concat();
    let script = "import time\nfor step in (1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4):\n print(f'step {step}/10', flush=True)\n time.sleep(0.3)";
    sandbox.watched(&options, &["python3", "-c", script])
}

fn bodies(requests: &[Request]) -> Vec<Value> {
    requests.iter().map(Request::json).collect()
}

#[test]
fn every_channel_has_the_users_words() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[Answer::status(200)]);
    let profile = format!(
        "tell:\n  texts: {{title: 'UH-OH {{{{ data.finding or type }}}}', body: \"{{{{ lines.headline }}}}\\nrunbook: wiki/gpu\"}}\n  channels: {{a: {{type: slack, url: '{0}'}}, b: {{type: command, argv: [sh, -c, 'echo \"$GPUWATCH_TITLE|$GPUWATCH_TEXT\" >> {1}']}}}}\n",
        server.url("/services/T/B/t0ken"),
        sandbox.arg("heard"),
    );
    alarmed(&sandbox, &profile, &[]).run().assert_ok();
    let texts: Vec<String> = bodies(&server.requests())
        .iter()
        .map(|body| body["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        texts[0].starts_with("*UH-OH loud*\ncritical: loud for ")
            && texts[0].ends_with("\nrunbook: wiki/gpu"),
        "{texts:?}"
    );
    assert!(
        texts
            .last()
            .unwrap()
            .starts_with("*UH-OH run.finished*\nfinished\nrunbook"),
        "{texts:?}"
    );
    let heard = content(&sandbox.path("heard"));
    assert!(
        heard.starts_with("UH-OH loud|critical: loud for "),
        "{heard}"
    );
}

#[test]
fn a_wrong_text_starts_nothing_and_says_where_it_is() {
    let sandbox = Sandbox::new();
    let profile = "tell: {texts: {body: \"one\\n{{ oops\"}}\n";
    let ended = alarmed(&sandbox, profile, &["--notify", "http://127.0.0.1:1/x"]).run();
    assert_eq!(ended.code(), Some(125));
    assert!(
        ended
            .err()
            .contains("tell.texts.body: its template is wrong, line 2"),
        "{}",
        ended.err()
    );
    assert_eq!(ended.out(), "", "nothing was started");
}

/// What Gotify checks of a message.
#[test]
fn gotify_by_its_example() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[Answer::status(200)]);
    let example = in_package("examples/notify/gotify.yaml");
    let profile = content(example.as_ref());
    let job = alarmed(&sandbox, &profile, &[])
        .env("GOTIFY_URL", server.url("/message"))
        .env("GOTIFY_TOKEN", "At0ken");
    job.run().assert_ok();
    let requests = server.requests();
    let sent = requests[0].json();
    assert_eq!(requests[0].header("x-gotify-key"), "At0ken");
    assert_eq!(requests[0].header("content-type"), "application/json");
    assert_eq!(sent["priority"], 8);
    assert!(
        sent["title"].as_str().unwrap().starts_with("loud: "),
        "{sent}"
    );
    let text = sent["message"].as_str().unwrap();
    assert!(text.contains("three \"!\" <b>"), "{text}");
    let keys = sent.as_object().unwrap().len();
    assert_eq!(keys, 3, "{sent}");
}

/// What `PagerDuty` checks of an event (Events API v2).
#[test]
fn pagerduty_by_its_example() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[Answer::status(202)]);
    let example = content(in_package("examples/notify/pagerduty.yaml").as_ref());
    let address = "https://events.pagerduty.com/v2/enqueue";
    assert!(example.contains(address));
    let profile = example.replace(address, &server.url("/v2/enqueue"));
    let job = alarmed(&sandbox, &profile, &[]).env("PAGERDUTY_ROUTING_KEY", "R-t0ken");
    let ended = job.run();
    ended.assert_ok();
    let sent = bodies(&server.requests());
    assert_eq!(sent.len(), 2, "{sent:?}");
    let actions: Vec<&Value> = sent.iter().map(|event| &event["event_action"]).collect();
    assert_eq!(actions, [&json!("trigger"), &json!("resolve")]);
    assert_eq!(sent[0]["dedup_key"], sent[1]["dedup_key"]);
    for event in &sent {
        assert_eq!(event["routing_key"], "R-t0ken");
        assert!(event["dedup_key"].as_str().unwrap().len() <= 255);
        let payload = &event["payload"];
        let summary = payload["summary"].as_str().unwrap();
        assert!(!summary.is_empty() && summary.chars().count() <= 1024);
        assert!(!payload["source"].as_str().unwrap().is_empty());
        let severity = payload["severity"].as_str().unwrap();
        assert!(["critical", "error", "warning", "info"].contains(&severity));
        let time = payload["timestamp"].as_str().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        assert!(payload["custom_details"]["progress"].is_object());
    }
    for file in files_below(&sandbox.runs()) {
        let text = std::fs::read(&file).unwrap();
        let found = text.windows(SECRET.len()).any(|w| w == SECRET.as_bytes());
        assert!(!found, "{}", file.display());
    }
}

/// The requests themselves, and no request.
#[test]
fn a_dry_run_shows_what_would_be_sent_and_sends_nothing() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[Answer::status(200)]);
    let profile = format!(
        "tell:\n  channels:\n    hook: {{type: webhook, url: '{0}', headers: {{Authorization: 'Bearer t0ken'}}, secrets: {{key: t0ken}}, template: '{{\"key\": \"{{{{ secrets.key }}}}\", \"text\": \"{{{{ title }}}}\"}}'}}\n    topic: {{type: ntfy, url: '{0}'}}\n    mail: {{type: email, url: 'smtp://ana:t0ken@127.0.0.1:1', from: a@example.org, to: [b@example.org]}}\n    own: {{type: command, argv: [touch, {1}]}}\n",
        server.url("/t0ken"),
        sandbox.arg("touched"),
    );
    let ended = alarmed(&sandbox, &profile, &["-q", "--notify-dry-run"]).run();
    let shown = ended.assert_ok().err();
    for part in [
        "gpuwatch: would send to hook (webhook): loud\nPOST http://127.0.0.1/***\ncontent-type: application/json\n",
        "\nauthorization: ***\n",
        "{\"key\": \"***\", \"text\": \"loud: ",
        "gpuwatch: would send to topic (ntfy): loud\n",
        "\"topic\":\"***\"",
        "gpuwatch: would send to mail (email): loud\nMAIL by 127.0.0.1\n",
        "Subject: [gpuwatch] loud: ",
        "gpuwatch: would send to own (command): loud\nRUN touch ",
        "GPUWATCH_FINDING=loud\n",
        "gpuwatch: would send to hook (webhook): run.finished\n",
    ] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(server.requests().is_empty() && !sandbox.path("touched").exists());
    let alerts = sandbox.record().events_of("alert");
    assert!(
        alerts.len() >= 8 && alerts.iter().all(|alert| alert["state"] == "shown"),
        "{alerts:?}"
    );
}

#[test]
fn what_is_kept_is_shown_and_stays() {
    let sandbox = Sandbox::new();
    let hook = closed_url();
    sandbox
        .watched(&["-q", "--notify", &hook], &["true"])
        .run()
        .assert_ok();
    let list = || {
        sandbox
            .gpuwatch(&["alert", "list", "--notify", &hook])
            .run()
            .out()
    };
    let kept = list();
    assert!(kept.contains("kept for notify-1: run.finished"), "{kept}");
    let dry = ["alert", "flush", "--notify-dry-run", "--notify", &hook];
    let ended = sandbox.gpuwatch(&dry).run();
    let shown = ended.assert_ok().out();
    assert!(
        shown.starts_with(
            "gpuwatch: would send to notify-1 (webhook): run.finished\nPOST http://127.0.0.1/***\n"
        ),
        "{shown}"
    );
    assert_eq!(list(), kept);
    let dry = ["alert", "test", "--notify-dry-run", "--notify", &hook];
    let shown = sandbox.gpuwatch(&dry).run().assert_ok().out();
    assert!(
        shown.contains("would send to notify-1 (webhook): test\n"),
        "{shown}"
    );
}

#[test]
fn a_check_tries_the_templates_and_no_view_of_a_profile_has_a_secret() {
    let sandbox = Sandbox::new();
    let write = |text: &str| std::fs::write(sandbox.path("p.yaml"), text).unwrap();
    let profile = |what: &str| sandbox.gpuwatch(&["profile", what, "p.yaml"]).run();
    for (text, said) in [
        (
            "tell: {texts: {title: '{{ oops'}}\n",
            "tell.texts.title: its template is wrong, line 1",
        ),
        (
            "tell: {channels: {h: {type: webhook, url: 'env:NOT_SET', template: '{{ oops'}}}\n",
            "the channel 'h' can't be used: its template is wrong, line 1",
        ),
    ] {
        write(text);
        let checked = profile("check");
        assert_eq!(checked.code(), Some(1), "{text}");
        assert!(checked.err().contains(said), "{}", checked.err());
    }
    write(
        "tell: {channels: {h: {type: webhook, url: 'https://h/t0ken', secret: t0ken, headers: {X: t0ken}, secrets: {k: t0ken}, template: 't0ken {{ secrets.k }}'}, t: {type: telegram, token: 't0ken', chat: '1'}}}\n",
    );
    profile("check").assert_ok();
    let shown = profile("show").assert_ok().out();
    assert!(
        shown.contains("token: \"***\"") && !shown.contains(SECRET),
        "{shown}"
    );
}
