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
use super::request::{Refused, Request};

/// How long the end waits for the file to be taken away.
const REMOVED_WITHIN: Duration = Duration::from_millis(300);

/// The address, where one is wanted. One that was asked for this run must be free; one of a
/// profile, which several runs may share, or of the run around us is a note where it isn't.
pub fn listen(request: &Request, notes: &mut Vec<String>) -> Result<Option<Listener>, Refused> {
    let settings = &request.settings;
    let Some(address) = settings.metrics.listen else {
        return Ok(None);
    };
    let nested = std::env::var_os("GPUWATCH_RUN_ID").is_some();
    match Listener::bind(address) {
        Ok(listener) => Ok(Some(listener)),
        Err(why) if settings.listen_asked && !nested => Err(Refused::own(why)),
        Err(why) => {
            notes.push(why);
            Ok(None)
        }
    }
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
