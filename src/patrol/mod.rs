//! Watching every process that holds a GPU on this machine, and ending none.
//!
//! Owns which of them are one job (`group`, pure), who is left alone (`exempt`, pure), what each
//! look gives the judge, and who is told. Joins observe, judge, act, tell, record and serve as
//! `supervise` does for one run, without a launch. Must not signal anybody.
//!
//! ```text
//! driver ─ tick ─> sight ─> group ─> job, one each ─> judged ─> tellers, record
//!             └──> machine ──────────────────────────┘    ├──> present
//!                                                      └──> metrics, for those who scrape
//! ```

mod driver;
mod exempt;
mod group;
mod job;
mod judged;
mod keep;
mod machine;
mod metrics;
mod present;
mod recording;
mod rounds;
mod sight;
mod tellers;
mod told;
mod unit;
mod watch;

pub use present::{Line, Present, PresentFinding, PresentGpu, PresentJob, Standing};
pub use tellers::DELIVER;
pub use watch::{Request, look_once, watch};
