//! `/api/v1/keys`: the keys of the store. A key is shown once, when it is made.

use super::query::{self, Answer, Path, Sender};
use crate::App;
use crate::auth::{RESERVED, mint, now_us};
use crate::error::ApiError;
use crate::model::{Key, KeyState, List, MadeKey, NewKey, NoQuery, Revoked, Timestamp};
use axum::Json;
use axum::body::Body;
use gantry_core::Role;
use gantry_core::id::KeyId;
use gantry_core::pattern::Pattern;
use gantry_runtime::clock;
use gantry_runtime::ledger::{self, KeyRow};
use http::StatusCode;
use std::sync::Arc;

const NAME_CHARS: usize = 64;

/// Entries of a key's lists.
const ENTRIES: usize = 100;

pub(super) async fn list(sender: Sender, _: NoQuery) -> Answer<List<Key>> {
    sender.require_global_admin("looking at the keys")?;
    let keys = sender.store().keys().await?;
    Ok(Json(List::whole(keys.iter().map(Key::from).collect())))
}

pub(super) async fn create(
    sender: Sender,
    _: NoQuery,
    body: Body,
) -> Result<(StatusCode, Json<MadeKey>), ApiError> {
    sender.require_global_admin("making a key")?;
    let new: NewKey = query::read("a key", body).await?;
    let created_us = now_us();
    new.check_name()?;
    new.check_limits()?;
    new.check_places(&sender.app)?;
    let expires_us = new.expiry(created_us)?;
    let (id, secret, text) = mint();
    let NewKey { name, role, projects, agent, tools, .. } = new;
    let (name, revoked_us) = (name.into(), None);
    let row = KeyRow { id, name, secret, role, projects, agent, tools, created_us, expires_us, revoked_us };
    let key = Key::from(&row);
    sender.store().add_key(row).await.map_err(not_made)?;
    sender.app.keys.forget().await;
    Ok((StatusCode::CREATED, Json(MadeKey { key, secret: text })))
}

fn not_made(error: ledger::Error) -> ApiError {
    use ledger::Error::{NameTaken, NameUsed, TooManyKeys};
    let is_conflict = matches!(error, NameTaken { .. } | NameUsed { .. } | TooManyKeys { .. });
    if is_conflict { ApiError::conflict(error.to_string()) } else { error.into() }
}

impl NewKey {
    fn check_name(&self) -> Result<(), ApiError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if self.name.is_empty() || self.name.len() > NAME_CHARS || !self.name.bytes().all(plain) {
            let message = format!("name is 1 to {NAME_CHARS} of the characters A-Z a-z 0-9 . _ -");
            return Err(ApiError::invalid(message));
        }
        if RESERVED.contains(&&*self.name) {
            return Err(ApiError::invalid(format!("the name {} is reserved; choose another", self.name)));
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), ApiError> {
        for (what, list) in [("projects", &self.projects), ("tools", &self.tools)] {
            if list.as_ref().is_some_and(|list| list.is_empty() || list.len() > ENTRIES) {
                return Err(ApiError::invalid(format!(
                    "{what} has 1 to {ENTRIES} entries; leave it out to mean all"
                )));
            }
        }
        if self.agent.is_some() && self.role != Role::Agent {
            return Err(ApiError::invalid("agent is for keys of the role agent"));
        }
        if self.tools.is_some() && self.role != Role::Approver {
            return Err(ApiError::invalid(
                "tools is for keys of the role approver; what an agent may use is configured with the agent",
            ));
        }
        for pattern in self.tools.iter().flatten() {
            Pattern::parse(pattern).map_err(|error| ApiError::invalid(error.to_string()))?;
        }
        Ok(())
    }

    /// Refuses a key for a project or an agent that does not exist, which would go unnoticed.
    fn check_places(&self, app: &App) -> Result<(), ApiError> {
        let known = app.projects.names();
        if let Some(missing) = self.projects.iter().flatten().find(|name| !known.contains(name)) {
            let message = format!("there is no project {missing:?}; configured: {}", known.join(", "));
            return Err(ApiError::invalid(message));
        }
        let Some(agent) = &self.agent else { return Ok(()) };
        let has = |project: &Arc<str>| {
            app.projects.agents(Some(project)).iter().any(|configured| configured.name == *agent)
        };
        let missing = match &self.projects {
            Some(projects) => projects.iter().find(|project| !has(project)).map(|project| &**project),
            None => (!known.iter().any(has)).then_some("any project"),
        };
        match missing {
            None => Ok(()),
            Some(place) => Err(ApiError::invalid(format!("there is no agent {agent:?} in {place}"))),
        }
    }

