//! The keys of the store, kept in memory.
//!
//! A request with a key reads a snapshot. The snapshot is at most a second old, so a key that another process made or
//! revoked is known or invalid within that time; one that was made or revoked here, at once.

use super::Identity;
use super::token::Token;
use crate::error::ApiError;
use arc_swap::ArcSwapOption;
use gantry_core::digest::Digest;
use gantry_core::id::KeyId;
use gantry_core::pattern::Pattern;
use gantry_runtime::Projects;
use gantry_runtime::clock::latest_us as now_us;
use gantry_runtime::ledger::{self, KeyRow};
use gantry_runtime::serial_gate::SerialGate;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq as _;

const MAX_AGE: Duration = Duration::from_secs(1);

/// How often the key of an open stream is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct ApiKeyCache {
    projects: Arc<Projects>,
    snapshot: ArcSwapOption<Snapshot>,
    /// Held while the store is read.
    reading: SerialGate,
}

#[derive(Debug)]
struct Snapshot {
    read_at: Instant,
    /// The version of the store that was read.
    version: i64,
    keys: Arc<HashMap<KeyId, CachedKey>>,
}

#[derive(Debug)]
struct CachedKey {
    secret: Digest,
    expires_us: Option<i64>,
    revoked: bool,
    identity: Identity,
}

impl CachedKey {
    fn is_valid(&self) -> bool {
        !self.revoked && self.expires_us.is_none_or(|end| end > now_us())
    }
}

impl ApiKeyCache {
    pub(crate) fn new(projects: Arc<Projects>) -> Arc<Self> {
        Arc::new(Self { projects, snapshot: ArcSwapOption::empty(), reading: SerialGate::default() })
    }

    /// The holder of this key. The error does not say why a key is refused.
    pub(super) async fn find(&self, token: &Token<'_>) -> Result<Identity, ApiError> {
        let digest = token.digest();
        let snapshot = self.fresh().await?;
        let is_secret = |cached: &&CachedKey| bool::from(cached.secret.as_bytes().ct_eq(digest.as_bytes()));
        let known = snapshot.keys.get(&token.id).filter(is_secret).filter(|cached| cached.is_valid());
        known.map(|cached| cached.identity.clone()).ok_or_else(invalid_key_error)
    }

    /// Refuses a request whose key has expired or was revoked since it came in; one without a key passes.
    pub(crate) async fn check(&self, key: Option<KeyId>) -> Result<(), ApiError> {
        let Some(key) = key else { return Ok(()) };
        let snapshot = self.fresh().await?;
        let is_valid = snapshot.keys.get(&key).is_some_and(CachedKey::is_valid);
        if is_valid { Ok(()) } else { Err(invalid_key_error()) }
    }

    /// Resolves when the key expires or is revoked, to close long-lived streams; never without a key.
    pub(crate) async fn wait_until_invalid(self: Arc<Self>, key: Option<KeyId>) {
        if key.is_none() {
            return std::future::pending().await;
        }
        while self.check(key).await.is_ok() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn fresh(&self) -> Result<Arc<Snapshot>, ledger::Error> {
        let is_fresh = |known: &Arc<Snapshot>| known.read_at.elapsed() < MAX_AGE;
        if let Some(known) = self.snapshot.load_full().filter(is_fresh) {
            return Ok(known);
        }
        let _turn = self.reading.enter().await;
        let known = self.snapshot.load_full();
        // Another request may have read it meanwhile.
        if let Some(known) = known.clone().filter(is_fresh) {
            return Ok(known);
        }
        let store = self.projects.store();
        // Both before the keys: what is changed meanwhile makes the next reader read again.
        let (read_at, version) = (Instant::now(), store.version().await?);
        let keys = match known {
            Some(known) if known.version == version => Arc::clone(&known.keys),
            Some(_) | None => Arc::new(store.keys().await?.into_iter().filter_map(cached).collect()),
        };
        let snapshot = Arc::new(Snapshot { read_at, version, keys });
        self.snapshot.store(Some(Arc::clone(&snapshot)));
        Ok(snapshot)
    }

    /// The next reader reads the store, because it was changed here.
    pub(crate) async fn forget(&self) {
        // What is just being read may be from before the change.
        let _turn = self.reading.enter().await;
        self.snapshot.store(None);
    }
}

fn invalid_key_error() -> ApiError {
    ApiError::unauthorised(
        "this key opens nothing here: it is not known, or not valid any more; ask the administrator for another",
    )
}

fn cached(row: KeyRow) -> Option<(KeyId, CachedKey)> {
    let patterns = row.tools.as_ref().map(|tools| tools.iter().map(|text| Pattern::parse(text)).collect());
    let tools = match patterns.transpose() {
        Ok(tools) => tools,
        Err(error) => {
            tracing::error!("key {} is refused, because its limits cannot be read: {error}", row.name);
            return None;
        }
    };
    let identity = Identity {
        principal: row.name,
        role: row.role,
        projects: row.projects.map(Into::into),
        agent: row.agent,
        tools,
        owner: false,
        key: Some(row.id),
    };
    let (secret, expires_us, revoked) = (row.secret, row.expires_us, row.revoked_us.is_some());
    Some((row.id, CachedKey { secret, expires_us, revoked, identity }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::Role;

    fn row(tools: &[&str]) -> KeyRow {
        KeyRow {
            id: KeyId::generate(),
            name: "anna".into(),
            secret: Digest::of(b"x"),
            role: Role::Approver,
            projects: Some(vec!["shop".into()]),
            agent: None,
            tools: Some(tools.iter().map(|text| Arc::from(*text)).collect()),
            created_us: 0,
            expires_us: None,
            revoked_us: None,
        }
    }

    #[test]
    fn a_key_whose_limits_cannot_be_read_opens_nothing() {
        assert!(cached(row(&["db__*"])).is_some());
        assert!(cached(row(&["db__*", ""])).is_none());
    }

    #[test]
    fn a_key_holds_until_it_expires_or_is_revoked() {
        let is_valid = |row| cached(row).unwrap().1.is_valid();
        assert!(is_valid(row(&["*"])));
        assert!(is_valid(KeyRow { expires_us: Some(now_us() + 60_000_000), ..row(&["*"]) }));
        assert!(!is_valid(KeyRow { expires_us: Some(now_us()), ..row(&["*"]) }));
        assert!(!is_valid(KeyRow { revoked_us: Some(1), ..row(&["*"]) }));
    }
}
