//! The name that somebody meant. Pure.

/// The known name nearest to what was written, if one is near enough to be meant.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = written.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|name| {
            let near = strsim::damerau_levenshtein(&lower, &name.replace('-', "_"));
            (near, name)
        })
        .filter(|(distance, name)| *distance <= 1 + name.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `; did you mean 'gpu.util'?`, or nothing.
pub fn suggestion<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(written, known) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_understood_and_a_stranger_is_not() {
        let known = ["stalled", "idle_holding", "gpu.util", "on"];
        assert_eq!(nearest("stallled", known), Some("stalled"));
        assert_eq!(nearest("idle-holdnig", known), Some("idle_holding"));
        assert_eq!(nearest("GPU.util", known), Some("gpu.util"));
        assert_eq!(nearest("temperature", known), None);
        assert_eq!(nearest("", known), None);
    }
}
