//! The only way into the page: markup that is written in our sources, and text, which is escaped.
//!
//! Owns escaping. A string from elsewhere has no other way in: markup is `&'static str`.

use crate::report::text::clean;

/// A page under construction.
#[derive(Debug, Default)]
pub struct Html {
    out: String,
}

impl Html {
    /// Markup of ours.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.out.push_str(markup);
        self
    }

    /// Text, as it stands between tags or between the quotes of an attribute. Control characters
    /// but line breaks and tabs are shown as `?`.
    pub fn text(&mut self, text: &str) -> &mut Self {
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                self.out.push('\n');
            }
            for (n, part) in line.split('\t').enumerate() {
                if n > 0 {
                    self.out.push('\t');
                }
                self.escaped(&clean(part));
            }
        }
        self
    }

    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '"' => self.out.push_str("&quot;"),
                '\'' => self.out.push_str("&#39;"),
                c => self.out.push(c),
            }
        }
    }

    /// An element with text in it.
    pub fn element(&mut self, open: &'static str, text: &str, close: &'static str) -> &mut Self {
        self.raw(open).text(text).raw(close)
    }

    /// The page.
    pub fn finish(self) -> String {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut html = Html::default();
        html.text(text);
        html.finish()
    }

    #[test]
    fn text_is_escaped_and_cleaned() {
        assert_eq!(
            written("<b title=\"x\">&'\u{1b}[31m\u{202e}</b>\n\tok"),
            "&lt;b title=&quot;x&quot;&gt;&amp;&#39;?[31m?&lt;/b&gt;\n\tok"
        );
    }

    proptest! {
        #[test]
        fn no_text_yields_markup(text in any::<String>()) {
            let out = written(&text);
            prop_assert!(!out.contains(['<', '>', '"', '\'']));
            let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            for (at, _) in out.match_indices('&') {
                prop_assert!(known.iter().any(|entity| out[at..].starts_with(entity)));
            }
        }
    }
}
