//! From bytes to the screen: UTF-8, control characters, escape sequences.
//!
//! Owns the decoding of one output stream, however it is cut into reads. Must not know what
//! a line means.

use memchr::memchr;
use vte::{Params, Parser, Perform};

use super::Layout;
use super::hint::Wanted;
use super::screen::{Line, Screen, TAB};

/// A longer change of colour is left to the parser.
const MOST_COLOUR: usize = 24;

/// One output stream and the screen that it draws on.
pub(super) struct Terminal {
    screen: Screen,
    parser: Parser,
    /// An escape sequence has begun and not ended: `parser` sees every byte.
    in_escape: bool,
    /// The beginning of a character whose end hasn't come yet.
    partial: Vec<u8>,
    /// Room for a line whose tabs were replaced.
    expanded: Vec<u8>,
}

impl Terminal {
    pub fn new(layout: Layout, wanted: Wanted) -> Self {
        Self {
            screen: Screen::new(layout, wanted),
            parser: Parser::new(),
            in_escape: false,
            partial: Vec::new(),
            expanded: Vec::new(),
        }
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.screen.resize(cols, rows);
    }

    /// The line under the cursor, if it holds something new.
    pub fn pending(&self) -> Option<Line> {
        self.screen.pending()
    }

    /// Takes bytes and returns the lines that they completed.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        while let Some(&first) = bytes.first() {
            let used = if self.in_escape {
                self.escape(first);
                1
            } else if first < 0x80 && self.partial.is_empty() {
                self.ascii(bytes)
            } else {
                self.characters(bytes)
            };
            bytes = &bytes[used..];
        }
        self.screen.take_ready()
    }

    /// The stream has ended: its last line is complete as it is.
    pub fn finish(&mut self) -> Vec<Line> {
        self.finish_partial();
        self.screen.leave_line();
        self.screen.take_ready()
    }

    /// One byte of an escape sequence. A line end stops a sequence that never ended:
    /// garbage must not swallow the rest of the output.
    fn escape(&mut self, byte: u8) {
        if byte == b'\n' {
            self.parser = Parser::new();
            self.in_escape = false;
            self.screen.new_line();
            return;
        }
        let mut performer = Performer {
            screen: &mut self.screen,
            ended: false,
            printed: false,
        };
        self.parser.advance(&mut performer, &[byte]);
        self.in_escape = !performer.ended;
        if performer.printed {
            // It may hold the beginning of another character, which must not be joined to
            // the next sequence.
            self.parser = Parser::new();
        }
    }

    /// Whole lines, a run of printable characters, or one control character.
    fn ascii(&mut self, bytes: &[u8]) -> usize {
        let mut used = 0;
        while let Some(end) = memchr(b'\n', &bytes[used..]) {
            let line = &bytes[used..used + end];
            let mut line = line.strip_suffix(b"\r").unwrap_or(line);
            if !is_printable(line) {
                if !expand_tabs(line, &mut self.expanded) {
                    break;
                }
                line = &self.expanded;
            }
            if !self.screen.takes_line(line.len()) {
                break;
            }
            self.screen.line(line);
            used += end + 1;
        }
        if used > 0 {
            return used;
        }
        let run = bytes
            .iter()
            .take_while(|b| (0x20..0x7f).contains(*b))
            .count();
        if run > 0 {
            self.screen.print_run(&bytes[..run]);
            return run;
        }
        if let Some(len) = colour(bytes) {
            return len;
        }
        self.control(bytes[0]);
        1
    }

    fn control(&mut self, byte: u8) {
        if byte == 0x1b {
            self.in_escape = true;
            self.escape(byte);
        } else {
            control(&mut self.screen, byte);
        }
    }

    /// A run of characters beyond ASCII; what isn't UTF-8 becomes U+FFFD.
    fn characters(&mut self, bytes: &[u8]) -> usize {
        let run = bytes.iter().position(|b| *b < 0x80).unwrap_or(bytes.len());
        let mut held = std::mem::take(&mut self.partial);
        held.extend_from_slice(&bytes[..run]);
        let mut rest: &[u8] = &held;
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    text.chars().for_each(|c| self.screen.print(c));
                    rest = &[];
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    let valid = String::from_utf8_lossy(valid);
                    valid.chars().for_each(|c| self.screen.print(c));
                    let Some(bad) = error.error_len() else {
                        rest = after;
                        break;
                    };
                    self.screen.print('\u{fffd}');
                    rest = &after[bad..];
                }
            }
            if rest.is_empty() {
                break;
            }
        }
        self.partial = rest.to_vec();
        if run < bytes.len() {
            self.finish_partial();
        }
        run
    }

    /// The rest of a character never came.
    fn finish_partial(&mut self) {
        if !self.partial.is_empty() {
            self.partial.clear();
            self.screen.print('\u{fffd}');
        }
    }

    #[cfg(any(test, fuzzing))]
    pub fn screen(&self) -> &Screen {
        &self.screen
    }
}

