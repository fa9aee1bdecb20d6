//! What is read beside the output: files that the command names or that the user names.

use std::sync::{Arc, PoisonError};

use crate::model::Pattern;
use crate::read::Patterns;
use crate::record::run_dir::PROGRESS_FILE;

use super::super::follow::Follow;
use super::super::prepare::Prepared;
use super::super::said::SaidFile;
use super::super::threads::spawn;
use super::{Watchers, Watching};

impl Watchers {
    /// What the command says of its progress itself.
    pub(super) fn said(&self) -> Option<SaidFile> {
        let path = self.dir.as_ref()?.join(PROGRESS_FILE);
        let (clock, desk) = (self.clock.clone(), self.desk.clone());
        SaidFile::new(path, self.progress.clone(), clock, desk).ok()
    }

    /// Files beside the output are looked at as long as the run lasts.
    pub(super) fn start_follow(
        &self,
        prepared: &mut Prepared,
        watching: &Watching,
    ) -> std::io::Result<()> {
        let Some(files) = prepared.files.take() else {
            return Ok(());
        };
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.push(files.pid());
        drop(own);
        let follow = Follow {
            paths: prepared.request.settings.follow.clone(),
            files,
            ring: Arc::clone(&watching.ring),
            finish: Arc::clone(&self.bells.finish),
            clock: self.clock.clone(),
            desk: self.desk.clone(),
        };
        watching.ring.expect_asides();
        let started = spawn("follow", move || follow.run());
        if started.is_err() {
            watching.ring.no_more_asides();
        }
        started
    }

    /// Lines of the user's own. A profile's were tried when it was read.
    pub(super) fn compiled(&self, patterns: &[Pattern]) -> Patterns {
        Patterns::new(patterns).unwrap_or_else(|error| {
            self.problem(format!("progress.patterns are not used: {error}"));
            Patterns::default()
        })
    }
}
