//! A fake `/proc` in a temporary directory, for tests.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::proc_fs::ProcFs;

/// The directory; gone when dropped.
pub struct FakeProc(tempfile::TempDir);

/// One process of it, as it will be written.
pub struct FakeProcess<'a> {
    home: &'a FakeProc,
    pid: u32,
    parent: u32,
    name: String,
    state: char,
    start: u64,
    cpu: u64,
    threads: u32,
    exit_signal: i32,
    io: Option<[u64; 4]>,
    shmem_kib: Option<u64>,
    children: Vec<u32>,
}

impl FakeProc {
    pub fn new() -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        fake.last_pid(0);
        fake.uptime(1.0);
        fake
    }

    pub fn fs(&self) -> ProcFs {
        ProcFs::at(self.0.path())
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    pub fn file(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn last_pid(&self, pid: u32) {
        self.file("loadavg", &format!("0.00 0.00 0.00 1/100 {pid}\n"));
    }

    pub fn uptime(&self, seconds: f64) {
        self.file("uptime", &format!("{seconds:.2} 1.00\n"));
    }

    /// A process that sleeps, has one thread and started at tick 100; `write` makes it so.
    pub fn process(&self, pid: u32, parent: u32) -> FakeProcess<'_> {
        FakeProcess {
            home: self,
            pid,
            parent,
            name: format!("p{pid}"),
            state: 'S',
            start: 100,
            cpu: 0,
            threads: 1,
            exit_signal: 17,
            io: Some([0; 4]),
            shmem_kib: Some(512),
            children: Vec::new(),
        }
    }

    pub fn remove(&self, pid: u32) {
        std::fs::remove_dir_all(self.path(&pid.to_string())).unwrap();
    }
}

impl FakeProcess<'_> {
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    pub fn state(mut self, state: char) -> Self {
        self.state = state;
        self
    }

    pub fn start(mut self, ticks: u64) -> Self {
        self.start = ticks;
        self
    }

    /// Ticks of user time.
    pub fn cpu(mut self, ticks: u64) -> Self {
        self.cpu = ticks;
        self
    }

    /// Threads `pid`, `pid * 10 + 1`, `pid * 10 + 2`...
    pub fn threads(mut self, n: u32) -> Self {
        self.threads = n;
        self
    }

    /// A thread's entry, as a lookup by thread id gives it.
    pub fn not_a_leader(mut self) -> Self {
        self.exit_signal = -1;
        self
    }

    /// rchar, wchar, `read_bytes`, `write_bytes`; `None` for a file that may not be read.
    pub fn io(mut self, io: Option<[u64; 4]>) -> Self {
        self.io = io;
        self
    }

    /// `None` for a kernel that doesn't tell.
    pub fn shmem_kib(mut self, kib: Option<u64>) -> Self {
        self.shmem_kib = kib;
        self
    }

    pub fn children(mut self, pids: &[u32]) -> Self {
        self.children = pids.to_vec();
        self
    }

    pub fn write(self) {
        let Self { home, pid, .. } = self;
        home.file(&format!("{pid}/stat"), &format!(
            "{pid} ({}) {} {} {pid} {pid} 0 -1 0 0 0 3 0 {} 0 0 0 20 0 {} 0 {} 0 512 0 0 0 0 0 0 0 0 0 0 0 0 0 {} 0 0\n",
            self.name, self.state, self.parent, self.cpu, self.threads, self.start, self.exit_signal
        ));
        let mut status = "Name:\tx\nVmRSS:\t  2048 kB\nRssAnon:\t  1024 kB\n".to_owned();
        if let Some(kib) = self.shmem_kib {
            writeln!(status, "RssShmem:\t{kib} kB").unwrap();
        }
        home.file(&format!("{pid}/status"), &status);
        // 2 MiB resident, half of it anonymous.
        let pages = |kib: usize| kib * 1024 / rustix::param::page_size();
        let statm = format!("9999 {} {} 1 0 9 0\n", pages(2048), pages(1024));
        home.file(&format!("{pid}/statm"), &statm);
        if let Some([rchar, wchar, read, write]) = self.io {
            home.file(&format!("{pid}/io"), &format!(
                "rchar: {rchar}\nwchar: {wchar}\nsyscr: 1\nsyscw: 1\nread_bytes: {read}\nwrite_bytes: {write}\n"
            ));
        } else {
            // Root reads what it may not, so permission is imitated by what can't be read at all.
            let _ = std::fs::remove_file(home.path(&format!("{pid}/io")));
            std::fs::create_dir_all(home.path(&format!("{pid}/io"))).unwrap();
        }
        for i in 0..self.threads {
            let tid = if i == 0 { pid } else { pid * 10 + i };
            home.file(&format!("{pid}/task/{tid}/children"), "");
        }
        self.home.children_of(pid, pid, &self.children);
    }
}

impl FakeProc {
    pub fn children_of(&self, pid: u32, tid: u32, children: &[u32]) {
        let list: Vec<_> = children.iter().map(u32::to_string).collect();
        self.file(&format!("{pid}/task/{tid}/children"), &list.join(" "));
    }
}
