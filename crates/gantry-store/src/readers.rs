//! The few connections that only read, used from threads that may block.

use crate::error::Error;
use crate::options::READERS;
use crate::sql::Connection;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

#[derive(Debug, Clone)]
pub(crate) struct Readers {
    path: Arc<PathBuf>,
    /// One permit per connection that may be in use.
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    /// A pool of which no connection is open yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path: Arc::new(path), permits: Arc::new(Semaphore::new(READERS)), idle: Arc::default() }
    }

    /// Runs a query on one of the connections, when one is free.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        // The permit belongs to the query and not to its caller, which may stop waiting before it ends.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok().ok_or(Error::Closed)?;
        let pool = self.clone();
        let ran = tokio::task::spawn_blocking(move || {
            let idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let conn = match idle {
                Some(conn) => conn,
                None => Connection::open_reader(&pool.path)?,
            };
            let found = query(&conn);
            pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
            drop(permit);
            found
        });
        ran.await.unwrap_or_else(|stopped| Err(Error::unexpected(stopped)))
    }

    /// Closes the connections that are idle. One that is still in use is closed with the pool.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
