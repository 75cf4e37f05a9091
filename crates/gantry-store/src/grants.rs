//! Grants: approvals that hold for more than one call.

use crate::error::Error;
use crate::keys;
use crate::options::{GRANTS_MAX, PAGE_MAX};
use crate::sql::{
    Connection, Query, Record, Row, ToValue as _, Value, list, names, placeholders, record, single,
    statements, values,
};
use crate::{Page, Store, page_size};
use gantry_core::approval::Scope;
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, GrantId, SessionId};
use std::sync::Arc;

/// The columns of a row, in the order in which they are written and read.
macro_rules! columns {
    ($as:ident) => {
        $as!(
            id,
            project,
            principal,
            agent_path,
            provider,
            tool,
            name,
            fingerprint,
            policy,
            rules,
            session,
            given_by,
            approval,
            created_us,
            until_us,
            revoked_us,
            revoked_by
        )
    };
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(names), " FROM grants ", $rest)
    };
}

statements! {
    COUNT = "SELECT count(*) FROM (SELECT 1 FROM grants WHERE revoked_us IS NULL LIMIT $1) AS valid";
    INSERT = concat!("INSERT INTO grants (", columns!(names), ") VALUES (", columns!(placeholders),
        ") ON CONFLICT (id) DO NOTHING");
    BY_ID = select!("WHERE id = $1");
    FOR_CALL = select!("WHERE project = $1 AND principal = $2 AND agent_path = $3 AND provider = $4 AND tool = $5
         AND revoked_us IS NULL AND fingerprint = $6 AND policy = $7
         AND (session IS NULL OR session = $8) AND coalesce(until_us > $9, true) ORDER BY id");
    ENDING = select!("WHERE revoked_us IS NULL AND substr(id, $1) = $2 ORDER BY id DESC LIMIT $3");
    REVOKE = "UPDATE grants SET revoked_us = $1, revoked_by = $2 WHERE id = $3 AND revoked_us IS NULL";
    REVOKE_TO = "UPDATE grants SET revoked_us = $1, revoked_by = $2 WHERE principal = $3 AND revoked_us IS NULL";
    REVOKE_BY = "UPDATE grants SET revoked_us = $1, revoked_by = $2 WHERE given_by = $3 AND revoked_us IS NULL";
    PRUNE = "DELETE FROM grants WHERE id IN (SELECT id FROM grants WHERE revoked_us < $1
         OR (session IS NOT NULL AND created_us < $1 AND NOT EXISTS (SELECT 1 FROM sessions
             WHERE sessions.id = grants.session AND sessions.last_us >= $1)) LIMIT $2)";
}

list! {
    GRANTS = select!("WHERE true"), "ORDER BY id DESC";
    OF_PROJECTS = "project IN ($?)";
    UNREVOKED = "revoked_us IS NULL";
    BEFORE = "id < $?";
}

/// One caller and one tool of one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrantKey {
    pub project: Arc<str>,
    pub principal: Arc<str>,
    /// The agents above the caller, and the caller's own last, joined by ` > `; empty for none.
    pub agent_path: Arc<str>,
    pub provider: Arc<str>,
    pub tool: Arc<str>,
}

record!(GrantKey: project, principal, agent_path, provider, tool);

/// An approval that holds for more than one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRow {
    pub id: GrantId,
    pub key: GrantKey,
    pub name: Arc<str>,
    /// The definition of the tool that it is for; it is void for any other.
    pub fingerprint: Digest,
    /// The rules about the tool, and the server behind it, under which it was given; it is void under any others.
    pub policy: Digest,
    /// The rules whose questions it answers; a question of another rule is asked all the same.
    pub rules: Vec<Arc<str>>,
    /// The session that it ends with; none means that it holds until it is revoked.
    pub session: Option<SessionId>,
    pub by: Arc<str>,
    pub approval: Option<ApprovalId>,
    /// When it was given, in microseconds of Unix time.
    pub created_us: i64,
    /// When it ends by itself. The store makes this no later than the end of the keys of its holder and of its giver.
    pub until_us: Option<i64>,
    pub revoked: Option<(i64, Arc<str>)>,
}

record!(GrantRow: id, key, name, fingerprint, policy, rules, session, by, approval, created_us, until_us, revoked);

impl GrantRow {
    pub fn scope(&self) -> Scope {
        if self.session.is_some() { Scope::Session } else { Scope::Always }
    }
}

/// When, and by whom.
impl Record for Option<(i64, Arc<str>)> {
    fn write<'a>(&'a self, values: &mut Vec<Value<'a>>) {
        values.push(self.as_ref().map_or(Value::Null, |(at_us, _)| at_us.value()));
        values.push(self.as_ref().map_or(Value::Null, |(_, by)| by.value()));
    }

    fn read(row: &mut Row<'_>) -> Result<Self, Error> {
        let (at_us, by): (Option<i64>, Option<Arc<str>>) = (row.take()?, row.take()?);
        Ok(at_us.map(|at_us| (at_us, by.unwrap_or_default())))
    }
}

