//! Credentials. Of a key the store has only a digest.

use crate::error::Error;
use crate::options::KEYS_MAX;
use crate::sql::{Connection, Record as _, names, placeholders, record, single, statements, values};
use crate::{Store, grants, sessions};
use gantry_core::Role;
use gantry_core::digest::Digest;
use gantry_core::id::KeyId;
use std::sync::Arc;

/// The columns of a row, in the order in which they are written and read.
macro_rules! columns {
    ($as:ident) => {
        $as!(id, name, secret, role, projects, agent, tools, created_us, expires_us, revoked_us)
    };
}

statements! {
    COUNT = "SELECT count(*) FROM keys WHERE revoked_us IS NULL AND coalesce(expires_us > $1, true)";
    INSERT = concat!("INSERT INTO keys (", columns!(names), ") VALUES (", columns!(placeholders),
        ") ON CONFLICT (id) DO NOTHING");
    ALL = concat!("SELECT ", columns!(names), " FROM keys ORDER BY id DESC");
    /// A valid one comes before those that are not, then the newest.
    OF_NAME = "SELECT revoked_us IS NOT NULL, expires_us,
         revoked_us IS NULL AND coalesce(expires_us > $1, true) AS valid
         FROM keys WHERE name = $2 ORDER BY valid DESC, id DESC LIMIT 1";
    UNREVOKED = "SELECT name, coalesce(expires_us > $1, true) FROM keys WHERE id = $2 AND revoked_us IS NULL";
    REVOKE = "UPDATE keys SET revoked_us = $1 WHERE id = $2 AND revoked_us IS NULL";
    EXPIRED = "SELECT id, name FROM keys
         WHERE revocation_applied = 0 AND revoked_us IS NULL AND expires_us <= $1 ORDER BY expires_us LIMIT $2";
    APPLIED = "UPDATE keys SET revocation_applied = 1 WHERE id = $1";
    CALLERS_WITHOUT_KEY = "SELECT DISTINCT name FROM keys
         WHERE NOT EXISTS (SELECT 1 FROM keys other WHERE other.name = keys.name
             AND other.revoked_us IS NULL AND coalesce(other.expires_us > $1, true))
         AND EXISTS (SELECT 1 FROM approvals WHERE principal = keys.name
             AND state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY')) ORDER BY name LIMIT $2";
    /// A key whose name has calls that wait stays, because it says that they may not run.
    PRUNE = "DELETE FROM keys WHERE (revoked_us < $1 OR (expires_us < $1 AND revocation_applied = 1))
         AND NOT EXISTS (SELECT 1 FROM approvals WHERE principal = keys.name
             AND state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY'))";
}

/// A credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub id: KeyId,
    pub name: Arc<str>,
    pub secret: Digest,
    pub role: Role,
    /// The projects that it is for; none means all.
    pub projects: Option<Vec<Arc<str>>>,
    /// The agent as which it acts, always.
    pub agent: Option<Arc<str>>,
    /// The tools that its approvals may be about, as patterns; none means all.
    pub tools: Option<Vec<Arc<str>>>,
    /// When it was made, in microseconds of Unix time.
    pub created_us: i64,
    pub expires_us: Option<i64>,
    pub revoked_us: Option<i64>,
}

record!(KeyRow: id, name, secret, role, projects, agent, tools, created_us, expires_us, revoked_us);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStatus {
    NoKey,
    /// A key of that name is valid, until then if it expires.
    Valid {
        until_us: Option<i64>,
    },
    Expired,
    Revoked,
}

impl KeyStatus {
    /// When a grant to or by the name ends by itself, if it was given at that moment.
    pub(crate) fn until_us(self, now_us: i64) -> Option<i64> {
        match self {
            Self::NoKey => None,
            Self::Valid { until_us } => until_us,
            Self::Expired | Self::Revoked => Some(now_us),
        }
    }
}

impl Store {
    /// Keeps a credential; durable when it returns. Grants to and by an earlier key of the name end with that.
    ///
    /// # Errors
    /// `TooManyKeys`, `NameTaken` if another valid key has the name, `NameUsed` if another key has called under it, or the
    /// store cannot be written.
    pub async fn add_key(&self, key: KeyRow) -> Result<(), Error> {
        self.change(move |conn| add(conn, &key)).await
    }

    /// All credentials, also those that were revoked or expired within the last thirty days, the newest first.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, Error> {
        self.read_committed(|conn| conn.all(ALL, &[], KeyRow::read)).await
    }

    pub async fn key_status(&self, name: Arc<str>, now_us: i64) -> Result<KeyStatus, Error> {
        self.read_committed(move |conn| status(conn, &name, now_us)).await
    }

    /// Revokes a credential; durable when it returns. Unless another key of the name is valid, the grants that were given
    /// to its callers or by them are revoked with it, and their sessions end. Returns whether it was valid until now.
    pub async fn revoke_key(&self, id: KeyId, by: Arc<str>, at_us: i64) -> Result<bool, Error> {
        self.change(move |conn| revoke(conn, id, &by, at_us)).await
    }

    /// Ends the grants and sessions of keys that expired before that moment, of at most so many keys; durable when it
    /// returns. Returns how many keys there were. Those grants did not hold any more before; this is for lists of them.
    pub async fn expire_keys(&self, now_us: i64, limit: u32) -> Result<usize, Error> {
        // Nearly always there is none, and then nothing is written.
        let expired: Vec<(KeyId, String)> = self
            .read_committed(move |conn| {
                conn.all(EXPIRED, values![now_us, limit], |row| Ok((row.take()?, row.take()?)))
            })
            .await?;
        if expired.is_empty() {
            return Ok(0);
        }
        self.change(move |conn| {
            for (id, name) in &expired {
                revoke_unused_name(conn, name, "the end of a key", now_us)?;
                conn.execute(APPLIED, values![id])?;
            }
            Ok(expired.len())
        })
        .await
    }

    /// Names, at most so many, whose calls wait although every key of the name was revoked or has expired by then.
    pub async fn callers_without_key(&self, now_us: i64, limit: u32) -> Result<Vec<Arc<str>>, Error> {
        self.read_committed(move |conn| conn.all(CALLERS_WITHOUT_KEY, values![now_us, limit], single)).await
    }
}

