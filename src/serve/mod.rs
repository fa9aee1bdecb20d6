//! Metrics, brought to those who ask: a file for node_exporter, and a small HTTP server.
//!
//! Owns the file, the socket, and the shelf on which the newest numbers lie. Must not know where
//! they come from. What goes wrong here is said once and costs nothing else: whoever puts
//! something on the shelf never waits.

mod listener;
mod outlets;
mod shelf;
mod textfile;

pub use listener::Listener;
pub use outlets::{Outlets, Report};
pub use shelf::Shelf;
pub use textfile::Textfile;
