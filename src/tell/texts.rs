//! How texts are written: in which language, and by the user's own templates where there are any.
//!
//! Owns the choice between theirs and ours. A template that fails costs its form, never the
//! alert.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::OwnTexts;

use super::cut::{Budget, cut};
use super::letter::Letter;
use super::template::{Shape, Template, context};
use super::text;
use super::words::Tongue;

/// How a letter is written; copies are cheap.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// The language.
    pub tongue: Tongue,
    own: Option<Arc<Own>>,
}

impl PartialEq for Style {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.own, &other.own) {
            (Some(one), Some(another)) => Arc::ptr_eq(one, another),
            (one, another) => one.is_none() && another.is_none(),
        };
        same && self.tongue == other.tongue
    }
}

/// The user's templates.
#[derive(Debug)]
struct Own {
    title: Option<Template>,
    body: Option<Template>,
}

impl From<Tongue> for Style {
    fn from(tongue: Tongue) -> Self {
        Self { tongue, own: None }
    }
}

impl Style {
    /// Reads the templates and tries them on a finding and on an end.
    ///
    /// # Errors
    /// The first that can't be used, as its key and why.
    pub fn new(tongue: Tongue, texts: &OwnTexts) -> Result<Self, (&'static str, String)> {
        let read = |key, source: Option<&String>| {
            let made = source.map(|source| Template::new(source, Shape::Lines));
            made.transpose().map_err(|why| (key, why))
        };
        let own = Own {
            title: read("title", texts.title.as_ref())?,
            body: read("body", texts.body.as_ref())?,
        };
        for letter in [Letter::sample(), Letter::sample_end()] {
            for (key, template) in [("title", &own.title), ("body", &own.body)] {
                let made = template.as_ref().map(|t| made(t, &letter));
                made.transpose().map_err(|why| (key, why))?;
            }
        }
        let any = own.title.is_some() || own.body.is_some();
        Ok(Self {
            tongue,
            own: any.then(|| Arc::new(own)),
        })
    }

    /// One line.
    pub fn title(&self, letter: &Letter) -> String {
        let own = self.own.as_ref().and_then(|own| own.title.as_ref());
        let made = own.and_then(|template| made(template, letter).ok());
        match made.filter(|title| !title.is_empty()) {
            Some(title) => cut(&text::clean(&title), Budget::Chars(text::TITLE)),
            None => text::title(&letter.alert, &letter.run, self.tongue),
        }
    }

    /// Some lines.
    pub fn body(&self, letter: &Letter) -> String {
        let own = self.own.as_ref().and_then(|own| own.body.as_ref());
        let made = own.and_then(|template| made(template, letter).ok());
        match made.filter(|body| !body.is_empty()) {
            Some(body) => body,
            None => text::body(&letter.alert, &letter.run, self.tongue),
        }
    }
}

/// What a template makes of a letter: its texts are ours there.
fn made(template: &Template, letter: &Letter) -> Result<String, String> {
    let mut plain = letter.clone();
    plain.style = letter.style.tongue.into();
    let made = template.render(&context(&plain, Shape::Lines, &BTreeMap::new()))?;
    let lines: Vec<String> = made.trim().lines().map(text::clean).collect();
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn style(title: &str, body: &str) -> Result<Style, (&'static str, String)> {
        let own = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let texts = OwnTexts {
            title: own(title),
            body: own(body),
        };
        Style::new(Tongue::English, &texts)
    }

    fn letter(style: Style) -> Letter {
        Letter::new(samples::stalled(), samples::run(), style)
    }

    #[test]
    fn what_is_written_goes_before_ours() {
        let style = style(
            "{{ data.severity }}! {{ data.run.name }}",
            "{{ lines.headline }}\n{{ lines.stacks }}\n{{ lines.progress }}\n{{ lines.nothing }}",
        );
        let letter = letter(style.unwrap());
        assert_eq!(letter.title(), "critical! train");
        assert_eq!(
            letter.body(),
            "\
critical: stalled for 12m 05s
where it stands:
  42 python: hang (train.py:7)
last progress: epoch 3/10, step 512/1000, 12m 05s ago"
        );
    }

    #[test]
    fn one_may_be_written_and_ours_is_there_to_build_on() {
        let letter = letter(style("", "{{ text }}\nrunbook: https://wiki/x").unwrap());
        assert_eq!(letter.title(), "stalled: train on gpu-01");
        assert!(letter.body().ends_with("+08:00\nrunbook: https://wiki/x"));
    }

    #[test]
    fn what_the_job_says_makes_no_line() {
        let mut letter = letter(style("{{ data.run.name }}", "name: {{ data.run.name }}").unwrap());
        letter.run.name = "a\ncritical: all is lost\x1b[31m".to_owned();
        assert_eq!(letter.body(), "name: a critical: all is lost?[31m");
        assert_eq!(letter.title().lines().count(), 1);
    }

    #[test]
    fn a_wrong_one_is_said_at_once_and_one_that_makes_nothing_loses_nothing() {
        let (key, why) = style("", "one\n{{ data.run.name").unwrap_err();
        assert_eq!(key, "body");
        assert!(why.contains("line 2"), "{why}");
        assert_eq!(style("{{ data | nofilter }}", "").unwrap_err().0, "title");
        let silent = style("{% if false %}x{% endif %}", "").unwrap();
        assert_eq!(letter(silent).title(), "stalled: train on gpu-01");
    }
}
