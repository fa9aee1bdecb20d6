//! Which names are those of secrets. Pure.

/// Last words of names whose values are secret.
const SECRET: [&str; 27] = [
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "userpass",
    "dbpass",
    "pwd",
    "secret",
    "secrets",
    "apikey",
    "secretkey",
    "credential",
    "credentials",
    "cred",
    "creds",
    "authorization",
    "bearer",
    "cookies",
    "jwt",
    "pat",
    "sk",
    "sas",
    "sig",
    "signature",
    "apikeys",
    "authtoken",
];

/// Ends of a last word that make it secret (`PGPASSWORD`, `myapikey`).
const SECRET_ENDS: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
    "authkey",
    "sshkey",
    "accesstoken",
    "apitoken",
];

/// Words that end in `pass` and hide nothing (`MYPASS` does).
const OTHER_PASS: [&str; 15] = [
    "compass",
    "encompass",
    "bypass",
    "trespass",
    "surpass",
    "overpass",
    "underpass",
    "lowpass",
    "highpass",
    "bandpass",
    "allpass",
    "multipass",
    "singlepass",
    "onepass",
    "twopass",
];

/// Pairs that make a name secret wherever they stand in it (`AWS_ACCESS_KEY_ID`).
const SECRET_PAIRS: [[&str; 2]; 14] = [
    ["api", "key"],
    ["api", "keys"],
    ["api", "tokens"],
    ["access", "key"],
    ["access", "tokens"],
    ["auth", "tokens"],
    ["secret", "key"],
    ["private", "key"],
    ["account", "key"],
    ["auth", "key"],
    ["encryption", "key"],
    ["signing", "key"],
    ["db", "pass"],
    ["user", "pass"],
];

/// A name that ends so tells where a secret is, not what it is.
const PLACES: [&str; 8] = ["file", "path", "dir", "name", "env", "var", "len", "size"];

/// `..._token` is a secret, except where it is a token of a language model.
const MODEL_TOKENS: [&str; 35] = [
    "add", "audio", "begin", "blank", "bos", "by", "class", "cls", "decoder", "end", "eos",
    "first", "forced", "image", "last", "mask", "max", "memory", "min", "new", "next", "no", "num",
    "pad", "per", "prompt", "register", "sep", "skip", "special", "start", "stop", "think", "unk",
    "video",
];

/// `..._key` is a secret, except where it names a column or a place in a table.
const TABLE_KEYS: [&str; 57] = [
    "action",
    "answer",
    "attention",
    "audio",
    "batch",
    "by",
    "cache",
    "caption",
    "checkpoint",
    "class",
    "column",
    "config",
    "data",
    "dataset",
    "dict",
    "eval",
    "feature",
    "features",
    "foreign",
    "group",
    "hot",
    "id",
    "image",
    "index",
    "input",
    "inputs",
    "json",
    "kv",
    "label",
    "labels",
    "loss",
    "mask",
    "metric",
    "model",
    "monitor",
    "name",
    "obs",
    "output",
    "partition",
    "primary",
    "prompt",
    "public",
    "query",
    "reward",
    "routing",
    "score",
    "sort",
    "split",
    "state",
    "target",
    "text",
    "time",
    "train",
    "unique",
    "val",
    "value",
    "video",
];

/// `..._pass`, `..._auth` and `..._cookie` are secrets, except after a word that counts or
/// switches (`n-pass`, `no-auth`).
const COUNTED: [&str; 28] = [
    "n", "num", "per", "max", "min", "first", "second", "last", "single", "one", "two", "multi",
    "forward", "backward", "full", "low", "high", "band", "no", "use", "with", "without", "enable",
    "disable", "require", "skip", "ask", "need",
];

/// Whether what has this name is to be hidden.
pub fn is_secret_name(name: &str) -> bool {
    // Where the shell is and was.
    if matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    let words = words(name);
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    let last = last.as_str();
    if PLACES.contains(&last) {
        return false;
    }
    let paired = words
        .windows(2)
        .any(|pair| SECRET_PAIRS.iter().any(|secret| pair == secret));
    let kind = before.last().map(String::as_str);
    let after_none_of = |kinds: &[&str]| !kind.is_some_and(|kind| kinds.contains(&kind));
    let by_kind = match last {
        "token" => after_none_of(&MODEL_TOKENS),
        "key" => after_none_of(&TABLE_KEYS),
        "auth" | "cookie" | "pass" => after_none_of(&COUNTED),
        word => word.ends_with("pass") && !OTHER_PASS.contains(&word),
    };
    paired || by_kind || SECRET.contains(&last) || SECRET_ENDS.iter().any(|end| last.ends_with(end))
}

/// A name's words in lower case: `WANDB_API_KEY`, `--wandb-api-key`, `wandbApiKey`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut low = false;
    for c in name.chars() {
        if matches!(c, '-' | '_' | '.' | '/' | '+') || (low && c.is_ascii_uppercase()) {
            words.push(String::new());
        }
        low = c.is_ascii_lowercase();
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in [
            "PGPASSWORD",
            "MYSQL_PWD",
            "OPENAI_KEY",
            "WANDB_KEY",
            "SSH_KEY",
            "GH_PAT",
            "STRIPE_SK",
            "AUTH",
            "COOKIE",
            "CREDS",
            "MYPASS",
            "KEY",
            "--wandb-key",
            "--pwd",
            "--auth",
            "apiKey",
            "accessToken",
            "clientSecret",
            "X-Amz-Signature",
            "sig",
            "use_auth_token",
            "API_KEYS",
            "SMTP_PASS",
            "AWS_ACCESS_KEY_ID",
            "HF_TOKEN",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn names_like_those_of_secrets() {
        for name in [
            "MONKEY",
            "KEYBOARD",
            "PATH",
            "AUTHOR",
            "--tokenizer",
            "--max-tokens",
            "--key-frames",
            "--sort-key",
            "--image_key",
            "num_key_value_heads",
            "--n-pass",
            "--bypass",
            "compass",
            "PWD",
            "OLDPWD",
            "--no-auth",
            "SSH_AUTH_SOCK",
            "XAUTHORITY",
            "--pattern",
            "--patience",
            "--sigma",
            "task",
            "--pad-token",
            "--key-file",
            "--keys",
            "maxTokens",
            "--skip",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
