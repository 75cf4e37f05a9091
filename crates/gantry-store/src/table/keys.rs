//! The table of credentials.

use super::{all, did_change, first, grants, optional_json, word};
use crate::body;
use crate::error::Error;
use crate::key::KeyRow;
use crate::ledger::{Answer, execute};
use crate::options::KEYS_MAX;
use gantry_core::Role;
use gantry_core::digest::Digest;
use gantry_core::id::KeyId;
use rusqlite::{Connection, Row, params};

const HELD: &str = "SELECT count(*) FROM keys WHERE revoked_us IS NULL AND coalesce(expires_us > ?1, true)";
const OF_NAME: &str = "SELECT 1 FROM keys
     WHERE name = ?2 AND revoked_us IS NULL AND coalesce(expires_us > ?1, true) LIMIT 1";

/// Adds a key, unless there are too many or its name is that of another.
pub(crate) fn add(conn: &Connection, key: &KeyRow) -> Answer<()> {
    let taken: Option<bool> = first(conn, OF_NAME, params![key.created_us, key.name], |row| row.get(0))?;
    if taken.is_some() {
        return Ok(Err(Error::NameTaken { name: key.name.clone() }));
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
        return Ok(Err(Error::NameTaken { name: key.name.clone() }));
    }
    // An earlier key of that name may have expired, which nobody noted.
    part(conn, &key.name, "a new key", key.created_us)?;
    Ok(Ok(()))
}

/// All keys, the newest first.
pub(crate) fn list(conn: &Connection) -> Result<Vec<KeyRow>, Error> {
    let sql = "SELECT id, name, secret, role, projects, agent, tools, created_us, expires_us, revoked_us
         FROM keys ORDER BY seq DESC";
    all(conn, sql, [], read)
}

/// Ends a key, and with it what its name stood for. Says whether it held until then.
pub(crate) fn revoke(conn: &Connection, id: KeyId, by: &str, at_us: i64) -> Result<bool, Error> {
    let sql =
        "SELECT name FROM keys WHERE id = ?1 AND revoked_us IS NULL AND coalesce(expires_us > ?2, true)";
    let held: Option<String> = first(conn, sql, params![id.as_bytes(), at_us], |row| row.get(0))?;
    if let Some(name) = &held {
        part(conn, name, by, at_us)?;
    }
    let update = "UPDATE keys SET revoked_us = ?2 WHERE id = ?1 AND revoked_us IS NULL";
    execute(conn, update, params![id.as_bytes(), at_us])?;
    Ok(held.is_some())
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
    execute(conn, "DELETE FROM keys WHERE revoked_us < ?1 OR expires_us < ?1", [before_us])
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
