//! Sending without a run: trying every channel, and sending what was kept.
//!
//! Owns one round of tries; there is no second one, because a person is waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use tokio::task::LocalSet;

use crate::model::Programs;

use super::alert::RunFacts;
use super::channel::{Channels, Means};
use super::failure::Next;
use super::http::Http;
use super::letter::{Letter, test_alert};
use super::outbox::{Kept, Outbox};

/// What became of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The channel's name.
    pub channel: String,
    /// Its kind.
    pub kind: String,
    /// What was sent: `test`, a finding's name, `run.finished`.
    pub about: String,
    /// Why it did not arrive.
    pub result: Result<(), String>,
}

/// Sends a test through every channel, all at once. `time` is RFC 3339.
///
/// # Errors
/// The system has no means left for it.
pub fn test(
    channels: Channels,
    run: &RunFacts,
    time: &str,
    programs: &Arc<dyn Programs>,
) -> io::Result<Vec<Tried>> {
    let style = channels.style.clone();
    let letter = Letter::new(test_alert(time.to_owned()), run.clone(), style);
    in_runtime(async {
        let http = Rc::new(Http::default());
        let mut tries = Vec::new();
        for (name, means) in channels.means {
            let (http, programs, letter) = (Rc::clone(&http), Arc::clone(programs), letter.clone());
            tries.push(tokio::task::spawn_local(async move {
                let result = means.send(&http, &programs, &letter).await;
                tried(
                    &name,
                    &means,
                    &letter,
                    result.map_err(|failure| failure.why),
                )
            }));
        }
        let mut all = Vec::new();
        for one in tries {
            all.extend(one.await.ok());
        }
        all
    })
}

/// Sends what is kept and nobody has on its way, the oldest first, and removes what arrived. A
/// channel that doesn't answer is tried once. The second list says what stays and wasn't tried,
/// each as one sentence.
///
/// # Errors
/// The outbox can't be used.
pub fn flush(
    mut channels: Channels,
    outbox: &Outbox,
    programs: &Arc<dyn Programs>,
) -> io::Result<(Vec<Tried>, Vec<String>)> {
    let (kept, mut problems) = outbox.list()?;
    if kept.is_empty() {
        return Ok((Vec::new(), problems));
    }
    let means = std::mem::take(&mut channels.means);
    let mut strangers: BTreeMap<String, u32> = BTreeMap::new();
    for (_, kept) in kept {
        if !means.contains_key(&kept.channel) && !outbox.is_on_its_way(&kept) {
            *strangers.entry(kept.channel).or_default() += 1;
        }
    }
    problems.extend(strangers.into_iter().map(|(channel, n)| {
        format!("{n} kept for '{channel}', which is no channel of the settings: name it there, or remove the files")
    }));
    let sender = outbox.sender()?;
    let kept = sender.adopt(|kept| means.contains_key(&kept.channel))?;
    let style = channels.style.clone();
    let tries = in_runtime(async {
        let http = Http::default();
        let mut tries = Vec::new();
        let mut silent = BTreeSet::new();
        for mut kept in kept {
            let Some(means) = means.get(&kept.channel) else {
                continue;
            };
            if silent.contains(&kept.channel) {
                continue;
            }
            kept.letter.style = style.clone();
            let (one, answers) = send_kept(means, &kept, outbox, &http, programs).await;
            if !answers {
                silent.insert(one.channel.clone());
            }
            tries.push(one);
        }
        tries
    })?;
    // What stays is free again.
    drop(sender);
    Ok((tries, problems))
}

/// Sends one kept alert; whether the channel answers at all.
async fn send_kept(
    means: &Means,
    kept: &Kept,
    outbox: &Outbox,
    http: &Http,
    programs: &Arc<dyn Programs>,
) -> (Tried, bool) {
    let sent = means.send(http, programs, &kept.letter).await;
    let answers = !matches!(&sent, Err(failure) if matches!(failure.next, Next::Later(_)));
    let result = match sent {
        Ok(()) if means.is_dry() => Ok(()),
        Ok(()) => outbox
            .forget(kept)
            .map_err(|e| format!("it was sent, and what was kept can't be removed: {e}")),
        Err(failure) => Err(failure.why),
    };
    (tried(&kept.channel, means, &kept.letter, result), answers)
}

fn tried(name: &str, means: &Means, letter: &Letter, result: Result<(), String>) -> Tried {
    Tried {
        channel: name.to_owned(),
        kind: means.kind().to_owned(),
        about: letter.alert.subject().to_owned(),
        result,
    }
}

fn in_runtime<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = LocalSet::new().block_on(&runtime, work);
    runtime.shutdown_background();
    Ok(result)
}
