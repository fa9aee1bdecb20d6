//! Starting the child: fork, restore what is the caller's, exec; its errno comes back.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::defect::caught;
use super::inherited;
use super::process::mask_in;
use super::signals::Mask;

/// What the child gets as one of its three standard descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildFd {
    /// Ours.
    Inherit,
    /// None: the caller had it closed.
    Closed,
    /// A copy of this one.
    From(RawFd),
}

/// Everything about the child, made before the fork: after it nothing may be allocated.
pub struct Child {
    argv: Vec<CString>,
    env: Vec<CString>,
    fds: [ChildFd; 3],
    mask: Mask,
}

/// Why the command doesn't run.
#[derive(Debug)]
pub enum Unspawned {
    /// `execve(2)` refused it.
    Exec(io::Error),
    /// It didn't come to that.
    Own(io::Error),
}

unsafe extern "C" {
    static mut environ: *const *const libc::c_char;
}

impl Child {
    /// The command, its environment as `NAME=value` changes over ours, its descriptors, and
    /// the signal mask that it starts with.
    pub fn new(
        argv: &[OsString],
        set: &[(OsString, OsString)],
        fds: [ChildFd; 3],
        mask: Mask,
    ) -> io::Result<Self> {
        let argv = argv
            .iter()
            .map(|a| CString::new(a.as_bytes()))
            .collect::<Result<_, _>>();
        Ok(Self {
            argv: argv?,
            env: merged(set)?,
            fds,
            mask,
        })
    }

    /// Forks and executes. Returns the PID once the command runs, or why it doesn't. To be
    /// called with all signals blocked, by the thread that lives as long as this process. The
    /// mask holds the signals that wait here and were sent too early for the child.
    pub fn spawn(&self) -> Result<(u32, Mask), Unspawned> {
        let argv = pointers(&self.argv);
        let env = pointers(&self.env);
        let (mut errno_in, errno_out) = io::pipe().map_err(Unspawned::Own)?;
        let (go_in, mut go_out) = io::pipe().map_err(Unspawned::Own)?;
        // SAFETY: getpid takes nothing.
        let parent = unsafe { libc::getpid() };
        let before = Mask::pending();
        // SAFETY: other threads are not in the child, nor is what they hold locked released there;
        // it makes system calls alone, allocates nothing, and execs or exits.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(Unspawned::Own(io::Error::last_os_error())),
            0 => {
                wait_for_go(parent, &go_in, &go_out);
                self.become_command(&argv, &env, errno_out.as_raw_fd())
            }
            _ => {
                let early = sent_too_early(before, pid as u32);
                // The other end is still open here, so that this can't fail, and raises no
                // SIGPIPE where the child is dead.
                let _ = go_out.write_all(&[0]);
                drop(errno_out);
                let mut errno = [0_u8; 4];
                // End of file: exec closed the other end.
                if errno_in.read_exact(&mut errno).is_err() {
                    return Ok((pid as u32, early));
                }
                // SAFETY: our own child, which has just exited; no status is asked for.
                unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
                let errno = i32::from_ne_bytes(errno);
                Err(Unspawned::Exec(io::Error::from_raw_os_error(errno)))
            }
        }
    }

    /// The child's side. Only calls that are safe after a fork; never returns.
    fn become_command(
        &self,
        argv: &[*const libc::c_char],
        env: &[*const libc::c_char],
        errno: RawFd,
    ) -> ! {
        for (fd, what) in self.fds.iter().enumerate() {
            match *what {
                ChildFd::Inherit => {}
                // SAFETY: closing takes a number.
                ChildFd::Closed => drop(unsafe { libc::close(fd as RawFd) }),
                // SAFETY: dup2 takes numbers; the copy isn't close-on-exec.
                ChildFd::From(source) => drop(unsafe { libc::dup2(source, fd as RawFd) }),
            }
        }
        for signal in [libc::SIGPIPE, libc::SIGCHLD] {
            let disposition = if inherited::was_ignored(signal) {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            };
            // SAFETY: the two that we or the runtime changed get back what they were.
            unsafe { libc::signal(signal, disposition) };
        }
        self.mask.set();
        // SAFETY: a list of C strings that ends in null, alive until exec; execvp looks up
        // PATH in the environment that the command will have, as a shell would.
        unsafe { environ = env.as_ptr() };
        // SAFETY: as above, for argv, whose first entry exists.
        unsafe { libc::execvp(argv[0], argv.as_ptr()) };
        let why = io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EINVAL)
            .to_ne_bytes();
        // SAFETY: four bytes that live on this stack.
        unsafe { libc::write(errno, why.as_ptr().cast(), why.len()) };
        // SAFETY: no destructors of the parent's may run here.
        unsafe { libc::_exit(127) }
    }
}

