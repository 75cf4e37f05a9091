//! What the store does for credentials: keep them, list them, revoke them.

use crate::key::KeyRow;
use crate::table::keys;
use crate::{Error, Store};
use gantry_core::id::KeyId;
use std::sync::Arc;

impl Store {
    /// Keeps a credential; durable when it returns. What was granted to or by an earlier key of the name ends with that.
    ///
    /// # Errors
    /// `TooManyKeys`, `NameTaken` if another key that holds has the name, or the store cannot be written.
    pub async fn add_key(&self, key: KeyRow) -> Result<(), Error> {
        self.change(move |conn| keys::add(conn, &key)).await
    }

    /// All credentials, also those that were revoked or expired within the last thirty days, the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, Error> {
        self.look(keys::list).await
    }

    /// Revokes a credential; durable when it returns. If it held until now, which is returned, the grants that were
    /// given to whoever used it or by them are revoked with it, and their sessions end.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn revoke_key(&self, id: KeyId, by: Arc<str>, at_us: i64) -> Result<bool, Error> {
        self.change(move |conn| keys::revoke(conn, id, &by, at_us).map(Ok)).await
    }
}
