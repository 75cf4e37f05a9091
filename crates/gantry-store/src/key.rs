//! Credentials as plain values. Of a key the store has only a digest.

use gantry_core::Role;
use gantry_core::digest::Digest;
use gantry_core::id::KeyId;
use std::sync::Arc;

/// A credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The key's id, which is part of the key itself.
    pub id: KeyId,
    /// What people call it: the principal of whoever uses it.
    pub name: Arc<str>,
    /// The digest of the secret.
    pub secret: Digest,
    /// What it may do.
    pub role: Role,
    /// The projects that it is for; none means all.
    pub projects: Option<Vec<Arc<str>>>,
    /// The agent as which it acts, always.
    pub agent: Option<Arc<str>>,
    /// The tools that its approvals may be about, as patterns; none means all.
    pub tools: Option<Vec<Arc<str>>>,
    /// When it was made, in microseconds of Unix time.
    pub created_us: i64,
    /// When it stops to hold.
    pub expires_us: Option<i64>,
    /// When it was revoked.
    pub revoked_us: Option<i64>,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is the name of no key.
    NoKey,
    /// A key of that name holds, until then if it expires.
    Holds {
        /// When it expires.
        until_us: Option<i64>,
    },
    /// The key of that name expired.
    Expired,
    /// The key of that name was revoked.
    Revoked,
}

impl Standing {
    /// When what was given to or by the name ends by itself, if it was given at that moment.
    pub(crate) fn until_us(self, now_us: i64) -> Option<i64> {
        match self {
            Self::NoKey => None,
            Self::Holds { until_us } => until_us,
            Self::Expired | Self::Revoked => Some(now_us),
        }
    }
}