/// The length of a whole change of colour, which needs no parser: half of all log lines
/// have some, and nothing that is read depends on it.
fn colour(bytes: &[u8]) -> Option<usize> {
    let inside = bytes.strip_prefix(b"\x1b[")?;
    let len = inside
        .iter()
        .take(MOST_COLOUR)
        .position(|b| !(b.is_ascii_digit() || *b == b';'))?;
    (inside[len] == b'm').then_some(len + 3)
}

fn is_printable(line: &[u8]) -> bool {
    line.iter()
        .fold(true, |all, b| all & (0x20..0x7f).contains(b))
}

/// Replaces tabs by the blanks that they stand for; false where anything else needs more
/// than printing.
fn expand_tabs(line: &[u8], into: &mut Vec<u8>) -> bool {
    into.clear();
    for byte in line {
        match byte {
            b'\t' => into.resize((into.len() / TAB + 1) * TAB, b' '),
            0x20..0x7f => into.push(*byte),
            _ => return false,
        }
    }
    true
}

fn control(screen: &mut Screen, byte: u8) {
    match byte {
        b'\n' | 0x0b | 0x0c => screen.new_line(),
        b'\r' => screen.carriage_return(),
        0x08 => screen.backspace(),
        b'\t' => screen.tab(),
        _ => {}
    }
}

/// What an escape sequence does to the screen.
struct Performer<'a> {
    screen: &'a mut Screen,
    /// The sequence is over.
    ended: bool,
    /// It was over before, without a word: this is text.
    printed: bool,
}

