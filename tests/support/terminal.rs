//! A real pseudo-terminal, and a real interactive shell on one.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use nix::fcntl::OFlag;
use nix::pty;
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::tcgetpgrp;

use super::live::Seen;
use super::{Live, Sandbox, wait_until};

/// A terminal: the test is the person and the screen.
pub struct Terminal {
    person: File,
    name: PathBuf,
    /// Held until a command has it, so that the screen doesn't go dark before.
    slave: Option<File>,
    seen: Arc<Seen>,
    looked: usize,
}

impl Terminal {
    pub fn new(rows: u16, cols: u16) -> Self {
        // Close-on-exec from the first moment: tests start processes on other threads.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let master = pty::posix_openpt(flags).unwrap();
        pty::grantpt(&master).unwrap();
        pty::unlockpt(&master).unwrap();
        let name = PathBuf::from(pty::ptsname_r(&master).unwrap());
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlag::O_NOCTTY.bits())
            .open(&name)
            .unwrap();
        let person = File::from(OwnedFd::from(master));
        let terminal = Self {
            seen: Seen::follow(person.try_clone().unwrap()),
            person,
            name,
            slave: Some(slave),
            looked: 0,
        };
        terminal.resize(rows, cols);
        terminal
    }

    /// Starts a command whose three streams are this terminal.
    pub fn spawn(&mut self, command: &mut Command) -> Live {
        let slave = self.slave.take().expect("one command a terminal");
        let stream = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let live = Live::apart(command);
        // The command holds copies of the slave too, and with them the end of output away.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        live
    }

    /// Types.
    pub fn send(&mut self, text: &str) {
        self.person.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for text that comes after what was waited for before.
    pub fn wait_for(&mut self, text: &str) {
        self.looked = self.seen.wait_for(text, self.looked);
    }

    /// Everything, once nobody holds the terminal open any more.
    pub fn everything(&self) -> Vec<u8> {
        self.seen.everything()
    }

    pub fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.seen.so_far()).into_owned()
    }

    /// Changes the size, of which the kernel tells the foreground processes.
    pub fn resize(&self, rows: u16, cols: u16) {
        let status = Command::new("stty")
            .arg("-F")
            .arg(&self.name)
            .args(["rows", &rows.to_string(), "cols", &cols.to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// The settings as `stty -g` would print them.
    pub fn settings(&self) -> Termios {
        tcgetattr(&self.person).unwrap()
    }

    /// Its device file.
    pub fn device(&self) -> &str {
        self.name.to_str().unwrap()
    }
}

/// An interactive bash with job control.
pub struct Shell {
    pub terminal: Terminal,
    bash: Live,
}

impl Shell {
    pub fn start(sandbox: &Sandbox) -> Self {
        let mut terminal = Terminal::new(24, 80);
        // Without readline, what the terminal shows is what programs wrote.
        let job = sandbox.direct(&["bash", "--norc", "--noprofile", "--noediting", "-i"]);
        let bash = job
            .env("PS1", "next> ")
            .env("PS2", "")
            .start_on(&mut terminal);
        terminal.wait_for("next> ");
        Self { terminal, bash }
    }

    /// Types a line.
    pub fn line(&mut self, text: &str) {
        self.terminal.send(&format!("{text}\n"));
        // The echo, so that a later wait doesn't take the typed words for an answer.
        self.terminal.wait_for("\r\n");
    }

    pub fn send(&mut self, keys: &str) {
        self.terminal.send(keys);
    }

    pub fn wait_for(&mut self, text: &str) {
        self.terminal.wait_for(text);
    }

    /// Waits for the prompt.
    pub fn prompt(&mut self) {
        self.terminal.wait_for("next> ");
    }

    /// Waits until a job of the shell's has the terminal: keys typed before reach the shell.
    pub fn job_in_front(&mut self) {
        let shell = self.bash.pid();
        wait_until("the job is in front", || {
            tcgetpgrp(&self.terminal.person).is_ok_and(|group| group.as_raw() != shell)
        });
    }

    /// Ctrl-Z: waits until the shell says that its job is stopped.
    pub fn stop(&mut self) {
        self.send("\x1a");
        self.wait_for("Stopped");
        self.prompt();
    }

    /// Fetches the stopped job, and waits until it has the terminal.
    pub fn fetch(&mut self) {
        self.line("fg");
        self.job_in_front();
    }

    /// Starts a command in the background that will stop there, and waits until it has.
    pub fn stops_in_background(&mut self, command: &str) {
        self.line(&format!("{command} &"));
        self.prompt();
        let before = self.terminal.so_far().matches("Stopped").count();
        wait_until("it is stopped", || {
            self.line("jobs");
            self.prompt();
            self.terminal.so_far().matches("Stopped").count() > before
        });
    }

    /// What the last command returned.
    pub fn status(&mut self) -> String {
        self.line("echo \"=$?=\"");
        self.terminal.wait_for("=");
        let from = self.terminal.looked;
        self.terminal.wait_for("=");
        let bytes = self.terminal.seen.so_far();
        let status = String::from_utf8_lossy(&bytes[from..self.terminal.looked - 1]).into_owned();
        self.prompt();
        status
    }

    /// Leaves the shell.
    pub fn exit(mut self) -> ExitStatus {
        self.line("exit 0");
        self.bash.wait()
    }
}
