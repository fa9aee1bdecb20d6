//! The runner of a pipeline that we run in, as it shows itself in the environment.
//!
//! Owns what is handed to it: annotations among the last words, and the step's summary.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use crate::model::RunRecord;
use crate::record::FindingRecord;
use crate::report::github;
use crate::report::text::clean;

/// GitHub's runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// Where the step's summary goes.
    pub summary: Option<PathBuf>,
}

impl Runner {
    /// As the environment says it. Inside another run there is none: the outer one speaks.
    pub fn of_environment() -> Option<Self> {
        let is_github = std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
        let nested = std::env::var_os("GPUWATCH_RUN_ID").is_some();
        let summary = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
        (is_github && !nested).then(|| Self {
            summary: summary.map(PathBuf::from),
        })
    }

    /// The summary as it may stand in the runner's log, and annotations below it.
    pub fn words(summary: &str, record: &RunRecord, findings: &[FindingRecord]) -> String {
        let lines = github::annotations(record, findings);
        let lines = lines
            .iter()
            .fold(String::new(), |all, line| all + line + "\n");
        github::plain(summary) + &lines
    }

    /// Adds to the step's summary; the reason where that can't be done.
    pub fn hand_over(
        &self,
        record: &RunRecord,
        findings: &[FindingRecord],
        tail: &str,
    ) -> Result<(), String> {
        let Some(path) = &self.summary else {
            return Ok(());
        };
        let page = github::step_summary(record, findings, tail);
        // A pipe that nobody reads would hold us up.
        let open = OpenOptions::new()
            .append(true)
            .create(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path);
        open.and_then(|mut file| file.write_all(page.as_bytes()))
            .map_err(|error| {
                let path = clean(&path.to_string_lossy());
                format!("the step's summary {path} can't be written: {error}")
            })
    }
}
