//! What the webhook is sent: the message and its signature, by the Standard Webhooks scheme.

use crate::clock::iso;
use crate::ledger_view::Approval;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::{State, raw};
use gantry_store::{ApprovalRow, WebhookSent};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

/// Bytes of arguments that are sent along. A receiver that wants more of them reads the approval by its id.
const ARGUMENT_BYTES: usize = 256 * 1024;

/// How a secret begins that is written in base64.
const ENCODED: &str = "whsec_";

#[derive(Debug)]
pub(super) struct Message {
    /// The same however often it is sent, so that a receiver can drop what it gets twice.
    pub(super) id: String,
    pub(super) body: String,
}

impl Message {
    /// The message about this step of an approval; none for a step that webhooks are not sent. `page` is the address of the
    /// page on which a person decides, without the approval's id.
    pub(super) fn about(mut row: ApprovalRow, step: WebhookSent, page: Option<&str>) -> Option<Self> {
        let decided_us = row.decision.as_ref().map(|decision| decision.at_us);
        let at_us = match step {
            WebhookSent::Nothing | WebhookSent::Request => row.created_us,
            WebhookSent::Decision => decided_us.unwrap_or(row.created_us),
            WebhookSent::All => row.ended_us.unwrap_or(row.created_us),
        };
        if step == WebhookSent::Decision {
            // Its call may have begun or ended since. The message says how it stood when it was decided.
            let is_delayed = row.details.delay_ms > 0;
            row.state = if is_delayed { State::ScheduledForExecution } else { State::ApprovedReady };
            (row.ended_us, row.message) = (None, None);
        }
        let (kind, timestamp) = (kind(row.state)?, iso(at_us));
        let (decision_url, page) =
            (format!("/api/v1/approvals/{}/decision", row.id), page.map(|page| format!("{page}{}", row.id)));
        let data = Approval::within(&row, ARGUMENT_BYTES).to_json();
        let data = raw::with(&data, "decisionUrl", &json!(decision_url).to_string());
        let data = raw::with(&data, "page", &json!(page).to_string());
        let body = raw::with(&json!({ "type": kind, "timestamp": timestamp }).to_string(), "data", &data);
        let id = format!("{}_{}", row.id, row.state.as_str().to_ascii_lowercase());
        Some(Self { id, body })
    }

    /// The value of `webhook-signature`, for a message that is sent at this second of Unix time.
    pub(super) fn signature(&self, secret: &str, second: i64) -> Option<String> {
        let encoded = secret.strip_prefix(ENCODED).and_then(|text| STANDARD.decode(text).ok());
        let key = encoded.unwrap_or_else(|| secret.as_bytes().to_vec());
        let mut code: Hmac<Sha256> = Hmac::new_from_slice(&key).ok()?;
        code.update(format!("{}.{second}.{}", self.id, self.body).as_bytes());
        Some(format!("v1,{}", STANDARD.encode(code.finalize().into_bytes())))
    }
}

/// The type of the message that says that an approval stands like this.
fn kind(state: State) -> Option<&'static str> {
    match state {
        State::PendingApproval => Some("approval.requested"),
        State::ApprovedReady | State::ScheduledForExecution | State::RejectedByUser => {
            Some("approval.decided")
        }
        State::RejectedByTimeout => Some("approval.expired"),
        State::CancelledBySystem => Some("approval.canceled"),
        State::CompletedSuccess | State::CompletedFailure | State::OutcomeUnknown => {
            Some("approval.completed")
        }
        State::Executing | State::Refused => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_signed_by_the_standard_scheme() {
        // The example of the specification.
        let message =
            Message { id: "msg_p5jXN8AQM9LWM0D4loKWxJek".into(), body: r#"{"test": 2432232314}"#.into() };
        let signature = message.signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1_614_265_330);
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
        // Any other text is the secret itself, also one that only begins like an encoded one.
        let plain = message.signature("whsec_not base64 at all", 1);
        assert!(plain.is_some() && plain != message.signature("not base64 at all", 1));
        assert_ne!(message.signature("0123456789abcdef", 1), message.signature("0123456789abcdef", 2));
    }

    #[test]
    fn every_state_has_its_word_or_is_not_sent() {
        let words: Vec<_> = State::ALL.iter().map(|state| kind(*state).unwrap_or("-")).collect();
        let words: Vec<_> = words.iter().map(|word| word.trim_start_matches("approval.")).collect();
        assert_eq!(
            words.join(" "),
            "requested decided decided decided expired - completed completed canceled completed -"
        );
    }
}
