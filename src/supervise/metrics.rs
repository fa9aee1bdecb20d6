//! What others can scrape of a run: opened before its start, fed by the scribe, closed at its
//! end. Nothing here waits but the end, and that not for long.

use std::sync::Arc;
use std::time::Duration;

use crate::export::{Board, Scrape};
use crate::plan::profile::Metrics;
use crate::report::text::clean;
use crate::serve::{Listener, Outlets, Report, Shelf};
use crate::sys::defect::{caught, sentence};
use crate::sys::fault;

use super::desk::{Desk, Entry};

/// How long the end waits for the file to be taken away.
const REMOVED_WITHIN: Duration = Duration::from_millis(300);

/// The address, where one is wanted. One that isn't free is a note: the second run of a machine,
/// or the second rank of a job, must not fail for it.
pub fn listen(settings: &Metrics, notes: &mut Vec<String>) -> Option<Listener> {
    let bound = Listener::bind(settings.listen?);
    bound.map_err(|why| notes.push(why)).ok()
}

/// Where metrics are, if only we know.
pub fn chosen(outlets: &Outlets, settings: &Metrics) -> Option<String> {
    let any_port = settings.listen.is_some_and(|listen| listen.0.port() == 0);
    let listener = outlets.listener().filter(|_| any_port)?;
    Some(format!("metrics at http://{}/metrics", listener.address()))
}

/// What `--dry-run` says of it.
pub fn planned(settings: &Metrics) -> impl Iterator<Item = String> {
    let file = settings.textfile.as_ref().map(|dir| {
        let dir = clean(&dir.to_string_lossy());
        format!("metrics: a file in {dir}")
    });
    let served = settings
        .listen
        .map(|listen| format!("metrics: served at {listen}"));
    file.into_iter().chain(served)
}

/// Starts what was opened. What can't be had is said; the run goes on.
pub fn start(outlets: Outlets, desk: &Desk) -> (Feed, Closing) {
    let problems = desk.clone();
    let report: Report = Arc::new(move |text| problems.put(Entry::Problem(text)));
    let board = (!outlets.is_empty()).then(Board::default);
    let shelf = outlets.start(&report);
    let closing = Closing(Arc::clone(&shelf));
    (Feed { board, shelf }, closing)
}

/// The scribe's side: what is recorded and judged is shown here, too.
pub struct Feed {
    /// None where nobody scrapes, and after a defect of ours.
    board: Option<Board>,
    shelf: Arc<Shelf>,
}

impl Feed {
    /// Changes what is shown. A defect of ours costs the metrics, not the record: then what to
    /// say of it.
    #[must_use]
    pub fn show(&mut self, change: impl FnOnce(&mut Board)) -> Option<String> {
        let mut board = self.board.take()?;
        let changed = caught(|| {
            fault::at("metrics");
            change(&mut board);
        });
        match changed {
            Ok(()) => {
                self.board = Some(board);
                None
            }
            Err(why) => {
                // What lies there would only grow old.
                self.shelf.put(Scrape::default());
                Some(sentence("there are no more metrics", &why))
            }
        }
    }

    /// Lets those who scrape have it.
    pub fn put(&self) {
        if let Some(board) = &self.board {
            self.shelf.put(board.scrape());
        }
    }
}

/// The end's side.
#[derive(Default)]
pub struct Closing(Arc<Shelf>);

impl Closing {
    /// The run is over: nothing of it may look as if it went on.
    pub fn close(&self) {
        self.0.close(REMOVED_WITHIN);
    }
}
