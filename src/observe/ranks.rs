//! Which rank of a distributed job a process is, by the environment that it was started with.
//!
//! Owns when a process is asked, and that a rank's own children (the workers of its loader), which
//! have the same environment, are none. What the variables are called is the caller's to know.

use super::proc_fs::ProcFs;

/// Finds a rank in an environment: `NAME=value`, each with a NUL at its end.
pub type RankOf = fn(&[u8]) -> Option<u32>;

/// A process that was just forked has its parent's environment until it is another program: the
/// second look counts.
const LOOKS: u8 = 2;

/// What is known of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// What its environment says.
    told: Option<u32>,
    /// Its rank, unless it only has a rank's environment.
    rank: Option<u32>,
    looks: u8,
}

impl Place {
    /// The rank that this process is.
    pub fn rank(&self) -> Option<u32> {
        self.rank
    }

    /// Whether it should be asked (again).
    pub fn is_unsure(&self) -> bool {
        self.looks < LOOKS
    }

    /// Asks process `pid`, a child of one in this place. One that is gone, or somebody else's,
    /// stays what it was.
    pub fn look(&mut self, fs: &mut ProcFs, pid: u32, rank_of: RankOf, parent: Option<Self>) {
        self.looks += 1;
        let environment = fs.read(format_args!("{pid}/environ"));
        // That of a zombie is empty.
        let Some(environment) = environment.ok().filter(|text| !text.is_empty()) else {
            return;
        };
        self.told = rank_of(environment);
        let inherited = parent.and_then(|parent| parent.told);
        self.rank = self.told.filter(|told| inherited != Some(*told));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::FakeProc;
    use super::*;

    fn rank_of(environment: &[u8]) -> Option<u32> {
        let text = std::str::from_utf8(environment).unwrap();
        let value = text.split('\0').find_map(|v| v.strip_prefix("RANK="))?;
        value.parse().ok()
    }

    #[test]
    fn the_topmost_process_with_a_rank_is_it() {
        let fake = FakeProc::new();
        let mut fs = fake.fs();
        fake.file("7/environ", "A=1\0");
        fake.file("8/environ", "A=1\0RANK=3\0");
        fake.file("9/environ", "A=1\0RANK=3\0");
        let [mut launcher, mut rank, mut worker, mut gone] = [Place::default(); 4];
        launcher.look(&mut fs, 7, rank_of, None);
        rank.look(&mut fs, 8, rank_of, Some(launcher));
        worker.look(&mut fs, 9, rank_of, Some(rank));
        gone.look(&mut fs, 10, rank_of, Some(launcher));
        let ranks = [launcher, rank, worker, gone].map(|place| place.rank());
        assert_eq!(ranks, [None, Some(3), None, None]);
    }

    #[test]
    fn a_process_is_looked_at_again_once_it_may_be_another_program() {
        let fake = FakeProc::new();
        let mut fs = fake.fs();
        fake.file("8/environ", "A=1\0");
        let mut rank = Place::default();
        rank.look(&mut fs, 8, rank_of, None);
        assert!(rank.is_unsure() && rank.rank().is_none());
        fake.file("8/environ", "RANK=0\0");
        rank.look(&mut fs, 8, rank_of, None);
        assert!(!rank.is_unsure() && rank.rank() == Some(0));
        fake.file("8/environ", "");
        rank.look(&mut fs, 8, rank_of, None);
        assert_eq!(rank.rank(), Some(0), "what has ended");
    }
}
