//! The two formats, and which of them whoever asks can read.

/// How metrics are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    #[default]
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// For the header of this name.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// What suits whoever sent this `Accept`. OpenMetrics only where it is asked for by name,
    /// and not less than text is.
    pub fn accepted(accept: &str) -> Self {
        let (mut open, mut text) = (0.0_f64, 0.0_f64);
        for range in accept.split(',') {
            let mut parts = range
                .split(';')
                .map(|part| part.trim().to_ascii_lowercase());
            let kind = parts.next().unwrap_or_default();
            let (mut quality, mut version) = (1.0, None);
            for (name, value) in parts.filter_map(|part| {
                let (name, value) = part.split_once('=')?;
                Some((
                    name.trim().to_owned(),
                    value.trim().trim_matches('"').to_owned(),
                ))
            }) {
                match name.as_str() {
                    "q" => quality = value.parse().unwrap_or(0.0),
                    "version" => version = Some(value),
                    _ => {}
                }
            }
            match kind.as_str() {
                "application/openmetrics-text" if version.is_none_or(|v| v == "1.0.0") => {
                    open = open.max(quality);
                }
                "text/plain" => text = text.max(quality),
                _ => {}
            }
        }
        if open > 0.0 && open >= text {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_scraper_gets_what_it_accepts() {
        for (accept, format) in [
            ("", Format::Text),
            ("*/*", Format::Text),
            ("text/plain", Format::Text),
            ("application/openmetrics-text", Format::OpenMetrics),
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text; version=\"1.0.0\"; charset=utf-8",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=2.0.0, text/plain",
                Format::Text,
            ),
            (
                "application/openmetrics-text;q=0.2, text/plain;q=0.9",
                Format::Text,
            ),
            ("application/openmetrics-text;q=0", Format::Text),
            (
                "Application/OpenMetrics-Text;q=1;version=1.0.0",
                Format::OpenMetrics,
            ),
            ("application/openmetrics-text;q=much", Format::Text),
            (",;=,;;q", Format::Text),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }

    proptest! {
        #[test]
        fn any_header_gets_a_format(accept in any::<String>(), kind in "[a-z/;=,q.0-9-]{0,80}") {
            for text in [&accept, &kind] {
                let asked = text.to_ascii_lowercase().contains("application/openmetrics-text");
                prop_assert!(asked || Format::accepted(text) == Format::Text);
            }
        }
    }
}
