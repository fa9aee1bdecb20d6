//! What those who scrape get from a patrol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::json;

use super::machine::{ANA, BOB, Machine, end, fast, is_root};
use super::support::{Live, PATIENCE, skipped, wait_until};

/// The address that it says.
fn address(patrol: &Live) -> String {
    let mut found = None;
    wait_until("the address is said", || {
        let said = patrol.err_so_far();
        let rest = said.split_once("http://").map(|(_, rest)| rest.to_owned());
        found = rest.and_then(|rest| Some(rest.split_once("/metrics")?.0.to_owned()));
        found.is_some()
    });
    found.unwrap()
}

fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.0 200"), "{text}");
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The series of this metric whose labels hold all of these.
fn series<'a>(text: &'a str, metric: &str, labels: &[&str]) -> Vec<&'a str> {
    let start = format!("{metric}{{");
    text.lines()
        .filter(|line| line.starts_with(&start) && labels.iter().all(|l| line.contains(l)))
        .collect()
}

fn user(user: &str) -> String {
    format!("user=\"{user}\"")
}

fn promtool_is_content(text: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    promtool.stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = promtool.spawn() else {
        return skipped("promtool is not installed");
    };
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(out.status.success() && said.is_empty(), "{said}\n{text}");
}

#[test]
fn a_finding_is_a_series_while_it_holds_and_a_job_while_it_lives() {
    if !is_root() {
        return;
    }
    let machine = Machine::new(2);
    let idle = machine.job(ANA.1, "python sleep 3600", (0, 8000, 0));
    let busy = machine.job(BOB.1, "python sleep 3600", (1, 4000, 90));
    let patrol = machine.patrol(&fast(), &["--no-record", "--metrics", "0"]);
    let address = address(&patrol);
    let (ana, bob) = (user(ANA.0), user(BOB.0));
    let idles = [ana.as_str(), "finding=\"idle-holding\"", "severity=\""];
    let mut text = String::new();
    wait_until("the finding is a series", || {
        text = get(&address);
        series(&text, "gpuwatch_job_finding", &idles).len() == 1
    });
    promtool_is_content(&text);
    // One is told from all others by the same id at each look, and by no PID.
    let info = series(&text, "gpuwatch_job_info", &[&ana])[0].to_owned();
    assert!(info.starts_with("gpuwatch_job_info{run=\"20"), "{info}");
    assert!(!text.contains(&format!("{}\"", idle.pid())), "{text}");
    assert_eq!(series(&text, "gpuwatch_job_finding", &[&bob]), [""; 0]);
    for (user, gpu, bytes) in [(&ana, "gpu=\"0\"", 8000_u64), (&bob, "gpu=\"1\"", 4000)] {
        let held = series(&text, "gpuwatch_job_gpu_memory_bytes", &[user, gpu]);
        let bytes = format!(" {}", bytes << 20);
        assert!(held.len() == 1 && held[0].ends_with(&bytes), "{held:?}");
    }
    let gpus = series(&text, "gpuwatch_gpu_utilization_ratio", &["gpu=\""]);
    assert_eq!(gpus.len(), 2, "each once: {gpus:?}");
    assert!(!gpus.iter().any(|gpu| gpu.contains("run=")), "{gpus:?}");
    drop(idle);
    wait_until("it is over", || {
        text = get(&address);
        series(&text, "gpuwatch_job_info", &[&ana]).is_empty()
    });
    assert!(!text.contains(&ana), "{text}");
    assert_eq!(series(&text, "gpuwatch_job_info", &[&bob]).len(), 1);
    drop(busy);
    end(patrol);
}

#[test]
fn the_file_is_whole_for_all_to_read_and_gone_at_the_end() {
    let machine = Machine::new(1);
    let folder = tempfile::tempdir().unwrap();
    let mut profile = fast();
    profile["metrics"] = json!({"textfile": folder.path()});
    let patrol = machine.patrol(&profile, &["--no-record"]);
    let file = folder.path().join("gpuwatch-patrol.prom");
    let mut text = String::new();
    wait_until("the file is there", || {
        text = std::fs::read_to_string(&file).unwrap_or_default();
        !series(&text, "gpuwatch_gpu_info", &["gpu=\"0\""]).is_empty()
    });
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o644);
    // The patrol itself, which has the machine's findings.
    let last = "gpuwatch_job_last_sample_timestamp_seconds";
    assert_eq!(series(&text, last, &["run=\"patrol\""]).len(), 1);
    promtool_is_content(&text);
    end(patrol);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_address_that_is_taken_is_an_error_at_the_start() {
    let machine = Machine::new(1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = machine
        .patrol(&fast(), &["--no-record", "--metrics", &address])
        .end();
    assert_eq!(ended.code(), Some(1), "{}", ended.err());
    let said = ended.err();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains(&address) && said.contains("choose another port"),
        "{said}"
    );
    // One look has no metrics.
    let ended = machine.patrol(&fast(), &["--once", "--metrics", "0"]).end();
    assert_eq!(ended.code(), Some(2), "{}", ended.err());
}
