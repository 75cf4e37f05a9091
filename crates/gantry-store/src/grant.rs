//! Grants as plain values: a yes that holds for more than one call.

use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, GrantId, SessionId};
use std::sync::Arc;

/// What a grant is for: one caller and one tool of one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GrantKey {
    /// The project.
    pub project: Arc<str>,
    /// Who calls.
    pub principal: Arc<str>,
    /// The agents above the caller, and the caller's own last, joined by ` > `; empty for none.
    pub agent_path: Arc<str>,
    /// The id of the tool's provider.
    pub provider: Arc<str>,
    /// The tool's name at the provider.
    pub tool: Arc<str>,
}

/// A yes that holds for more than one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRow {
    /// Its place in lists; 0 before it is stored.
    pub seq: i64,
    /// The grant.
    pub id: GrantId,
    /// What it is for.
    pub key: GrantKey,
    /// The displayed name of the tool.
    pub name: Arc<str>,
    /// The definition that it is for; it is void for any other.
    pub fingerprint: Digest,
    /// The rules about the tool, and the server behind it, under which it was given; it is void under any others.
    pub policy: Digest,
    /// The rules whose questions it answers; a question of another rule is asked all the same.
    pub rules: Vec<Arc<str>>,
    /// The session that it ends with; none means that it holds until it is revoked.
    pub session: Option<SessionId>,
    /// Who gave it.
    pub by: Arc<str>,
    /// The approval that it was given with.
    pub approval: Option<ApprovalId>,
    /// When it was given, in microseconds of Unix time.
    pub created_us: i64,
    /// When it ends by itself. The store sees to it that this is no later than the end of the key of whoever has it
    /// or gave it.
    pub until_us: Option<i64>,
    /// When it was revoked, and by whom.
    pub revoked: Option<(i64, Arc<str>)>,
}

/// Which grants to list; what is `None` does not restrict.
#[derive(Debug, Clone, Default)]
pub struct GrantFilter {
    /// Of these projects.
    pub projects: Option<Vec<Arc<str>>>,
    /// Also those that were revoked.
    pub revoked: bool,
    /// After the page that gave this as `next`.
    pub cursor: Option<i64>,
    /// At most so many, up to 1000; 0 means 50.
    pub limit: u32,
}
