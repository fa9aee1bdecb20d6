//! What others' parsers make of it, whatever a run is called.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::client::{address, metrics, sampled, send};
use crate::support::{FakeDriver, Sandbox, skipped};

/// Both official parsers of the Prometheus project, the text on stdin, samples as JSON on stdout.
const PARSE: &str = "
import json, sys
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics
read = {'text': parser, 'open': openmetrics}[sys.argv[1]].text_string_to_metric_families
text = sys.stdin.buffer.read().decode()
samples = [[s.name, s.labels, repr(s.value)] for family in read(text) for s in family.samples]
print(json.dumps(sorted(samples, key=repr)))
";

/// Whether this program is there; else it is said what is left out.
pub fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", r#"command -v "$0""#, program])
        .stdout(Stdio::null())
        .status();
    let found = found.unwrap().success();
    if !found {
        skipped(&format!(
            "{program} is not installed (tests/run installs it)"
        ));
    }
    found
}

fn parsed(format: &str, text: &str) -> Value {
    // Debian's own Python, which has Debian's library.
    let mut python = Command::new("/usr/bin/python3");
    python
        .args(["-c", PARSE, format])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{format} of:\n{text}");
    serde_json::from_slice(&out.stdout).unwrap()
}

fn is_content(text: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    promtool.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = promtool.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(
        out.status.success() && said.is_empty(),
        "{said}\nof:\n{text}"
    );
}

/// A command whose name is anything but plain, and so its run's.
fn odd_command(sandbox: &Sandbox) -> OsString {
    let mut name = sandbox.path("").into_os_string().into_vec();
    name.extend(b"say \"hi\"\\n\nto \xff\xfe{a=\"b\"} \xe8\xae\xad.sh");
    let path = OsString::from_vec(name);
    std::fs::write(&path, "#!/bin/sh\nexec cat\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

#[test]
fn parsers_agree_whatever_a_run_is_called() {
    let has_library = Command::new("/usr/bin/python3")
        .args(["-c", "import prometheus_client"])
        .status();
    if !has_library.is_ok_and(|status| status.success()) {
        return skipped("/usr/bin/python3 has no prometheus_client (tests/run installs it)");
    }
    let gpm = json!({"sm_active": 50, "tensor_active": 20, "dram_active": 10});
    let driver = FakeDriver::new(
        &json!({"gpus": [{"util": 40, "gpm": gpm, "name": "A \"B\"\\\n"}, {"memory_mib": null}]}),
    );
    let sandbox = Sandbox::new();
    let odd = odd_command(&sandbox);
    let script = "import sys; sys.stdin.read()";
    let words = |text: &str| OsString::from(text);
    let python = vec![
        words("python3"),
        words("-c"),
        words(script),
        OsString::from_vec(b"\xff\"\n".into()),
    ];
    for (name, argv) in [
        (None, vec![odd]),
        (Some("a \"b\"\n\\c\u{202e}d\u{1b}[31m 训练"), python.clone()),
        (Some("\\"), python.clone()),
        (Some("\n"), python),
    ] {
        let mut options = vec!["--metrics", "0", "--interval", "100ms"];
        options.extend(name.map_or(vec![], |name| vec!["--name", name]));
        let live = sandbox.watched(&options, &argv).with(&driver).start();
        let address = address(&live);
        sampled(&address);
        let text = metrics(&address);
        let open = "GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text\r\n\r\n";
        let open = send(&address, open.as_bytes()).unwrap().body;
        let names = |samples: &Value| -> Vec<(Value, Value)> {
            let list = samples.as_array().unwrap().iter();
            list.map(|sample| (sample[0].clone(), sample[1].clone()))
                .collect()
        };
        let (text_samples, open_samples) = (parsed("text", &text), parsed("open", &open));
        assert!(names(&text_samples).len() > 40, "{text}");
        assert_eq!(names(&text_samples), names(&open_samples));
        if has("promtool") {
            is_content(&text);
        }
        live.end().assert_ok();
    }
}
