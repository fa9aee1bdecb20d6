//! Processes that can't be ended: in the kernel, or another user's.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Live, copy_program, python, script};

/// A file system that never answers: whoever looks into it waits in the kernel (state D), KILL
/// or not, until this is dropped. Only for root.
pub struct NoAnswer {
    folder: tempfile::TempDir,
    server: Option<Live>,
}

impl NoAnswer {
    /// None, and said, where it can't be had.
    pub fn mount() -> Option<Self> {
        if !nix::unistd::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            eprintln!("skipped: only root can mount a file system that never answers");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let server = Live::in_pipes(
            Command::new(python())
                .arg(script("no_answer.py"))
                .arg(folder.path()),
        );
        server.wait_for_out("mounted");
        Some(Self {
            folder,
            server: Some(server),
        })
    }

    /// A file of it.
    pub fn file(&self) -> String {
        self.folder.path().join("file").to_str().unwrap().to_owned()
    }

    /// Waits until somebody waits for it.
    pub fn wait_until_asked(&self) {
        self.server.as_ref().unwrap().wait_for_out("asked");
    }
}

impl Drop for NoAnswer {
    fn drop(&mut self) {
        // Whoever waits is released by the server's end, and dies of its KILL.
        drop(self.server.take());
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.folder.path())
            .status();
    }
}

/// A folder in which another user than root can start gpuwatch, with a program that becomes
/// root whoever starts it. Only for root.
pub struct OtherUser {
    folder: tempfile::TempDir,
    pub user: String,
}

impl OtherUser {
    /// None, and said, where it can't be had.
    pub fn new(user: u32) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("skipped: only root can be two users");
            return None;
        }
        let folder = tempfile::Builder::new()
            .permissions(PermissionsExt::from_mode(0o755))
            .tempdir()
            .unwrap();
        let copied = |from: &Path, name: &str, mode: u32| {
            let to = folder.path().join(name);
            copy_program(from, &to);
            std::fs::set_permissions(&to, PermissionsExt::from_mode(mode)).unwrap();
        };
        copied(Path::new(env!("CARGO_BIN_EXE_gpuwatch")), "gpuwatch", 0o755);
        copied(&in_path("setpriv"), "become", 0o4755);
        Some(Self {
            folder,
            user: user.to_string(),
        })
    }

    /// `gpuwatch` as that user.
    pub fn gpuwatch(&self) -> Vec<String> {
        let user = [
            "setpriv",
            "--clear-groups",
            "--regid",
            &self.user,
            "--reuid",
        ];
        let mut words: Vec<String> = user.iter().map(ToString::to_string).collect();
        words.push(self.user.clone());
        words.push(self.path("gpuwatch"));
        words
    }

    /// What a command line begins with that is to run as root.
    pub fn as_root(&self) -> String {
        format!("{} --reuid 0 --regid 0 --clear-groups", self.path("become"))
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }
}

fn in_path(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.exists())
        .unwrap_or_else(|| panic!("these tests need {program}"))
}
