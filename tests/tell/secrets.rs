//! One run with every kind of channel, none of which works: no secret shows anywhere but where it
//! belongs.
//!
//! A variable that a profile names is in the environment of whatever the run starts, because the
//! user put it there. Nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::support::http_server::{Answer, Server, closed_url};
use super::support::mail_server::{Script, server as mail_server};
use super::support::{Sandbox, descendants, files_below};

/// Trains while alarms are told, and fails. Its words are masked as a command line is.
const JOB: &str = r#"until [ "$(grep -c '"kind":"alert"' "$GPUWATCH_RUN_DIR/events.jsonl")" -ge 5 ]; do
    i=$((i+1)); echo step $i/1000 loss 9.0; sleep 0.1; done; echo over; exit 3"#;

/// Secrets by the channel that has them, and how a profile names each.
#[derive(Default)]
struct Secrets {
    of: BTreeMap<String, BTreeSet<String>>,
    variables: Vec<(String, String)>,
}

impl Secrets {
    /// A word that is a secret of this channel.
    fn word(&mut self, channel: &str, what: &str) -> String {
        let word = format!("t0ken-{channel}-{what}");
        let of = self.of.entry(channel.to_owned()).or_default();
        of.insert(word.clone());
        // As a key, or as Basic authentication would show it.
        of.insert(STANDARD.encode(&word));
        word
    }

    fn in_file(sandbox: &Sandbox, name: &str, value: &str) -> String {
        let path = sandbox.path(&format!("secret-{name}"));
        std::fs::write(&path, value).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        format!("file:{}", path.display())
    }

    fn in_variable(&mut self, name: &str, value: &str) -> String {
        self.variables.push((name.to_owned(), value.to_owned()));
        format!("env:{name}")
    }

    /// Which of them stand in these bytes, leaving out those of one channel.
    fn within(&self, bytes: &[u8], but: &str) -> Vec<&String> {
        let others = self.of.iter().filter(|(channel, _)| *channel != but);
        let words = others.flat_map(|(_, words)| words);
        words
            .filter(|word| memchr::memmem::find(bytes, word.as_bytes()).is_some())
            .collect()
    }

    fn assert_none(&self, what: &str, bytes: &[u8], but: &str) {
        let found = self.within(bytes, but);
        let text = String::from_utf8_lossy(bytes);
        assert!(found.is_empty(), "{what}: {found:?} in {text}");
    }
}

/// Services that all fail, each in another way, some of them by repeating what they were sent.
fn servers() -> BTreeMap<&'static str, Server> {
    let redirect = Answer::with(307, "Location", "http://nowhere.invalid/t0ken-dingtalk-url");
    let feishu = r#"{"code":19021,"msg":"t0ken-feishu-url and t0ken-feishu-sign"}"#;
    [
        ("hook", Answer::status(503)),
        (
            "slack",
            Answer::Say(500, Vec::new(), "t0ken-slack-url is wrong"),
        ),
        ("teams", Answer::HangUp),
        ("feishu", Answer::Say(200, Vec::new(), feishu)),
        ("dingtalk", redirect),
        ("wecom", Answer::status(200)),
        ("ntfy", Answer::Silence),
        ("prom", Answer::status(401)),
        ("switch", Answer::status(404)),
    ]
    .into_iter()
    .map(|(name, answer)| (name, Server::start(&[answer])))
    .collect()
}

/// Channels that get a secret by a variable, by a file, or as it is.
fn channels(sandbox: &Sandbox, all: &mut Secrets, servers: &BTreeMap<&str, Server>) -> String {
    let url = |all: &mut Secrets, name: &str, path: &str| {
        servers[name].url(path) + &all.word(name, "url")
    };
    let mut lines = Vec::new();
    let hook = url(all, "hook", "/");
    let hook = all.in_variable("HOOK", &hook);
    let key = format!("whsec_{}", STANDARD.encode(all.word("hook", "key")));
    let key = Secrets::in_file(sandbox, "key", &key);
    let header = format!("Bearer {}", all.word("hook", "header"));
    let header = all.in_variable("HEADER", &header);
    lines.push(format!(
        "hook: {{type: webhook, url: '{hook}', secret: '{key}', headers: {{Authorization: '{header}'}}}}"
    ));
    let slack = url(all, "slack", "/services/");
    let slack = Secrets::in_file(sandbox, "slack", &slack);
    lines.push(format!("slack: {{type: slack, url: '{slack}'}}"));
    let teams = url(all, "teams", "/workflows/");
    lines.push(format!("teams: {{type: teams, url: '{teams}'}}"));
    let discord = closed_url().replace("t0ken", &all.word("discord", "url"));
    lines.push(format!("discord: {{type: discord, url: '{discord}'}}"));
    let feishu = url(all, "feishu", "/open-apis/bot/v2/hook/");
    let sign = Secrets::in_file(sandbox, "sign", &all.word("feishu", "sign"));
    lines.push(format!(
        "feishu: {{type: feishu, url: '{feishu}', secret: '{sign}'}}"
    ));
    let dingtalk = url(all, "dingtalk", "/robot/send?access_token=");
    let sign = all.word("dingtalk", "sign");
    lines.push(format!(
        "dingtalk: {{type: dingtalk, url: '{dingtalk}', secret: '{sign}'}}"
    ));
    // TLS, to a server that has none.
    let wecom = url(all, "wecom", "/cgi-bin/webhook/send?key=").replace("http:", "https:");
    lines.push(format!("wecom: {{type: wecom, url: '{wecom}'}}"));
    let bot = format!("1:{}", all.word("telegram", "token"));
    let bot = all.in_variable("BOT", &bot);
    lines.push(format!(
        "telegram: {{type: telegram, url: 'http://nowhere.invalid', token: '{bot}', chat: '1'}}"
    ));
    lines.extend(more_channels(sandbox, all, &url));
    lines
        .iter()
        .map(|line| format!("    {line}\n"))
        .fold(String::new(), |all, line| all + &line)
}

