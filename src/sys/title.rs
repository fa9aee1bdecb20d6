//! The command line that `ps` shows of a process.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Shows these words as this process's command line, as far as there is room for them: it is
/// written over the one that the process was started with. To be called in a fork that reads
/// its arguments no more.
pub fn show(words: &[OsString]) {
    // A kernel that doesn't say where costs a title.
    let Some((start, len)) = std::fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|stat| arguments(&stat))
    else {
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

/// `arg_start` and the length up to `arg_end` in `/proc/PID/stat` (proc(5), fields 48 and 49).
fn arguments(stat: &str) -> Option<(usize, usize)> {
    let after_name = stat.get(stat.rfind(')')? + 1..)?;
    // The first of these is field 3.
    let mut fields = after_name.split_ascii_whitespace().skip(48 - 3);
    let first: usize = fields.next()?.parse().ok()?;
    let past: usize = fields.next()?.parse().ok()?;
    // Zero where the kernel hides it.
    (first != 0 && past > first).then(|| (first, past - first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_arguments_behind_any_name() {
        let zeros = |n| vec!["0"; n].join(" ");
        let stat = format!("7 (a) b)) S {} 4096 4160 0 0", zeros(44));
        assert_eq!(arguments(&stat), Some((4096, 64)));
        assert_eq!(arguments(&format!("7 (x) S {}", zeros(49))), None);
        assert_eq!(arguments("7 (x) S 1 2"), None);
    }
}
