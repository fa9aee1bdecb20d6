//! The command as the record shows it: bytes escaped losslessly, secrets masked.
//!
//! Owns the escaping. An argument is written as it is unless it isn't UTF-8, or would itself
//! read as an escape: contains `\x` and two lower-case hexadecimal digits. Then its backslashes
//! are doubled and bytes that aren't UTF-8 become `\xHH`; the result contains `\xHH` in both
//! cases, by which it is told apart, so that [`unescape`] gives back every argument exactly.
//! Ordinary backslashes (`C:\data`, `\d+`) stay as they are. Pure.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use super::secrets::Masker;

/// The command for `run.json`: each argument escaped, then its secrets replaced by `***`.
pub fn recorded(argv: &[OsString]) -> Vec<String> {
    let mut masker = Masker::default();
    argv.iter().map(|arg| masker.mask(&escape(arg))).collect()
}

/// Text for these bytes.
pub fn escape(arg: &OsStr) -> String {
    if let Some(text) = arg.to_str()
        && !reads_as_escaped(text.as_bytes())
    {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(arg.len() + 8);
    for chunk in arg.as_bytes().utf8_chunks() {
        escaped.push_str(&chunk.valid().replace('\\', r"\\"));
        for byte in chunk.invalid() {
            escaped.push_str(r"\x");
            escaped.extend(
                [byte >> 4, byte & 15]
                    .into_iter()
                    .filter_map(|digit| char::from_digit(digit.into(), 16)),
            );
        }
    }
    escaped
}

/// The bytes that [`escape`] wrote so.
pub fn unescape(text: &str) -> OsString {
    let bytes = text.as_bytes();
    if !reads_as_escaped(bytes) {
        return OsString::from(text);
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        if let Some(code) = escaped_byte(rest) {
            plain.push(code);
            rest = rest.get(4..).unwrap_or_default();
        } else {
            plain.push(byte);
            // A doubled backslash stands for one.
            let doubled = byte == b'\\' && after.first() == Some(&b'\\');
            rest = after.get(usize::from(doubled)..).unwrap_or_default();
        }
    }
    OsString::from_vec(plain)
}

fn reads_as_escaped(text: &[u8]) -> bool {
    text.windows(4).any(|four| escaped_byte(four).is_some())
}

/// The byte of a `\xHH` at the start.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(br"\x")?.get(..2)?;
    digits.iter().try_fold(0_u8, |byte, digit| match digit {
        b'0'..=b'9' => Some(byte << 4 | (digit - b'0')),
        b'a'..=b'f' => Some(byte << 4 | (digit - b'a' + 10)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(text: &[u8]) -> OsString {
        OsString::from_vec(text.to_vec())
    }

    #[test]
    fn what_people_type_stays_as_it_is() {
        for text in [
            "",
            "train.py",
            "训练.py",
            r"C:\data",
            r"\d+\.\w",
            r"\x",
            r"\xg0",
            "a\nb",
        ] {
            assert_eq!(escape(OsStr::new(text)), text);
            assert_eq!(unescape(text), OsStr::new(text));
        }
    }

    #[test]
    fn other_bytes_are_written_in_hexadecimal() {
        for (arg, text) in [
            (&b"a\xff"[..], r"a\xff"),
            (b"\\\xff", r"\\\xff"),
            (b"\\xff", r"\\xff"),
            (b"\\\\xff", r"\\\\xff"),
            (b"\xe6\x98", r"\xe6\x98"),
        ] {
            assert_eq!(escape(&bytes(arg)), text);
            assert_eq!(unescape(text), bytes(arg));
        }
    }

    #[test]
    fn the_record_hides_secrets_and_escapes_the_rest() {
        let argv: Vec<OsString> = [
            &b"python"[..],
            b"train.py",
            b"--api-key",
            b"s3cr3t",
            b"--data=\xff",
            b"--password=\xfe\xfd",
        ]
        .iter()
        .map(|arg| bytes(arg))
        .collect();
        assert_eq!(
            recorded(&argv),
            [
                "python",
                "train.py",
                "--api-key",
                "***",
                r"--data=\xff",
                "--password=***"
            ]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(arg in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(unescape(&escape(&bytes(&arg))), bytes(&arg));
        }

        #[test]
        fn bytes_full_of_traps_come_back(
            parts in proptest::collection::vec(
                prop_oneof![Just("\\"), Just("x"), Just("ff"), Just("0"), Just("é")],
                0..12
            ),
            raw in proptest::option::of(0x80_u8..),
        ) {
            let mut arg = parts.concat().into_bytes();
            arg.extend(raw);
            prop_assert_eq!(unescape(&escape(&bytes(&arg))), bytes(&arg));
        }
    }
}
