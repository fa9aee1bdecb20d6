//! Every rule on synthetic runs: raised, cleared, and not raised where it looks alike.

mod arbitrary;
mod growth;
mod heat;
mod others;
mod patrol;
pub(in crate::judge) mod run;
mod slow;
mod stalls;
mod steady;
mod uneven;
mod verdicts;
