//! What in a command nobody should read in a record.
//!
//! Owns the names and shapes of secrets. Errs on the side of hiding: a masked tokenizer option
//! is a nuisance, a password in a report isn't. Pure.

mod names;

use self::names::is_secret_name;

pub use crate::model::MASK;

/// Beginnings of well-known tokens, and how many characters follow at least.
const SHAPES: [(&str, usize); 16] = [
    ("hf_", 20),
    ("sk-", 20),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xapp-", 10),
    ("nvapi-", 20),
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
];

/// Addresses whose rest is the secret.
const HOOKS: [&str; 5] = [
    "hooks.slack.com/services/",
    "discord.com/api/webhooks/",
    "open.feishu.cn/open-apis/bot/v2/hook/",
    "open.larksuite.com/open-apis/bot/v2/hook/",
    ".webhook.office.com/",
];

/// Masks one command, argument by argument.
#[derive(Debug, Default)]
pub struct Masker {
    /// The option before this one takes a secret.
    next: bool,
    /// The option before this one takes a shell script (`-c`).
    script: bool,
    /// The option before this one takes `user:password`.
    login: bool,
}

impl Masker {
    /// The next argument, its secrets replaced.
    pub fn mask(&mut self, arg: &str) -> String {
        let script = std::mem::replace(&mut self.script, is_script_option(arg));
        if std::mem::take(&mut self.next) && !arg.starts_with("--") {
            return MASK.to_owned();
        }
        if !script && let Some(masked) = masked_value(arg) {
            return masked;
        }
        let arg = &pairs(arg);
        let mut text = String::with_capacity(arg.len());
        let mut rest = arg.as_str();
        while !rest.is_empty() {
            let end = rest.find(is_delimiter).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            if !word.is_empty() {
                text.push_str(&self.word(word));
                self.next |= word.strip_suffix('=').is_some_and(is_secret_name)
                    && after.starts_with(is_quote);
            }
            let next = after.find(|c| !is_delimiter(c)).unwrap_or(after.len());
            let (between, after) = after.split_at(next);
            text.push_str(between);
            rest = after;
            // A quoted secret ends with its quote and may hold blanks.
            if self.next
                && let Some(quote) = between.chars().last().filter(|c| is_quote(*c))
                && let Some((_, after)) = rest.split_once(quote)
            {
                self.next = false;
                text.push_str(MASK);
                text.push(quote);
                rest = after;
            }
        }
        text
    }

    fn word(&mut self, word: &str) -> String {
        if std::mem::take(&mut self.next) && !word.starts_with("--") {
            return MASK.to_owned();
        }
        let is_login = std::mem::replace(&mut self.login, is_login_option(word));
        if let Some(masked) = is_login.then(|| login(word)).flatten() {
            return masked;
        }
        if let Some((name, value)) = word.split_once('=') {
            self.login = is_login_option(name);
            return if is_secret_name(name) && !value.is_empty() {
                format!("{name}={MASK}")
            } else {
                format!("{}={}", shapes(name), self.word(value))
            };
        }
        self.next =
            word.eq_ignore_ascii_case("bearer") || (word.starts_with('-') && is_secret_name(word));
        shapes(&hook(&address(word)))
    }
}

/// The value of one variable, for the record.
pub fn mask_variable(name: &str, value: &str) -> String {
    if is_secret_name(name) && !value.is_empty() {
        MASK.to_owned()
    } else {
        Masker::default().mask(value)
    }
}

/// One line of output that is quoted.
pub fn mask_line(line: &str) -> String {
    Masker::default().mask(line)
}

/// An argument that is nothing but a name and its secret, which may hold blanks:
/// `--password=a b`, `PASSWORD=a b`, `Authorization: Basic abc`.
fn masked_value(arg: &str) -> Option<String> {
    let at = arg.find(['=', ':'])?;
    let (name, value) = arg.split_at(at);
    let separator = if value.starts_with(": ") { ": " } else { "=" };
    let value = value.strip_prefix(separator)?;
    let whole = is_secret_name(name) && !name.contains(is_no_name) && !value.is_empty();
    whole.then(|| format!("{name}{separator}{MASK}"))
}

fn is_no_name(c: char) -> bool {
    c.is_whitespace() || is_quote(c) || matches!(c, '{' | '[' | '(' | ',')
}

