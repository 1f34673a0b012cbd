//! What the service manager (systemd) is told. All of it does nothing outside one, and nothing
//! here may be called on a core: each call writes to a socket and may wait.

use std::time::Duration;

use sd_notify::NotifyState;

/// The service is up.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
}

/// The service is on its way down.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// How long the service manager waits for a sign of life, if it does. Half of it is a good interval
/// for [`keep_alive`].
pub fn watchdog_interval() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// A sign of life.
pub fn keep_alive() {
    tell(&[NotifyState::Watchdog]);
}

/// A line break would start another assignment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager could not be told");
    }
}
