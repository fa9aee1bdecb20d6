//! No text is too odd, too large or too deep.

use proptest::prelude::*;

use super::{Layer, MAX_BYTES, profile, shown};

/// What is said about a text, from its first mistake.
fn said(text: &str) -> String {
    let read = Layer::parse(text, "test.yaml").and_then(|layer| profile(&layer.tree));
    match read {
        Ok(_) => panic!("nothing is wrong with {text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn bombs_and_heaps_are_refused() {
    let mut bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for i in 1..12 {
        let before = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb = format!("{bomb}a{i}: &a{i} [{before}]\n");
    }
    assert!(
        said(&bomb).contains("there is too much here"),
        "{}",
        said(&bomb)
    );
    let deep = format!("a: {}{}", "[".repeat(2000), "]".repeat(2000));
    assert!(!said(&deep).is_empty());
    let many = format!("a: [{}]", "1,".repeat(200_000));
    assert!(said(&many).contains("too much"), "{}", said(&many));
    let large = format!("# {}\n", "x".repeat(2 * MAX_BYTES));
    assert!(said(&large).contains("larger than 1 MiB"));
}

/// Pieces of profiles, put together at random.
fn piece() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        Just("judge"),
        Just("stalled"),
        Just("tell"),
        Just("channels"),
        Just("rules"),
        Just("name"),
        Just("when"),
        Just("gpu.util < 20"),
        Just("true"),
        Just("yes"),
        Just("5s"),
        Just("-1"),
        Just("&a"),
        Just("*a"),
        Just("!!str"),
        Just("<<"),
        Just("'"),
        Just("\""),
        Just("|"),
        Just("null"),
        Just("1e999"),
        Just(".nan"),
        Just("["),
        Just("]"),
        Just("{"),
        Just("}"),
        Just("# x"),
        Just("---"),
        Just("%"),
        Just("é"),
    ];
    let ends = prop_oneof![
        Just(": "),
        Just("\n"),
        Just(", "),
        Just("\n  "),
        Just("\n- "),
        Just(" ")
    ];
    (words, ends).prop_map(|(word, end)| format!("{word}{end}"))
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in "\\PC{0,80}") {
        let _ = Layer::parse(&text, "x").and_then(|layer| profile(&layer.tree));
    }

    #[test]
    fn no_heap_of_pieces_is_too_odd(pieces in proptest::collection::vec(piece(), 0..30)) {
        let text = pieces.concat();
        if let Ok(layer) = Layer::parse(&text, "x") {
            let _ = profile(&layer.tree);
            let _ = layer.harmless("");
            // What is shown is YAML again, whatever it was.
            prop_assert!(Layer::parse(&shown(&layer.tree), "y").is_ok(), "{}", shown(&layer.tree));
        }
    }

    #[test]
    fn a_damaged_default_is_read_or_refused(from in 0_usize..6000, length in 0_usize..40, with in "[ -~\\n]{0,6}") {
        let text = super::BUILT_IN[0].2;
        let from = from.min(text.len());
        let to = (from + length).min(text.len());
        if let (Some(before), Some(after)) = (text.get(..from), text.get(to..)) {
            let damaged = format!("{before}{with}{after}");
            let _ = Layer::parse(&damaged, "x").and_then(|layer| profile(&layer.tree)).map_err(|e| e.to_string());
        }
    }
}