impl Perform for Performer<'_> {
    fn print(&mut self, c: char) {
        self.screen.print(c);
        self.ended = true;
        self.printed = true;
    }

    fn execute(&mut self, byte: u8) {
        control(self.screen, byte);
    }

    fn osc_dispatch(&mut self, _params: &[&[u8]], bell_terminated: bool) {
        // Ended by ESC \ otherwise, whose second half comes as an escape of its own.
        self.ended = bell_terminated;
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        self.ended = true;
        if !intermediates.is_empty() {
            return;
        }
        match byte {
            b'7' => self.screen.save_cursor(),
            b'8' => self.screen.restore_cursor(),
            b'D' | b'E' => self.screen.new_line(),
            b'M' => self.screen.reverse_index(),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        self.ended = true;
        if ignore || !intermediates.is_empty() {
            return;
        }
        let mut numbers = params.iter().map(|p| p.first().copied().unwrap_or(0));
        let first = numbers.next().unwrap_or(0);
        let second = numbers.next().unwrap_or(0);
        let count = usize::from(first.max(1));
        let screen = &mut *self.screen;
        match action {
            'A' => screen.up(count),
            'B' | 'e' => screen.down(count),
            'C' | 'a' => screen.right(count),
            'D' => screen.left(count),
            'E' => {
                screen.down(count);
                screen.go_to_col(0);
            }
            'F' => {
                screen.up(count);
                screen.go_to_col(0);
            }
            'G' | '`' => screen.go_to_col(count - 1),
            'd' => screen.go_to_row(count - 1),
            'H' | 'f' => {
                screen.go_to_row(count - 1);
                screen.go_to_col(usize::from(second.max(1)) - 1);
            }
            'J' => screen.erase_display(first),
            'K' => screen.erase_line(first),
            'r' => {
                let bottom = if second == 0 { u16::MAX } else { second };
                screen.set_region(Some((count - 1, usize::from(bottom) - 1)));
            }
            's' => screen.save_cursor(),
            'u' => screen.restore_cursor(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Layout = Layout::Plain;
    const SMALL: Layout = Layout::Terminal { cols: 10, rows: 3 };

    fn drawn(layout: Layout, bytes: &[u8]) -> Vec<String> {
        let mut terminal = Terminal::new(layout, Wanted::Everything);
        terminal.feed(bytes);
        terminal.screen().lines()
    }

    fn read(layout: Layout, bytes: &[u8]) -> Vec<String> {
        let mut terminal = Terminal::new(layout, Wanted::Everything);
        let mut lines = terminal.feed(bytes);
        lines.extend(terminal.finish());
        lines.into_iter().map(|l| l.text).collect()
    }

    #[test]
    fn controls_move_the_cursor() {
        assert_eq!(drawn(PLAIN, b"abc\rX"), ["Xbc"]);
        assert_eq!(drawn(PLAIN, b"abc\x08\x08X"), ["aXc"]);
        assert_eq!(drawn(PLAIN, b"a\tb"), ["a       b"]);
        assert_eq!(drawn(PLAIN, b"one\r\ntwo"), ["one", "two"]);
        assert_eq!(drawn(PLAIN, b"one\ntwo\x1b[A\rX"), ["Xne", "two"]);
        assert_eq!(drawn(PLAIN, b"a\x1b[3Cb\x1b[2Dc"), ["a  cb"]);
        assert_eq!(drawn(PLAIN, b"a\nb\x1b[1;2Hc"), ["ac", "b"]);
    }

    #[test]
    fn erasing() {
        assert_eq!(drawn(PLAIN, b"abcdef\r\x1b[3C\x1b[K"), ["abc"]);
        assert_eq!(drawn(PLAIN, b"abcdef\r\x1b[2C\x1b[1K"), ["   def"]);
        assert_eq!(drawn(PLAIN, b"abc\ndef\x1b[2J"), ["", ""]);
    }

    #[test]
    fn a_terminal_wraps_and_scrolls_and_a_pipe_does_not() {
        assert_eq!(drawn(SMALL, b"0123456789abc"), ["0123456789", "abc"]);
        assert_eq!(read(SMALL, b"0123456789abc\n"), ["0123456789abc"]);
        assert_eq!(drawn(SMALL, b"1\n2\n3\n4"), ["2", "3", "4"]);
        assert_eq!(drawn(PLAIN, &[b'x'; 5000])[0].len(), 4096);
    }

    #[test]
    fn what_overwrites_the_second_row_of_a_long_line_is_a_line_of_its_own() {
        let bytes = b"1/9 ===== 10s\x08\x08\x08\x08\x08\r2/9 == 3s\r3/9 === 2s";
        assert_eq!(drawn(SMALL, bytes), ["1/9 =====", "3/9 === 2s"]);
        assert_eq!(
            read(SMALL, bytes),
            ["1/9 ===== 10s", "2/9 == 3s", "3/9 === 2s"]
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut terminal = Terminal::new(SMALL, Wanted::Everything);
        terminal.feed("第 4 轮".as_bytes());
        assert_eq!(terminal.screen().cursor(), (0, 7));
        assert_eq!(drawn(SMALL, "123456789轮".as_bytes()), ["123456789", "轮"]);
        assert_eq!(
            drawn(SMALL, "轮x\r ".as_bytes()),
            ["  x"],
            "half of it is overwritten"
        );
    }

    #[test]
    fn what_is_no_utf8_is_replaced_and_harms_nothing() {
        assert_eq!(drawn(PLAIN, b"a\xffb\xe2\x82c"), ["a\u{fffd}b\u{fffd}c"]);
        assert_eq!(drawn(PLAIN, b"\x1b]0;title\x07x"), ["x"]);
        assert_eq!(drawn(PLAIN, b"\x1bP+q544e\x1b\\x"), ["x"]);
        assert_eq!(read(PLAIN, b"\x1b]never ends\nEpoch 1/2\n"), ["Epoch 1/2"]);
    }

    #[test]
    fn a_line_is_read_once_unless_it_changes() {
        assert_eq!(read(PLAIN, b"1/3\r1/3\r2/3\r\n"), ["1/3", "2/3"]);
        assert_eq!(
            read(PLAIN, b"   \n\t\n\n1/2\n"),
            ["1/2"],
            "blank lines say nothing"
        );
        let block = b"a 1\nb 1\x1b[A\r\x1b[Ka 1\n\x1b[Kb 2\n";
        assert_eq!(read(PLAIN, block), ["a 1", "b 1", "b 2"]);
    }

    fn cut(
        layout: Layout,
        bytes: &[u8],
        cuts: &[usize],
    ) -> (Vec<String>, (usize, usize), Vec<Line>) {
        let mut terminal = Terminal::new(layout, Wanted::Everything);
        let mut lines = Vec::new();
        let mut at = 0;
        for cut in cuts {
            let next = at + cut % (bytes.len() - at + 1);
            lines.extend(terminal.feed(&bytes[at..next]));
            at = next;
        }
        lines.extend(terminal.feed(&bytes[at..]));
        (terminal.screen().lines(), terminal.screen().cursor(), lines)
    }

    #[test]
    fn half_a_character_after_a_sequence_that_means_nothing_spoils_no_other() {
        let bytes = b"\x1b[0<m\xdc\xdf12\x1b[0mx";
        let single = vec![1; bytes.len()];
        let whole = cut(PLAIN, bytes, &[]);
        assert_eq!(whole.0, ["\u{fffd}12x"]);
        assert_eq!(cut(PLAIN, bytes, &single), whole);
    }

    fn piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => "[ -~]{0,24}".prop_map(String::into_bytes),
            2 => "[━█第轮😀é]{1,3}".prop_map(String::into_bytes),
            4 => prop::sample::select(vec![
                "\n", "\r", "\r\n", "\x08", "\t", "\x1b[A", "\x1b[2B", "\x1b[K", "\x1b[2K", "\x1b[J",
                "\x1b[0<m", "\x18", "\u{fff0}", "\x1b[3;4H", "\x1b[1;2r", "\x1bM", "\x1b[1m", "\x1b]0;t\x07", "\x1b7", "\x1b8", "\x1b[5C",
            ]).prop_map(|s| s.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..6),
        ]
    }

    proptest! {
        #[test]
        fn the_screen_does_not_depend_on_the_cutting(
            pieces in prop::collection::vec(piece(), 0..40),
            cuts in prop::collection::vec(0usize..40, 0..40),
            plain in any::<bool>(),
        ) {
            let bytes = pieces.concat();
            let layout = if plain { PLAIN } else { SMALL };
            prop_assert_eq!(cut(layout, &bytes, &cuts), cut(layout, &bytes, &[]));
        }
    }
}
