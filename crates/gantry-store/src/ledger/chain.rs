//! The hash chains: the columns that an entry's hash covers, and the walk that proves that no entry was changed, removed or
//! moved.
//!
//! Each node has one chain. A ledger from before there were nodes is the frozen segment, under [`FROZEN`]: its hashes are of
//! an older form, and the chain of the node that had it begins with its last hash.

use crate::error::Error;
use crate::options::VERIFY_STEP;
use crate::sql::{Connection, Row, ToValue as _, Value, single, statements, values};
use gantry_core::digest::Digest;
use gantry_core::id::NodeId;
use std::iter;

/// The node of the frozen segment.
const FROZEN: [u8; 16] = [0; 16];

/// The columns of an entry without its hash, and the places of some of them. Old hashes cover neither `node` nor `step`.
pub(super) const COLUMNS: usize = 13;
const NODE: usize = 0;
const SEQ: usize = 1;
const STEP: usize = 4;

statements! {
    OWN_NODE = "SELECT node FROM ledger_heads WHERE node <> $1 ORDER BY node LIMIT 1";
    HEAD = "SELECT seq, hash FROM ledger_heads WHERE node = $1";
    MOVE_HEAD = "UPDATE ledger_heads SET seq = $1, hash = $2 WHERE node = $3";
    /// Chains and the first entry of each that is outside it, in one statement, so that both are of the same moment.
    CHAINS = "SELECT h.node, h.genesis, h.seq, h.hash,
         coalesce((SELECT min(l.seq) FROM ledger l WHERE l.node = h.node AND l.seq < 1),
             (SELECT min(l.seq) FROM ledger l WHERE l.node = h.node AND l.seq > h.seq))
         FROM ledger_heads h ORDER BY h.node";
    /// An entry of a node that has no chain. It goes from node to node, not over their entries.
    STRAY = "WITH RECURSIVE nodes (node) AS (
             SELECT (SELECT l.node FROM ledger l ORDER BY l.node LIMIT 1)
             UNION ALL SELECT (SELECT l.node FROM ledger l WHERE l.node > nodes.node ORDER BY l.node LIMIT 1)
             FROM nodes WHERE nodes.node IS NOT NULL)
         SELECT node, (SELECT min(l.seq) FROM ledger l WHERE l.node = nodes.node) FROM nodes
         WHERE node IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ledger_heads h WHERE h.node = nodes.node) LIMIT 1";
    WALK = "SELECT node, seq, kind, call, step, process, at, project, session, principal, name, state, body, hash
         FROM ledger WHERE node = $1 AND seq > $2 AND seq <= $3 ORDER BY seq";
    /// The old hashes do not cover `step`, but it follows from the order of the entries: each but the first of its call comes
    /// after the one with the number before its own. No two have the same number, so there is no other numbering.
    MISNUMBERED = "SELECT l.seq FROM ledger l WHERE l.node = $1 AND l.seq > $2 AND l.seq <= $3 AND l.step <> 0
         AND NOT EXISTS (SELECT 1 FROM ledger e WHERE e.call = l.call AND e.step = l.step - 1 AND e.node = l.node
             AND e.seq < l.seq) ORDER BY l.seq LIMIT 1";
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Entries that fit their chain.
    pub entries: u64,
    pub bad: Option<BadEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadEntry {
    /// The node whose chain it is in; all zeros for the entries from before there were nodes.
    pub node: NodeId,
    pub seq: i64,
    pub what: &'static str,
}

/// The newest entry of a chain: the next one is chained to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: i64,
    pub(crate) hash: Digest,
}

impl Head {
    pub(crate) fn read(conn: &Connection, node: NodeId) -> Result<Self, Error> {
        conn.first(HEAD, values![node], |row| Ok(Self { seq: row.take()?, hash: row.take()? }))?
            .ok_or_else(|| Error::corrupt("the ledger has no chain of this node"))
    }

    pub(crate) fn write(&self, conn: &Connection, node: NodeId) -> Result<(), Error> {
        conn.execute(MOVE_HEAD, values![self.seq, self.hash, node]).map(|_| ())
    }
}

pub(crate) fn own_node(conn: &Connection) -> Result<NodeId, Error> {
    conn.first(OWN_NODE, &[Value::Bytes(&FROZEN)], single)?
        .ok_or_else(|| Error::corrupt("the ledger has no chain"))
}