fn more_channels(
    sandbox: &Sandbox,
    all: &mut Secrets,
    url: &dyn Fn(&mut Secrets, &str, &str) -> String,
) -> Vec<String> {
    let ntfy = url(all, "ntfy", "/");
    let token = all.word("ntfy", "token");
    let prom = url(all, "prom", "/");
    let user = format!("http://user:{}@", all.word("prom", "password"));
    let prom = prom.replace("http://", &user);
    let header = all.word("prom", "header");
    let switch = url(all, "switch", "/");
    let (port, _) = mail_server(Script {
        refuses: Some(("AUTH", 535)),
        offers: &["AUTH PLAIN"],
    });
    let (user, password) = (all.word("mail", "user"), all.word("mail", "password"));
    let mail = format!("smtp://{user}:{password}@127.0.0.1:{port}");
    let mail = Secrets::in_file(sandbox, "mail", &mail);
    let out = sandbox.arg("told");
    let program =
        format!("{{ cat; env; cat /proc/$PPID/cmdline; }} > {out}.new; mv {out}.new {out}");
    vec![
        format!("ntfy: {{type: ntfy, url: '{ntfy}', token: '{token}'}}"),
        format!("prom: {{type: alertmanager, url: '{prom}', headers: {{X-Key: '{header}'}}}}"),
        format!("switch: {{type: heartbeat, url: '{switch}'}}"),
        format!("mail: {{type: email, url: '{mail}', from: g@example.org, to: [a@example.org]}}"),
        format!("program: {{type: command, argv: [sh, -c, \"{program}\"]}}"),
    ]
}

const PROFILE: &str = r#"rules: [{name: high, when: progress.loss > 1, for: 0s, severity: critical}]
act: {high: [stacks, {command: [sh, -c, "cat > found; env >> found"]}]}
tell:
  channels:
"#;

#[test]
fn no_secret_of_any_channel_is_found_anywhere() {
    let sandbox = Sandbox::new();
    let mut all = Secrets::default();
    let servers = servers();
    let text = PROFILE.to_owned() + &channels(&sandbox, &mut all, &servers);
    std::fs::write(sandbox.path("secret-profile.yaml"), text).unwrap();
    let options = ["--profile", "secret-profile.yaml", "--interval", "200ms"];
    let mut job = sandbox.watched(&options, &["sh", "-c", JOB]);
    for (name, value) in &all.variables {
        job = job.env(name, value);
    }
    let mut live = job
        .env("RUST_LOG", "trace")
        .env("RUST_BACKTRACE", "full")
        .start();
    let mut looked_at = 0;
    while live.running() {
        looked_at += look_at_processes(&all, live.pid() as u32);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ended = live.end();
    assert_eq!(ended.code(), Some(3), "{}", ended.err());
    assert!(looked_at >= 3, "ours, the helper, the command");
    all.assert_none("stdout", &ended.out, "");
    all.assert_none("stderr", &ended.err, "");
    look_at_files(&sandbox, &all);
    for (name, server) in &servers {
        for request in server.requests() {
            all.assert_none(name, format!("{request:?}").as_bytes(), name);
        }
    }
    for words in [&["alert", "list"][..], &["show"], &["runs", "--json"]] {
        let ended = sandbox.gpuwatch(words).run();
        all.assert_none("later", &ended.out, "");
        all.assert_none("later", &ended.err, "");
    }
}

/// What the run and its programs have left.
fn look_at_files(sandbox: &Sandbox, all: &Secrets) {
    let events = sandbox.record().events_of("alert");
    let told = events
        .iter()
        .map(|event| event["channel"].as_str().unwrap());
    assert_eq!(
        told.collect::<BTreeSet<_>>().len(),
        13,
        "each was tried: {events:?}"
    );
    let files = files_below(sandbox.path("").parent().unwrap());
    let named = |name: &str| files.iter().any(|file| file.ends_with(name));
    assert!(
        named("told") && named("found") && named("index.jsonl"),
        "{files:?}"
    );
    let kept = |file: &std::path::PathBuf| file.parent().unwrap().ends_with("outbox");
    assert!(files.iter().any(kept), "{files:?}");
    for file in &files {
        let name = file.file_name().unwrap().to_str().unwrap();
        if name.starts_with("secret-") {
            continue;
        }
        let mut bytes = std::fs::read(file).unwrap();
        // The environment that the user gave.
        for (_, value) in &all.variables {
            let text = String::from_utf8_lossy(&bytes).replace(value, "");
            bytes = text.into_bytes();
        }
        all.assert_none(name, &bytes, "");
    }
}

/// Looks at the command line and the environment of gpuwatch and everything below it; how many
/// processes that were.
fn look_at_processes(all: &Secrets, pid: u32) -> usize {
    let below = descendants(pid).into_iter();
    let mut seen = 0;
    for pid in below.chain([pid as i32]) {
        // A process may end while it is looked at.
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        all.assert_none("a command line", &read("cmdline"), "");
        let environment = read("environ");
        let others: Vec<&[u8]> = environment
            .split(|byte| *byte == 0)
            .filter(|entry| {
                let given = |(name, value): &(String, String)| {
                    *entry == format!("{name}={value}").as_bytes()
                };
                !all.variables.iter().any(given)
            })
            .collect();
        all.assert_none("an environment", &others.concat(), "");
        seen += usize::from(!environment.is_empty());
    }
    seen
}
