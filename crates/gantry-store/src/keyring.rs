//! What the store does for credentials: keep them, list them, end them, and with them what their names stood for.

use crate::key::{KeyRow, Standing};
use crate::table::keys;
use crate::{Error, Store};
use gantry_core::id::KeyId;
use std::sync::Arc;

impl Store {
    /// Keeps a credential; durable when it returns. What was granted to or by an earlier key of the name ends with that.
    ///
    /// # Errors
    /// `TooManyKeys`, `NameTaken` if another key that holds has the name, `NameUsed` if another key has called under it,
    /// or the store cannot be written.
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

    /// What a name stands for at that moment.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn standing_of(&self, name: Arc<str>, now_us: i64) -> Result<Standing, Error> {
        self.look(move |conn| keys::standing(conn, &name, now_us)).await
    }

    /// Revokes a credential; durable when it returns. Unless another key of the name holds, the grants that were given
    /// to whoever used it or by them are revoked with it, and their sessions end. Returns whether it held until now.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn revoke_key(&self, id: KeyId, by: Arc<str>, at_us: i64) -> Result<bool, Error> {
        self.change(move |conn| keys::revoke(conn, id, &by, at_us).map(Ok)).await
    }

    /// Ends the grants and sessions of keys that expired before that moment, of at most so many keys; durable when it
    /// returns. Returns of how many there were any. Those grants held no more before; this is for those who list them.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn lapse(&self, now_us: i64, limit: u32) -> Result<usize, Error> {
        // Nearly always there is none, and then nothing is written.
        let lapsed = self.look(move |conn| keys::lapsed(conn, now_us, limit)).await?;
        if lapsed.is_empty() {
            return Ok(0);
        }
        self.change(move |conn| keys::lapse(conn, &lapsed, now_us).map(|()| Ok(lapsed.len()))).await
    }

    /// Names, at most so many, of which calls wait although every key of the name was revoked or has expired by then.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn ended_callers(&self, now_us: i64, limit: u32) -> Result<Vec<Arc<str>>, Error> {
        self.look(move |conn| keys::ended_callers(conn, now_us, limit)).await
    }
}
