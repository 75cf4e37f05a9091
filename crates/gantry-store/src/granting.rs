//! What the store does for grants: give them, find them, revoke them.

use crate::grant::{GrantFilter, GrantKey, GrantRow};
use crate::row::Page;
use crate::table::grants;
use crate::{Error, Store};
use gantry_core::digest::Digest;
use gantry_core::id::{GrantId, SessionId};
use std::sync::Arc;

impl Store {
    /// Gives a grant; durable when it returns. One that goes with a decision is given by [`Store::settle_with`].
    ///
    /// # Errors
    /// `TooManyGrants`, or the store cannot be written.
    pub async fn grant(&self, grant: GrantRow) -> Result<(), Error> {
        self.change(move |conn| grants::give(conn, &grant)).await
    }

    /// The grants that hold for a call at that moment: of its key, its definition, the rules about its tool, and its
    /// session or none. Reads what is durable; a revocation holds when [`Store::revoke_grant`] has returned, and what
    /// ends by itself needs nobody to notice.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn grants_for(
        &self,
        key: GrantKey,
        (fingerprint, policy): (Digest, Digest),
        session: SessionId,
        now_us: i64,
    ) -> Result<Vec<GrantRow>, Error> {
        self.look(move |conn| grants::find_for(conn, &key, (fingerprint, policy), session, now_us)).await
    }

    /// The grants that pass the filter, the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn grants(&self, filter: GrantFilter) -> Result<Page<GrantRow>, Error> {
        self.look(move |conn| grants::list(conn, &filter)).await
    }

    /// The grant with that id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn grant_of(&self, id: GrantId) -> Result<Option<GrantRow>, Error> {
        self.look(move |conn| grants::find(conn, id)).await
    }

    /// Revokes a grant; durable when it returns. Returns whether it held until now.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn revoke_grant(&self, id: GrantId, by: Arc<str>, at_us: i64) -> Result<bool, Error> {
        self.change(move |conn| grants::revoke(conn, id, &by, at_us).map(Ok)).await
    }
}
