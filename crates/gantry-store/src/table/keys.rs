//! The table of credentials.

use super::{all, did_change, first, grants, optional_json, word};
use crate::body;
use crate::error::Error;
use crate::key::{KeyRow, Standing};
use crate::ledger::{Answer, execute};
use crate::options::KEYS_MAX;
use gantry_core::Role;
use gantry_core::digest::Digest;
use gantry_core::id::KeyId;
use rusqlite::{Connection, Row, params};
use std::sync::Arc;

const HELD: &str = "SELECT count(*) FROM keys WHERE revoked_us IS NULL AND coalesce(expires_us > ?1, true)";
/// One that holds comes before those that do not, then the newest.
const OF_NAME: &str = "SELECT revoked_us IS NOT NULL, expires_us,
     revoked_us IS NULL AND coalesce(expires_us > ?1, true) AS holds
     FROM keys WHERE name = ?2 ORDER BY holds DESC, seq DESC LIMIT 1";
const LAPSED: &str = "SELECT seq, name FROM keys INDEXED BY keys_lapsing
     WHERE parted = 0 AND revoked_us IS NULL AND expires_us <= ?1 ORDER BY expires_us LIMIT ?2";
/// Goes from one caller to the next, however many calls of one wait.
const ENDED_CALLERS: &str = "WITH RECURSIVE caller (name) AS (
       SELECT min(principal) FROM approvals INDEXED BY approvals_callers
         WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY')
       UNION ALL
       SELECT (SELECT min(principal) FROM approvals INDEXED BY approvals_callers
         WHERE state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY')
         AND principal > caller.name) FROM caller WHERE caller.name IS NOT NULL)
     SELECT name FROM caller WHERE EXISTS (SELECT 1 FROM keys WHERE keys.name = caller.name)
     AND NOT EXISTS (SELECT 1 FROM keys WHERE keys.name = caller.name
       AND revoked_us IS NULL AND coalesce(expires_us > ?1, true)) LIMIT ?2";
/// One of which calls wait stays, because it says that they may not run.
const OVER: &str = "DELETE FROM keys WHERE (revoked_us < ?1 OR (expires_us < ?1 AND parted = 1))
     AND NOT EXISTS (SELECT 1 FROM approvals INDEXED BY approvals_callers WHERE principal = keys.name
       AND state IN ('PENDING_APPROVAL', 'SCHEDULED_FOR_EXECUTION', 'APPROVED_READY'))";

/// Adds a key, unless there are too many or its name is or was that of another.
pub(crate) fn add(conn: &Connection, key: &KeyRow) -> Answer<()> {
    let name = || Arc::clone(&key.name);
    if let Standing::Holds { .. } = standing(conn, &key.name, key.created_us)? {
        return Ok(Err(Error::NameTaken { name: name() }));
    }
    // Whoever has a name sees what was called under it.
    let called = "SELECT 1 FROM sessions WHERE principal = ?1 LIMIT 1";
    let used: Option<bool> = first(conn, called, [&key.name], |row| row.get(0))?;
    if used.is_some() {
        return Ok(Err(Error::NameUsed { name: name() }));
    }
    let held: Option<u32> = first(conn, HELD, [key.created_us], |row| row.get(0))?;
    if held.is_some_and(|n_keys| n_keys >= KEYS_MAX) {
        return Ok(Err(Error::TooManyKeys { limit: KEYS_MAX }));
    }
    let values = params![
        key.id.as_bytes(),
        key.name,
        key.secret.as_bytes(),
        role_word(key.role),
        key.projects.as_ref().map(body::encode).transpose()?,
        key.agent,
        key.tools.as_ref().map(body::encode).transpose()?,
        key.created_us,
        key.expires_us,
        key.revoked_us,
    ];
    let insert = "INSERT INTO keys
         (id, name, secret, role, projects, agent, tools, created_us, expires_us, revoked_us)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING";
    if !did_change(conn, insert, values)? {
        return Ok(Err(Error::NameTaken { name: name() }));
    }
    // An earlier key of that name may have expired a moment ago.
    part(conn, &key.name, "a new key", key.created_us)?;
    Ok(Ok(()))
}

