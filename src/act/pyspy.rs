//! py-spy: the stacks of a Python process, read from outside.
//!
//! Owns finding the program, running it for one process without stopping that process, and
//! reading what it prints. Must not know which processes matter.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::model::OwnProcesses;

use super::process::{self, Bounds};

/// What it may print: a process of thousands of threads has long stacks.
const OUTPUT: usize = 256 * 1024;

/// What py-spy said about a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// All threads, as printed.
    pub text: String,
    /// Frames of the main thread, the innermost first.
    pub main: Vec<Frame>,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// Its file, as full as py-spy knows it.
    pub file: String,
    /// The line, as printed.
    pub line: String,
}

/// Parts of functions in which a rank waits for others, as the frameworks call them, and of files
/// that hold nothing else.
const MEETING: [&str; 10] = [
    "all_reduce",
    "allreduce",
    "all_gather",
    "allgather",
    "all_to_all",
    "alltoall",
    "reduce_scatter",
    "broadcast",
    "barrier",
    "synchronize",
];
const OF_MEETING: [&str; 3] = ["/distributed_c10d.py", "/horovod/", "/mpi4py/"];

impl Frame {
    /// `read_batch (train.py:12)`
    pub fn text(&self) -> String {
        format!("{} ({}:{})", self.function, self.file_name(), self.line)
    }

    /// `read_batch (train.py)`
    pub fn name(&self) -> String {
        format!("{} ({})", self.function, self.file_name())
    }

    fn file_name(&self) -> Cow<'_, str> {
        let file = Path::new(&self.file).file_name();
        file.map_or_else(|| self.file.as_str().into(), OsStr::to_string_lossy)
    }

    /// Whether a rank that sits here waits for others.
    pub fn meets_others(&self) -> bool {
        MEETING.iter().any(|part| self.function.contains(part))
            || OF_MEETING.iter().any(|part| self.file.contains(part))
    }

    /// Whether it is neither of Python's own library nor of an installed package.
    pub fn is_users_own(&self) -> bool {
        let library = [
            "/site-packages/",
            "/dist-packages/",
            "/lib/python",
            "/lib64/python",
        ];
        !self.file.starts_with('<') && !library.iter().any(|part| self.file.contains(part))
    }
}

