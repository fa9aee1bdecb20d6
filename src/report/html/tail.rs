//! The last lines of output as plain text: control sequences are left out, and of a line that was
//! drawn again and again the last drawing stays.
//!
//! Owns that cleaning. Pure.

use vte::{Params, Parser, Perform};

/// So many lines at most, and so many characters of each.
const LINES: usize = 60;
const LONGEST: usize = 2000;

#[derive(Default)]
struct Plain {
    lines: Vec<String>,
    line: String,
    length: usize,
    /// A carriage return came: what is printed next begins the line anew.
    returned: bool,
}

impl Plain {
    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
        self.length = 0;
        self.returned = false;
        if self.lines.len() > 2 * LINES {
            self.lines.drain(..LINES);
        }
    }
}

impl Perform for Plain {
    fn print(&mut self, c: char) {
        if std::mem::take(&mut self.returned) {
            self.line.clear();
            self.length = 0;
        }
        match self.length {
            n if n < LONGEST => self.line.push(c),
            LONGEST => self.line.push_str("..."),
            _ => {}
        }
        self.length += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => self.end_line(),
            b'\r' => self.returned = true,
            b'\t' => self.print('\t'),
            8 => {
                self.line.pop();
                self.length = self.length.saturating_sub(1);
            }
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, action: char) {
        // A line that is erased as a whole.
        if action == 'K' && params.iter().next() == Some(&[2]) {
            self.line.clear();
            self.length = 0;
        }
    }
}

/// The last lines of these bytes, oldest first.
pub fn last_lines(bytes: &[u8]) -> Vec<String> {
    let mut plain = Plain::default();
    Parser::new().advance(&mut plain, bytes);
    if !plain.line.is_empty() {
        plain.end_line();
    }
    let from = plain.lines.len().saturating_sub(LINES);
    plain.lines.split_off(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_show_stays() {
        let bytes = b"\x1b[31mred\x1b[0m\r\n 10%\r 20%\r 30%\n\x1b]0;title\x07<b>\tx\x08\xff\nend";
        assert_eq!(last_lines(bytes), ["red", " 30%", "<b>\t\u{fffd}", "end"]);
        let many = "line\n".repeat(1000) + &"x".repeat(5000);
        let lines = last_lines(many.as_bytes());
        assert_eq!((lines.len(), lines[59].len()), (LINES, LONGEST + 3));
        assert!(last_lines(b"").is_empty());
    }
}
