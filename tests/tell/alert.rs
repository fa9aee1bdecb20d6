//! `gpuwatch alert`, as a person uses it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::harness::SECRET;
use super::support::http_server::{Answer, Server, closed_url};
use super::support::{Ended, Sandbox, files_below};

/// Beside the runs, which needn't be there.
fn outbox(sandbox: &Sandbox) -> PathBuf {
    sandbox.runs().with_file_name("outbox")
}

fn assert_no_secret(sandbox: &Sandbox, ended: &Ended) {
    assert!(
        !ended.out().contains(SECRET) && !ended.err().contains(SECRET),
        "{}{}",
        ended.out(),
        ended.err()
    );
    for file in files_below(&outbox(sandbox)) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(SECRET), "{}", file.display());
    }
}

#[test]
fn a_test_goes_through_every_channel_and_says_what_failed() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[Answer::status(200)]);
    let (good, bad) = (server.url("/hook/t0ken"), closed_url());
    let ended = sandbox
        .gpuwatch(&["alert", "test", "--notify", &good, "--notify", &bad])
        .run();
    assert_eq!(ended.code(), Some(1));
    assert_eq!(
        ended.out(),
        "notify-1 (webhook), test: ok\n\
         notify-2 (webhook), test: failed: http://127.0.0.1/***: connection refused\n"
    );
    assert_eq!(server.requests()[0].json()["type"], "job.test");
    assert_no_secret(&sandbox, &ended);
    let ended = sandbox
        .gpuwatch(&["alert", "test", "--notify", &good])
        .run();
    assert_eq!(ended.code(), Some(0), "{}", ended.err());
    let ended = sandbox
        .gpuwatch(&["alert", "test", "--notify", &bad, "--json"])
        .run();
    let json: serde_json::Value = serde_json::from_str(&ended.out()).unwrap();
    assert_eq!(json["alerts"][0]["ok"], false);
}

#[test]
fn channels_of_a_profile_and_their_secrets() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[Answer::status(200)]);
    let hook = sandbox.path("hook");
    std::fs::write(&hook, server.url("/hook/t0ken")).unwrap();
    let profile = sandbox.path("p.yaml");
    let text = format!(
        "tell:\n  channels:\n    team: {{type: webhook, url: 'file:{}', secret: 'env:KEY'}}\n",
        hook.display()
    );
    std::fs::write(&profile, text).unwrap();
    let job = || {
        let profile = profile.to_str().unwrap();
        sandbox.gpuwatch(&["alert", "test", "--profile", profile])
    };
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&hook, open).unwrap();
    let ended = job().env("KEY", "s-t0ken").run();
    assert_eq!(ended.code(), Some(1));
    let said = ended.own_lines();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("'team'") && said[0].contains("chmod 600"),
        "{said:?}"
    );
    assert_no_secret(&sandbox, &ended);
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o600)).unwrap();
    let unset = job().run();
    assert!(
        unset.own_lines()[0].contains("KEY is not set"),
        "{}",
        unset.err()
    );
    let ended = job().env("KEY", "s-t0ken").run();
    assert_eq!(ended.out(), "team (webhook), test: ok\n");
    assert!(
        server.requests()[0]
            .header("webhook-signature")
            .starts_with("v1,")
    );
    assert_no_secret(&sandbox, &ended);
}

#[test]
fn nothing_to_try_is_said() {
    let sandbox = Sandbox::new();
    let ended = sandbox.gpuwatch(&["alert", "test"]).run();
    assert_eq!(ended.code(), Some(1));
    assert!(ended.own_lines()[0].contains("--notify"));
    let ended = sandbox.gpuwatch(&["alert", "flush"]).run();
    assert_eq!((ended.code(), ended.out()), (Some(0), String::new()));
    let ended = sandbox.gpuwatch(&["alert", "list"]).run();
    assert_eq!(
        (ended.code(), ended.out()),
        (Some(0), "no channel is set\n".to_owned())
    );
    assert_eq!(
        sandbox
            .gpuwatch(&["alert", "test", "--notify", "t0ken"])
            .run()
            .code(),
        Some(2)
    );
}

#[test]
fn what_was_kept_is_sent_later_with_its_id() {
    let sandbox = Sandbox::new();
    let outbox = gpuwatch::tell::Outbox::at(&outbox(&sandbox));
    let mut kept =
        super::harness::Run::with(vec![super::harness::webhook(&closed_url())]).keep("stalled");
    let letter = kept.remove(0).letter;
    for channel in ["notify-1", "gone"] {
        let kept = gpuwatch::tell::Kept::new(channel, "webhook", "no answer", letter.clone());
        outbox.keep(&kept).unwrap();
    }
    let list = sandbox.gpuwatch(&["alert", "list"]).run().out();
    assert!(
        list.contains("kept for notify-1: stalled of 20261130-091502-train-7f3a"),
        "{list}"
    );
    let server = Server::start(&[Answer::status(503), Answer::status(200)]);
    let url = server.url("/t0ken");
    let flush = || {
        sandbox
            .gpuwatch(&["alert", "flush", "--notify", &url])
            .run()
    };
    let ended = flush();
    assert_eq!(ended.code(), Some(1));
    assert_eq!(
        ended.out(),
        "notify-1 (webhook), stalled: failed: http://127.0.0.1/*** answered 503\n"
    );
    assert!(ended.err().contains("1 kept for 'gone'"), "{}", ended.err());
    let ended = flush();
    assert_eq!(ended.out(), "notify-1 (webhook), stalled: ok\n");
    assert_eq!(ended.code(), Some(1), "one stays");
    assert_no_secret(&sandbox, &ended);
    let requests = server.requests();
    assert_eq!(requests[1].header("webhook-id"), letter.id);
    assert_eq!(requests[1].json()["data"]["run"]["name"], "train");
    assert_eq!(outbox.list().unwrap().0.len(), 1);
}
