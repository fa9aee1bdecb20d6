//! Which framework the job uses, looked up seldom: reading what a process has mapped costs more
//! than all else of a tick.

use std::collections::BTreeSet;

use crate::model::Event;
use crate::observe::{Loaded, ProcFs, loaded};

/// When it is looked first, in seconds of the run; then after twice as long, each time.
const FIRST_S: f64 = 1.0;
/// But not more seldom than this.
const SELDOM_S: f64 = 600.0;
/// So many of the job's processes are looked at.
const MOST_LOOKED: usize = 16;

/// What is known so far.
#[derive(Debug)]
pub struct Frameworks {
    main: u32,
    next_s: f64,
    pause_s: f64,
    known: Option<(&'static str, Option<bool>)>,
}

impl Frameworks {
    /// Nothing is known; `main` is the process that is looked at first.
    pub fn new(main: u32) -> Self {
        Self {
            main,
            next_s: FIRST_S,
            pause_s: FIRST_S,
            known: None,
        }
    }

    /// Looks, if it is time; what is new.
    pub fn look(&mut self, fs: &mut ProcFs, job: &BTreeSet<u32>, now_s: f64) -> Option<Event> {
        if now_s < self.next_s {
            return None;
        }
        self.next_s = now_s + self.pause_s;
        self.pause_s = (self.pause_s * 2.0).min(SELDOM_S);
        let main = job.contains(&self.main).then_some(self.main);
        let others = job.iter().copied().filter(|pid| *pid != self.main);
        let found = main
            .into_iter()
            .chain(others)
            .take(MOST_LOOKED)
            .filter_map(|pid| Some((loaded(fs, pid)?, pid)));
        // Of several that say the same the first one counts.
        let best = found.reduce(|best, next| {
            if next.0.weight() > best.0.weight() {
                next
            } else {
                best
            }
        });
        let (found, pid) = best?;
        self.news(found, pid)
    }

    fn news(&mut self, found: Loaded, pid: u32) -> Option<Event> {
        let before = self.known.filter(|(name, _)| *name == found.framework);
        // While it is being loaded its last library is still missing: a build without GPU support
        // is believed when it is seen again.
        let gpu = found.gpu.filter(|gpu| *gpu || before.is_some());
        let now = Some((found.framework, gpu.or(before.and_then(|(_, gpu)| gpu))));
        if now == self.known {
            return None;
        }
        self.known = now;
        let program = found.program.unwrap_or_else(|| "a process".to_owned());
        Some(Event::Framework {
            name: found.framework.to_owned(),
            gpu,
            why: format!("{} in {program} (pid {pid})", found.library),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn torch(gpu: bool) -> Loaded {
        Loaded {
            framework: "pytorch",
            gpu: Some(gpu),
            library: "libtorch_cpu.so".to_owned(),
            program: None,
        }
    }

    fn said(frameworks: &mut Frameworks, gpu: bool) -> Option<String> {
        match frameworks.news(torch(gpu), 1) {
            Some(Event::Framework { gpu, .. }) => Some(format!("{gpu:?}")),
            _ => None,
        }
    }

    #[test]
    fn a_build_without_gpus_is_believed_the_second_time() {
        let mut frameworks = Frameworks::new(1);
        assert_eq!(said(&mut frameworks, false).as_deref(), Some("None"));
        let again = said(&mut frameworks, false);
        assert_eq!(again.as_deref(), Some("Some(false)"));
        assert_eq!(said(&mut frameworks, false), None);
        let mut frameworks = Frameworks::new(1);
        let whole = said(&mut frameworks, true);
        assert_eq!(whole.as_deref(), Some("Some(true)"));
        assert_eq!(said(&mut frameworks, true), None);
    }

    #[test]
    fn it_is_looked_ever_more_seldom() {
        let mut frameworks = Frameworks::new(1);
        let mut fs = ProcFs::at("/nonexistent");
        let mut looks = Vec::new();
        for second in 0..100 {
            let before = frameworks.next_s;
            frameworks.look(&mut fs, &BTreeSet::from([1]), f64::from(second));
            if frameworks.next_s > before {
                looks.push(second);
            }
        }
        assert_eq!(looks, [1, 2, 4, 8, 16, 32, 64]);
    }
}
