//! The last lines of output as plain text: control sequences are left out, and of a line that was
//! drawn again and again stays what a terminal would show in the end.
//!
//! Owns that cleaning. Pure.

use vte::{Params, Parser, Perform};

/// So many characters of a line at most.
const LONGEST: usize = 2000;

#[derive(Default)]
struct Plain {
    /// So many lines are kept.
    most: usize,
    lines: Vec<String>,
    /// The line being drawn, a character a column.
    line: Vec<char>,
    /// Where the next character is drawn.
    column: usize,
    is_cut: bool,
}

impl Plain {
    fn end_line(&mut self) {
        let mut line: String = self.line.drain(..).collect();
        if std::mem::take(&mut self.is_cut) {
            line.push_str("...");
        }
        self.lines.push(line);
        self.column = 0;
        if self.lines.len() > 2 * self.most {
            self.lines.drain(..self.most);
        }
    }
}

impl Perform for Plain {
    fn print(&mut self, c: char) {
        match self.line.get_mut(self.column) {
            Some(drawn) => *drawn = c,
            None if self.column < LONGEST => {
                self.line.resize(self.column, ' ');
                self.line.push(c);
            }
            None => self.is_cut = true,
        }
        self.column += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => self.end_line(),
            b'\r' => self.column = 0,
            b'\t' => self.print('\t'),
            8 => self.column = self.column.saturating_sub(1),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, action: char) {
        // What is erased, from the cursor on or the whole line.
        let from = match (action, params.iter().next()) {
            ('K', None | Some(&[0])) => self.column,
            ('K', Some(&[2])) => 0,
            _ => return,
        };
        self.is_cut &= from >= LONGEST;
        self.line.truncate(from);
    }
}

/// The last lines of these bytes, at most so many, oldest first.
pub fn last_lines(bytes: &[u8], most: usize) -> Vec<String> {
    let mut plain = Plain {
        most,
        ..Plain::default()
    };
    Parser::new().advance(&mut plain, bytes);
    if !plain.line.is_empty() {
        plain.end_line();
    }
    let from = plain.lines.len().saturating_sub(most);
    plain.lines.split_off(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_show_stays() {
        let bytes = b"\x1b[31mred\x1b[0m\r\n 10%\r 20%\r 30%\n\x1b]0;title\x07<b>\tx\x08\xff\nend";
        assert_eq!(
            last_lines(bytes, 60),
            ["red", " 30%", "<b>\t\u{fffd}", "end"]
        );
        // A step back erases nothing, and a shorter drawing leaves the rest of the longer.
        assert_eq!(
            last_lines(
                b"x\x08\nab\x08\x08c\n12345\r12\n12345\r12\x1b[K\n1\r\x1b[2K2",
                60
            ),
            ["x", "cb", "12345", "12", "2"]
        );
        let many = "line\n".repeat(1000) + &"x".repeat(5000);
        let lines = last_lines(many.as_bytes(), 60);
        assert_eq!((lines.len(), lines[59].len()), (60, LONGEST + 3));
        assert!(last_lines(b"", 60).is_empty());
    }
}