/// `-c`, and its combinations such as `-lc`.
fn is_script_option(arg: &str) -> bool {
    arg.strip_prefix('-').is_some_and(|letters| {
        letters.ends_with('c') && letters.bytes().all(|b| b.is_ascii_lowercase())
    })
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || is_quote(c) || matches!(c, ';' | '&' | '|' | '?' | '(' | ')')
}

fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"')
}

/// The options whose value is a login, `user:password`.
fn is_login_option(arg: &str) -> bool {
    matches!(arg, "-u" | "-U" | "--user" | "--proxy-user" | "--login")
}

/// `user:password`: the password. Two numbers are a user's and a group's id.
fn login(word: &str) -> Option<String> {
    let (user, secret) = word.split_once(':')?;
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let plain = secret.is_empty() || secret.starts_with("//") || user.contains(char::is_whitespace);
    let ids = is_number(user) && is_number(secret);
    (!plain && !ids).then(|| format!("{user}:{MASK}"))
}

/// Names with values behind a colon, as JSON, YAML and headers have them, and what is set by
/// a name in quotes (`environ["KEY"] = "..."`): the values.
fn pairs(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find([':', '=']) {
        let (before, after) = rest.split_at(at);
        let open = masked.contains('{') || before.contains('{');
        let (kept, hidden) = pair(before, after, open).unwrap_or((1, 0));
        masked.push_str(before);
        masked.push_str(after.get(..kept).unwrap_or_default());
        if hidden > 0 {
            masked.push_str(MASK);
        }
        rest = after.get(kept + hidden..).unwrap_or_default();
    }
    masked + rest
}

/// How much of `after` (from its separator on) is kept, and how much then hidden; `open` is
/// within braces.
fn pair(before: &str, after: &str, open: bool) -> Option<(usize, usize)> {
    let (name, is_quoted) = secret_name_before(before)?;
    let value = after.get(1..)?.trim_start_matches([' ', '\t']);
    let kept = after.len() - value.len();
    if let Some(quote) = opening_quote(value) {
        // It ends with a quote like the one that opens it, escaped as often.
        let inside = value.strip_prefix(quote)?;
        let end = inside.find(quote).unwrap_or(inside.len());
        return Some((kept + quote.len(), end));
    }
    if after.starts_with('=') && !is_quoted {
        return None;
    }
    let is_lone = name.eq_ignore_ascii_case("key");
    let is_apart = kept > 1;
    let end = match (is_quoted, is_apart) {
        (true, _) => value.find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']')),
        (false, true) if !is_lone && open => value.find([',', '}', ']', '\n', '"', '\'']),
        (false, true) if !is_lone => value.find(['\n', '"', '\'']),
        (false, false) if open || (!is_lone && name.contains(['-', '_'])) => {
            value.find(|c: char| c.is_whitespace() || is_quote(c) || matches!(c, ',' | '}'))
        }
        _ => return None,
    };
    let end = end.unwrap_or(value.len());
    (end > 0 && !value.starts_with("//")).then_some((kept, end))
}

/// The secret's name that `before` ends with, and whether it stands in quotes.
fn secret_name_before(before: &str) -> Option<(&str, bool)> {
    let written = before.trim_end().trim_end_matches(']');
    let bare = written.trim_end_matches(is_quote).trim_end_matches('\\');
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name = bare.rsplit(|c| !is_part(c)).next()?;
    is_secret_name(name).then_some((name, bare.len() < written.len()))
}

/// The quote that a value begins with, and what escapes it.
fn opening_quote(value: &str) -> Option<&str> {
    let bare = value.trim_start_matches('\\');
    let escapes = value.len() - bare.len();
    bare.starts_with(is_quote)
        .then(|| value.get(..=escapes))
        .flatten()
}

/// `scheme://user:password@host`: the password.
fn address(word: &str) -> String {
    let masked = word.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (login, host) = authority.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}:{MASK}@{host}{path}"))
    });
    masked.unwrap_or_else(|| word.to_owned())
}

/// What follows the address of a web hook.
fn hook(word: &str) -> String {
    let end = HOOKS
        .iter()
        .find_map(|hook| word.find(hook).map(|at| at + hook.len()));
    match end.and_then(|end| word.split_at_checked(end)) {
        Some((known, secret)) if !secret.is_empty() => format!("{known}{MASK}"),
        _ => word.to_owned(),
    }
}

