//! A machine with GPUs, and processes of several users on them.

use std::fs::{Permissions, set_permissions};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::{FakeDriver, Live, Sandbox, alive, content, wait_until};

/// Two users that every Debian has, and their numbers.
pub const ANA: (&str, u32) = ("games", 5);
pub const BOB: (&str, u32) = ("news", 9);

/// Two more, who have a desktop; jobs of other tests would show messages there.
pub const CAT: (&str, u32) = ("man", 6);
pub const DAN: (&str, u32) = ("lp", 7);

/// Says so where only root can become another user.
pub fn is_root() -> bool {
    let root = Uid::effective().is_root();
    if !root {
        eprintln!("skipped: only root can become another user");
    }
    root
}

/// Judged fast, so that a test needn't wait for ten minutes.
pub fn fast() -> Value {
    let after = json!({"after": "1500ms"});
    json!({"judge": {"idle_holding": after, "orphans": after, "unexplained_memory": after}})
}

/// The machine.
pub struct Machine {
    pub sandbox: Sandbox,
    pub driver: FakeDriver,
    gpus: Vec<Value>,
}

impl Machine {
    /// With so many GPUs.
    pub fn new(gpus: usize) -> Self {
        let gpus = vec![json!({}); gpus];
        Self {
            sandbox: Sandbox::new(),
            driver: FakeDriver::new(&json!({"gpus": gpus})),
            gpus,
        }
    }

    /// Changes what the driver says of a GPU.
    pub fn set(&mut self, gpu: usize, keys: Value) {
        self.gpus[gpu] = keys;
        self.driver.set(&json!({"gpus": self.gpus}));
    }

    /// A patrol by these settings.
    pub fn patrol(&self, profile: &Value, options: &[&str]) -> Live {
        let file = self.sandbox.arg("patrol.yaml");
        std::fs::write(&file, profile.to_string()).unwrap();
        let mut words = vec!["patrol", "--interval", "200ms", "--profile", &file];
        words.extend(options);
        self.sandbox.gpuwatch(&words).with(&self.driver).start()
    }

    /// A process of this user that calls itself so, holds this much of a GPU and uses it so much.
    /// What it reads never comes.
    pub fn job(&self, uid: u32, argv: &str, share: (u32, u64, u32)) -> Live {
        let script = format!("exec -a {argv}");
        let live = process(uid, &script, Stdio::piped());
        self.hold(&live, argv.split(' ').next().unwrap(), share);
        live
    }

    /// A process of whoever runs this, in a process group of its own.
    pub fn mine(&self, argv: &str, share: (u32, u64, u32)) -> Live {
        let mut command = Command::new("bash");
        command
            .args(["-c", &format!("exec -a {argv}")])
            .process_group(0);
        let live = Live::beside(&mut command);
        self.hold(&live, argv.split(' ').next().unwrap(), share);
        live
    }

    /// One that listens on a socket.
    pub fn server(&self, uid: u32, (gpu, mib): (u32, u64)) -> Live {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let stdin = Stdio::from(OwnedFd::from(socket));
        let live = process(uid, "exec -a serve sleep 3600", stdin);
        self.hold(&live, "serve", (gpu, mib, 0));
        live
    }

    /// Once it has become what it calls itself.
    pub fn hold(&self, live: &Live, name: &str, (gpu, mib, sm): (u32, u64, u32)) {
        let pid = live.pid();
        wait_until("the process has started", || {
            let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
            words.is_ok_and(|words| words.split('\0').next() == Some(name))
        });
        self.driver.hold(pid as u32, gpu, mib, sm);
    }

    /// A process whose session, parent and group are gone: its PID. `End` ends it.
    pub fn orphan(&self, uid: u32, (gpu, mib): (u32, u64)) -> End {
        let folder = open_folder();
        let file = folder.path().join("pid");
        let script = format!("(exec -a worker sleep 3600) & echo $! > {}", file.display());
        let mut command = as_user(uid);
        command
            .arg("setsid")
            .args(["--wait", "bash", "-c", &script]);
        let status = command.stdin(Stdio::null()).status().unwrap();
        assert!(status.success());
        let pid: i32 = content(&file).parse().unwrap();
        self.driver.hold(pid as u32, gpu, mib, 0);
        End(pid)
    }
}

/// A shell script as this user, in a process group of its own.
pub fn process(uid: u32, script: &str, stdin: Stdio) -> Live {
    let mut command = as_user(uid);
    command.args(["bash", "-c", script]);
    command
        .current_dir("/")
        .process_group(0)
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Live::apart(&mut command)
}

/// A folder that everybody may write into.
pub fn open_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    folder
}

/// A command as another user, with HUP as a terminal leaves it.
fn as_user(uid: u32) -> Command {
    let mut command = Command::new("setpriv");
    let reuid = format!("--reuid={uid}");
    command
        .args([&reuid, "--regid=65534", "--clear-groups"])
        .args(["env", "--default-signal=HUP"])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

/// Ends a process that isn't our child.
pub struct End(pub i32);

impl End {
    pub fn lives(&self) -> bool {
        alive(self.0)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(self.0), Signal::SIGKILL);
    }
}

/// The lines of `--json` so far, each as finding, state and user (nobody's: the machine's).
pub fn said(patrol: &Live) -> Vec<(String, String, String)> {
    let text = patrol.out_so_far();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&line["name"]),
            text(&line["state"]),
            text(&line["job"]["user"]),
        )
    };
    whole.lines().filter(|l| !l.is_empty()).map(line).collect()
}

/// Waits until the patrol has said this.
pub fn wait_for(patrol: &Live, name: &str, state: &str, user: &str) {
    wait_until(
        &format!("{name} {state} of {user}: {}", patrol.err_so_far()),
        || said(patrol).contains(&(name.into(), state.into(), user.into())),
    );
}

/// Asks it to end; everything that it said.
pub fn end(patrol: Live) -> String {
    patrol.signal(15);
    let ended = patrol.end();
    ended.assert_ok();
    ended.out()
}
