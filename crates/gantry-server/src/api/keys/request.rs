//! Checks a request for a new key.

use crate::App;
use crate::auth::{RESERVED, now_us};
use crate::error::ApiError;
use crate::model::NewKey;
use gantry_core::Role;
use gantry_core::digest::Digest;
use gantry_core::id::KeyId;
use gantry_core::pattern::Pattern;
use gantry_runtime::clock;
use gantry_runtime::ledger::KeyRow;
use std::sync::Arc;

/// Characters of a key's name.
const NAME_CHARS: usize = 64;

/// Entries of a key's lists.
const ENTRIES: usize = 100;

/// The row of the store, if the key makes sense.
pub(super) fn row(new: NewKey, app: &App, id: KeyId, secret: Digest) -> Result<KeyRow, ApiError> {
    let created_us = now_us();
    new.check_name()?;
    new.check_limits()?;
    new.check_places(app)?;
    let expires_us = new.expiry(created_us)?;
    let NewKey { name, role, projects, agent, tools, .. } = new;
    Ok(KeyRow {
        id,
        name: name.into(),
        secret,
        role,
        projects,
        agent,
        tools,
        created_us,
        expires_us,
        revoked_us: None,
    })
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
                return Err(ApiError::invalid(
                    "expiresAt and expiresIn say the same thing; give one of them",
                ));
            }
            (Some(at), None) => clock::parse(at).ok_or_else(|| {
                ApiError::invalid(format!("expiresAt is a time such as 2026-12-31T00:00:00Z, not {at:?}"))
            })?,
            (None, Some(span)) => ahead(span, now).ok_or_else(|| {
                ApiError::invalid(format!("expiresIn is a span such as 90m, 12h or 30d, not {span:?}"))
            })?,
        };
        if end <= now {
            return Err(ApiError::invalid("a key cannot have expired already; choose a time to come"));
        }
        Ok(Some(end))
    }
}

/// The moment that is this span ahead.
fn ahead(span: &str, now: i64) -> Option<i64> {
    now.checked_add(clock::span_us(span).filter(|span| *span > 0)?)
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
