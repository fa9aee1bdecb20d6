//! Texts for services that show markup: a bold title, stacks in the type of code.
//!
//! Owns what is marked. What is in the text stays text: it is escaped as the service asks.

/// How a service writes markup.
#[derive(Clone, Copy, Debug)]
pub struct Markup {
    /// Around what is bold.
    pub bold: &'static str,
    /// Text in which nothing is markup.
    pub escape: fn(&str) -> String,
    /// Text inside a block of code.
    pub code: fn(&str) -> String,
}

/// A fence that ends no block by itself.
const FENCE: &str = "```";

impl Markup {
    /// The first line bold, lines that are set in as code, all others as they are. The text is
    /// cut already.
    pub fn of(&self, text: &str) -> String {
        let mut lines = text.split('\n');
        let title = (self.escape)(lines.next().unwrap_or_default());
        let mut out = vec![format!("{0}{title}{0}", self.bold)];
        let mut code: Vec<String> = Vec::new();
        for line in lines {
            if let Some(inner) = line.strip_prefix("  ") {
                code.push((self.code)(inner));
                continue;
            }
            out.extend(block(&mut code));
            out.push((self.escape)(line));
        }
        out.extend(block(&mut code));
        out.join("\n")
    }
}

/// The lines so far as a block of code.
fn block(code: &mut Vec<String>) -> Option<String> {
    if code.is_empty() {
        return None;
    }
    let lines = std::mem::take(code).join("\n");
    Some(format!("{FENCE}\n{lines}\n{FENCE}"))
}

/// What would end a block of code is taken apart.
pub fn inside_code(text: &str) -> String {
    text.replace('`', "\u{2019}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_bold_and_stacks_are_code() {
        let markup = Markup {
            bold: "**",
            escape: |text| text.replace('*', "\\*"),
            code: inside_code,
        };
        let text = "stalled: a*b\ncause: loader\nwhere:\n  f (x.py:1)\n  ```g\nrun: r";
        assert_eq!(
            markup.of(text),
            "**stalled: a\\*b**\ncause: loader\nwhere:\n```\nf (x.py:1)\n\u{2019}\u{2019}\u{2019}g\n```\nrun: r"
        );
        assert_eq!(markup.of("t\n  x"), "**t**\n```\nx\n```");
    }
}
