//! Reads requests: senders, bodies, queries, ids, times and pages, each with an error that names the field.

use crate::error::ApiError;
use crate::model::{List, NoQuery};
use crate::{App, Identity};
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use gantry_core::{EntryPoint, ErrorCode};
use gantry_runtime::ledger::{Page, Store};
use gantry_runtime::projects::Context;
use gantry_runtime::{Runtime, Session};
use http::request::Parts;
use http::{StatusCode, header};
use hyper::body::Body as _;
use serde::de::DeserializeOwned;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

/// How much of an oversized body is drained before responding 413; closing earlier would reset the connection before the
/// client reads the response.
const MAX_BYTES_DRAINED: usize = 64 * 1024 * 1024;

/// Reads a whole body, bounded in size and time.
pub(crate) async fn bytes(body: Body) -> Result<Bytes, ApiError> {
    match tokio::time::timeout(super::BODY_TIMEOUT, read_bounded(body)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => {
            let message =
                format!("the body is larger than {} bytes; send a smaller one", super::MAX_BODY_BYTES);
            Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::InvalidArguments, message))
        }
        Ok(Err(error)) => Err(ApiError::invalid(format!("the body did not arrive whole: {error}"))),
        Err(_) => {
            let message = "the body did not arrive in time";
            Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::InvalidArguments, message))
        }
    }
}

/// A body, or nothing if it is too large.
async fn read_bounded(body: Body) -> Result<Option<Bytes>, axum::Error> {
    let mut pieces = body.into_data_stream();
    let mut bytes = BytesMut::new();
    let mut drained = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if drained == 0 && bytes.len() + piece.len() <= super::MAX_BODY_BYTES {
            // Most bodies come in one piece, which is not copied.
            if bytes.is_empty() && pieces.is_end_stream() {
                return Ok(Some(piece));
            }
            bytes.extend_from_slice(&piece);
        } else {
            bytes = BytesMut::new();
            drained += piece.len();
            if drained > MAX_BYTES_DRAINED {
                break;
            }
        }
    }
    Ok((drained == 0).then(|| bytes.freeze()))
}

pub(crate) type Answer<T> = Result<axum::Json<T>, ApiError>;

#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) app: App,
    pub(crate) identity: Identity,
}

impl Deref for Sender {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

impl FromRequestParts<App> for Sender {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        // The listener puts it there; so does the command line.
        let identity = parts.extensions.get::<Identity>().cloned();
        let missing = || ApiError::unauthorised("the request was not authenticated");
        Ok(Self { app: app.clone(), identity: identity.ok_or_else(missing)? })
    }
}

impl Sender {
    pub(crate) fn store(&self) -> &Store {
        self.app.projects.store()
    }

    /// The project that the request names, or else the default of its sender.
    pub(crate) fn known_project(&self, named: Option<&str>) -> Result<Arc<str>, ApiError> {
        let known = self.app.projects.named(self.project(named)?);
        known.ok_or_else(|| ApiError::not_found("there is no such project"))
    }

    /// The project that a list of what there is now is of; none for a list of all.
    pub(crate) fn listed_project(&self, named: Option<&str>) -> Result<Option<Arc<str>>, ApiError> {
        named.map(|name| self.known_project(Some(name))).transpose()
    }

    /// The projects whose records a list may have; none for a list of all. The records of a project that was removed can
    /// still be read.
    pub(crate) fn recorded_projects(&self, named: Option<&str>) -> Result<Option<Vec<Arc<str>>>, ApiError> {
        let Some(name) = named else { return Ok(self.projects.as_deref().map(<[_]>::to_vec)) };
        self.check_project(name)?;
        Ok(Some(vec![name.into()]))
    }

    pub(crate) async fn context(
        &self,
        project: Option<&str>,
        agent: Option<&str>,
    ) -> Result<Context, ApiError> {
        let project = self.known_project(project)?;
        let agent = self.effective_agent(agent)?;
        Ok(self.app.projects.context(&project, agent.as_deref()).await?)
    }

    /// The session that the requests of a sender to the API share; those of the owner come from the command line.
    pub(crate) async fn shared_session(
        &self,
        project: Option<&str>,
        agent: Option<&str>,
    ) -> Result<(Arc<Runtime>, Arc<Session>), ApiError> {
        let Context { runtime, agent } = self.context(project, agent).await?;
        let entry_point = if self.owner { EntryPoint::Cli } else { EntryPoint::Http };
        let session = runtime.shared_session(self.caller(&runtime.project, agent), entry_point).await?;
        Ok((runtime, session))
    }
}

/// The query of a request; a mistake in it is answered in the shape of every error.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Query::try_from_uri(&parts.uri);
        read.map(|query| Self(query.0)).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }
}

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Ok(Query::from_request_parts(parts, state).await?.0)
    }
}

/// The parameters of the path; a mistake in them is answered in the shape of every error.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Path::from_request_parts(parts, state).await;
        read.map(|named| Self(named.0)).map_err(|rejection| ApiError::invalid(rejection.body_text()))
    }
}

/// Reads a body of this type; the error names the field.
pub(crate) async fn read<T: DeserializeOwned>(what: &str, body: Body) -> Result<T, ApiError> {
    parse(what, &bytes(body).await?)
}

/// The same for a body that may be missing.
pub(crate) async fn read_optional<T: DeserializeOwned + Default>(
    what: &str,
    body: Body,
) -> Result<T, ApiError> {
    let bytes = bytes(body).await?;
    if bytes.is_empty() { Ok(T::default()) } else { parse(what, &bytes) }
}

