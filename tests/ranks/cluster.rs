//! A Slurm of one machine, for one test: its own munged, slurmctld and slurmd.
//!
//! Nothing of it needs systemd, cgroups or a name that resolves, and a Slurm that the machine may
//! have is neither asked nor disturbed.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::support::{skipped, wait_until};

/// What must be installed.
const PROGRAMS: [&str; 6] = ["munged", "slurmctld", "slurmd", "srun", "scancel", "sinfo"];

pub struct Cluster {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Cluster {
    /// One that takes jobs; None, and said, where there is no Slurm.
    pub fn start() -> Option<Self> {
        if let Some(missing) = PROGRAMS.iter().find(|name| !is_there(name)) {
            skipped(&format!(
                "{missing} is missing (Debian's slurm-wlm and munge; tests/run installs them)"
            ));
            return None;
        }
        // A short name: sockets lie in it.
        let prefix = tempfile::Builder::new().prefix("gw-slurm-").tempdir();
        let mut cluster = Self {
            folder: prefix.unwrap(),
            daemons: Vec::new(),
        };
        cluster.munge();
        cluster.configure();
        cluster.daemon("slurmctld", &["-D"]);
        let node = node();
        cluster.daemon("slurmd", &["-D", "-N", &node]);
        wait_until("Slurm takes jobs", || {
            let mut sinfo = cluster.command("sinfo");
            let state = sinfo.args(["-h", "-o", "%T"]).output().unwrap();
            state.stdout == b"idle\n"
        });
        Some(cluster)
    }

    /// The variable by which its programs find it.
    pub fn conf(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    /// One of its programs.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.conf());
        command
    }

    fn munge(&mut self) {
        let mut key = [0; 128];
        File::open("/dev/urandom")
            .unwrap()
            .read_exact(&mut key)
            .unwrap();
        fs::DirBuilder::new()
            .mode(0o700)
            .create(self.path("munge"))
            .unwrap();
        let options = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .clone();
        options
            .open(self.path("munge/key"))
            .unwrap()
            .write_all(&key)
            .unwrap();
        let place = |option: &str, name: &str| format!("--{option}={}", self.path(name).display());
        let words = [
            "--foreground".to_owned(),
            "--force".to_owned(), // whoever may write to /tmp
            place("key-file", "munge/key"),
            place("socket", "munge/socket"),
            place("pid-file", "munge/pid"),
            place("log-file", "munge/log"),
            place("seed-file", "munge/seed"),
        ];
        self.daemon("munged", &words.each_ref().map(String::as_str));
        let socket = self.path("munge/socket");
        wait_until("munged listens", || socket.exists());
    }

    fn configure(&self) {
        let place = |name: &str| self.path(name).display().to_string();
        for name in ["state", "spool"] {
            fs::create_dir(self.path(name)).unwrap();
        }
        let user = Command::new("id").arg("-un").output().unwrap();
        let user = String::from_utf8(user.stdout).unwrap();
        let (user, node) = (user.trim(), node());
        let [control, daemon] = free_ports();
        let text = format!(
            "ClusterName=test\n\
             SlurmctldHost={node}(127.0.0.1)\n\
             SlurmctldPort={control}\nSlurmdPort={daemon}\n\
             SlurmUser={user}\nSlurmdUser={user}\n\
             AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={}\n\
             StateSaveLocation={}\nSlurmdSpoolDir={}\n\
             SlurmctldPidFile={}\nSlurmdPidFile={}\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             MpiDefault=none\nMailProg=/bin/true\nReturnToService=2\n\
             SlurmdParameters=config_overrides\n\
             NodeName={node} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN\n\
             PartitionName=all Nodes={node} Default=YES State=UP\n",
            place("munge/socket"),
            place("state"),
            place("spool"),
            place("slurmctld.pid"),
            place("slurmd.pid"),
        );
        fs::write(self.conf(), text).unwrap();
        let cgroups = "CgroupAutomount=no\nCgroupPlugin=cgroup/v1\n";
        fs::write(self.path("cgroup.conf"), cgroups).unwrap();
    }

    fn daemon(&mut self, program: &str, words: &[&str]) {
        let log = File::create(self.path(&format!("{program}.out"))).unwrap();
        // Ends with the test's thread, whatever becomes of it.
        let child = self
            .command("setpriv")
            .args(["--pdeathsig", "TERM", program])
            .args(words)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.daemons.push(child);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for name in ["munged", "slurmctld", "slurmd"] {
                let log = fs::read_to_string(self.path(&format!("{name}.out")));
                eprintln!("{name}: {}", log.unwrap_or_default());
            }
        }
        // Whatever still runs ends before those who would end it.
        let _ = self
            .command("scancel")
            .args(["--signal=KILL", "--state=RUNNING"])
            .status();
        for daemon in self.daemons.iter_mut().rev() {
            super::support::kill(daemon.id().try_into().unwrap(), 15);
            daemon.wait().unwrap();
        }
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let mut folders = std::env::split_paths(&path);
    folders.any(|folder| Path::new(&folder).join(program).exists())
}

fn node() -> String {
    let name = nix::unistd::gethostname().unwrap().into_string().unwrap();
    name.split('.').next().unwrap().to_owned()
}

fn free_ports() -> [u16; 2] {
    let taken = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    taken.map(|listener| listener.local_addr().unwrap().port())
}
