//! A certificate for this machine, and the authority that vouches for it and that nobody knows.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that OpenSSL has made.
pub struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = "subjectAltName=IP:127.0.0.1,IP:::ffff:127.0.0.1,DNS:localhost\nbasicConstraints=CA:FALSE\n";
        std::fs::write(folder.path().join("names"), names).unwrap();
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        for words in [
            format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=gpuwatch-test-CA"),
            format!("req {key} -keyout key.pem -out asked.pem -subj /CN=gpuwatch-test"),
            "x509 -req -in asked.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem".to_owned(),
        ] {
            openssl(folder.path(), &words);
        }
        Self { folder }
    }

    pub fn certificate(&self) -> String {
        self.named("cert.pem")
    }

    pub fn key(&self) -> String {
        self.named("key.pem")
    }

    pub fn authority(&self) -> String {
        self.named("ca.pem")
    }

    fn named(&self, name: &str) -> String {
        let path: PathBuf = self.folder.path().join(name);
        path.to_str().unwrap().to_owned()
    }
}

fn openssl(folder: &Path, words: &str) {
    let done = Command::new("openssl")
        .args(words.split(' '))
        .current_dir(folder)
        .output()
        .expect("these tests need openssl");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "openssl {words}: {said}");
}
