//! Runs on disk: the run directory, its files, the index, reading them back.
//!
//! Owns the file formats' bytes. Files are the truth: whatever is derived can be rebuilt.
//! Every directory is 0700 and every file 0600 whatever the umask says; nothing is fsynced;
//! whoever reads never writes. Must not know how a sample is made or what it means; may use
//! `model` alone.

pub mod error;
pub mod events;
mod files;
pub mod find;
pub mod findings;
pub mod history;
pub mod id;
pub mod index;
pub mod list;
pub mod load;
pub mod now;
pub mod output_log;
mod python_hook;
pub mod replay;
pub mod root;
pub mod run_dir;
pub mod samples;
pub mod summary;
pub mod tail;
pub mod usage;

pub use error::RecordError;
pub use events::{EventReader, EventWriter};
pub use files::replace;
pub use find::find;
pub use findings::{FindingFold, FindingRecord};
pub use history::history;
pub use id::run_id;
pub use index::IndexEntry;
pub use list::{Listing, list};
pub use load::{Run, load, usage_of};
pub use output_log::OutputLog;
pub use python_hook::{HookFile, hook_at_home, make_hook};
pub use replay::{Recorded, Replay, Sequencer};
pub use root::{root_for_reading, root_for_writing};
pub use run_dir::RunDir;
pub use samples::{SampleReader, SampleWriter, rounded};
pub use summary::SummaryBuilder;
pub use usage::{GpuUsage, Spent, UsageBuilder};
