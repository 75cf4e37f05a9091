//! The JSON body of a ledger entry: everything about a call that nothing is filtered by.
//!
//! What has a column of its own is not repeated here, and fields that are absent are left out, so that the usual
//! entry stays small. Unknown fields are ignored when reading: a later version may add some.

use crate::error::Error;
use crate::row::{CallHead, CalledTool, IdempotencyKey, Outcome, SessionKey, State};
use gantry_core::digest::Digest;
use gantry_core::id::{CallId, SessionId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::sync::Arc;

/// The body of an `intent` (without an outcome) or of a `whole` (with one).
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeadBody<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<CallId>,
    turn: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Cow<'a, str>>,
    door: Cow<'a, str>,
    provider: Cow<'a, str>,
    tool: Cow<'a, str>,
    kind: Cow<'a, str>,
    namespace: Cow<'a, str>,
    effect: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Hex>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments_digest: Option<Hex>,
    arguments: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency: Option<KeyBody<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeBody<'a>>,
}

/// The body of an `outcome` or of a `recovered`, and the end of a `whole`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutcomeBody<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    effect_state: Cow<'a, str>,
    latency_us: u64,
    characters_in: u64,
    characters_out: u64,
    cost_micros: u64,
    finished_us: i64,
    cached: bool,
}

#[derive(Serialize, Deserialize)]
struct KeyBody<'a> {
    key: Cow<'a, str>,
    arguments: Hex,
}

/// The columns that a head is put together with.
pub(crate) struct HeadColumns {
    pub(crate) id: CallId,
    pub(crate) session: SessionId,
    pub(crate) project: Arc<str>,
    pub(crate) principal: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) at: i64,
    pub(crate) state: State,
}

impl<'a> HeadBody<'a> {
    pub(crate) fn new(
        head: &'a CallHead,
        key: Option<&'a IdempotencyKey>,
        outcome: Option<&'a Outcome>,
    ) -> Self {
        Self {
            parent: head.parent,
            turn: head.turn,
            agent: head.caller.agent.as_deref().map(Cow::Borrowed),
            door: Cow::Borrowed(&head.caller.door),
            provider: Cow::Borrowed(&head.tool.provider),
            tool: Cow::Borrowed(&head.tool.tool),
            kind: Cow::Borrowed(&head.tool.kind),
            namespace: Cow::Borrowed(&head.tool.namespace),
            effect: Cow::Borrowed(&head.tool.effect),
            fingerprint: head.tool.fingerprint.map(Hex),
            arguments_digest: head.arguments_digest.map(Hex),
            arguments: Cow::Borrowed(&head.arguments),
            decision: head.decision.as_deref().map(Cow::Borrowed),
            idempotency: key
                .map(|key| KeyBody { key: Cow::Borrowed(&key.key), arguments: Hex(key.arguments) }),
            outcome: outcome.map(OutcomeBody::new),
        }
    }

    /// The parts of a call row that this entry says.
    pub(crate) fn into_parts(
        self,
        columns: HeadColumns,
    ) -> (CallHead, Option<IdempotencyKey>, Option<Outcome>) {
        let outcome = self.outcome.map(|outcome| outcome.into_outcome(columns.state));
        let idempotency = self
            .idempotency
            .map(|key| IdempotencyKey { key: key.key.into_owned(), arguments: key.arguments.0 });
        let head = CallHead {
            id: columns.id,
            session: columns.session,
            parent: self.parent,
            turn: self.turn,
            caller: SessionKey {
                project: columns.project,
                principal: columns.principal,
                agent: self.agent.map(Into::into),
                door: Cow::Owned(self.door.into_owned()),
            },
            tool: CalledTool {
                provider: self.provider.into(),
                tool: self.tool.into(),
                name: columns.name,
                kind: Cow::Owned(self.kind.into_owned()),
                namespace: self.namespace.into(),
                effect: Cow::Owned(self.effect.into_owned()),
                fingerprint: self.fingerprint.map(|digest| digest.0),
            },
            arguments_digest: self.arguments_digest.map(|digest| digest.0),
            arguments: self.arguments.into(),
            decision: self.decision.map(Cow::into_owned),
            started_us: columns.at,
        };
        (head, idempotency, outcome)
    }
}

impl<'a> OutcomeBody<'a> {
    pub(crate) fn new(outcome: &'a Outcome) -> Self {
        Self {
            code: outcome.code.as_deref().map(Cow::Borrowed),
            message: outcome.message.as_deref().map(Cow::Borrowed),
            effect_state: Cow::Borrowed(&outcome.effect_state),
            latency_us: outcome.latency_us,
            characters_in: outcome.characters_in,
            characters_out: outcome.characters_out,
            cost_micros: outcome.cost_micros,
            finished_us: outcome.finished_us,
            cached: outcome.cached,
        }
    }

    pub(crate) fn into_outcome(self, state: State) -> Outcome {
        Outcome {
            state,
            code: self.code.map(|code| Cow::Owned(code.into_owned())),
            message: self.message.map(Cow::into_owned),
            effect_state: Cow::Owned(self.effect_state.into_owned()),
            latency_us: self.latency_us,
            characters_in: self.characters_in,
            characters_out: self.characters_out,
            cost_micros: self.cost_micros,
            finished_us: self.finished_us,
            cached: self.cached,
            result: None,
        }
    }
}

/// The text of a body.
pub(crate) fn encode(body: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(body).map_err(Error::unexpected)
}

/// The body of a text that was read from the entry at `seq`.
pub(crate) fn decode<'a, T: Deserialize<'a>>(text: &'a str, seq: i64) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::corrupt(format!("ledger entry {seq}: {error}")))
}

/// A digest as it stands in JSON: sixty-four hexadecimal digits.
#[derive(Clone, Copy)]
struct Hex(Digest);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let parsed = hex(&text);
        parsed
            .map(|bytes| Self(Digest::from_bytes(bytes)))
            .ok_or_else(|| serde::de::Error::custom("a digest has sixty-four hexadecimal digits"))
    }
}

fn hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != bytes.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let digit = |letter: &u8| char::from(*letter).to_digit(16);
        *byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_its_text() {
        let digest = Digest::of(b"x");
        assert_eq!(hex(&digest.to_string()), Some(*digest.as_bytes()));
        for bad in ["", "0", &digest.short(63), &format!("{digest}00"), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(hex(bad), None, "{bad}");
        }
    }
}
