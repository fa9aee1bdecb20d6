//! Messages on the desktop, by the freedesktop notification service.
//!
//! Owns how long it may take: a bus that never answers would hold us for a minute.

use std::path::PathBuf;
use std::time::Duration;

use notify_rust::{Notification, Timeout, Urgency};

use crate::model::Severity;

use super::cut::{Budget, cut};
use super::failure::Failure;
use super::letter::Letter;

/// A message is shown within this time or not at all.
const WITHIN: Duration = Duration::from_secs(1);
/// A notification is a glance.
const MOST: Budget = Budget::Chars(500);

/// Whether there is a session bus to ask.
pub fn has_bus() -> bool {
    if std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some_and(|a| !a.is_empty()) {
        return true;
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.is_some_and(|dir| dir.join("bus").exists())
}

/// Shows one message.
///
/// # Errors
/// It was not shown. There is no second try: it would be late.
pub async fn send(letter: &Letter) -> Result<(), Failure> {
    show(&letter.title(), &letter.body(), letter.alert.severity).await
}

/// Shows a message that is a text already, and waits until it is shown.
///
/// # Errors
/// It was not shown, in words.
pub fn show_text(title: &str, body: &str, severity: Severity) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("it can't be shown: {error}"))?;
    let shown = runtime.block_on(show(title, body, severity));
    runtime.shutdown_background();
    shown.map_err(|failure| failure.why)
}

/// What would be shown, for people.
pub fn preview(letter: &Letter) -> String {
    let body = cut(&letter.body(), MOST);
    format!("SHOW {}\n\n{}", letter.title(), escape(&body))
}

async fn show(title: &str, body: &str, severity: Severity) -> Result<(), Failure> {
    let mut notification = Notification::new();
    notification
        .appname("gpuwatch")
        .summary(title)
        .body(&escape(&cut(body, MOST)))
        .icon("dialog-warning")
        .timeout(Timeout::Default)
        .urgency(match severity {
            Severity::Critical => Urgency::Critical,
            Severity::Warning => Urgency::Normal,
            Severity::Note => Urgency::Low,
        });
    match tokio::time::timeout(WITHIN, notification.show_async()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) => Err(Failure::never(
            "no notification service answers on the session bus",
        )),
        Err(_) => Err(Failure::never(
            "the notification service did not answer within 1 s",
        )),
    }
}

/// The body may hold markup: what looks like it is shown as it is.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