    fn expiry(&self, now: i64) -> Result<Option<i64>, ApiError> {
        let end = match (&self.expires_at, &self.expires_in) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                Err("expiresAt and expiresIn say the same thing; give one of them".to_owned())
            }
            (Some(at), None) => clock::parse(at)
                .ok_or_else(|| format!("expiresAt is a time such as 2026-12-31T00:00:00Z, not {at:?}")),
            (None, Some(span)) => {
                let span_us = clock::span_us(span).filter(|span| *span > 0);
                span_us
                    .and_then(|span| now.checked_add(span))
                    .ok_or_else(|| format!("expiresIn is a span such as 90m, 12h or 30d, not {span:?}"))
            }
        };
        let end = end.map_err(ApiError::invalid)?;
        if end <= now {
            return Err(ApiError::invalid("a key cannot have expired already; choose a time to come"));
        }
        Ok(Some(end))
    }
}

/// The key may be named by its id, or by its name while it holds.
pub(super) async fn revoke(sender: Sender, Path(named): Path<String>) -> Answer<Revoked> {
    sender.require_global_admin("revoking a key")?;
    let store = sender.store();
    let keys = store.keys().await?;
    let id: Option<KeyId> = named.parse().ok();
    let found = keys.iter().find(|row| match id {
        Some(id) => row.id == id,
        None => *row.name == *named && state(row) == KeyState::Active,
    });
    let row = found.ok_or_else(|| {
        let shown: String = named.chars().take(64).collect();
        ApiError::not_found(format!("there is no key {shown:?}; /api/v1/keys lists them"))
    })?;
    let held = store.revoke_key(row.id, Arc::clone(&sender.principal), now_us()).await?;
    sender.app.keys.forget().await;
    // What is just being held is ended by the approvals worker, which looks again and again.
    sender.app.projects.services().withdraw_ended(&row.name).await?;
    let (id, name) = (row.id.to_string(), Some(Arc::clone(&row.name)));
    Ok(Json(Revoked { id, name, revoked: true, held }))
}

fn state(row: &KeyRow) -> KeyState {
    match (row.revoked_us, row.expires_us) {
        (Some(_), _) => KeyState::Revoked,
        (None, Some(end)) if end <= now_us() => KeyState::Expired,
        (None, _) => KeyState::Active,
    }
}

impl From<&KeyRow> for Key {
    fn from(row: &KeyRow) -> Self {
        Self {
            id: row.id,
            name: Arc::clone(&row.name),
            role: row.role,
            projects: row.projects.clone(),
            agent: row.agent.clone(),
            tools: row.tools.clone(),
            state: state(row),
            created_at: Timestamp(row.created_us),
            expires_at: row.expires_us.map(Timestamp),
            revoked_at: row.revoked_us.map(Timestamp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(json: &str) -> NewKey {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn names_are_plain_and_not_taken() {
        for good in ["anna", "CI.bot-2", "a_b", &"x".repeat(64)] {
            assert!(key(&format!(r#"{{"name":"{good}","role":"agent"}}"#)).check_name().is_ok(), "{good}");
        }
        for bad in ["", "a b", "ä", "a/b", "person", "local", "mcp", &"x".repeat(65)] {
            assert!(key(&format!(r#"{{"name":"{bad}","role":"agent"}}"#)).check_name().is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_without_a_meaning_are_refused() {
        for bad in [
            r#"{"name":"a","role":"approver","agent":"x"}"#,
            r#"{"name":"a","role":"agent","tools":["*"]}"#,
            r#"{"name":"a","role":"admin","tools":["*"]}"#,
            r#"{"name":"a","role":"approver","tools":[]}"#,
            r#"{"name":"a","role":"approver","tools":[""]}"#,
            r#"{"name":"a","role":"agent","projects":[]}"#,
        ] {
            assert!(key(bad).check_limits().is_err(), "{bad}");
        }
        assert!(key(r#"{"name":"a","role":"approver","tools":["db__*"]}"#).check_limits().is_ok());
    }

    #[test]
    fn a_key_expires_in_time_to_come() {
        let expiry = |end: &str| key(&format!(r#"{{"name":"a","role":"agent",{end}}}"#)).expiry(5_000_000);
        assert_eq!(expiry(r#""expiresIn":"2m""#).unwrap(), Some(125_000_000));
        assert_eq!(expiry(r#""expiresAt":"1970-01-01T00:00:06Z""#).unwrap(), Some(6_000_000));
        for bad in [
            r#""expiresIn":"0s""#,
            r#""expiresIn":"1w""#,
            r#""expiresIn":"99999999999999d""#,
            r#""expiresIn":"-1h""#,
            r#""expiresIn":"""#,
            r#""expiresAt":"1970-01-01T00:00:05Z""#,
            r#""expiresAt":"tomorrow""#,
            r#""expiresAt":"1970-01-01T00:00:06Z","expiresIn":"1h""#,
        ] {
            assert!(expiry(bad).is_err(), "{bad}");
        }
    }
}
