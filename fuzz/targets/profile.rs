//! Profiles and expressions: a mistake is one error, never a panic; what was understood and
//! printed is understood again. The input's first byte says which of the two it is.
#![no_main]

use gpuwatch::plan::expression::{self, Names, Scope};
use gpuwatch::plan::profile::{self, DEFAULT, Layer, built_in, layer};
use libfuzzer_sys::fuzz_target;

fn yaml(text: &str) {
    let mine = match Layer::parse(text, "fuzzed.yaml") {
        Ok(layer) => layer,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    // Whatever it says.
    let _ = mine.harmless("trust it");
    let default = built_in(DEFAULT).expect("there").expect("right");
    let whole = layer::merge([mine.tree, default.tree]).expect("two are one");
    if let Err(error) = profile::profile(&whole) {
        assert!(!error.to_string().is_empty());
        return;
    }
    let shown = profile::shown(&whole);
    let again = Layer::parse(&shown, "shown").unwrap_or_else(|e| panic!("{e}\n{shown}"));
    assert_eq!(
        profile::shown(&again.tree).lines().count(),
        shown.lines().count()
    );
}

fn condition(text: &str, scope: Scope) {
    let findings = ["low_util".to_owned()];
    let names = Names {
        scope,
        findings: &findings,
    };
    match expression::parse(text, names) {
        Ok(condition) => {
            let printed = expression::text(&condition);
            let again = expression::parse(&printed, names);
            assert_eq!(again.as_ref(), Ok(&condition), "{printed}");
        }
        Err(error) => {
            let marked = error.underlined();
            let (line, marks) = marked.split_once('\n').expect("two lines");
            assert!(
                marks.chars().count() <= line.chars().count() + 1,
                "{marked}"
            );
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, text)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    match kind {
        0 => yaml(&text),
        1 => condition(&text, Scope::Rules),
        _ => condition(&text, Scope::Gates),
    }
});
