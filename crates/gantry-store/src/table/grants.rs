//! The table of grants.

use super::{all, did_change, each_project, first, json, keys};
use crate::body;
use crate::error::Error;
use crate::grant::{GrantFilter, GrantKey, GrantRow};
use crate::ledger::{Answer, execute};
use crate::options::GRANTS_MAX;
use crate::query::{Where, page, page_size, text};
use crate::row::Page;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, GrantId, SessionId};
use rusqlite::{Connection, Row, params, params_from_iter};
use std::cmp::Reverse;
use std::sync::Arc;

const COLUMNS: &str =
    "seq, id, project, principal, agent_path, provider, tool, name, fingerprint, policy, rules,
     session, given_by, approval, created_us, until_us, revoked_us, revoked_by";
const STANDING: &str = "SELECT count(*) FROM (SELECT 1 FROM grants WHERE revoked_us IS NULL LIMIT ?1)";

/// Adds a grant, which ends no later than the keys of those whom it concerns; one that is there already is left as it is.
pub(crate) fn give(conn: &Connection, grant: &GrantRow) -> Answer<()> {
    let standing: Option<u32> = first(conn, STANDING, [GRANTS_MAX], |row| row.get(0))?;
    if standing.is_some_and(|n_grants| n_grants >= GRANTS_MAX) {
        return Ok(Err(Error::TooManyGrants { limit: GRANTS_MAX }));
    }
    let now = grant.created_us;
    let ends = [
        grant.until_us,
        keys::standing(conn, &grant.key.principal, now)?.until_us(now),
        keys::standing(conn, &grant.by, now)?.until_us(now),
    ];
    let values = params![
        grant.id.as_bytes(),
        grant.key.project,
        grant.key.principal,
        grant.key.agent_path,
        grant.key.provider,
        grant.key.tool,
        grant.name,
        grant.fingerprint.as_bytes(),
        grant.policy.as_bytes(),
        body::encode(&grant.rules)?,
        grant.session.as_ref().map(SessionId::as_bytes),
        grant.by,
        grant.approval.as_ref().map(ApprovalId::as_bytes),
        grant.created_us,
        ends.into_iter().flatten().min(),
        grant.revoked.as_ref().map(|(at_us, _)| at_us),
        grant.revoked.as_ref().map(|(_, by)| by),
    ];
    execute(
        conn,
        "INSERT INTO grants
         (id, project, principal, agent_path, provider, tool, name, fingerprint, policy, rules, session,
          given_by, approval, created_us, until_us, revoked_us, revoked_by)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
         ON CONFLICT (id) DO NOTHING",
        values,
    )?;
    Ok(Ok(()))
}

/// Ends a grant. Says whether it held until then.
pub(crate) fn revoke(conn: &Connection, id: GrantId, by: &str, at_us: i64) -> Result<bool, Error> {
    let update = "UPDATE grants SET revoked_us = ?2, revoked_by = ?3 WHERE id = ?1 AND revoked_us IS NULL";
    did_change(conn, update, params![id.as_bytes(), at_us, by])
}

/// Ends the grants that were given to somebody or by them, because their name is another's from now on or nobody's.
pub(crate) fn revoke_of(conn: &Connection, name: &str, by: &str, at_us: i64) -> Result<(), Error> {
    // One after the other, so that each has its index.
    for update in [
        "UPDATE grants SET revoked_us = ?2, revoked_by = ?3 WHERE principal = ?1 AND revoked_us IS NULL",
        "UPDATE grants SET revoked_us = ?2, revoked_by = ?3 WHERE given_by = ?1 AND revoked_us IS NULL",
    ] {
        execute(conn, update, params![name, at_us, by])?;
    }
    Ok(())
}

/// The grants that hold for a call at that moment, the oldest first.
pub(crate) fn find_for(
    conn: &Connection,
    key: &GrantKey,
    (fingerprint, policy): (Digest, Digest),
    session: SessionId,
    now_us: i64,
) -> Result<Vec<GrantRow>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM grants
         WHERE project = ?1 AND principal = ?2 AND agent_path = ?3 AND provider = ?4 AND tool = ?5
         AND revoked_us IS NULL AND fingerprint = ?6 AND policy = ?7
         AND (session IS NULL OR session = ?8) AND coalesce(until_us > ?9, true) ORDER BY seq"
    );
    let values = params![
        key.project,
        key.principal,
        key.agent_path,
        key.provider,
        key.tool,
        fingerprint.as_bytes(),
        policy.as_bytes(),
        session.as_bytes(),
        now_us,
    ];
    all(conn, &sql, values, read)
}

/// The grant with that id.
pub(crate) fn find(conn: &Connection, id: GrantId) -> Result<Option<GrantRow>, Error> {
    first(conn, &format!("SELECT {COLUMNS} FROM grants WHERE id = ?1"), [id.as_bytes()], read)
}

/// Grants, the newest first.
pub(crate) fn list(conn: &Connection, filter: &GrantFilter) -> Result<Page<GrantRow>, Error> {
    let limit = page_size(filter.limit);
    let tx = conn.unchecked_transaction().map_err(Error::sqlite)?;
    let mut found = Vec::new();
    for project in each_project(filter.projects.as_deref()) {
        let mut conditions = Where::default();
        conditions.and("project = ?", text(project.as_ref()));
        conditions.and("seq < ?", filter.cursor);
        let held = if filter.revoked { "" } else { " AND revoked_us IS NULL" };
        let sql = format!(
            "SELECT {COLUMNS} FROM grants WHERE true{}{held} ORDER BY seq DESC LIMIT {}",
            conditions.sql,
            i64::from(limit) + 1
        );
        found.extend(all(&tx, &sql, params_from_iter(conditions.values), read)?);
    }
    found.sort_unstable_by_key(|grant| Reverse(grant.seq));
    Ok(page(found, limit, |grant| grant.seq))
}

/// Deletes grants that were revoked before that moment, or were for a session that nobody has used since.
pub(crate) fn forget(conn: &Connection, before_us: i64, limit: i64) -> Result<(), Error> {
    execute(
        conn,
        "DELETE FROM grants WHERE seq IN (SELECT seq FROM grants WHERE revoked_us < ?1
         OR (session IS NOT NULL AND created_us < ?1 AND NOT EXISTS (SELECT 1 FROM sessions
             WHERE sessions.id = grants.session AND sessions.last_us >= ?1)) LIMIT ?2)",
        (before_us, limit),
    )
}

fn read(row: &Row<'_>) -> rusqlite::Result<GrantRow> {
    let revoked: (Option<i64>, Option<Arc<str>>) = (row.get(16)?, row.get(17)?);
    Ok(GrantRow {
        seq: row.get(0)?,
        id: GrantId::from_bytes(row.get(1)?),
        key: GrantKey {
            project: row.get(2)?,
            principal: row.get(3)?,
            agent_path: row.get(4)?,
            provider: row.get(5)?,
            tool: row.get(6)?,
        },
        name: row.get(7)?,
        fingerprint: Digest::from_bytes(row.get(8)?),
        policy: Digest::from_bytes(row.get(9)?),
        rules: json(row, 10)?,
        session: row.get::<_, Option<[u8; 16]>>(11)?.map(SessionId::from_bytes),
        by: row.get(12)?,
        approval: row.get::<_, Option<[u8; 16]>>(13)?.map(ApprovalId::from_bytes),
        created_us: row.get(14)?,
        until_us: row.get(15)?,
        revoked: revoked.0.map(|at_us| (at_us, revoked.1.unwrap_or_default())),
    })
}
