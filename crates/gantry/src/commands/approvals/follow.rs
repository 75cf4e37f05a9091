//! Waiting with a call that is held or runs, until it is over.

use super::item::{POLL_SECONDS, is_over};
use super::keyboard::Keyboard;
use crate::client::{ApiClient, ApiResponse, encoded};
use crate::term;
use anyhow::Context as _;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// How often the API is asked at most, should it answer at once.
const PACE: Duration = Duration::from_millis(250);

/// Seconds that a request may wait where a new question ends the waiting: the API waits until the call is over.
const GLANCE_SECONDS: u64 = 2;

/// What became of waiting.
pub(in crate::commands) enum Followed {
    /// The call is over, and this was said of it.
    Over(ApiResponse),
    /// A person is asked about it, again.
    Asked,
    /// It was waited for as long as was wanted.
    Late,
    /// The person at the keyboard has seen enough.
    Interrupted,
}

/// For how long to wait.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Until {
    /// No longer than this.
    pub(in crate::commands) time: Option<Instant>,
    /// Also while a person is asked.
    pub(in crate::commands) decided: bool,
}

/// Waits until a call is over that was approved, or is to be, by this approval.
pub(in crate::commands) async fn follow(
    client: &ApiClient,
    (call, approval): (&str, &str),
    until: Until,
    keyboard: &mut Keyboard,
) -> anyhow::Result<Followed> {
    let mut pace = Pace::default();
    loop {
        let left = until.time.map(|time| time.saturating_duration_since(Instant::now()));
        let longest = if until.decided { POLL_SECONDS } else { GLANCE_SECONDS };
        let wait = left.map_or(longest, |left| left.as_secs().saturating_add(1).min(longest));
        let path = format!("/api/v1/calls/{}?wait={wait}", encoded(call));
        let look = async {
            pace.keep().await;
            client.send(http::Method::GET, &path, String::new()).await
        };
        let answer = tokio::select! {
            answer = look => answer.with_context(|| cut_off(approval))?,
            () = keyboard.interrupted() => {
                // What the terminal shows for the keys stays on a line of its own.
                term::eprint("");
                return Ok(Followed::Interrupted);
            }
        };
        if !answer.status.is_success() {
            answer.into_result::<serde_json::Value>()?;
            continue;
        }
        let state = answer.body.get("state").and_then(Value::as_str).unwrap_or_default();
        if is_over(state) {
            return Ok(Followed::Over(answer));
        }
        if state == "PENDING_APPROVAL" && !until.decided {
            return Ok(Followed::Asked);
        }
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Followed::Late);
        }
    }
}

/// What to do when the Gantry is gone that was waited with.
fn cut_off(approval: &str) -> String {
    format!(
        "waiting for the call was cut off; once Gantry runs again, `gantry approvals show {approval}` says how the call \
         stands. Look at that before you repeat it"
    )
}

/// Keeps one who asks again and again from asking without a pause.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<Instant>);

impl Pace {
    /// Returns at once the first time, and later when it is time to ask again.
    pub(super) async fn keep(&mut self) {
        if let Some(last) = self.0 {
            tokio::time::sleep_until(last + PACE).await;
        }
        self.0 = Some(Instant::now());
    }
}
