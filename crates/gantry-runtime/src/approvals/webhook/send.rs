//! Sending one message to a webhook, and what to say when it is not taken.
//!
//! An address may hold a secret in its path, so words about it name the host alone.

use super::message::Message;
use crate::clock;
use crate::options::Webhook;
use gantry_core::id::ApprovalId;
use gantry_egress::{HttpClient, HttpError};
use gantry_store::Store;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, InvalidHeaderValue};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// Messages that are sent to one webhook at once, each about another approval.
const AT_ONCE: usize = 8;

const ANSWER: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read, so that the connection can be used again. What it says is of no interest.
const ANSWER_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Target {
    pub(super) webhook: Webhook,
    client: HttpClient,
    /// A turn for each message that is sent at once.
    pub(super) turns: Semaphore,
}

impl Target {
    pub(super) fn new(webhook: &Webhook) -> Self {
        let (client, turns) = (HttpClient::guarded(&webhook.allow_private), Semaphore::new(AT_ONCE));
        Self { webhook: webhook.clone(), client, turns }
    }

    /// Sends the next message about an approval, once. Returns whether there was one, or why it was not taken. `page` is the
    /// address of the page on which a person decides, without the approval's id.
    pub(super) async fn send(
        &self,
        store: &Store,
        id: ApprovalId,
        page: Option<&str>,
    ) -> Result<bool, String> {
        let row = store.approval(id).await;
        let row = row.map_err(|error| format!("the approval could not be read: {error}"))?;
        let next = row.and_then(|row| row.next_webhook_message().map(|next| (row, next)));
        let Some((row, next)) = next else { return Ok(false) };
        if let Some(message) = Message::about(row, next, page) {
            self.post(message).await?;
        }
        let noted = store.mark_sent(id, next).await;
        noted.map_err(|error| format!("that it was taken could not be recorded: {error}"))?;
        Ok(true)
    }

    async fn post(&self, message: Message) -> Result<(), String> {
        let end = Instant::now() + ANSWER;
        let headers = self.headers(&message)?;
        let sent = self.client.send(http::Method::POST, &self.webhook.url, headers, message.body.into());
        let answer = match timeout_at(end, sent).await {
            Ok(answer) => answer.map_err(|error| describe_error(&error))?,
            Err(_) => return Err(format!("it did not answer within {} s", ANSWER.as_secs())),
        };
        let status = answer.status();
        // The status is what counts, however its text ends.
        timeout_at(end, answer.body(ANSWER_BYTES)).await.ok();
        if status.is_success() { Ok(()) } else { Err(format!("it answered {}", status.as_u16())) }
    }

    fn headers(&self, message: &Message) -> Result<HeaderMap, String> {
        let second = clock::now_us() / 1_000_000;
        let signature =
            message.signature(self.webhook.secret.expose(), second).ok_or("it could not be signed")?;
        let value = |text: String| {
            text.try_into().map_err(|error: InvalidHeaderValue| format!("it cannot be sent: {error}"))
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("webhook-id", value(message.id.clone())?);
        headers.insert("webhook-timestamp", second.into());
        headers.insert("webhook-signature", value(signature)?);
        Ok(headers)
    }
}

/// Why a message was not taken, without the address.
fn describe_error(error: &HttpError) -> String {
    match error {
        HttpError::NotAllowed { found, .. } => format!(
            "it is at {found}, which is not a public address, so it is not contacted. If it is the right one, add \
             \"{found}\" to approvals.webhook.allowPrivate"
        ),
        HttpError::Redirect { .. } => {
            "it points to another address, which is not followed; configure that one if it is right".into()
        }
        HttpError::Connect { reason, .. } => format!("it cannot be connected to: {reason}"),
        HttpError::Broken { reason, .. } => format!("the connection broke: {reason}"),
        HttpError::Request { reason, .. } => format!("it cannot be asked: {reason}"),
        HttpError::TooLarge { .. } => "its answer is too long".into(),
    }
}

pub(super) fn display_host(url: &str) -> &str {
    let host = url.find("://").map_or(0, |place| place + 3);
    let rest = url.get(host..).unwrap_or_default();
    let end = rest.find(['/', '?', '#', '\\']).map_or(url.len(), |length| host + length);
    url.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_about_a_webhook_name_its_host_alone() {
        for (url, expected) in [
            ("https://hooks.example.com/T0/s3cret?x=1", "https://hooks.example.com"),
            ("http://127.0.0.1:9000?s3cret", "http://127.0.0.1:9000"),
            ("https://h.example#s3cret", "https://h.example"),
            ("https://h.example", "https://h.example"),
        ] {
            assert_eq!(display_host(url), expected);
        }
    }
}
