//! Addresses of hooks, which are secrets: whoever knows one can write there.
//!
//! Owns their type. Shown, it is scheme and host alone.

use std::fmt;

use reqwest::Url;

use crate::model::{Hidden, SecretRef};

use super::secrets;

/// An address. Shown as `https://host/***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// Reads one.
    ///
    /// # Errors
    /// It isn't an address that begins with `http://` or `https://`, without repeating it.
    pub fn parse(text: &Hidden) -> Result<Self, &'static str> {
        const WRONG: &str = "its url is not an address that begins with http:// or https://";
        let url = Url::parse(text.expose()).map_err(|_| WRONG)?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(Self(url)),
            _ => Err(WRONG),
        }
    }

    /// Reads one from where it is kept.
    ///
    /// # Errors
    /// It can't be had, or is none.
    pub fn read(secret: &SecretRef) -> Result<Self, String> {
        let text = secrets::read(secret).map_err(|e| e.to_string())?;
        Ok(Self::parse(&text)?)
    }

    /// Another one, by itself.
    pub(super) fn at(url: Url) -> Self {
        Self(url)
    }

    /// The address itself: for the request that needs it, never for a message.
    pub(super) fn url(&self) -> &Url {
        &self.0
    }

    /// Whether it goes without TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.0.scheme() == "http"
    }

    /// The same with more in its query.
    #[must_use]
    pub fn with_query(&self, pairs: &[(&str, &str)]) -> Self {
        let mut url = self.0.clone();
        url.query_pairs_mut().extend_pairs(pairs);
        Self(url)
    }

    /// The same with these segments at its path's end.
    #[must_use]
    pub fn below(&self, segments: &[&str]) -> Self {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        Self(url)
    }

    /// What stands before its path's last segment, and that segment; None where it has none.
    pub fn split_last(&self) -> Option<(Self, Hidden)> {
        let last = self.0.path_segments()?.rfind(|s| !s.is_empty())?;
        let last = Hidden::new(last);
        let mut url = self.0.clone();
        url.path_segments_mut().ok()?.pop_if_empty().pop();
        Some((Self(url), last))
    }

    /// Its path.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// Whether it is on this machine: no proxy has to do with it.
    pub(super) fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// Whether somebody else answers there.
    pub(super) fn origin_differs(&self, other: &Self) -> bool {
        self.0.origin() != other.0.origin()
    }
}

/// Whether an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip: Result<std::net::IpAddr, _> = host.parse();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.0.host_str().unwrap_or_default();
        write!(f, "{}://{host}/***", self.0.scheme())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(&Hidden::new(text)).unwrap()
    }

    #[test]
    fn an_address_is_a_secret() {
        let secret = address("https://user:pw@hooks.example.org:8443/services/T0/t0ken?key=k");
        for shown in [format!("{secret}"), format!("{secret:?}")] {
            assert_eq!(shown, "https://hooks.example.org/***");
        }
        for wrong in [
            "",
            "t0ken",
            "ftp://t0ken",
            "https://",
            "http:t0ken@",
            "mailto:t0ken",
        ] {
            if let Err(said) = Address::parse(&Hidden::new(wrong)) {
                assert!(!said.contains("t0ken"));
            } else {
                assert!(wrong.starts_with("http:"), "{wrong}");
            }
        }
    }

    #[test]
    fn loopback_is_here() {
        for here in [
            "http://localhost:1/",
            "http://127.0.0.9/x",
            "http://[::1]:80/",
        ] {
            assert!(address(here).is_loopback(), "{here}");
        }
        assert!(!address("http://127.example.org/").is_loopback());
    }

    #[test]
    fn parts_of_a_path_can_be_taken_and_given() {
        let whole = address("https://example.org/base/t0pic/");
        let (root, topic) = whole.split_last().unwrap();
        assert_eq!((root.path(), topic.expose()), ("/base", "t0pic"));
        assert_eq!(root.below(&["a b", "fail"]).path(), "/base/a%20b/fail");
        assert!(address("https://example.org").split_last().is_none());
        let asked = address("https://example.org/?a=1").with_query(&[("sign", "+/=")]);
        assert_eq!(asked.url().query(), Some("a=1&sign=%2B%2F%3D"));
    }
}
