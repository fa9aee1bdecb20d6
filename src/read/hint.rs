//! A cheap test of whether a line can say anything about progress.
//!
//! Owns the one pass that a flood of ordinary output costs. It may let too much through,
//! never too little: whatever the grammar can read must pass here. Must not know the grammar.

use super::pattern::Patterns;

/// What the screen hands on.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// Lines that the grammar or one of these patterns may read.
    Known(Patterns),
    #[cfg(test)]
    Everything,
}

impl Wanted {
    /// Whether this line is handed on.
    pub fn has(&self, line: &[u8]) -> bool {
        match self {
            Self::Known(patterns) => may_matter(line) || patterns.fit(line),
            #[cfg(test)]
            Self::Everything => true,
        }
    }
}

/// `1/2` says nothing without a word or a bar beside it.
const SHORTEST: usize = 4;

/// Whether the grammar should look at this line.
pub(super) fn may_matter(line: &[u8]) -> bool {
    line.len() >= SHORTEST
        && (has_word(line)
            || starts_with_count(line)
            || has_mark(line)
            || has_percent_of_training(line)
            || has_foreign_word(line))
}

/// A number at the very start, alone or in brackets: rows of tables, `[59]`, `10:`.
fn starts_with_count(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    // A table with frames.
    let line = line.strip_prefix(b"|").unwrap_or(line).trim_ascii_start();
    let (bracket, rest) = match line.strip_prefix(b"[") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 9 {
        return false;
    }
    match (rest.get(digits), rest.get(digits + 1)) {
        (Some(b']'), _) => bracket,
        (Some(b' ' | b'\t' | b'|' | b','), _) => !bracket,
        // The first cell of a CSV may be a time.
        (Some(b'.'), _) => !bracket && is_cell(&rest[digits + 1..]),
        (Some(b':'), next) => !bracket && !next.is_some_and(u8::is_ascii_digit),
        _ => false,
    }
}

/// Digits up to a comma.
fn is_cell(rest: &[u8]) -> bool {
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    digits > 0 && rest.get(digits) == Some(&b',')
}

/// `Training: 45%`
fn has_percent_of_training(line: &[u8]) -> bool {
    memchr::memchr(b'%', line).is_some_and(|at| {
        at > 0
            && line[at - 1].is_ascii_digit()
            && memchr::memmem::find(&line[..at], b"raining").is_some()
    })
}

const fn four(word: [u8; 4]) -> u32 {
    u32::from_le_bytes(word)
}

/// Four letters of each word that the grammar knows as a counter or a loss.
fn has_word(line: &[u8]) -> bool {
    line.windows(4).any(|w| {
        let word = u32::from_le_bytes([w[0], w[1], w[2], w[3]]) | 0x2020_2020;
        word == four(*b"epoc")
            || word == four(*b"step")
            || word == four(*b"iter")
            || word == four(*b"loss")
            || word == four(*b"batc")
            || word == four(*b"epis")
            || word == four(*b"tria")
            || word == four(*b"roun")
            || word == four(*b"upda")
            || word == four(*b"gene")
            || word == four(*b"prog")
            || word == four(*b"epok")
            || word == four(*b"schr")
            || word == four(*b"paso")
            || word == four(*b"krok")
            || word == four(*b"lote")
            || word == four(*b"pass")
            // Of "Traceback": what it quotes is no progress.
            || word == four(*b"ceba")
    })
}

/// The same beyond ASCII; a bar's glyphs alone say nothing without a number beside them.
fn has_foreign_word(line: &[u8]) -> bool {
    const WORDS: [&str; 22] = [
        "轮",
        "进度",
        "步",
        "批",
        "迭代",
        "损失",
        "エポック",
        "ステップ",
        "эпоха",
        "шаг",
        "época",
        "Época",
        "époque",
        "Époque",
        "itération",
        "Itération",
        "iteración",
        "étape",
        "итерация",
        "에폭",
        "에포크",
        "스텝",
    ];
    !line.is_ascii()
        && WORDS
            .iter()
            .any(|w| memchr::memmem::find(line, w.as_bytes()).is_some())
}

