//! The hash chain: what an entry's hash covers, and the walk that proves no entry was changed, removed or moved.

use crate::error::Error;
use crate::options::VERIFY_STEP;
use crate::row::{BadEntry, Verification};
use gantry_core::digest::Digest;
use rusqlite::{Connection, Row};

/// The newest entry: where the next one is chained to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: i64,
    pub(crate) hash: Digest,
}

impl Head {
    /// What the first entry is chained to.
    fn genesis() -> Self {
        Self { seq: 0, hash: Digest::from_bytes([0; 32]) }
    }

    pub(crate) fn read(conn: &Connection) -> Result<Self, Error> {
        conn.prepare_cached("SELECT seq, hash FROM ledger_head")
            .and_then(|mut query| {
                query
                    .query_row([], |row| Ok(Self { seq: row.get(0)?, hash: Digest::from_bytes(row.get(1)?) }))
            })
            .map_err(Error::sqlite)
    }
}

/// Every column of an entry but its hash, as it is stored.
#[derive(Debug)]
pub(crate) struct Columns<'a> {
    pub(crate) seq: i64,
    pub(crate) kind: &'a str,
    pub(crate) call: &'a [u8],
    pub(crate) node: &'a [u8],
    pub(crate) at: i64,
    pub(crate) project: &'a str,
    pub(crate) session: &'a [u8],
    pub(crate) principal: &'a str,
    pub(crate) name: &'a str,
    pub(crate) state: &'a str,
    pub(crate) body: &'a str,
}

impl<'a> Columns<'a> {
    /// The hash of this entry when it follows one with the hash `previous`.
    pub(crate) fn hash(&self, previous: &Digest) -> Digest {
        Digest::of_parts(&[
            previous.as_bytes(),
            &self.seq.to_be_bytes(),
            self.kind.as_bytes(),
            self.call,
            self.node,
            &self.at.to_be_bytes(),
            self.project.as_bytes(),
            self.session,
            self.principal.as_bytes(),
            self.name.as_bytes(),
            self.state.as_bytes(),
            self.body.as_bytes(),
        ])
    }

    /// `None` when a column does not even have its type.
    fn of(row: &'a Row<'_>) -> Option<(Self, &'a [u8])> {
        let text = |index: usize| row.get_ref(index).ok()?.as_str().ok();
        let blob = |index: usize| row.get_ref(index).ok()?.as_blob().ok();
        let columns = Self {
            seq: row.get(0).ok()?,
            kind: text(1)?,
            call: blob(2)?,
            node: blob(3)?,
            at: row.get(4).ok()?,
            project: text(5)?,
            session: blob(6)?,
            principal: text(7)?,
            name: text(8)?,
            state: text(9)?,
            body: text(10)?,
        };
        Some((columns, blob(11)?))
    }
}

/// Walks the chain from its first entry to the newest one there is now.
pub(crate) fn verify(conn: &Connection) -> Result<Verification, Error> {
    // One statement, so that the head and the last entry are of the same moment.
    let (target, last): (Head, i64) = conn
        .query_row(
            "SELECT seq, hash, (SELECT coalesce(max(seq), 0) FROM ledger) FROM ledger_head",
            [],
            |row| Ok((Head { seq: row.get(0)?, hash: Digest::from_bytes(row.get(1)?) }, row.get(2)?)),
        )
        .map_err(Error::sqlite)?;
    let mut reached = Head::genesis();
    let mut bad = None;
    while bad.is_none() && reached.seq < target.seq {
        let from = reached.seq;
        bad = walk(conn, &mut reached, target.seq.min(from.saturating_add(VERIFY_STEP)))?;
    }
    if bad.is_none() && reached != target {
        bad = Some(BadEntry { seq: reached.seq, what: "it is not the entry that was written last" });
    }
    if bad.is_none() && last > target.seq {
        bad = Some(BadEntry {
            seq: target.seq.saturating_add(1),
            what: "it was added behind the newest entry",
        });
    }
    Ok(Verification { entries: u64::try_from(reached.seq).unwrap_or_default(), bad })
}

/// Checks the entries after `reached` up to `until`, and moves `reached` over those that fit.
fn walk(conn: &Connection, reached: &mut Head, until: i64) -> Result<Option<BadEntry>, Error> {
    let mut query = conn
        .prepare_cached(
            "SELECT seq, kind, call, node, at, project, session, principal, name, state, body, hash
             FROM ledger WHERE seq > ?1 AND seq <= ?2 ORDER BY seq",
        )
        .map_err(Error::sqlite)?;
    let mut rows = query.query((reached.seq, until)).map_err(Error::sqlite)?;
    while reached.seq < until {
        let expected = reached.seq.saturating_add(1);
        let bad = |what| Ok(Some(BadEntry { seq: expected, what }));
        let Some(row) = rows.next().map_err(Error::sqlite)? else { return bad("it is missing") };
        let Some((columns, stored)) = Columns::of(row) else { return bad("it is malformed") };
        if columns.seq != expected {
            return bad("it is missing");
        }
        let hash = columns.hash(&reached.hash);
        if hash.as_bytes() != stored {
            return bad("it was changed or moved");
        }
        *reached = Head { seq: expected, hash };
    }
    Ok(None)
}
