//! A process that a test started, and what it has written so far.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use super::{PATIENCE, kill, wait_until};

/// Bytes as they arrive from a stream.
#[derive(Default)]
pub struct Seen {
    state: Mutex<(Vec<u8>, bool)>,
    changed: Condvar,
}

impl Seen {
    /// Reads a stream to its end on a thread of its own.
    pub fn follow(mut stream: impl Read + Send + 'static) -> Arc<Self> {
        let seen = Arc::new(Self::default());
        let ours = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            loop {
                // A terminal that nobody holds open any more gives EIO: its way to say end. The
                // kernel may look for its last bytes just before they come, so the second counts.
                let n = stream
                    .read(&mut buffer)
                    .or_else(|_| stream.read(&mut buffer))
                    .unwrap_or(0);
                let mut state = ours.state.lock().unwrap();
                state.0.extend_from_slice(&buffer[..n]);
                state.1 = n == 0;
                ours.changed.notify_all();
                if n == 0 {
                    break;
                }
            }
        });
        seen
    }

    /// Waits until the bytes from `from` on hold the text; returns where it ends.
    pub fn wait_for(&self, text: &str, from: usize) -> usize {
        let found = self.wait(|bytes, _| find(&bytes[from..], text.as_bytes()));
        match found {
            Ok(at) => from + at + text.len(),
            Err(bytes) => panic!(
                "waited in vain for {text:?} in {:?}",
                String::from_utf8_lossy(&bytes[from..])
            ),
        }
    }

    /// All bytes, once the stream has ended.
    pub fn everything(&self) -> Vec<u8> {
        match self.wait(|bytes, closed| closed.then(|| bytes.to_vec())) {
            Ok(bytes) => bytes,
            Err(bytes) => panic!(
                "no end of stream after {:?}",
                String::from_utf8_lossy(&bytes)
            ),
        }
    }

    pub fn so_far(&self) -> Vec<u8> {
        self.state.lock().unwrap().0.clone()
    }

    /// What the question finds, or the bytes in which it found nothing.
    fn wait<T>(&self, question: impl Fn(&[u8], bool) -> Option<T>) -> Result<T, Vec<u8>> {
        let start = Instant::now();
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(answer) = question(&state.0, state.1) {
                return Ok(answer);
            }
            let left = PATIENCE.saturating_sub(start.elapsed());
            if left.is_zero() || state.1 {
                return Err(state.0.clone());
            }
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, text)
}

/// How a command ended, and everything that it wrote.
pub struct Ended {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }

    /// The lines on stderr that are gpuwatch's own.
    pub fn own_lines(&self) -> Vec<String> {
        let text = self.err();
        let own = text.lines().filter(|l| l.starts_with("gpuwatch:"));
        own.map(str::to_owned).collect()
    }

    /// Succeeded; the message shows what it said otherwise.
    pub fn assert_ok(&self) -> &Self {
        assert!(
            self.status.success(),
            "{:?}\n{}{}",
            self.status,
            self.out(),
            self.err()
        );
        self
    }
}

/// A process that runs. Killed if the test drops it before its end.
pub struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    out: Arc<Seen>,
    err: Arc<Seen>,
}

impl Live {
    pub fn in_pipes(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Self {
            stdin: child.stdin.take(),
            out: Seen::follow(child.stdout.take().unwrap()),
            err: Seen::follow(child.stderr.take().unwrap()),
            child,
        }
    }

    /// With streams that somebody else looks at.
    pub fn apart(command: &mut Command) -> Self {
        let nothing = || Seen::follow(std::io::empty());
        Self {
            child: command
                .spawn()
                .unwrap_or_else(|e| panic!("{command:?}: {e}")),
            stdin: None,
            out: nothing(),
            err: nothing(),
        }
    }

    /// With nothing to read and nothing to say: a process beside what is tried.
    pub fn beside(command: &mut Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self::apart(command)
    }

    /// Keeps one processor busy.
    pub fn busy() -> Self {
        Self::beside(Command::new("sh").args(["-c", "while :; do :; done"]))
    }

    /// Of no concern to what is tried.
    pub fn stranger() -> Self {
        Self::beside(Command::new("sleep").arg("3600"))
    }

    pub fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    pub fn signal(&self, signal: i32) {
        kill(self.pid(), signal);
    }

    pub fn send(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
    }

    pub fn wait_for_out(&self, text: &str) {
        self.out.wait_for(text, 0);
    }

    pub fn wait_for_err(&self, text: &str) {
        self.err.wait_for(text, 0);
    }

    pub fn out_so_far(&self) -> String {
        String::from_utf8_lossy(&self.out.so_far()).into_owned()
    }

    pub fn err_so_far(&self) -> String {
        String::from_utf8_lossy(&self.err.so_far()).into_owned()
    }

    pub fn running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Its end; everything that it wrote is known then.
    pub fn end(mut self) -> Ended {
        self.stdin = None;
        let status = self.wait();
        Ended {
            status,
            out: self.out.everything(),
            err: self.err.everything(),
        }
    }

    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        let what = format!("process {} ends", self.child.id());
        wait_until(&what, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // One that goes on beside the test, or a failed test's, which leaves nothing: there is
            // nobody left to tell.
            let started = descendants(self.child.id());
            let _ = self.child.kill();
            let _ = self.child.wait();
            for pid in started {
                let _ = nix::sys::signal::kill(
                    nix::unistd::Pid::from_raw(pid),
                    nix::sys::signal::Signal::SIGKILL,
                );
            }
        }
    }
}

/// What this process has started, and what that has.
pub fn descendants(pid: u32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut todo = vec![pid.to_string()];
    while let Some(pid) = todo.pop() {
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children =
                std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_ascii_whitespace() {
                found.extend(child.parse::<i32>());
                todo.push(child.to_owned());
            }
        }
    }
    found
}
