//! Where metrics are served: an address that is this machine's own unless another is written.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::fmt;
use std::str::FromStr;

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "write a port like 9400, or an address like 127.0.0.1:9400";
        let plain = text.trim();
        let port = plain.strip_prefix(':').unwrap_or(plain);
        let port = port.strip_prefix("localhost:").unwrap_or(port);
        if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) {
            let port = port
                .parse()
                .map_err(|_| format!("'{text}' is out of range: the highest port is 65535"))?;
            return Ok(Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        if plain.parse::<IpAddr>().is_ok() {
            return Err(format!("'{text}' has no port: {FORMS}"));
        }
        plain
            .parse()
            .map(Self)
            .map_err(|_| format!("'{text}' is no address to listen at: {FORMS}"))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Listen;

    #[test]
    fn a_bare_port_is_this_machines_own() {
        for (text, address) in [
            ("9400", "127.0.0.1:9400"),
            (":9400", "127.0.0.1:9400"),
            (" localhost:9400 ", "127.0.0.1:9400"),
            ("0", "127.0.0.1:0"),
            ("127.0.0.2:9400", "127.0.0.2:9400"),
            ("[::1]:9400", "[::1]:9400"),
            ("0.0.0.0:9400", "0.0.0.0:9400"),
        ] {
            let read = text.parse().map(|listen: Listen| listen.to_string());
            assert_eq!(read.as_deref(), Ok(address), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_says_how_one_is_written() {
        for (text, said) in [
            ("", "like 9400"),
            (":", "like 9400"),
            ("65536", "65535"),
            ("99999999999999999999", "65535"),
            ("-1", "like 9400"),
            ("127.0.0.1", "no port"),
            ("::1", "no port"),
            ("gpu-box:9400", "127.0.0.1:9400"),
            ("http://127.0.0.1:9400", "127.0.0.1:9400"),
            ("127.0.0.1:9400/metrics", "127.0.0.1:9400"),
        ] {
            let error = text.parse::<Listen>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
