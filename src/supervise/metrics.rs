//! What others can scrape of a run: opened before its start, fed by the scribe, closed at its
//! end. Nothing here waits but the end, and that not for long.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::export::Board;
use crate::plan::profile::Metrics;
use crate::serve::{Listener, Shelf, Textfile};
use crate::sys::defect::{caught, sentence};
use crate::sys::fault;

use super::desk::{Desk, Entry};
use super::request::{Refused, Request};

/// How long the end waits for the file to be taken away.
const REMOVED_WITHIN: Duration = Duration::from_millis(300);

/// Ways to those who scrape.
#[derive(Default)]
pub struct Outlets {
    listener: Option<Listener>,
    textfile: Option<Textfile>,
}

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

impl Outlets {
    /// Those of the run with this id. What can't work is noted.
    pub fn new(
        settings: &Metrics,
        listener: Option<Listener>,
        id: &str,
        notes: &mut Vec<String>,
    ) -> Self {
        let textfile = settings.textfile.as_deref().map(|dir: &Path| {
            let (file, problem) = Textfile::new(dir, id);
            notes.extend(problem);
            file
        });
        Self { listener, textfile }
    }

    /// Where metrics are, if only we know.
    pub fn said(&self, settings: &Metrics) -> Option<String> {
        let chosen = settings.listen.is_some_and(|listen| listen.0.port() == 0);
        let listener = self.listener.as_ref().filter(|_| chosen)?;
        Some(format!("metrics at http://{}/metrics", listener.address()))
    }

    /// Starts them. One that can't be had is said; the run goes on.
    pub fn start(self, desk: &Desk) -> (Feed, Closing) {
        let shelf = Arc::<Shelf>::default();
        let wanted = self.listener.is_some() || self.textfile.is_some();
        let feed = Feed {
            board: wanted.then(Board::default),
            shelf: Arc::clone(&shelf),
        };
        if let Some(file) = self.textfile {
            let (problems, shelf) = (desk.clone(), Arc::clone(&shelf));
            let said = desk.clone();
            let report = move |text| said.put(Entry::Problem(text));
            spawn(
                "textfile",
                "metrics are no longer written",
                problems,
                move || {
                    file.keep(&shelf, &report);
                    None
                },
            );
        }
        if let Some(listener) = self.listener {
            let (problems, shelf) = (desk.clone(), Arc::clone(&shelf));
            spawn(
                "metrics",
                "metrics are no longer served",
                problems,
                move || {
                    let Err(error) = listener.serve(&shelf);
                    Some(format!("metrics are not served: {error}"))
                },
            );
        }
        (feed, Closing(shelf))
    }
}

/// Starts a thread whose end, or defect, is said if there is something to say.
fn spawn(
    name: &str,
    lost: &'static str,
    desk: Desk,
    body: impl FnOnce() -> Option<String> + Send + 'static,
) {
    let problems = desk.clone();
    let started = thread::Builder::new().name(name.to_owned()).spawn(move || {
        let said = caught(body).unwrap_or_else(|why| Some(sentence(lost, &why)));
        if let Some(text) = said {
            problems.put(Entry::Problem(text));
        }
    });
    if let Err(error) = started {
        let text = format!("{lost}: no thread to be had: {error}");
        desk.put(Entry::Problem(text));
    }
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
                self.shelf.put(crate::export::Scrape::default());
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