/// The child's side, too: waits until the parent has seen which signals both of them have.
/// However late the parent gets to that, the command hasn't answered any yet.
fn wait_for_go(parent: libc::pid_t, go_in: &io::PipeReader, go_out: &io::PipeWriter) {
    // A SIGKILL of ours becomes the child's SIGTERM. The kernel clears this for set-uid
    // programs by itself.
    // SAFETY: prctl with one integer argument.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
    // SAFETY: getppid takes nothing.
    if unsafe { libc::getppid() } != parent {
        // The parent died before the line above: do what it would have caused.
        // SAFETY: raise takes a number.
        unsafe { libc::raise(libc::SIGTERM) };
    }
    // A parent that dies is the end of the pipe, but for this copy.
    // SAFETY: the parent's value is another process's; here nobody uses it again.
    unsafe { libc::close(go_out.as_raw_fd()) };
    let mut byte = 0_u8;
    // SAFETY: one byte that lives on this stack. All signals are blocked: nothing interrupts.
    unsafe { libc::read(go_in.as_raw_fd(), (&raw mut byte).cast(), 1) };
}

/// Of the signals that wait here, those that the child doesn't have. What came while it was
/// forked came to both if it was sent to the group after that, and then waits in it as well:
/// it has them all blocked until it is told to go on.
fn sent_too_early(before: Mask, child: u32) -> Mask {
    let (mut early, now) = (before, Mask::pending());
    let new = (1..=64).filter(|signal| now.has(*signal) && !before.has(*signal));
    for signal in new {
        let there = std::fs::read_to_string(format!("/proc/{child}/status"))
            .ok()
            .and_then(|status| mask_in(&status, "ShdPnd"))
            .is_some_and(|mask| mask & (1 << (signal - 1)) != 0);
        if !there {
            early = early.with(signal);
        }
    }
    early
}

/// Our environment, entry by entry (oddities included), with these changes.
fn merged(set: &[(OsString, OsString)]) -> io::Result<Vec<CString>> {
    let changed = |entry: &[u8]| {
        set.iter().any(|(name, _)| {
            entry
                .strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"="))
        })
    };
    let mut env: Vec<CString> = raw_environment();
    env.retain(|entry| !changed(entry.as_bytes()));
    for (name, value) in set {
        let mut entry = name.clone().into_vec();
        entry.push(b'=');
        entry.extend_from_slice(value.as_bytes());
        env.push(CString::new(entry)?);
    }
    Ok(env)
}

/// `environ` as it is: std leaves out entries without `=`, which the child may still want.
fn raw_environment() -> Vec<CString> {
    let mut entries = Vec::new();
    // SAFETY: read while the process has one thread; libc keeps it a null-terminated list.
    let mut next = unsafe { environ };
    while !next.is_null() {
        // SAFETY: `next` points into the list.
        let entry = unsafe { *next };
        if entry.is_null() {
            break;
        }
        // SAFETY: every entry is a C string.
        entries.push(unsafe { std::ffi::CStr::from_ptr(entry) }.to_owned());
        // SAFETY: the list ends with a null, which stops the loop.
        next = unsafe { next.add(1) };
    }
    entries
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|s| s.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

/// Forks a process that runs `body` and ends with what it returns. To be called while this
/// process has one thread. Descriptors other than `keep` and the standard ones are closed in
/// it; the standard ones are `/dev/null`.
pub fn fork_bare(keep: &[RawFd], body: impl FnOnce() -> i32) -> io::Result<u32> {
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .ok();
    // SAFETY: one thread, so the new process may go on as this one could.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            isolate(null.map(OwnedFd::from), keep);
            // A panic must not find its way into what the parent was doing.
            let code = caught(body).unwrap_or(1);
            // SAFETY: no destructors of the parent's may run here.
            unsafe { libc::_exit(code) }
        }
        pid => Ok(pid as u32),
    }
}

fn isolate(null: Option<OwnedFd>, keep: &[RawFd]) {
    for fd in 0..3 {
        match &null {
            // SAFETY: dup2 takes numbers.
            Some(null) => drop(unsafe { libc::dup2(null.as_raw_fd(), fd) }),
            // SAFETY: closing takes a number.
            None => drop(unsafe { libc::close(fd) }),
        }
    }
    drop(null);
    let mut keep: Vec<u32> = keep
        .iter()
        .filter_map(|fd| u32::try_from(*fd).ok())
        .collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep {
        if fd > first {
            // SAFETY: closes what this process inherited and doesn't need.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = first.max(fd + 1);
    }
    // SAFETY: as above, to the end.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

/// Replaces this process by the program that it runs, with these arguments; `pass` stay open
/// in it. Returns only why that failed.
pub fn exec_self(args: &[OsString], pass: &[RawFd]) -> io::Error {
    for fd in pass {
        // SAFETY: F_SETFD takes an integer.
        unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) };
    }
    let strings: Result<Vec<CString>, _> =
        args.iter().map(|a| CString::new(a.as_bytes())).collect();
    let Ok(strings) = strings else {
        return io::ErrorKind::InvalidInput.into();
    };
    let list = pointers(&strings);
    // SAFETY: a path and a list of C strings that ends in null; `environ` is libc's own.
    unsafe { libc::execv(c"/proc/self/exe".as_ptr(), list.as_ptr()) };
    io::Error::last_os_error()
}

/// Whether this name can be an environment variable's.
pub fn valid_name(name: &OsStr) -> bool {
    !name.is_empty() && !name.as_bytes().contains(&b'=') && !name.as_bytes().contains(&0)
}
