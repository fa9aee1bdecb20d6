//! Stacks of real processes and of made-up ones.

use super::*;
use crate::act::pyspy::parse;

fn seen(pid: u32, name: &str, dump: Option<Result<Dump, String>>) -> Seen {
    Seen {
        pid,
        standing: Standing {
            name: name.to_owned(),
            state: 'S',
            wchan: Some("futex_wait_queue".to_owned()),
            ..Standing::default()
        },
        identity: Identity::default(),
        dump,
    }
}

fn stack(frames: &[&str]) -> Dump {
    let text = format!(
        "Python v3\n\nThread 1 (idle): \"MainThread\"\n    {}\n",
        frames.join("\n    ")
    );
    parse(&text, 1).unwrap()
}

#[test]
fn the_digest_names_functions_and_groups_processes() {
    let wait = [
        "wait (/usr/lib/python3.11/threading.py:324)",
        "hang (/w/train.py:7)",
    ];
    let mut all = vec![
        seen(1, "python", Some(Ok(stack(&wait)))),
        seen(2, "ffmpeg", None),
        seen(3, "python", Some(Ok(stack(&["step (/w/train.py:9)"])))),
    ];
    all.extend((10..14).map(|pid| seen(pid, "loader", None)));
    assert_eq!(
        digest(&all),
        [
            "1 python: hang (train.py:7) in wait (threading.py:324)",
            "3 python: step (train.py:9)",
            "2 ffmpeg: sleeps in futex_wait_queue",
            "4 processes (10, ...) loader: sleeps in futex_wait_queue",
        ]
    );
    all.extend((20..30).map(|pid| seen(pid, &format!("p{pid}"), None)));
    all.push(seen(40, "python", Some(Err(INSTALL.to_owned()))));
    let lines = digest(&all);
    assert_eq!(lines.len(), DIGEST_LINES);
    assert!(lines[3].starts_with("and "), "{lines:?}");
    assert!(lines[4].contains("pip install py-spy"), "{lines:?}");
    let odd = digest(&[seen(1, &"\x1b训练".repeat(200), None)]);
    assert_eq!(odd[0].chars().count(), DIGEST_WIDTH);
    assert!(!odd[0].contains('\x1b'));
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
        let subject = Subject {
            pid,
            start: start_of(pid),
        };
        proc_files::standing(Path::new("/proc"), subject).is_some_and(|s| s.state == 'S')
    };
    let end = Instant::now() + Duration::from_secs(60);
    while !sleeps() {
        assert!(Instant::now() < end, "it never sleeps");
        thread::sleep(Duration::from_millis(5));
    }
    let subjects = vec![
        Subject {
            pid,
            start: start_of(pid),
        },
        Subject {
            pid: std::process::id(),
            start: 1,
        },
    ];
    let request = Request::new(
        Stamp {
            time: "2026-11-30T09:15:02.000+08:00".into(),
            elapsed_s: 612.4,
        },
        "stalled",
        subjects,
        vec!["step 7\u{1b}".into()],
    );
    let (tell, told) = std::sync::mpsc::channel();
    start(request, OwnProcesses::default(), move |evidence| {
        tell.send(evidence).unwrap();
    })
    .unwrap();
    let evidence = told.recv_timeout(Duration::from_secs(60)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(evidence.file_name, "stacks-612.txt");
    let text = String::from_utf8(evidence.text).unwrap();
    assert!(
        text.contains(&format!("== {pid} sleep, 1 threads: sleeps")),
        "{text}"
    );
    assert!(text.contains("step 7?"), "{text}");
    assert_eq!(evidence.digest.len(), 1, "{:?}", evidence.digest);
    assert!(evidence.digest[0].starts_with(&format!("{pid} sleep: ")));
}
