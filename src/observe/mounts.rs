//! On which file system the job works.
//!
//! Owns the text of `mountinfo` (proc(5)) and the list of network file systems. Asks the mount
//! table and never the file system: `statfs` on a dead NFS server would hang the sampler.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::parse::words;
use super::proc_fs::ProcFs;

/// Types of file systems whose bytes don't pass a local disk, so that the kernel's storage
/// counters don't see them (or not all). FUSE file systems are told by their prefix.
const NETWORK: [&[u8]; 18] = [
    b"nfs",
    b"nfs4",
    b"cifs",
    b"smb2",
    b"smb3",
    b"smbfs",
    b"lustre",
    b"ceph",
    b"9p",
    b"virtiofs",
    b"fuse",
    b"beegfs",
    b"gpfs",
    b"afs",
    b"orangefs",
    b"pvfs2",
    b"panfs",
    b"wekafs",
];

/// Whether a file system of this type reaches over a network (or out of a virtual machine).
pub fn is_network(kind: &[u8]) -> bool {
    NETWORK.contains(&kind) || kind.starts_with(b"fuse.")
}

/// The type of the file system that holds `path`, by the longest mount point above it.
pub fn type_of<'a>(mountinfo: &'a [u8], path: &Path) -> Option<&'a [u8]> {
    let mut best: Option<(usize, &[u8])> = None;
    for line in mountinfo.split(|b| *b == b'\n') {
        let Some((point, kind)) = mount(line) else {
            continue;
        };
        let length = point.as_os_str().len();
        // Of two mounts on one point the later one hides the earlier.
        if path.starts_with(&point) && best.is_none_or(|(longest, _)| length >= longest) {
            best = Some((length, kind));
        }
    }
    best.map(|(_, kind)| kind)
}

/// Mount point and type: field 5, and the first field after the lone `-`.
fn mount(line: &[u8]) -> Option<(PathBuf, &[u8])> {
    let mut fields = words(line);
    let point = unescape(fields.nth(4)?);
    let kind = fields.skip_while(|word| *word != b"-").nth(1)?;
    Some((PathBuf::from(std::ffi::OsStr::from_bytes(&point)), kind))
}

/// Blanks, line ends and backslashes are written as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| byte == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(byte));
        rest = if code.is_some() {
            after.get(3..).unwrap_or_default()
        } else {
            after
        };
    }
    plain
}

/// Whether a process works on a network file system; remembers the answer for a directory.
#[derive(Debug, Default)]
pub struct WorkingPlace {
    cwd: PathBuf,
    network: bool,
}

impl WorkingPlace {
    /// The last answer.
    pub fn is_network(&self) -> bool {
        self.network
    }

    /// Looks where `pid` works now; where that can't be read the last answer stands.
    pub fn look(&mut self, fs: &mut ProcFs, pid: u32) {
        let Ok(cwd) = fs.link(format_args!("{pid}/cwd")) else {
            return;
        };
        if cwd == self.cwd {
            return;
        }
        if let Ok(text) = fs.read(format_args!("{pid}/mountinfo")) {
            self.network = type_of(text, &cwd).is_some_and(is_network);
            self.cwd = cwd;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::FakeProc;
    use super::*;

    const TABLE: &[u8] = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - autofs systemd-1 rw
31 30 0:41 / /home/li rw,nosuid shared:7 master:2 - nfs4 server:/home/li rw
32 22 0:42 / /mnt/my\\040data rw - fuse.sshfs host:/ rw
33 22 0:43 / /mnt/usb rw - fuseblk /dev/sdb1 rw
";

    #[test]
    fn the_longest_mount_point_holds_the_path() {
        for (path, kind, network) in [
            ("/", "ext4", false),
            ("/homework", "ext4", false),
            ("/home/li/resnet", "nfs4", true),
            ("/mnt/my data/x", "fuse.sshfs", true),
            ("/mnt/usb/x", "fuseblk", false),
        ] {
            let found = type_of(TABLE, Path::new(path)).unwrap();
            assert_eq!(found, kind.as_bytes(), "{path}");
            assert_eq!(is_network(found), network, "{path}");
        }
        assert_eq!(type_of(b"", Path::new("/")), None);
    }

    #[test]
    fn what_cannot_be_read_changes_nothing() {
        let fake = FakeProc::new();
        fake.process(5, 1).write();
        std::os::unix::fs::symlink("/home/li/resnet", fake.path("5/cwd")).unwrap();
        let mut place = WorkingPlace::default();
        place.look(&mut fake.fs(), 5);
        assert!(!place.is_network());
        fake.file("5/mountinfo", std::str::from_utf8(TABLE).unwrap());
        place.look(&mut fake.fs(), 5);
        assert!(place.is_network());
        fake.remove(5);
        place.look(&mut fake.fs(), 5);
        assert!(place.is_network());
    }
}