/// The hash of an entry that follows one with the hash `previous`. It covers every other column, in their order.
pub(crate) fn hash(previous: &Digest, columns: &[Value<'_>]) -> Digest {
    let parts = columns.iter().map(|value| match value {
        Value::Null => Hashed::Bytes(&[]),
        Value::Number(number) => Hashed::Number(number.to_be_bytes()),
        Value::Text(text) => Hashed::Bytes(text.as_bytes()),
        Value::Bytes(bytes) => Hashed::Bytes(bytes),
    });
    Digest::of_each(iter::once(Hashed::Bytes(previous.as_bytes())).chain(parts))
}

/// The bytes of a value that the hash covers.
enum Hashed<'a> {
    Number([u8; 8]),
    Bytes(&'a [u8]),
}

impl AsRef<[u8]> for Hashed<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Number(number) => number,
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// A chain as its head row describes it.
struct Chain {
    node: NodeId,
    genesis: Digest,
    head: Head,
    /// An entry of the node that is outside the chain.
    outside: Option<i64>,
}

impl Chain {
    fn read(row: &mut Row<'_>) -> Result<Self, Error> {
        Ok(Self {
            node: row.take()?,
            genesis: row.take()?,
            head: Head { seq: row.take()?, hash: row.take()? },
            outside: row.take()?,
        })
    }

    fn is_frozen(&self) -> bool {
        *self.node.as_bytes() == FROZEN
    }

    fn bad(&self, seq: i64, what: &'static str) -> BadEntry {
        BadEntry { node: self.node, seq, what }
    }

    /// Walks the chain to its head. Returns how many entries fit, and the first place that does not.
    fn check(&self, conn: &Connection) -> Result<(i64, Option<BadEntry>), Error> {
        let mut reached = Head { seq: 0, hash: self.genesis };
        while reached.seq < self.head.seq {
            let until = self.head.seq.min(reached.seq.saturating_add(VERIFY_STEP));
            let misnumbered = self.misnumbered(conn, reached.seq, until)?;
            let bad = self.walk(conn, &mut reached, misnumbered.map_or(until, |seq| seq - 1))?;
            if let Some(what) = bad.or_else(|| misnumbered.map(|_| "it was moved within its call")) {
                return Ok((reached.seq, Some(self.bad(reached.seq.saturating_add(1), what))));
            }
        }
        let bad = if reached != self.head {
            Some(self.bad(reached.seq, "it is not the entry that was written last"))
        } else {
            self.outside.map(|seq| self.bad(seq, "it was added outside the chain"))
        };
        Ok((reached.seq, bad))
    }

    /// The first entry after `from` up to `until` whose `step` is not its place in its call; hashes of today cover it.
    fn misnumbered(&self, conn: &Connection, from: i64, until: i64) -> Result<Option<i64>, Error> {
        if !self.is_frozen() {
            return Ok(None);
        }
        conn.first(MISNUMBERED, values![self.node, from, until], single)
    }

    /// Checks the entries after `reached` up to `until`, and moves `reached` over those that fit. Returns what is wrong with
    /// the next one.
    fn walk(&self, conn: &Connection, reached: &mut Head, until: i64) -> Result<Option<&'static str>, Error> {
        let mut bad = None;
        let from = reached.seq;
        conn.visit(WALK, values![self.node, from, until], |row| {
            bad = self.follow(reached, row).err();
            Ok(bad.is_none())
        })?;
        Ok(bad.or_else(|| (reached.seq < until).then_some("it is missing")))
    }

    fn follow(&self, reached: &mut Head, row: &mut Row<'_>) -> Result<(), &'static str> {
        let mut columns = Vec::with_capacity(COLUMNS);
        for _ in 0..COLUMNS {
            columns.push(row.value().map_err(|_damaged| "it is malformed")?);
        }
        let seq = reached.seq.saturating_add(1);
        if columns[SEQ] != Value::Number(seq) {
            return Err("it is missing");
        }
        if self.is_frozen() {
            columns.remove(STEP);
            columns.remove(NODE);
        }
        let hash = hash(&reached.hash, &columns);
        if row.value().ok() != Some(hash.value()) {
            return Err("it was changed or moved");
        }
        *reached = Head { seq, hash };
        Ok(())
    }
}

/// Walks every chain from its first entry to the newest one there is now.
pub(crate) fn verify(conn: &Connection) -> Result<Verification, Error> {
    let chains = conn.all(CHAINS, &[], Chain::read)?;
    let mut entries = 0;
    for chain in &chains {
        let (fitting, bad) = chain.check(conn)?;
        entries += u64::try_from(fitting).unwrap_or_default();
        if bad.is_some() {
            return Ok(Verification { entries, bad });
        }
    }
    let stray = conn.first(STRAY, &[], |row| {
        Ok(BadEntry { node: row.take()?, seq: row.take()?, what: "it belongs to no chain" })
    })?;
    Ok(Verification { entries, bad: stray.or_else(|| broken_link(&chains)) })
}

/// Every chain begins with nothing, but one begins with the end of the frozen segment, if there is one.
fn broken_link(chains: &[Chain]) -> Option<BadEntry> {
    let nothing = Digest::from_bytes([0; 32]);
    let frozen = chains.iter().find(|chain| chain.is_frozen());
    let follows =
        |chain: &&Chain| !chain.is_frozen() && frozen.is_some_and(|frozen| chain.genesis == frozen.head.hash);
    let broken = chains.iter().find(|chain| chain.genesis != nothing && !follows(chain));
    let end_of_frozen = frozen.filter(|_| !chains.iter().any(|chain| follows(&chain)));
    let bad = broken.map(|chain| chain.bad(1, "its chain does not begin where the older ledger ends"));
    bad.or_else(|| end_of_frozen.map(|chain| chain.bad(chain.head.seq, "no chain goes on from it")))
}
