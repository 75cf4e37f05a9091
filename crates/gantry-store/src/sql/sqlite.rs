//! SQLite behind the seam: connections, transactions and rows, and what the driver's errors mean for the operator.

mod open;
#[cfg(test)]
mod tests;

use super::{Column, Query, Statement, Value};
use crate::error::Error;
use gantry_core::truncate::truncate;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, TransactionBehavior, params_from_iter};
use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

/// Limit: bytes of a damaged value that an error shows.
const SHOWN_BYTES: usize = 100;

/// A connection. Statements are prepared once for each.
#[derive(Debug)]
pub(crate) struct Connection {
    driver: rusqlite::Connection,
    n_changed: Cell<u64>,
}

impl Connection {
    fn new(driver: rusqlite::Connection) -> Self {
        Self { driver, n_changed: Cell::new(0) }
    }

    /// Begins a transaction that writes: it waits until no other process has one.
    pub(crate) fn write(&mut self) -> Result<Transaction<'_>, Error> {
        self.transaction(TransactionBehavior::Immediate)
    }

    /// Begins a transaction that reads, so that all statements see the same moment.
    pub(crate) fn snapshot(&self) -> Result<Transaction<'_>, Error> {
        self.transaction(TransactionBehavior::Deferred)
    }

    fn transaction(&self, behavior: TransactionBehavior) -> Result<Transaction<'_>, Error> {
        let driver = rusqlite::Transaction::new_unchecked(&self.driver, behavior).map_err(sqlite_error)?;
        Ok(Transaction { connection: self, driver })
    }

    /// Runs a statement that changes rows. Returns how many.
    pub(crate) fn execute(&self, statement: Statement, values: &[Value<'_>]) -> Result<u64, Error> {
        let n_rows = self
            .driver
            .prepare_cached(statement.text())
            .and_then(|mut statement| statement.execute(params_from_iter(values)))
            .map(|n_rows| n_rows as u64);
        // A statement that failed may have changed a part.
        self.n_changed.set(self.n_changed.get() + *n_rows.as_ref().unwrap_or(&1));
        n_rows.map_err(sqlite_error)
    }

    /// How many rows this connection has changed, or tried to.
    pub(crate) fn n_changed(&self) -> u64 {
        self.n_changed.get()
    }

    /// Every row that a statement finds.
    pub(crate) fn all<T>(
        &self,
        statement: Statement,
        values: &[Value<'_>],
        read: fn(&mut Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.collect(statement.text(), values, read)
    }

    /// The first row that a statement finds.
    pub(crate) fn first<T>(
        &self,
        statement: Statement,
        values: &[Value<'_>],
        read: fn(&mut Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut found = None;
        self.each(statement.text(), values, |row| {
            found = Some(read(row)?);
            Ok(false)
        })?;
        Ok(found)
    }

    /// The rows of a list.
    pub(crate) fn list<T>(
        &self,
        query: Query<'_>,
        limit: u32,
        read: fn(&mut Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let (sql, values) = query.finish(limit);
        self.collect(&sql, &values, read)
    }

    /// Hands over one row after the other, for as long as `visit` returns true.
    pub(crate) fn visit(
        &self,
        statement: Statement,
        values: &[Value<'_>],
        visit: impl FnMut(&mut Row<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.each(statement.text(), values, visit)
    }

    /// Moves the log into the database file and closes it.
    pub(crate) fn close(self) -> Result<(), Error> {
        let emptied = self.driver.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        emptied.and(self.driver.close().map_err(|(_, error)| error)).map_err(sqlite_error)
    }

    fn collect<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: fn(&mut Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut found = Vec::new();
        self.each(sql, values, |row| {
            found.push(read(row)?);
            Ok(true)
        })?;
        Ok(found)
    }

    fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut visit: impl FnMut(&mut Row<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut statement = self.driver.prepare_cached(sql).map_err(sqlite_error)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(sqlite_error)?;
        while let Some(driver) = rows.next().map_err(sqlite_error)? {
            if !visit(&mut Row { driver, next: 0 })? {
                break;
            }
        }
        Ok(())
    }
}

/// A transaction, which is undone unless it is committed.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    connection: &'a Connection,
    driver: rusqlite::Transaction<'a>,
}

impl Transaction<'_> {
    pub(crate) fn commit(self) -> Result<(), Error> {
        self.driver.commit().map_err(sqlite_error)
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// A row, whose columns are read in their order.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    driver: &'a rusqlite::Row<'a>,
    next: usize,
}

impl<'a> Row<'a> {
    /// The value of the next column, as it is.
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Error> {
        let value = self.driver.get_ref(self.next).map_err(sqlite_error)?;
        self.next += 1;
        match value {
            ValueRef::Null => Ok(Value::Null),
            ValueRef::Integer(number) => Ok(Value::Number(number)),
            ValueRef::Text(text) => std::str::from_utf8(text)
                .map(|text| Value::Text(Cow::Borrowed(text)))
                .map_err(|_invalid| Error::corrupt("a text that is not UTF-8")),
            ValueRef::Blob(bytes) => Ok(Value::Bytes(bytes)),
            ValueRef::Real(_) => Err(Error::corrupt("a column holds a fraction")),
        }
    }

    /// The next column.
    pub(crate) fn take<T: Column>(&mut self) -> Result<T, Error> {
        let value = self.value()?;
        T::parse(value.clone())
            .ok_or_else(|| Error::corrupt(truncate(&format!("a column holds {value:?}"), SHOWN_BYTES)))
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Sorts an error of the driver by what the operator can do about it.
fn sqlite_error(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            Error::Busy
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::corrupt(error.to_string()),
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied,
        ) => Error::Disk(Arc::new(error)),
        Some(_) | None => Error::unexpected(error),
    }
}
