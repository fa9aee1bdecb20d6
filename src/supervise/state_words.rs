//! What `state` hears of a run, and what it answers.

use crate::model::{Event, Exit, Outcome, RunState};

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A signal arrived at us.
    Signal {
        /// Its number.
        signal: i32,
        /// Its name, for the record.
        name: String,
        /// Who else got it.
        reach: Reach,
        /// Where it came from, for the record.
        from: String,
        /// What the process that sent it calls itself.
        sender: Option<String>,
        /// Our caller ignored it: it is the child's affair alone.
        ignored: bool,
    },
    /// The child was stopped.
    ChildStopped {
        /// By this signal.
        signal: i32,
        /// We are in the foreground of a terminal: a shell waits for us there.
        foreground: bool,
    },
    /// The child ended.
    ChildEnded(Exit),
    /// The time limit is reached.
    TimeIsUp,
    /// What is to be done to the job because of a finding.
    Ordered(Order),
    /// Whether it ended of something after which it is started again.
    Answered(bool),
    /// The pause before another start is over.
    Rested,
    /// The command was started again; false: it could not be.
    StartedAgain(bool),
    /// The child got a KILL of ours.
    ChildKilled,
    /// The child lives on, and we can't end it.
    Unkillable,
    /// Nobody is left of the job, or nobody whom we could end.
    Cleared,
    /// No relay has anything more to deliver.
    RelaysEnded,
    /// The watchers have written everything.
    WatchersDone,
    /// The watchers took too long.
    Overdue,
}

/// What a profile wants done to the job because of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// What.
    pub deed: Deed,
    /// The finding.
    pub finding: String,
}

/// What is done to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// It gets this signal.
    Signal(&'static str),
    /// It is ended.
    Stop,
    /// It is ended and started again.
    Restart,
}

/// Who has a signal that came to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The child has it as well.
    Child,
    /// We alone.
    UsAlone,
    /// We alone, from a process of the job: meant for the child's parent.
    FromJob,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send this signal to the child.
    Forward(i32),
    /// Copy the terminal's size, which may have changed while nobody was told.
    CopySize,
    /// Copy the terminal's size, then tell the child that it changed: where it has been told,
    /// once more (its handler may have read the old size), but then only if it did change.
    Resize {
        /// It has been told.
        told: bool,
    },
    /// Stop as the child was stopped, so that our shell takes over the terminal.
    Stop(i32),
    /// Write to disk that the run is being cancelled.
    Cancelling,
    /// The child was asked to end: a KILL may have to follow.
    Asked,
    /// The child's time is up: ask it to end.
    TimeOut,
    /// Send the child a signal because of a finding.
    SendFor(Order),
    /// Ask the child to end because of a finding.
    StopFor(Order),
    /// Ask what it ended of.
    AskWhy(Exit),
    /// Let some time pass before another start.
    Rest,
    /// Start the command again.
    StartAgain,
    /// See to what is left of the job.
    Clear(Clear),
    /// Note this in the record.
    Log(Event),
    /// Deliver what the child left in its streams.
    Drain,
    /// Tell the watchers to write their last, and how it ended.
    Finish(End),
    /// Leave.
    Leave(Exit),
}

/// What becomes of what is left of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clear {
    /// It is waited for.
    Wait,
    /// It is ended.
    Kill,
    /// It is ended without more grace.
    Hurry,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The child's own end.
    pub exit: Exit,
    /// The state to be recorded.
    pub state: RunState,
    /// The outcome to be recorded.
    pub outcome: Outcome,
}