/// All keys, the newest first.
pub(crate) fn list(conn: &Connection) -> Result<Vec<KeyRow>, Error> {
    let sql = "SELECT id, name, secret, role, projects, agent, tools, created_us, expires_us, revoked_us
         FROM keys ORDER BY seq DESC";
    all(conn, sql, [], read)
}

/// What a name stands for at that moment.
pub(crate) fn standing(conn: &Connection, name: &str, now_us: i64) -> Result<Standing, Error> {
    let found = first(conn, OF_NAME, params![now_us, name], |row| {
        Ok((row.get::<_, bool>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, bool>(2)?))
    })?;
    Ok(match found {
        None => Standing::NoKey,
        Some((_, until_us, true)) => Standing::Holds { until_us },
        Some((true, _, false)) => Standing::Revoked,
        Some((false, _, false)) => Standing::Expired,
    })
}

/// Ends a key, and with it what its name stood for, unless another has the name now. Says whether it held until then.
pub(crate) fn revoke(conn: &Connection, id: KeyId, by: &str, at_us: i64) -> Result<bool, Error> {
    let sql = "SELECT name, coalesce(expires_us > ?2, true) FROM keys WHERE id = ?1 AND revoked_us IS NULL";
    let found = first(conn, sql, params![id.as_bytes(), at_us], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))
    })?;
    let Some((name, held)) = found else { return Ok(false) };
    let update = "UPDATE keys SET revoked_us = ?2 WHERE id = ?1 AND revoked_us IS NULL";
    execute(conn, update, params![id.as_bytes(), at_us])?;
    part_unless_held(conn, &name, by, at_us)?;
    Ok(held)
}

/// Keys that have expired and whose names were not parted since: their places and names.
pub(crate) fn lapsed(conn: &Connection, now_us: i64, limit: u32) -> Result<Vec<(i64, String)>, Error> {
    all(conn, LAPSED, params![now_us, limit], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Parts the names of keys that have expired.
pub(crate) fn lapse(conn: &Connection, lapsed: &[(i64, String)], now_us: i64) -> Result<(), Error> {
    for (seq, name) in lapsed {
        part_unless_held(conn, name, "the end of a key", now_us)?;
        execute(conn, "UPDATE keys SET parted = 1 WHERE seq = ?1", [seq])?;
    }
    Ok(())
}

/// Names of which calls wait and no key holds, although there were some.
pub(crate) fn ended_callers(conn: &Connection, now_us: i64, limit: u32) -> Result<Vec<Arc<str>>, Error> {
    all(conn, ENDED_CALLERS, params![now_us, limit], |row| row.get(0))
}

fn part_unless_held(conn: &Connection, name: &str, by: &str, at_us: i64) -> Result<(), Error> {
    match standing(conn, name, at_us)? {
        Standing::Holds { .. } => Ok(()),
        Standing::NoKey | Standing::Expired | Standing::Revoked => part(conn, name, by, at_us),
    }
}

/// Parts a name from what it stood for, because whoever has it next is somebody else: grants end, and nobody goes on with a
/// session.
fn part(conn: &Connection, name: &str, by: &str, at_us: i64) -> Result<(), Error> {
    grants::revoke_of(conn, name, by, at_us)?;
    let update = "UPDATE sessions SET ended_us = ?2 WHERE principal = ?1 AND ended_us IS NULL";
    execute(conn, update, params![name, at_us])
}

/// Deletes keys that stopped to hold before that moment.
pub(crate) fn forget(conn: &Connection, before_us: i64) -> Result<(), Error> {
    execute(conn, OVER, [before_us])
}

fn role_word(role: Role) -> &'static str {
    match role {
        Role::Agent => "agent",
        Role::Approver => "approver",
        Role::Admin => "admin",
    }
}

fn role(text: &str) -> Option<Role> {
    [Role::Agent, Role::Approver, Role::Admin].into_iter().find(|role| role_word(*role) == text)
}

fn read(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        id: KeyId::from_bytes(row.get(0)?),
        name: row.get(1)?,
        secret: Digest::from_bytes(row.get(2)?),
        role: word(row, 3, role)?,
        projects: optional_json(row, 4)?,
        agent: row.get(5)?,
        tools: optional_json(row, 6)?,
        created_us: row.get(7)?,
        expires_us: row.get(8)?,
        revoked_us: row.get(9)?,
    })
}
