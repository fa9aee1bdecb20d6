//! Programs of our own beside the job: what they must not inherit, and ending them.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::signals::Mask;

/// Makes a program start as from a fresh shell: in a process group of its own, with no signal
/// blocked (ours all are) and no descriptor but its three standard ones.
pub fn detach(command: &mut Command) {
    command.process_group(0);
    let nothing = Mask::empty();
    let set = move || {
        nothing.set();
        // What std itself uses to report a failed exec stays open until the exec.
        // SAFETY: a system call with numbers; a kernel without it costs the closing alone,
        // and our own descriptors are close-on-exec anyway.
        unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3_u32,
                u32::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        Ok(())
    };
    // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
    unsafe { command.pre_exec(set) };
}

/// Kills the process group of a program that was started detached and not waited for yet: its
/// PID is still its own, and so is the group's number.
pub fn kill_group(leader: u32) {
    if let Ok(leader) = i32::try_from(leader)
        && leader > 1
    {
        // SAFETY: kill takes numbers.
        unsafe { libc::kill(-leader, libc::SIGKILL) };
    }
}
