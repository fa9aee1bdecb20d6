//! The ways together: opened before there is anything to show, then each on a thread of its own.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use super::{Listener, Shelf, Textfile};
use crate::sys::defect::{caught, sentence};

/// Who is told, in a sentence, that something can't go on.
pub type Report = Arc<dyn Fn(String) + Send + Sync>;

/// Ways to those who scrape.
#[derive(Debug, Default)]
pub struct Outlets {
    listener: Option<Listener>,
    textfile: Option<Textfile>,
}

impl Outlets {
    /// Those that are wanted. `id` names the file, and is known to this user's programs alone.
    /// If the directory can't be had now, the sentence about it; it may come later.
    pub fn new(listener: Option<Listener>, dir: Option<&Path>, id: &str) -> (Self, Option<String>) {
        let (textfile, problem) = match dir.map(|dir| Textfile::new(dir, id)) {
            Some((file, problem)) => (Some(file), problem),
            None => (None, None),
        };
        (Self { listener, textfile }, problem)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.listener.is_none() && self.textfile.is_none()
    }

    /// Where it is served.
    pub fn listener(&self) -> Option<&Listener> {
        self.listener.as_ref()
    }

    /// Starts them. From now on what is put on the shelf is shown.
    pub fn start(self, report: &Report) -> Arc<Shelf> {
        let shown = Arc::<Shelf>::default();
        if let Some(file) = self.textfile {
            let (problems, shown) = (Arc::clone(report), Arc::clone(&shown));
            spawn(
                "textfile",
                "metrics are no longer written",
                report,
                move || {
                    file.keep(&shown, &*problems);
                    None
                },
            );
        }
        if let Some(listener) = self.listener {
            let shown = Arc::clone(&shown);
            spawn(
                "metrics",
                "metrics are no longer served",
                report,
                move || {
                    let Err(error) = listener.serve(&shown);
                    Some(format!("metrics are not served: {error}"))
                },
            );
        }
        shown
    }
}

/// Starts a thread whose end, or defect, is said if there is something to say.
fn spawn(
    name: &str,
    lost: &'static str,
    report: &Report,
    body: impl FnOnce() -> Option<String> + Send + 'static,
) {
    let at_its_end = Arc::clone(report);
    let started = thread::Builder::new().name(name.to_owned()).spawn(move || {
        let said = caught(body).unwrap_or_else(|why| Some(sentence(lost, &why)));
        if let Some(text) = said {
            at_its_end(text);
        }
    });
    if let Err(error) = started {
        report(format!("{lost}: no thread to be had: {error}"));
    }
}
