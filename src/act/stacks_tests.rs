//! A real process is looked at.

use std::path::Path;

use super::*;
use crate::act::proc_files;

fn subject(pid: u32, start: u64) -> Subject {
    let rank = None;
    Subject { pid, start, rank }
}

fn start_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(19).unwrap().parse().unwrap()
}

#[test]
fn a_real_process_is_looked_at_and_one_that_is_gone_is_not() {
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let pid = child.id();
    let sleeps = || {
        let subject = subject(pid, start_of(pid));
        proc_files::standing(Path::new("/proc"), subject).is_some_and(|s| s.state == 'S')
    };
    let end = Instant::now() + Duration::from_secs(60);
    while !sleeps() {
        assert!(Instant::now() < end, "it never sleeps");
        thread::sleep(Duration::from_millis(5));
    }
    let subjects = vec![subject(pid, start_of(pid)), subject(std::process::id(), 1)];
    let mut request = Request::new(
        Stamp {
            time: "2026-11-30T09:15:02.000+08:00".into(),
            elapsed_s: 612.4,
        },
        "stalled",
        subjects,
    );
    request.last_lines = vec!["step 7\u{1b}".into()];
    request.gpus = vec!["GPU 0: 80 W".into()];
    let (tell, told) = std::sync::mpsc::channel();
    start(request, OwnProcesses::default(), move |evidence| {
        tell.send(evidence).unwrap();
    })
    .unwrap();
    let evidence = told.recv_timeout(Duration::from_secs(60)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let [(name, text)] = &evidence.files[..] else {
        panic!("{evidence:?}");
    };
    assert_eq!(name, "stacks-612.txt");
    let text = String::from_utf8_lossy(text);
    assert!(
        text.contains(&format!("== {pid} sleep, 1 threads: sleeps")),
        "{text}"
    );
    assert!(text.contains("\nVmRSS "), "{text}");
    assert!(text.contains("\n== GPUs\nGPU 0: 80 W\n"), "{text}");
    assert!(
        text.contains("\n== the last lines of output\nstep 7?\n"),
        "{text}"
    );
    assert_eq!(evidence.digest.len(), 1, "{:?}", evidence.digest);
    assert!(evidence.digest[0].starts_with(&format!("{pid} sleep: ")));
}
