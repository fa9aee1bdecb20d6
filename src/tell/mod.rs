//! Telling people: which alerts, in which words, by which channel.
//!
//! Owns policy (pure), texts and payloads (pure), one file a channel, retries, and what is kept
//! for later. Secrets come in as [`SecretRef`](crate::model::SecretRef), live in types that can't
//! be printed, and stand in no error, event, file or argument. May use `model`; must not know who
//! judges or records.
//!
//! What the caller does:
//!
//! 1. Before the run starts (no thread is made here): [`Channels::open`] with the resolved
//!    settings. An error is one sentence: exit code 125. A nested run
//!    (`GPUWATCH_RUN_ID` is set) passes settings without channels unless told otherwise.
//! 2. After the start: [`Teller::start`] with the run's facts and the [`Edges`]: the run's clock,
//!    where events go (`desk.event(clock.now(), event)`), who runs programs
//!    ([`act::Commands`](crate::act::Commands) with the list of processes that are no part of
//!    the job), and [`Outbox::at_home`], where alerts are kept until they arrive. Without a
//!    channel no thread is started.
//! 3. While it runs, from any thread by [`Teller::inlet`], never waiting: `Happening::Started`;
//!    `Happening::Progress` at every sample; [`Happening::of_event`] for every word of the judge,
//!    `awaits_evidence` where `act` was asked for stacks; `Happening::Evidence` when it answers;
//!    [`Inlet::know`] when more of the run is known (its user, host, GPUs).
//! 4. At the end, after the judge's last word: `Happening::Ended`, then [`Teller::finish`] with
//!    what is left of the 5 s that the end may take. [`Told::problem`] is the summary's sentence.

mod address;
mod alert;
mod alertmanager;
mod channel;
mod chinese;
mod command;
mod cut;
mod desktop;
mod dingtalk;
mod discord;
mod email;
mod errand;
mod failure;
mod feishu;
mod firing;
mod folder;
mod heartbeat;
mod http;
mod keeper;
mod kept;
mod letter;
mod markup;
mod ntfy;
mod outbox;
mod payload;
mod place;
pub mod policy;
mod post;
mod preview;
mod ranks;
#[cfg(test)]
mod samples;
mod secrets;
mod service;
mod slack;
mod speaker;
mod teams;
mod telegram;
mod teller;
mod template;
mod text;
mod texts;
mod turns;
mod webhook;
mod wecom;
mod words;
mod worker;

pub use alert::{About, Alert, Brief, End, Finding, OfRanks, Progress, RankNote, RunFacts, State};
pub use channel::{ChannelError, Channels};
pub use desktop::show_text;
pub use errand::{Tried, flush, test};
pub use outbox::{Kept, Outbox};
pub use policy::Happening;
pub use teller::{Edges, Inlet, Teller, Told};