/// Well-known tokens wherever they begin in the word.
fn shapes(word: &str) -> String {
    let mut masked = String::with_capacity(word.len());
    let mut rest = word;
    let mut inside = false;
    while let Some(first) = rest.chars().next() {
        let length = if inside { None } else { token(rest) };
        if length.is_some() {
            masked.push_str(MASK);
        } else {
            masked.push(first);
        }
        inside = first.is_ascii_alphanumeric();
        rest = rest
            .get(length.unwrap_or(first.len_utf8())..)
            .unwrap_or_default();
    }
    masked
}

/// The length of a token that begins here.
fn token(text: &str) -> Option<usize> {
    let (prefix, least) = SHAPES.iter().find(|(prefix, _)| text.starts_with(prefix))?;
    let tail = text.get(prefix.len()..)?;
    let length = tail
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-')
        .unwrap_or(tail.len());
    let tail = tail.get(..length)?;
    // Words joined by hyphens (`sk-learn-...`) are no token: a token has a long random part.
    let random =
        tail.len() >= 40 || *least < 20 || tail.split(['-', '_']).any(|part| part.len() >= 16);
    (length >= *least && random).then_some(prefix.len() + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(command: &[&str]) -> Vec<String> {
        let mut masker = Masker::default();
        command.iter().map(|arg| masker.mask(arg)).collect()
    }

    #[test]
    fn the_values_of_secret_options() {
        for (command, expected) in [
            (
                &["--api-key", "X1", "train.py"][..],
                &["--api-key", "***", "train.py"][..],
            ),
            (&["--token=X1"], &["--token=***"]),
            (&["--hf_token", "-X1"], &["--hf_token", "***"]),
            (&["--password", "a b;c"], &["--password", "***"]),
            (&["--password=a b;c"], &["--password=***"]),
            (&["--password", "--verbose"], &["--password", "--verbose"]),
            (
                &["env", "HF_TOKEN=X1", "python"],
                &["env", "HF_TOKEN=***", "python"],
            ),
            (&["AWS_ACCESS_KEY_ID=X1"], &["AWS_ACCESS_KEY_ID=***"]),
            (&["MY_SECRET="], &["MY_SECRET="]),
            (&["--env=HF_TOKEN=X1"], &["--env=HF_TOKEN=***"]),
            (&["+wandb.api_key=X1"], &["+wandb.api_key=***"]),
            (
                &["-H", "Authorization: Basic X1"],
                &["-H", "Authorization: ***"],
            ),
            (
                &["-H", "accept: x, bearer X1"],
                &["-H", "accept: x, bearer ***"],
            ),
        ] {
            assert_eq!(masked(command), expected);
        }
    }

    #[test]
    fn names_and_values_in_other_writings() {
        for (arg, expected) in [
            (
                r#"{"api_key": "X1 X1", "lr": 1}"#,
                r#"{"api_key": "***", "lr": 1}"#,
            ),
            (r#"{"api_key":"X1","lr":1}"#, r#"{"api_key":"***","lr":1}"#),
            (
                r#"{"pin": 1, "apiKey": 123}"#,
                r#"{"pin": 1, "apiKey": ***}"#,
            ),
            (r#"{\"auth\": \"X1\"}"#, r#"{\"auth\": \"***\"}"#),
            ("{api_key: X1, lr: 1}", "{api_key: ***, lr: 1}"),
            ("X-Api-Key:X1", "X-Api-Key:***"),
            ("a {'h': {'Cookie': 'a=X1'}}", "a {'h': {'Cookie': '***'}}"),
            (
                "os.environ['WANDB_KEY'] = 'X1'",
                "os.environ['WANDB_KEY'] = '***'",
            ),
            (
                "https://h/x?sv=2&sig=X1%2b&se=3",
                "https://h/x?sv=2&sig=***&se=3",
            ),
            (
                "curl -H 'Authorization: Basic X1' h",
                "curl -H 'Authorization: ***' h",
            ),
            ("curl -u li:X1 https://h", "curl -u li:*** https://h"),
            (
                r#"{"tokenizer": "x", "max_tokens": 5}"#,
                r#"{"tokenizer": "x", "max_tokens": 5}"#,
            ),
            ("if key: print('x')", "if key: print('x')"),
            ("a == b: c", "a == b: c"),
        ] {
            assert_eq!(masked(&["sh", "-c", arg])[2], expected);
            assert_eq!(masked(&[arg]), [expected]);
        }
        for (command, expected) in [
            (["-u", "li:X1"], ["-u", "li:***"]),
            (["--user", "li:X1"], ["--user", "li:***"]),
            (["-x", "--user=li:X1"], ["-x", "--user=li:***"]),
            (["-u", "1000:1000"], ["-u", "1000:1000"]),
            (["-u", "train.py"], ["-u", "train.py"]),
            (["--wandb-key", "X1"], ["--wandb-key", "***"]),
            (["--auth", "X1"], ["--auth", "***"]),
            (["-x", "--pwd=X1"], ["-x", "--pwd=***"]),
        ] {
            assert_eq!(masked(&command), expected);
        }
    }

    #[test]
    fn secrets_in_a_script() {
        let script = "export HF_TOKEN='X1 X1'; WANDB_API_KEY=X2 python t.py --token \"X3\" --lr 1";
        let expected =
            "export HF_TOKEN='***'; WANDB_API_KEY=*** python t.py --token \"***\" --lr 1";
        assert_eq!(masked(&["bash", "-c", script])[2], expected);
        let open = masked(&["sh", "-c", "PASSWORD= python t.py --password 'X1"]);
        assert_eq!(open[2], "PASSWORD= python t.py --password '***");
    }

    #[test]
    fn language_models_have_tokens_that_are_no_secret() {
        for arg in [
            "--tokenizer=gpt2",
            "--max-tokens=5",
            "--pad_token=[PAD]",
            "--eos-token=</s>",
            "--token-file=/run/token",
            "--sort-key=value",
            "--key-frames=2",
            "--n-pass=2",
            "--secret-name=x",
        ] {
            assert_eq!(masked(&[arg]), [arg]);
        }
    }

    #[test]
    fn passwords_in_addresses() {
        for (arg, expected) in [
            ("redis://u:pw@host:1/0", "redis://u:***@host:1/0"),
            ("https://host/a@b:c", "https://host/a@b:c"),
            ("git@host:repo", "git@host:repo"),
            ("ssh://git@host/x", "ssh://git@host/x"),
            ("--db=postgres://u:p@h/x", "--db=postgres://u:***@h/x"),
            (
                "https://h/x?a=1&token=X1&b=2",
                "https://h/x?a=1&token=***&b=2",
            ),
            (
                "https://hooks.slack.com/services/T0/B0/x",
                "https://hooks.slack.com/services/***",
            ),
        ] {
            assert_eq!(masked(&[arg]), [expected]);
        }
    }

    #[test]
    fn tokens_by_their_shape() {
        let tail = "AbCdEfGhIjKlMnOpQrStUvWxYz012345";
        for prefix in [
            "hf_",
            "sk-",
            "sk-proj-",
            "ghp_",
            "github_pat_",
            "glpat-",
            "nvapi-",
        ] {
            let arg = format!("--x={prefix}{tail},b");
            assert_eq!(masked(&[&arg]), ["--x=***,b"], "{prefix}");
        }
        assert_eq!(masked(&["AKIAIOSFODNN7EXAMPLE"]), ["***"]);
        for arg in [
            "sk-learn-model-with-a-long-name",
            "hf_short",
            "risk-AbCdEfGhIjKlMnOpQrStUvWxYz012345",
            "9b1c4de0123456789abcdef0123456789abcdef0",
        ] {
            assert_eq!(masked(&[arg]), [arg]);
        }
    }

    #[test]
    fn variables() {
        assert_eq!(mask_variable("HF_TOKEN", "X1"), "***");
        assert_eq!(mask_variable("DB", "pg://u:p@h/x"), "pg://u:***@h/x");
        assert_eq!(mask_variable("PGPASSWORD", "X1"), "***");
        assert_eq!(mask_variable("PWD", "/srv"), "/srv");
        assert_eq!(mask_variable("OMP_NUM_THREADS", "4"), "4");
    }
}
