//! The command line that `ps` shows of a process.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::process::stat_field;

/// Shows these words as this process's command line, as far as there is room for them: it is
/// written over the one that the process was started with. To be called in a fork that reads
/// its arguments no more.
pub fn show(words: &[OsString]) {
    // A kernel that doesn't say where costs a title.
    let Some((start, len)) = arguments() else {
        return;
    };
    // SAFETY: the kernel laid our arguments out there, on the stack, writable, and nothing else
    // in this process looks at them (see above).
    let room = unsafe { std::slice::from_raw_parts_mut(start as *mut u8, len) };
    room.fill(0);
    let text = words.iter().flat_map(|word| {
        let bytes = word.as_bytes().iter().copied();
        bytes.chain([0])
    });
    // The last byte stays zero: by it the kernel knows where the arguments end.
    for (to, byte) in room.iter_mut().take(len.saturating_sub(1)).zip(text) {
        *to = byte;
    }
}

/// `arg_start` and the length up to `arg_end` (proc(5), fields 48 and 49).
fn arguments() -> Option<(usize, usize)> {
    let field = |number| -> Option<usize> {
        let text = stat_field(std::process::id(), number)?;
        text.parse().ok()
    };
    let (first, past) = (field(48)?, field(49)?);
    // Zero where the kernel hides it.
    (first != 0 && past > first).then(|| (first, past - first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_where_the_kernel_put_them() {
        let (start, len) = arguments().unwrap();
        // SAFETY: the kernel's own range, which nobody writes to in this process.
        let there = unsafe { std::slice::from_raw_parts(start as *const u8, len) };
        let told = std::fs::read("/proc/self/cmdline").unwrap();
        assert_eq!(there, told);
    }
}
