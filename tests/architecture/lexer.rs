//! Just enough of Rust's lexical grammar to look at code without its comments, strings and
//! test modules.

/// A word of code and the line it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// Identifiers, keywords, numbers and punctuation (`::` is one token); comments are gone and
/// a literal is the single token `""`.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut lexer = Lexer {
        rest: source,
        line: 1,
        found: Vec::new(),
    };
    while lexer.step() {}
    lexer.found
}

/// The same without what only a test build compiles: `#[cfg(test)] mod name { .. }`.
pub fn without_test_modules(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some((_, end)) = test_module(tokens, at) {
            at = end;
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The names of modules that live in a file of their own and are declared for tests only.
pub fn test_only_files(tokens: &[Token]) -> Vec<String> {
    (0..tokens.len())
        .filter_map(|at| test_module(tokens, at))
        .filter_map(|(name, end)| (tokens[end - 1].text == ";").then_some(name))
        .collect()
}

/// `#[cfg(test)] mod name { .. }` or `#[cfg(test)] mod name;` at `at`: its name and end.
fn test_module(tokens: &[Token], at: usize) -> Option<(String, usize)> {
    const START: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let is = |at: usize, want: &str| tokens.get(at).is_some_and(|t| t.text == want);
    if !START.iter().enumerate().all(|(i, want)| is(at + i, want)) {
        return None;
    }
    let mut at = at + START.len();
    while is(at, "#") {
        at = matching(tokens, at + 1)? + 1;
    }
    if is(at, "pub") {
        at += 1;
        if is(at, "(") {
            at = matching(tokens, at)? + 1;
        }
    }
    if !is(at, "mod") {
        return None;
    }
    let name = tokens.get(at + 1)?.text.clone();
    let body = at + 2;
    match tokens.get(body)?.text.as_str() {
        ";" => Some((name, body + 1)),
        "{" => Some((name, matching(tokens, body)? + 1)),
        _ => None,
    }
}

/// Where the bracket that opens at `open` is closed.
pub fn matching(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<Token>,
}

impl Lexer<'_> {
    fn step(&mut self) -> bool {
        let Some(c) = self.rest.chars().next() else {
            return false;
        };
        let len = if c.is_whitespace() {
            c.len_utf8()
        } else if self.rest.starts_with("//") {
            self.rest.find('\n').unwrap_or(self.rest.len())
        } else if self.rest.starts_with("/*") {
            block_comment(self.rest)
        } else if let Some(len) = literal(self.rest) {
            self.keep("\"\"");
            len
        } else if let Some(raw) = self.rest.strip_prefix("r#") {
            let len = word(raw);
            let name = raw[..len].to_owned();
            self.keep(&name);
            len + 2
        } else if word(self.rest) > 0 {
            let len = word(self.rest);
            let name = self.rest[..len].to_owned();
            self.keep(&name);
            len
        } else if self.rest.starts_with("::") {
            self.keep("::");
            2
        } else {
            self.keep(&c.to_string());
            c.len_utf8()
        };
        self.line += self.rest[..len].matches('\n').count();
        self.rest = &self.rest[len..];
        true
    }

    fn keep(&mut self, text: &str) {
        self.found.push(Token {
            text: text.to_owned(),
            line: self.line,
        });
    }
}

fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of the string or character literal at the start, if there is one.
fn literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|p| {
        text.strip_prefix(p)
            .is_some_and(|t| t.starts_with(['"', '#', '\'']))
    })?;
    let body = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let inner = body[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = inner.find(&close).map_or(inner.len(), |i| i + close.len());
        return Some(prefix.len() + hashes + 1 + end);
    }
    let quote = body.chars().next()?;
    match quote {
        '"' => Some(prefix.len() + quoted(body, '"')),
        // A lifetime has no closing quote after one character.
        '\'' if body[1..].starts_with('\\') || body[1..].chars().nth(1) == Some('\'') => {
            Some(prefix.len() + quoted(body, '\''))
        }
        _ => None,
    }
}

fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return i + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
