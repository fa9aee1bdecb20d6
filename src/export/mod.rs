//! What is watched as metrics that others scrape: Prometheus' text format and OpenMetrics.
//!
//! And what was recorded, for other programs. Owns the names, units and labels of metrics (`table`, the one list of them), what there is to
//! export (`Scrape`) and how it is written. Pure: what is read and when are arguments. Must not
//! know who asks for it, or by which way.

mod board;
mod format;
mod label;
mod record;
mod render;
mod scrape;
mod table;

pub use board::{Board, answers, seconds};
pub use format::Format;
pub use record::{merged, row};
pub use render::render;
pub use scrape::{Gpu, Job, Raised, Scrape, Share, Who};
pub use table::{Kind, METRICS, Metric};