/// The program: beside the interpreter, else in `path` (a `PATH`).
pub fn find(tools: &[PathBuf], path: Option<&OsStr>) -> Option<PathBuf> {
    let in_path = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>());
    tools
        .iter()
        .chain(in_path.iter().flatten())
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("py-spy"))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The stacks of one process, read while it runs on.
///
/// # Errors
/// Why there are none, in a few words with what to do.
pub fn dump(
    program: &Path,
    pid: u32,
    within: Duration,
    own: &OwnProcesses,
) -> Result<Dump, String> {
    let mut command = Command::new(program);
    command
        .args(["dump", "--nonblocking", "--full-filenames", "--pid"])
        .arg(pid.to_string())
        .env("NO_COLOR", "1")
        .env_remove("RUST_LOG")
        .env_remove("RUST_BACKTRACE");
    let bounds = Bounds {
        within,
        output: OUTPUT,
    };
    let output = process::run(command, b"", bounds, own)
        .map_err(|e| format!("py-spy can't be started: {}", e.kind()))?;
    let Some(status) = output.status else {
        return Err(format!(
            "py-spy did not answer within {:.0} s",
            within.as_secs_f64()
        ));
    };
    if !status.success() {
        return Err(refusal(&String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text, pid).ok_or_else(|| "py-spy printed no stack".to_owned())
}

fn refusal(stderr: &str) -> String {
    let said = stderr.to_ascii_lowercase();
    if said.contains("permission") || said.contains("operation not permitted") {
        return "py-spy may not read the process: allow it with 'sysctl kernel.yama.ptrace_scope=0', or in a container with the capability SYS_PTRACE".to_owned();
    }
    let line = stderr.lines().find(|line| !line.trim().is_empty());
    let line: String = line
        .unwrap_or("it said nothing")
        .chars()
        .take(200)
        .collect();
    format!("py-spy failed: {}", line.trim())
}

/// Reads what py-spy prints:
///
/// ```text
/// Process 4242: python train.py
/// Python v3.11.4 (/usr/bin/python3.11)
///
/// Thread 4242 (idle): "MainThread"
///     wait (/usr/lib/python3.11/threading.py:324)
/// ```
///
/// What stands before the version is left out: it holds arguments (of several lines, where a
/// program was given with `-c`), and arguments hold secrets.
pub fn parse(output: &str, pid: u32) -> Option<Dump> {
    let lines: Vec<&str> = output.lines().collect();
    let version = lines.windows(3).rposition(|w| {
        matches!(w, [version, "", thread]
            if version.starts_with("Python v") && thread.starts_with("Thread "))
    })?;
    let lines = lines.get(version..)?;
    let heads: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("Thread "))
        .map(|(at, line)| (at, *line))
        .collect();
    let by_pid = format!("Thread {pid} ");
    let (main, _) = heads
        .iter()
        .find(|(_, line)| line.contains("\"MainThread\""))
        .or_else(|| heads.iter().find(|(_, line)| line.starts_with(&by_pid)))
        .or(heads.first())?;
    let frames = lines
        .iter()
        .skip(main + 1)
        .take_while(|line| line.starts_with(' '))
        .filter_map(|line| frame(line.trim()));
    Some(Dump {
        main: frames.collect(),
        text: lines.join("\n").trim().to_owned(),
    })
}

/// `wait (/usr/lib/python3.11/threading.py:324)`
fn frame(line: &str) -> Option<Frame> {
    let (function, place) = line.strip_suffix(')')?.split_once(" (")?;
    let (file, line) = place.rsplit_once(':').unwrap_or((place, "?"));
    Some(Frame {
        function: function.to_owned(),
        file: file.to_owned(),
        line: line.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
Process 4242: python train.py --password s3cret
Python v3.11.4 (/usr/bin/python3.11)

Thread 4250 (active): \"Thread-1\"
    run (/usr/lib/python3.11/threading.py:900)
Thread 4242 (idle): \"MainThread\"
    wait (/usr/lib/python3.11/threading.py:324)
    get (/venv/lib/python3.11/site-packages/torch/queue.py:180)
    read batch (/home/u/my (new) code/train.py:12)
    <module> (/home/u/my (new) code/train.py:20)
";

    #[test]
    fn the_main_threads_frames_are_read() {
        let dump = parse(DUMP, 4242).unwrap();
        let frames: Vec<String> = dump.main.iter().map(Frame::text).collect();
        assert_eq!(
            frames,
            [
                "wait (threading.py:324)",
                "get (queue.py:180)",
                "read batch (train.py:12)",
                "<module> (train.py:20)"
            ]
        );
        let own: Vec<bool> = dump.main.iter().map(Frame::is_users_own).collect();
        assert_eq!(own, [false, false, true, true]);
        assert!(dump.text.starts_with("Python v3.11.4"));
        assert!(dump.text.contains("Thread-1") && !dump.text.contains("s3cret"));
        assert_eq!(parse("Error: nothing", 1), None);
        assert_eq!(parse("", 1), None);
        let nameless = DUMP
            .replace(": \"MainThread\"", "")
            .replacen("train.py", "-c\nThread 7", 1);
        assert_eq!(parse(&nameless, 4242).unwrap().main.len(), 4);
        assert!(!parse(&nameless, 4242).unwrap().text.contains("s3cret"));
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let said = refusal("Error: Permission Denied: Try running again with elevated permissions");
        assert!(said.contains("ptrace_scope"), "{said}");
        assert_eq!(
            refusal("\nError: no such process\nmore"),
            "py-spy failed: Error: no such process"
        );
    }

    #[test]
    fn it_is_found_beside_the_interpreter_first() {
        let dir = tempfile::tempdir().unwrap();
        let make = |folder: &str, mode| {
            let folder = dir.path().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            let file = folder.join("py-spy");
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            folder
        };
        let (venv, path, plain) = (make("venv", 0o755), make("path", 0o755), make("no", 0o644));
        let search = std::env::join_paths([&plain, &path]).unwrap();
        let found = |tools: &[PathBuf]| find(tools, Some(&search)).unwrap();
        assert_eq!(found(std::slice::from_ref(&venv)), venv.join("py-spy"));
        assert_eq!(found(std::slice::from_ref(&plain)), path.join("py-spy"));
        assert_eq!(find(&[plain, PathBuf::from("relative")], None), None);
    }
}
