//! A service that takes a message as one POST: what each of them has to say for itself.
//!
//! Owns how one is sent to any of them. A service makes the request and knows what an answer
//! means; it does no I/O, so that each can be tried without a network.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use super::failure::{Failure, Next};
use super::http::{self, Address, Http, Post};
use super::letter::Letter;
use super::turns::Rate;

/// One service, ready to send: secrets read, addresses and templates checked.
pub trait Service: Debug + Send + Sync {
    /// What kind it is, as a profile calls it.
    fn kind(&self) -> &'static str;

    /// The request for one message at this time.
    ///
    /// # Errors
    /// The message can't be made.
    fn request(&self, letter: &Letter, now: SystemTime) -> Result<(Address, Post), Failure>;

    /// The same for people to read: what is secret in its body is masked.
    ///
    /// # Errors
    /// The message can't be made.
    fn preview(&self, letter: &Letter, now: SystemTime) -> Result<(Address, Post), Failure> {
        self.request(letter, now)
    }

    /// What the body of an answer with a good status says: some services refuse with 200.
    ///
    /// # Errors
    /// It was refused.
    fn accepted(&self, _answer: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    /// What holds has to be said again so often, or it counts as over.
    fn again(&self) -> Option<Duration> {
        None
    }

    /// How many messages it takes.
    fn rate(&self) -> Option<Rate> {
        None
    }

    /// Whether what can't be sent now isn't worth sending later.
    fn is_fleeting(&self) -> bool {
        false
    }

    /// How long the body of a refusal wants us to wait, where it is said there.
    fn wait(&self, _answer: &[u8]) -> Option<Duration> {
        None
    }
}

/// Sends one message, once.
///
/// # Errors
/// It did not arrive, as far as can be told.
pub async fn send(service: &dyn Service, http: &Http, letter: &Letter) -> Result<(), Failure> {
    let (address, post) = service.request(letter, SystemTime::now())?;
    let answer = http.post(&address, &post).await?;
    match http::judge(&address, &answer) {
        Ok(()) => service.accepted(&answer.body).map_err(|refused| {
            if answer.is_whole {
                return refused;
            }
            // Whether it was accepted stands in what did not come.
            Failure::later(format!("{address} did not answer to the end"))
        }),
        Err(failure) => Err(match (failure.next, service.wait(&answer.body)) {
            // A header goes before what the body says.
            (Next::Later(None), Some(wait)) => failure.not_before(wait.min(http::LONGEST_WAIT)),
            _ => failure,
        }),
    }
}

/// Seconds since 1970.
pub fn unix(now: SystemTime) -> Duration {
    now.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// A number of seconds in an answer, as a wait.
pub fn seconds(value: Option<&serde_json::Value>) -> Option<Duration> {
    let seconds = value?.as_f64()?;
    (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(1e6)))
}

/// A refusal that a service sends as a number in a good answer.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The number.
    pub code: i64,
    /// What it means.
    pub means: &'static str,
    /// After how long it may pass; None: never.
    pub later: Option<Duration>,
}

/// Another try makes sense after this.
pub const SOON: Option<Duration> = Some(Duration::from_secs(5));

/// What a good answer with one of these keys says: 0 is success.
///
/// # Errors
/// It was refused, or whoever answered is no such service.
pub fn by_code(
    service: &str,
    answer: &[u8],
    keys: &[&str],
    refusals: &[Refusal],
) -> Result<(), Failure> {
    let answer: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
    let code = keys.iter().find_map(|key| answer.get(key)?.as_i64());
    let Some(code) = code else {
        return Err(Failure::never(format!(
            "it did not answer as a bot of {service} does: check its address"
        )));
    };
    if code == 0 {
        return Ok(());
    }
    let said = format!("{service} refused with code {code}");
    match refusals.iter().find(|refusal| refusal.code == code) {
        None => Err(Failure::never(said)),
        Some(refusal) => {
            let why = format!("{said}: {}", refusal.means);
            Err(match refusal.later {
                Some(wait) => Failure::later(why).not_before(wait),
                None => Failure::never(why),
            })
        }
    }
}