fn parse<T: DeserializeOwned>(what: &str, bytes: &Bytes) -> Result<T, ApiError> {
    let text = std::str::from_utf8(bytes).map_err(|_invalid| ApiError::invalid("the body is not UTF-8"))?;
    // Refuses duplicate keys and the like, which readers would read differently.
    gantry_core::json::check(text)
        .map_err(|error| ApiError::invalid(format!("the body is unusable: {error}")))?;
    serde_json::from_str(text).map_err(|error| ApiError::invalid(format!("the body is not {what}: {error}")))
}

pub(crate) fn id<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|error: T::Err| ApiError::invalid(error.to_string()))
}

/// A moment, as RFC 3339 or as a span back from now such as `15m`, in microseconds.
pub(crate) fn moment(name: &str, text: Option<&str>) -> Result<Option<i64>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    gantry_runtime::clock::parse(text).map(Some).ok_or_else(|| {
        ApiError::invalid(format!(
            "{name} is a time such as 2026-11-15T09:00:00Z or a span back from now such as 15m, not {text:?}"
        ))
    })
}

/// Rows of a page, at most and unless the request says.
const MAX_PAGE: u32 = 1000;
const DEFAULT_PAGE: u32 = 50;

/// Bytes of the rows of a page; the row that exceeds this is the last.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Rows that are read for one page.
const MAX_ROWS_SCANNED: usize = 20_000;

/// A part of a list: of the rows that the sender may see, which the store cannot tell.
pub(crate) async fn list<R, C, F, T>(
    cursor: Option<C>,
    limit: Option<u32>,
    fetch: impl Fn(Option<C>, u32) -> F,
    place: fn(&R) -> (C, usize),
    keep: impl Fn(&R) -> bool,
) -> Result<List<T>, ApiError>
where
    C: ToString,
    F: Future<Output = Result<Page<R, C>, gantry_runtime::ledger::Error>>,
    T: for<'a> From<&'a R>,
{
    let page = paginate_filtered(cursor, limit, fetch, place, keep).await?;
    let next = page.next.map(|next| next.to_string());
    Ok(List { items: page.items.iter().map(T::from).collect(), next })
}

/// `fetch` reads at most so many rows after a cursor; `place` is the cursor of a row, and its size where that matters. A
/// page may have fewer items than were asked for and still have a next one.
async fn paginate_filtered<R, C, F>(
    mut cursor: Option<C>,
    limit: Option<u32>,
    fetch: impl Fn(Option<C>, u32) -> F,
    place: fn(&R) -> (C, usize),
    keep: impl Fn(&R) -> bool,
) -> Result<Page<R, C>, ApiError>
where
    F: Future<Output = Result<Page<R, C>, gantry_runtime::ledger::Error>>,
{
    let limit = limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_PAGE).min(MAX_PAGE);
    let (mut items, mut seen, mut size) = (Vec::new(), 0, 0);
    loop {
        // The sender may see few of the rows that are read.
        let page = fetch(cursor, limit.max(DEFAULT_PAGE)).await?;
        seen += page.items.len();
        let mut rows = page.items.into_iter();
        let mut full = false;
        while !full && let Some(row) = rows.find(&keep) {
            size += place(&row).1;
            items.push(row);
            full = items.len() >= limit as usize || size >= MAX_ANSWER_BYTES;
        }
        let more = rows.next().is_some() || page.next.is_some();
        match page.next {
            Some(next) if !full && seen < MAX_ROWS_SCANNED => cursor = Some(next),
            _ if full => {
                return Ok(Page { next: items.last().map(|row| place(row).0).filter(|_| more), items });
            }
            next => return Ok(Page { items, next }),
        }
    }
}

pub(crate) fn json_response(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows 100, 99, … 1, as the store pages them.
    async fn fetch(cursor: Option<i64>, limit: u32) -> Result<Page<i64, i64>, gantry_runtime::ledger::Error> {
        let below = cursor.unwrap_or(101);
        let items: Vec<i64> = (1..below).rev().take(limit as usize).collect();
        let next = items.last().copied().filter(|last| *last > 1);
        Ok(Page { items, next })
    }

    async fn walk(limit: u32, keep: impl Fn(&i64) -> bool + Copy) -> Vec<i64> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = paginate_filtered(cursor, Some(limit), fetch, |row| (*row, 0), keep).await.unwrap();
            assert!(page.items.len() <= limit as usize);
            all.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                return all;
            }
        }
    }

    #[tokio::test]
    async fn no_row_is_lost_or_given_twice_whatever_is_left_out() {
        for limit in [1, 3, 7, 50, 1000] {
            for every in [1, 2, 9, 100] {
                let expected: Vec<i64> = (1..=100).rev().filter(|row| row % every == 0).collect();
                assert_eq!(walk(limit, |row| row % every == 0).await, expected, "{limit} {every}");
            }
            assert!(walk(limit, |_| false).await.is_empty());
        }
    }

    #[tokio::test]
    async fn the_store_is_not_asked_row_by_row_for_the_few_that_are_wanted() {
        let reads = std::cell::Cell::new(0);
        let counted = |cursor, limit| {
            reads.set(reads.get() + 1);
            fetch(cursor, limit)
        };
        let page = paginate_filtered(None, Some(1), counted, |row| (*row, 0), |row| *row == 2).await.unwrap();
        assert_eq!((page.items, page.next, reads.get()), (vec![2], Some(2), 2));
    }

    #[tokio::test]
    async fn an_answer_that_has_many_bytes_is_short_and_says_that_there_is_more() {
        let place = |row: &i64| (*row, MAX_ANSWER_BYTES / 3);
        let page = paginate_filtered(None, Some(50), fetch, place, |row| row % 2 == 0).await.unwrap();
        assert_eq!((page.items, page.next), (vec![100, 98, 96, 94], Some(94)));
    }
}
