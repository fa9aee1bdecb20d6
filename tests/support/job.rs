//! A command to try, direct or watched, in a folder of its own.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Ended, FakeDriver, Live, Record, Row, Terminal, replayed, wait_until};

/// A test's own folder: home, state, working directory. Removed at the end, when all runs
/// that were recorded in it are judged again: that must give what was found when they ran.
pub struct Sandbox {
    folder: tempfile::TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("gpuwatch-test-")
            .tempdir()
            .unwrap();
        for name in ["home", "state", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// A path in the working directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// The same as text, for a command line.
    pub fn arg(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Where records go unless a test says otherwise.
    pub fn runs(&self) -> PathBuf {
        self.folder.path().join("state/gpuwatch/runs")
    }

    /// Where ranks of a job share what they found.
    pub fn jobs(&self) -> PathBuf {
        self.folder.path().join("jobs")
    }

    /// The only record that was made.
    pub fn record(&self) -> Record {
        Record::only_one_in(&self.runs())
    }

    /// What a file of the only record holds so far; nothing before there is one.
    pub fn so_far(&self, file: &str) -> String {
        let Some(record) = Record::all_in(&self.runs()).pop() else {
            return String::new();
        };
        std::fs::read_to_string(record.folder.join(file)).unwrap_or_default()
    }

    /// The samples of the only record so far; its last line may be half there.
    pub fn samples_so_far(&self) -> Vec<Row> {
        let text = self.so_far("samples.csv");
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut reader = csv::Reader::from_reader(whole.as_bytes());
        reader.deserialize().map(|row| row.unwrap()).collect()
    }

    /// Waits until the command of the only run has ended, whatever the run does then.
    pub fn wait_for_exit(&self) {
        wait_until("the command has ended", || {
            self.so_far("events.jsonl").contains("\"exited\"")
        });
    }

    /// A command without gpuwatch.
    pub fn direct<S: AsRef<OsStr>>(&self, argv: &[S]) -> Job {
        Job {
            argv: argv.iter().map(|a| a.as_ref().to_owned()).collect(),
            env: self.environment(),
            cwd: self.folder.path().join("work"),
            own_group: false,
        }
    }

    /// `gpuwatch run OPTIONS -- ARGV`.
    pub fn watched<S: AsRef<OsStr>>(&self, options: &[&str], argv: &[S]) -> Job {
        let mut words = vec![gpuwatch(), "run".into()];
        words.extend(options.iter().map(OsString::from));
        words.push("--".into());
        words.extend(argv.iter().map(|a| a.as_ref().to_owned()));
        self.direct(&words)
    }

    /// `gpuwatch ARGS`, for every other command.
    pub fn gpuwatch(&self, args: &[&str]) -> Job {
        let mut words = vec![gpuwatch()];
        words.extend(args.iter().map(OsString::from));
        self.direct(&words)
    }

    /// Both: the command direct, and the same one watched without a word of our own.
    pub fn both<S: AsRef<OsStr>>(&self, argv: &[S]) -> [Job; 2] {
        [self.direct(argv), self.watched(&["-q"], argv)]
    }

    /// A small, fixed environment: what the caller happens to have set changes nothing, and
    /// a GPU of this machine is never touched.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let root = self.folder.path();
        let path = std::env::var_os("PATH").unwrap();
        [
            ("PATH", path),
            ("HOME", root.join("home").into()),
            ("XDG_STATE_HOME", root.join("state").into()),
            ("XDG_CONFIG_HOME", root.join("home/.config").into()),
            ("GPUWATCH_CLAIMS", root.join("claims").into()),
            ("GPUWATCH_JOBS", self.jobs().into()),
            ("GPUWATCH_NVML_LIBRARY", root.join("no-driver.so").into()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "xterm".into()),
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
        ]
        .map(|(name, value)| (name.into(), value))
        .into()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Err(differences) = replayed::differences(self.folder.path())
        {
            panic!("judged again, a run gives other findings:\n{differences}");
        }
    }
}

fn gpuwatch() -> OsString {
    env!("CARGO_BIN_EXE_gpuwatch").into()
}

/// A command line with its environment, ready to be started in one way or another.
#[derive(Clone)]
pub struct Job {
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    own_group: bool,
}

impl Job {
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self = self.without(name);
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.env.retain(|(n, _)| n != name);
        self
    }

    /// On a machine with this driver and its GPUs.
    pub fn with(mut self, driver: &FakeDriver) -> Self {
        let mut told = Command::new("told");
        driver.apply(&mut told);
        for (name, value) in told.get_envs() {
            let name = name.to_str().unwrap();
            self = match value {
                Some(value) => self.env(name, value),
                None => self.without(name),
            };
        }
        self
    }

    pub fn cwd(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.cwd);
        self
    }

    /// Starts it by another program: `nohup`, `env --ignore-signal=USR1`.
    pub fn under(mut self, words: &[&str]) -> Self {
        self.argv.splice(0..0, words.iter().map(OsString::from));
        self
    }

    /// In a process group of its own, so that the whole group can be signalled.
    pub fn own_group(mut self) -> Self {
        self.own_group = true;
        self
    }

    /// For a test that sets the streams itself.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command
            .args(&self.argv[1..])
            .env_clear()
            .envs(self.env.iter().map(|(n, v)| (n, v)))
            .current_dir(&self.cwd);
        if self.own_group {
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        command
    }

    /// In pipes, with an empty stdin, to its end.
    pub fn run(&self) -> Ended {
        self.start().end()
    }

    /// In pipes; the test goes on meanwhile.
    pub fn start(&self) -> Live {
        Live::in_pipes(&mut self.command())
    }

    /// As the leader of a new session on this terminal.
    pub fn start_on(&self, terminal: &mut Terminal) -> Live {
        let job = self.clone().under(&["setsid", "--ctty"]);
        terminal.spawn(&mut job.command())
    }

    /// To its end, in pipes or on a terminal of its own.
    pub fn run_either_way(&self, on_terminal: bool) -> Ended {
        if on_terminal {
            self.run_on_terminal()
        } else {
            self.run()
        }
    }

    /// On a terminal of its own, to its end: `out` is what the terminal received.
    pub fn run_on_terminal(&self) -> Ended {
        let mut terminal = Terminal::new(24, 80);
        let status = self.start_on(&mut terminal).wait();
        Ended {
            status,
            out: terminal.everything(),
            err: Vec::new(),
        }
    }
}
