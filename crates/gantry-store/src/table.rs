//! The tables beside the ledger that change, one file each: rows go in, rows come out.

pub(crate) mod approvals;
pub(crate) mod grants;
pub(crate) mod keys;

use crate::error::Error;
use crate::ledger::execute;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Params, Row};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// How often one of the tables was changed, by any process.
pub(crate) fn version(conn: &Connection) -> Result<i64, Error> {
    conn.prepare_cached("SELECT n FROM changes")
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(Error::sqlite)
}

/// Counts a change.
pub(crate) fn changed(conn: &Connection) -> Result<(), Error> {
    execute(conn, "UPDATE changes SET n = n + 1", [])
}

/// Every row that a query finds.
fn all<T>(
    conn: &Connection,
    sql: &str,
    values: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Error> {
    conn.prepare_cached(sql)
        .and_then(|mut query| query.query_map(values, read)?.collect())
        .map_err(Error::sqlite)
}

/// The first row that a query finds.
fn first<T>(
    conn: &Connection,
    sql: &str,
    values: impl Params,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, Error> {
    conn.prepare_cached(sql)
        .and_then(|mut query| query.query_row(values, read).optional())
        .map_err(Error::sqlite)
}

/// Runs a change and says whether there was anything to change.
fn did_change(conn: &Connection, sql: &str, values: impl Params) -> Result<bool, Error> {
    let n_rows =
        conn.prepare_cached(sql).and_then(|mut change| change.execute(values)).map_err(Error::sqlite)?;
    Ok(n_rows > 0)
}

/// The meaning of a column that holds a word of a closed set.
fn word<T>(row: &Row<'_>, index: usize, parse: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(index)?;
    parse(&text).ok_or_else(|| malformed(index, format!("a row says \"{text}\"").into()))
}

/// The value of a column that holds JSON.
fn json<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let text: String = row.get(index)?;
    serde_json::from_str(&text).map_err(|error| malformed(index, error.into()))
}

/// The value of a column that holds JSON or nothing.
fn optional_json<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(index)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| malformed(index, error.into()))).transpose()
}

fn malformed(index: usize, cause: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, cause)
}

/// The projects to look through: each once, or all of them at once.
fn each_project(projects: Option<&[Arc<str>]>) -> Vec<Option<Arc<str>>> {
    let Some(projects) = projects else { return vec![None] };
    let mut projects = projects.to_vec();
    projects.sort_unstable();
    projects.dedup();
    projects.into_iter().map(Some).collect()
}
