//! Whole runs: what a command prints and how it ends, and what arrives of it.

use std::time::{Duration, Instant};

use super::support::http_server::{Answer, Server};
use super::support::{Sandbox, python};

/// A traceback of a megabyte, whose last line is long, of quotes, backslashes, emoji and Chinese,
/// and ends within a character.
const GIANT: &str = r#"
import sys
out = sys.stderr.buffer
out.write(b'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n')
out.write('  File "训练.py", line 9, in 🎉\n    raise "x"\n'.encode() * 20_000)
out.write("torch.OutOfMemoryError: CUDA out of memory. 显存不足".encode() + '"\\ <@everyone>🎉'.encode() * 150 + b"\xe8\xae")
sys.exit(1)
"#;

#[test]
fn a_giant_traceback_arrives_cut_well() {
    let sandbox = Sandbox::new();
    let server = Server::start(&[Answer::status(204)]);
    let profile = format!(
        "tell: {{channels: {{d: {{type: discord, url: '{0}'}}, s: {{type: slack, url: '{0}'}}, w: {{type: webhook, url: '{0}'}}}}}}\n",
        server.url("/t0ken")
    );
    std::fs::write(sandbox.path("p.yaml"), profile).unwrap();
    let name = "名字 \"quoted\" \\ <@here>\n🎉";
    let options = ["--profile", "p.yaml", "--name", name];
    let ended = sandbox.watched(&options, &[python(), "-c", GIANT]).run();
    assert_eq!(ended.code(), Some(1));
    assert!(!ended.err().contains("not sent"), "{:?}", ended.own_lines());
    let requests = server.requests();
    assert!(
        requests.len() >= 3,
        "the end, and perhaps the finding before it"
    );
    for request in requests {
        // It is text, and JSON.
        let json = request.json();
        if let Some(content) = json["content"].as_str() {
            assert!(content.encode_utf16().count() <= 2000, "{content}");
            assert!(content.contains("名字"), "{content}");
        } else if let Some(text) = json["text"].as_str() {
            assert!(
                text.chars().count() <= 3100 && text.contains("名字"),
                "{text}"
            );
        } else if json["type"] == "run.finished" {
            assert!(request.body.len() <= 20_000);
            let line = json["data"]["line"].as_str().unwrap();
            assert!(line.starts_with("torch.OutOfMemoryError: "), "{line}");
            assert!(line.len() <= 4096, "{line}");
        }
    }
}

/// A name that nobody knows: the exit code is the command's, and the end a few seconds late.
#[test]
fn a_server_that_does_not_exist_delays_no_end() {
    let sandbox = Sandbox::new();
    let options = ["--notify", "http://nowhere.invalid/t0ken"];
    let mut live = sandbox
        .watched(&options, &["sh", "-c", "echo over; exit 7"])
        .start();
    live.wait_for_out("over");
    let since = Instant::now();
    live.wait();
    assert!(
        since.elapsed() < Duration::from_millis(5500),
        "{:?}",
        since.elapsed()
    );
    let ended = live.end();
    assert_eq!(ended.code(), Some(7));
    let own = ended.own_lines().join("\n");
    assert!(
        own.contains("1 alert not sent") && !own.contains("t0ken"),
        "{own}"
    );
}