/// Adds a key, unless there are too many or its name is or was that of another.
fn add(conn: &Connection, key: &KeyRow) -> Result<(), Error> {
    let taken = || Error::NameTaken { name: Arc::clone(&key.name) };
    if let KeyStatus::Valid { .. } = status(conn, &key.name, key.created_us)? {
        return Err(taken());
    }
    // The owner of a name sees the calls that were made under it.
    if sessions::has_called(conn, &key.name)? {
        return Err(Error::NameUsed { name: Arc::clone(&key.name) });
    }
    let n_keys: u32 = conn.first(COUNT, values![key.created_us], single)?.unwrap_or_default();
    if n_keys >= KEYS_MAX {
        return Err(Error::TooManyKeys { limit: KEYS_MAX });
    }
    if conn.execute(INSERT, &key.values())? == 0 {
        return Err(taken());
    }
    // An earlier key of that name may have expired a moment ago.
    revoke_name(conn, &key.name, "a new key", key.created_us)
}

pub(crate) fn status(conn: &Connection, name: &str, now_us: i64) -> Result<KeyStatus, Error> {
    let found: Option<(bool, Option<i64>, bool)> =
        conn.first(OF_NAME, values![now_us, name], |row| Ok((row.take()?, row.take()?, row.take()?)))?;
    Ok(match found {
        None => KeyStatus::NoKey,
        Some((_, until_us, true)) => KeyStatus::Valid { until_us },
        Some((true, _, false)) => KeyStatus::Revoked,
        Some((false, _, false)) => KeyStatus::Expired,
    })
}

fn revoke(conn: &Connection, id: KeyId, by: &str, at_us: i64) -> Result<bool, Error> {
    let found: Option<(String, bool)> =
        conn.first(UNREVOKED, values![at_us, id], |row| Ok((row.take()?, row.take()?)))?;
    let Some((name, was_valid)) = found else { return Ok(false) };
    conn.execute(REVOKE, values![at_us, id])?;
    revoke_unused_name(conn, &name, by, at_us)?;
    Ok(was_valid)
}

fn revoke_unused_name(conn: &Connection, name: &str, by: &str, at_us: i64) -> Result<(), Error> {
    match status(conn, name, at_us)? {
        KeyStatus::Valid { .. } => Ok(()),
        KeyStatus::NoKey | KeyStatus::Expired | KeyStatus::Revoked => revoke_name(conn, name, by, at_us),
    }
}

/// Revokes all grants to and from this key name and ends its sessions, so that a later key of the same name inherits nothing.
fn revoke_name(conn: &Connection, name: &str, by: &str, at_us: i64) -> Result<(), Error> {
    grants::revoke_of(conn, name, by, at_us)?;
    sessions::end_of_principal(conn, name, at_us)
}

/// Deletes keys that were valid no more at that moment.
pub(crate) fn prune(conn: &Connection, before_us: i64) -> Result<(), Error> {
    conn.execute(PRUNE, values![before_us]).map(|_| ())
}
