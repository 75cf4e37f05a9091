//! The keys of the store, kept in memory.
//!
//! A request with a key reads a snapshot. The snapshot is at most a second old, so a key that another process made or
//! revoked is known or void within that time; one that was made or revoked here, at once.

use super::Identity;
use super::token::Token;
use crate::error::ApiError;
use arc_swap::ArcSwap;
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

/// How old a snapshot may be.
const FRESH: Duration = Duration::from_secs(1);

/// How often the key of an open stream is checked.
const LOOK: Duration = Duration::from_millis(500);

/// The keys of the store.
#[derive(Debug)]
pub(crate) struct Keyring {
    projects: Arc<Projects>,
    snapshot: ArcSwap<Snapshot>,
    /// Held while the store is read.
    reading: SerialGate,
}

#[derive(Debug, Default, Clone)]
struct Snapshot {
    /// When it was read, and the version of what was read; nothing before the first time.
    read: Option<(Instant, i64)>,
    keys: Arc<HashMap<KeyId, Held>>,
}

#[derive(Debug)]
struct Held {
    secret: Digest,
    expires_us: Option<i64>,
    revoked: bool,
    identity: Identity,
}

impl Held {
    fn holds(&self) -> bool {
        !self.revoked && self.expires_us.is_none_or(|end| end > now_us())
    }
}

impl Keyring {
    pub(crate) fn new(projects: Arc<Projects>) -> Arc<Self> {
        Arc::new(Self { projects, snapshot: ArcSwap::default(), reading: SerialGate::default() })
    }

    /// Who holds this key. Which of the reasons there are against it is nobody's business.
    pub(super) async fn find(&self, token: &Token<'_>) -> Result<Identity, ApiError> {
        let digest = token.digest();
        let keys = self.fresh().await?;
        let held = keys.get(&token.id);
        let known = held.filter(|held| bool::from(held.secret.as_bytes().ct_eq(digest.as_bytes())));
        known.filter(|held| held.holds()).map(|held| held.identity.clone()).ok_or_else(void)
    }

    /// Refuses a request whose key has expired or was revoked since it came in; one without a key passes.
    pub(crate) async fn check(&self, key: Option<KeyId>) -> Result<(), ApiError> {
        let Some(key) = key else { return Ok(()) };
        let keys = self.fresh().await?;
        if keys.get(&key).is_some_and(Held::holds) { Ok(()) } else { Err(void()) }
    }

    /// Ends when the key of an open stream expires or is revoked; never without a key.
    pub(crate) async fn voided(self: Arc<Self>, key: Option<KeyId>) {
        if key.is_none() {
            return std::future::pending().await;
        }
        while self.check(key).await.is_ok() {
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn fresh(&self) -> Result<Arc<HashMap<KeyId, Held>>, ledger::Error> {
        if let Some(keys) = self.snapshot.load().keys_if_fresh() {
            return Ok(keys);
        }
        let _turn = self.reading.enter().await;
        // Whoever came before has read it meanwhile.
        let known = self.snapshot.load_full();
        if let Some(keys) = known.keys_if_fresh() {
            return Ok(keys);
        }
        self.read(&known).await
    }

    /// Reads the store now, because it was changed here.
    pub(crate) async fn refresh(&self) -> Result<(), ledger::Error> {
        let _turn = self.reading.enter().await;
        self.read(&Snapshot::default()).await.map(|_keys| ())
    }

    async fn read(&self, known: &Snapshot) -> Result<Arc<HashMap<KeyId, Held>>, ledger::Error> {
        let store = self.projects.store();
        // Both before the keys: what is changed meanwhile makes the next reader read again.
        let (at, version) = (Instant::now(), store.version().await?);
        let keys = match known.read {
            Some((_, same)) if same == version => Arc::clone(&known.keys),
            Some(_) | None => Arc::new(store.keys().await?.into_iter().filter_map(held).collect()),
        };
        let snapshot = Snapshot { read: Some((at, version)), keys: Arc::clone(&keys) };
        self.snapshot.store(Arc::new(snapshot));
        Ok(keys)
    }
}

impl Snapshot {
    fn keys_if_fresh(&self) -> Option<Arc<HashMap<KeyId, Held>>> {
        let (at, _) = self.read?;
        (at.elapsed() < FRESH).then(|| Arc::clone(&self.keys))
    }
}

fn void() -> ApiError {
    ApiError::unauthorised(
        "this key opens nothing here: it is not known, or does not hold any more; ask whoever gave it to you for another",
    )
}

fn held(row: KeyRow) -> Option<(KeyId, Held)> {
    let patterns = row.tools.as_ref().map(|tools| tools.iter().map(|text| Pattern::parse(text)).collect());
    let tools = match patterns.transpose() {
        Ok(tools) => tools,
        Err(error) => {
            tracing::error!("key {} is of no use, because its limits cannot be read: {error}", row.name);
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
    let held =
        Held { secret: row.secret, expires_us: row.expires_us, revoked: row.revoked_us.is_some(), identity };
    Some((row.id, held))
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
        assert!(held(row(&["db__*"])).is_some());
        assert!(held(row(&["db__*", ""])).is_none());
    }

    #[test]
    fn a_key_holds_until_it_expires_or_is_revoked() {
        let holds = |row| held(row).unwrap().1.holds();
        assert!(holds(row(&["*"])));
        assert!(holds(KeyRow { expires_us: Some(now_us() + 60_000_000), ..row(&["*"]) }));
        assert!(!holds(KeyRow { expires_us: Some(now_us()), ..row(&["*"]) }));
        assert!(!holds(KeyRow { revoked_us: Some(1), ..row(&["*"]) }));
    }
}
