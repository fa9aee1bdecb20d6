//! Whether a process waits for somebody at a terminal.
//!
//! Reads what system call it sits in (`syscall` in proc(5)) and what its descriptors are.
//! Knows no job and judges nothing.

use std::path::Path;

use super::ProcFs;

/// The calls in which a program waits for one of several descriptors; a line editor sits in
/// one of these, not in `read`.
const WAITS: &[i64] = &[
    libc::SYS_pselect6,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// Whether this process reads a terminal, or (where a prompt stands: `prompted`) waits with
/// one as its stdin. False where that can't be read.
pub fn asks(fs: &mut ProcFs, pid: u32, prompted: bool) -> bool {
    let Ok(call) = fs.read(format_args!("{pid}/syscall")) else {
        return false;
    };
    let Some((number, first)) = parsed(&String::from_utf8_lossy(call)) else {
        return false;
    };
    let fd = match number {
        libc::SYS_read => first,
        waits if prompted && WAITS.contains(&waits) => 0,
        _ => return false,
    };
    let link = fs.link(format_args!("{pid}/fd/{fd}"));
    link.is_ok_and(|to| is_terminal(&to))
}

/// Number and first argument; None where it runs (`running`) or isn't in a call (`-1`).
fn parsed(text: &str) -> Option<(i64, u64)> {
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok().filter(|n| *n >= 0)?;
    let first = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    Some((number, first))
}

fn is_terminal(link: &Path) -> bool {
    link.starts_with("/dev/pts") || link.to_string_lossy().starts_with("/dev/tty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_its_number_and_its_first_argument() {
        assert_eq!(
            parsed("0 0x3 0x7f 0x1 0x0 0x0 0x0 0x7ffd 0x7f1"),
            Some((0, 3))
        );
        assert_eq!(parsed("running"), None);
        assert_eq!(parsed("-1 0x7ffd 0x7f1"), None);
        assert_eq!(parsed(""), None);
    }

    #[test]
    fn terminals_go_by_their_names() {
        assert!(is_terminal(Path::new("/dev/pts/3")) && is_terminal(Path::new("/dev/tty")));
        assert!(!is_terminal(Path::new("pipe:[12]")) && !is_terminal(Path::new("/dev/null")));
    }
}
