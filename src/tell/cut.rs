//! Cutting a text to what a service takes: on the boundary of a character, first and last lines
//! kept, and it can be seen that something is missing.

/// What a service counts, and how much of it it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Bytes of UTF-8.
    Bytes(usize),
    /// Characters (Unicode scalar values).
    Chars(usize),
    /// Units of UTF-16, of which an emoji has two.
    Utf16(usize),
}

impl Budget {
    fn limit(self) -> usize {
        match self {
            Self::Bytes(n) | Self::Chars(n) | Self::Utf16(n) => n,
        }
    }

    fn size(self, text: &str) -> usize {
        match self {
            Self::Bytes(_) => text.len(),
            Self::Chars(_) => text.chars().count(),
            Self::Utf16(_) => text.encode_utf16().count(),
        }
    }

    /// The longest beginning of this size at most.
    fn head(self, text: &str, size: usize) -> &str {
        let end = match self {
            Self::Bytes(_) => (0..=size.min(text.len()))
                .rev()
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(0),
            Self::Chars(_) => place(text, size),
            Self::Utf16(_) => units(text, size),
        };
        text.get(..end).unwrap_or_default()
    }

    /// The longest end of this size at most.
    fn tail(self, text: &str, size: usize) -> &str {
        let start = match self {
            Self::Bytes(_) => (text.len().saturating_sub(size)..=text.len())
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(text.len()),
            Self::Chars(_) => place(text, text.chars().count().saturating_sub(size)),
            Self::Utf16(_) => text.len() - units_back(text, size),
        };
        text.get(start..).unwrap_or_default()
    }
}

/// Where the character of this number begins.
fn place(text: &str, number: usize) -> usize {
    text.char_indices()
        .nth(number)
        .map_or(text.len(), |(at, _)| at)
}

/// Where so many units of UTF-16 end, or one less.
fn units(text: &str, most: usize) -> usize {
    bytes_within(text.chars(), most)
}

/// How many bytes so many units of UTF-16 have at its end.
fn units_back(text: &str, most: usize) -> usize {
    bytes_within(text.chars().rev(), most)
}

fn bytes_within(chars: impl Iterator<Item = char>, most: usize) -> usize {
    let mut units = 0;
    chars
        .take_while(|c| {
            units += c.len_utf16();
            units <= most
        })
        .map(char::len_utf8)
        .sum()
}

/// Stands for what is missing.
const MARK: &str = "[...]";

/// The text, or its first and last lines with `[...]` between them.
///
/// The result is within the budget. The first and the last line are whole where both fit.
pub fn cut(text: &str, budget: Budget) -> String {
    if budget.size(text) <= budget.limit() {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let between = if lines.len() > 1 { "\n" } else { " " };
    let mark = format!("{between}{MARK}{between}");
    let Some(room) = budget
        .limit()
        .checked_sub(mark.len())
        .filter(|room| *room >= 2)
    else {
        return budget.head(text, budget.limit()).to_owned();
    };
    let (first, last) = match lines.as_slice() {
        [first, .., last] => (*first, *last),
        _ => (text, text),
    };
    // At least half of the room is the first line's; what it doesn't need is the last one's.
    let first_room = room - budget.size(last).min(room / 2);
    let first_kept = budget.head(first, first_room);
    let last_kept = budget.tail(last, room - budget.size(first_kept));
    if lines.len() < 3 || first_kept != first || last_kept != last {
        return format!("{first_kept}{mark}{last_kept}");
    }
    let mut left = room - budget.size(first) - budget.size(last);
    let (mut head, mut tail) = (vec![first], vec![last]);
    let mut middle = lines.get(1..lines.len() - 1).unwrap_or_default().iter();
    let mut fits = |line: &&str| {
        let rest = left.checked_sub(budget.size(line) + 1);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    while let Some(line) = middle.next().filter(|line| fits(line)) {
        head.push(line);
        match middle.next_back().filter(|line| fits(line)) {
            Some(line) => tail.push(line),
            None => break,
        }
    }
    tail.reverse();
    format!("{}{mark}{}", head.join("\n"), tail.join("\n"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_and_the_last_lines_stay() {
        let text = "Traceback\n a\n b\n c\n d\nValueError: x";
        assert_eq!(cut(text, Budget::Bytes(100)), text);
        assert_eq!(
            cut(text, Budget::Bytes(34)),
            "Traceback\n a\n[...]\nValueError: x"
        );
        assert_eq!(
            cut(&"训".repeat(100), Budget::Bytes(30)),
            "训训训训 [...] 训训训"
        );
        assert_eq!(
            cut(&"🎉".repeat(100), Budget::Chars(15)),
            "🎉🎉🎉🎉 [...] 🎉🎉🎉🎉"
        );
        assert_eq!(cut("训练", Budget::Bytes(4)), "训");
        let giant = format!("one\n{}", "x".repeat(1 << 20));
        assert_eq!(cut(&giant, Budget::Bytes(20)), "one\n[...]\nxxxxxxxxxx");
    }

    proptest! {
        #[test]
        fn a_cut_text_is_within_its_budget(
            text in "(\\PC|\n|🧑‍🚀|训){0,200}",
            limit in 0_usize..300,
            kind in 0_u8..3,
        ) {
            let budget = match kind {
                0 => Budget::Bytes(limit),
                1 => Budget::Chars(limit),
                _ => Budget::Utf16(limit),
            };
            let kept = cut(&text, budget);
            prop_assert!(budget.size(&kept) <= limit);
            if budget.size(&text) <= limit {
                prop_assert_eq!(&kept, &text);
            }
            // What is kept is a beginning and an end of it.
            let whole = text.starts_with(&kept);
            let parted = kept.match_indices(MARK).any(|(at, _)| {
                let head = kept[..at].trim_end_matches(['\n', ' ']);
                let tail = kept[at + MARK.len()..].trim_start_matches(['\n', ' ']);
                text.starts_with(head) && text.ends_with(tail)
            });
            prop_assert!(whole || parted, "{text:?} {kept:?}");
        }

        #[test]
        fn first_and_last_lines_are_whole_where_both_fit(
            lines in prop::collection::vec("[a-z训]{0,20}", 3..40),
            limit in 20_usize..400,
        ) {
            let text = lines.join("\n");
            let kept = cut(&text, Budget::Bytes(limit));
            let (first, last) = (&lines[0], &lines[lines.len() - 1]);
            let ends = first.len().max(last.len());
            // Half of the room is enough for either.
            if 2 * ends + 10 <= limit {
                prop_assert!(kept.starts_with(first.as_str()), "{kept}");
                prop_assert!(kept.ends_with(last.as_str()), "{kept}");
            }
        }
    }
}