/// Which grants to list; a field that is `None` does not restrict.
#[derive(Debug, Clone, Default)]
pub struct GrantFilter {
    pub projects: Option<Vec<Arc<str>>>,
    /// Also those that were revoked.
    pub revoked: bool,
    /// After the page that gave this as `next`.
    pub cursor: Option<GrantId>,
    /// At most so many, up to 1000; 0 means 50.
    pub limit: u32,
}

impl Store {
    /// Gives a grant; durable when it returns. One that goes with a decision is given by [`Store::transition`].
    pub async fn grant(&self, grant: GrantRow) -> Result<(), Error> {
        self.change(move |conn| give(conn, &grant)).await
    }

    /// The grants that hold for a call at that moment, the oldest first: of its key, its definition, the rules about its
    /// tool, and its session or none. Reads what is durable; a revocation holds when [`Store::revoke_grant`] has returned.
    pub async fn grants_for(
        &self,
        key: GrantKey,
        (fingerprint, policy): (Digest, Digest),
        session: SessionId,
        now_us: i64,
    ) -> Result<Vec<GrantRow>, Error> {
        self.read_committed(move |conn| {
            let values = values![
                key.project,
                key.principal,
                key.agent_path,
                key.provider,
                key.tool,
                fingerprint,
                policy,
                session,
                now_us,
            ];
            conn.all(FOR_CALL, values, GrantRow::read)
        })
        .await
    }

    pub async fn grants(&self, filter: GrantFilter) -> Result<Page<GrantRow, GrantId>, Error> {
        self.read_committed(move |conn| {
            let mut query = Query::new(GRANTS);
            query.and_any(OF_PROJECTS, filter.projects.as_deref());
            query.and_if(UNREVOKED, !filter.revoked);
            query.and(BEFORE, &filter.cursor);
            let limit = page_size(filter.limit);
            Ok(Page::cut(conn.list(query, limit + 1, GrantRow::read)?, limit, |grant| grant.id))
        })
        .await
    }

    pub async fn grant_of(&self, id: GrantId) -> Result<Option<GrantRow>, Error> {
        self.read_committed(move |conn| conn.first(BY_ID, values![id], GrantRow::read)).await
    }

    /// The grants that hold and whose ids end with these bytes, the newest first; at most a thousand.
    pub async fn grants_ending(&self, bytes: Vec<u8>) -> Result<Vec<GrantRow>, Error> {
        self.read_committed(move |conn| {
            let first = 17 - i64::try_from(bytes.len()).unwrap_or(17);
            conn.all(ENDING, values![first, *bytes, PAGE_MAX], GrantRow::read)
        })
        .await
    }

    /// Revokes a grant; durable when it returns. Returns whether it held until now.
    pub async fn revoke_grant(&self, id: GrantId, by: Arc<str>, at_us: i64) -> Result<bool, Error> {
        self.change(move |conn| revoke(conn, id, &by, at_us)).await
    }
}

/// Adds a grant, which ends no later than the keys of its holder and its giver; one that is there already is left as it is.
pub(crate) fn give(conn: &Connection, grant: &GrantRow) -> Result<(), Error> {
    let n_grants: u32 = conn.first(COUNT, values![GRANTS_MAX], single)?.unwrap_or_default();
    if n_grants >= GRANTS_MAX {
        return Err(Error::TooManyGrants { limit: GRANTS_MAX });
    }
    let now = grant.created_us;
    let ends = [
        grant.until_us,
        keys::status(conn, &grant.key.principal, now)?.until_us(now),
        keys::status(conn, &grant.by, now)?.until_us(now),
    ];
    let until_us = ends.into_iter().flatten().min();
    conn.execute(INSERT, &GrantRow { until_us, ..grant.clone() }.values()).map(|_| ())
}

/// Ends a grant. Returns whether it held until then.
pub(crate) fn revoke(conn: &Connection, id: GrantId, by: &str, at_us: i64) -> Result<bool, Error> {
    conn.execute(REVOKE, values![at_us, by, id]).map(|n_rows| n_rows > 0)
}

/// Ends the grants that were given to a name or by it.
pub(crate) fn revoke_of(conn: &Connection, name: &str, by: &str, at_us: i64) -> Result<(), Error> {
    conn.execute(REVOKE_TO, values![at_us, by, name])?;
    conn.execute(REVOKE_BY, values![at_us, by, name]).map(|_| ())
}

/// Deletes grants that were revoked before that moment, or were for a session that was not used since.
pub(crate) fn prune(conn: &Connection, before_us: i64, limit: i64) -> Result<(), Error> {
    conn.execute(PRUNE, values![before_us, limit]).map(|_| ())
}