/// `3/10`, `3 / 10`, `3 of 10`, `30%|`, `12it [`.
fn has_mark(line: &[u8]) -> bool {
    memchr::memchr3_iter(b'/', b'%', b'[', line).any(|i| match line[i] {
        b'/' => is_pair(line, i),
        b'%' => {
            let number = |b: &&u8| b.is_ascii_digit() || **b == b'.' || **b == b' ';
            matches!(line[i + 1..].trim_ascii_start().first(), Some(b'|' | b'['))
                || matches!(
                    line[..i].iter().rev().find(|b| !number(b)),
                    Some(b'|' | b']' | 0x80..)
                )
        }
        _ => is_clock_box(line, i) || is_boxed_count(line, i),
    }) || memchr::memmem::find_iter(line, b" of ").any(|i| {
        i > 0 && line[i - 1].is_ascii_digit() && line.get(i + 4).is_some_and(u8::is_ascii_digit)
    })
}

/// A number on both sides of the slash, and neither part of a path or a date.
fn is_pair(line: &[u8], slash: usize) -> bool {
    let left = line[..slash].trim_ascii_end();
    let right = line[slash + 1..].trim_ascii_start();
    let number =
        |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b',' | b'k' | b'K' | b'M' | b'G');
    let digits = left.iter().rev().take_while(|b| number(b)).count();
    if digits == 0 || !left[left.len() - digits].is_ascii_digit() {
        return false;
    }
    let before = left.len().checked_sub(digits + 1).map(|i| left[i]);
    let digits = right.iter().take_while(|b| number(b)).count();
    let known = digits > 0 && right[0].is_ascii_digit();
    let unknown = right.starts_with(b"?") || right.starts_with(b"Unknown");
    let after = right.get(digits);
    (known || unknown)
        && !matches!(before, Some(b'/' | b'-' | b'.'))
        && !matches!(after, Some(b'/' | b'-'))
}

/// `[12:00:00] [7]` and a tab: a count behind a clock.
fn is_boxed_count(line: &[u8], bracket: usize) -> bool {
    let right = &line[bracket + 1..];
    let digits = right.iter().take_while(|b| b.is_ascii_digit()).count();
    (1..=9).contains(&digits)
        && right.get(digits) == Some(&b']')
        && right.get(digits + 1) == Some(&b'\t')
        && line[..bracket].ends_with(b"] ")
}

/// `[00:12` behind a count.
fn is_clock_box(line: &[u8], bracket: usize) -> bool {
    let left = line[..bracket].trim_ascii_end();
    let counted = left
        .iter()
        .rev()
        .find(|b| !b.is_ascii_alphabetic())
        .is_some_and(u8::is_ascii_digit);
    let right = &line[bracket + 1..];
    counted && right.len() > 5 && right[0].is_ascii_digit() && right[..3].contains(&b':')
}

#[cfg(test)]
mod tests {
    use super::may_matter;

    #[test]
    fn progress_passes() {
        for line in [
            "Epoch 1/5",
            "EPOCH 3 - PROGRESS: at 16.60% examples",
            " 30%|###       | 30/100 [00:01<00:02, 20.1it/s]",
            "147it [00:12, 11.19it/s]",
            "[59]\ttrain-auc:0.98",
            "10:\tlearn: 0.69",
            "   1        0.63     0.55",
            "epoch     train_loss  valid_loss",
            "第 4/6 轮",
            "50/50 [====] - 2s",
            "Training 100% | 10 of 10 | ETA 00:00",
            "12/Unknown - 2s",
            "100 / 1000",
        ] {
            assert!(may_matter(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_flood_does_not() {
        for line in [
            "2026/11/30 12:00:00 worker-0 GET /item/7/63 200 0.040s size=8476 cache 62%",
            "Downloading model.safetensors from https://example.org/a/b/7",
            "INFO 12:00:31 connected to 10.0.0.1:8080",
            "",
            "2026-11-30 12:00:31.123 I tensorflow/core/util/port.cc:153] oneDNN on",
        ] {
            assert!(!may_matter(line.as_bytes()), "{line}");
        }
    }
}
