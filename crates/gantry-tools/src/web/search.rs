//! `web_search`: asks the search service that the operator has configured.
//!
//! Its address is the operator's, not the agent's, so errors may say what is wrong with it.

mod reply;

use super::markdown::plain;
use crate::own;
use gantry_core::{ErrorCode, Fault, Permit, ToolError};
use gantry_egress::{HttpClient, HttpError, Url};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use reply::Hit;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Results unless the agent says how many, and at most.
pub(super) const RESULTS: usize = 5;
pub(super) const MAX_RESULTS: usize = 20;

/// Characters of a query.
pub(super) const QUERY_CHARS: usize = 400;

/// How long the service may take.
const ANSWER: Duration = Duration::from_secs(20);

/// Bytes of its answer.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Characters of a title, of a snippet.
const TITLE_CHARS: usize = 300;
const SNIPPET_CHARS: usize = 1000;
/// Bytes of a title or a snippet that are read.
const FIELD_BYTES: usize = 16 * 1024;

const BRAVE: &str = "https://api.search.brave.com";
const TAVILY: &str = "https://api.tavily.com";

/// A search service.
#[derive(Clone)]
pub enum SearchApi {
    /// An instance of SearXNG that gives JSON.
    Searxng { url: String },
    /// Brave's; at its public address unless another is given.
    Brave { url: Option<String>, key: String },
    /// Tavily's; at its public address unless another is given.
    Tavily { url: Option<String>, key: String },
}

impl std::fmt::Debug for SearchApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Searxng { .. } => "Searxng",
            Self::Brave { .. } => "Brave",
            Self::Tavily { .. } => "Tavily",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    Searxng,
    Brave,
    Tavily,
}

/// A search service that can be asked.
#[derive(Debug)]
pub(super) struct Search {
    api: Api,
    url: Url,
    /// The headers that let us in.
    headers: HeaderMap,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    query: String,
    num_results: Option<usize>,
}

impl Search {
    pub(super) fn new(service: SearchApi) -> Result<Self, HttpError> {
        let (api, url, path, key) = match service {
            SearchApi::Searxng { url } => (Api::Searxng, url, "search", None),
            SearchApi::Brave { url, key } => {
                let key = (header::HeaderName::from_static("x-subscription-token"), key);
                (Api::Brave, url.unwrap_or_else(|| BRAVE.to_owned()), "res/v1/web/search", Some(key))
            }
            SearchApi::Tavily { url, key } => {
                let key = (header::AUTHORIZATION, format!("Bearer {key}"));
                (Api::Tavily, url.unwrap_or_else(|| TAVILY.to_owned()), "search", Some(key))
            }
        };
        let unusable = |reason: &str| HttpError::Request { address: url.clone(), reason: reason.to_owned() };
        let place =
            endpoint(&url, path).ok_or_else(|| unusable("web.search.url is no http or https address"))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some((name, key)) = key {
            let mut key = HeaderValue::from_str(&key)
                .map_err(|_illegal| unusable("web.search.apiKey has characters that no header may have"))?;
            key.set_sensitive(true);
            headers.insert(name, key);
        }
        Ok(Self { api, url: place, headers })
    }

    /// Does what the permit is for.
    pub(super) async fn run(&self, client: &HttpClient, permit: &Permit) -> Result<Value, Fault> {
        let asked: Arguments = own::arguments(permit.arguments()).map_err(Fault::without_effect)?;
        let most = asked.num_results.unwrap_or(RESULTS).clamp(1, MAX_RESULTS);
        let query = asked.query.trim();
        if query.is_empty() || query.chars().count() > QUERY_CHARS {
            let message = format!("the query has 1 to {QUERY_CHARS} characters");
            return Err(failed(ErrorCode::InvalidArguments, message));
        }
        let answer = tokio::time::timeout(ANSWER, self.ask(client, query, most)).await;
        let hits = answer.map_err(|_elapsed| {
            failed(
                ErrorCode::Timeout,
                format!("the search service did not answer within {} s", ANSWER.as_secs()),
            )
        })??;
        // Off the async workers: markup of a stranger can take long to read.
        let results = move || hits.into_iter().filter_map(|hit| result(&hit)).take(most).collect::<Vec<_>>();
        let results = tokio::task::spawn_blocking(results).await.map_err(|error| {
            failed(ErrorCode::InternalError, format!("the results could not be read: {error}"))
        })?;
        Ok(json!({ "results": results }))
    }

    async fn ask(&self, client: &HttpClient, query: &str, most: usize) -> Result<Vec<Hit>, Fault> {
        let mut url = self.url.clone();
        let mut headers = self.headers.clone();
        let (method, body) = match self.api {
            Api::Searxng => {
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
                (Method::GET, String::new())
            }
            Api::Brave => {
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &most.to_string());
                (Method::GET, String::new())
            }
            Api::Tavily => {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                (Method::POST, json!({ "query": query, "max_results": most }).to_string())
            }
        };
        let response =
            client.send(method, url.as_str(), headers, body.into()).await.map_err(|e| unreached(&e))?;
        let status = response.status();
        let body = response.body(ANSWER_BYTES).await.map_err(|error| unreached(&error))?;
        if !status.is_success() {
            return Err(refused(self.api, status));
        }
        reply::hits(self.api, &body).ok_or_else(|| {
            let hint =
                if self.api == Api::Searxng { ", or json is not among its search.formats" } else { "" };
            let message = format!(
                "the search service answered something else than results; check web.search.url{hint}"
            );
            failed(ErrorCode::ExecutionError, message)
        })
    }
}

/// The address to ask: the given one if it has a path that says so, else below it.
fn endpoint(url: &str, path: &str) -> Option<Url> {
    let mut url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    if !url.path().trim_end_matches('/').ends_with("/search") {
        url.path_segments_mut().ok()?.pop_if_empty().extend(path.split('/'));
    }
    Some(url)
}

fn result(hit: &Hit) -> Option<Value> {
    let url = Url::parse(&hit.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some(json!({
        "title": plain(cut(hit.title()), TITLE_CHARS),
        "url": url.as_str(),
        "snippet": plain(cut(hit.snippet()), SNIPPET_CHARS),
    }))
}

/// As much of a text as its shown part can need.
fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(FIELD_BYTES)).unwrap_or_default()
}

/// Searching changes nothing, so no fault leaves anything behind.
fn failed(code: ErrorCode, message: impl Into<String>) -> Fault {
    Fault::without_effect(ToolError::new(code, message))
}

fn refused(api: Api, status: StatusCode) -> Fault {
    let why = match (api, status.as_u16()) {
        (Api::Searxng, 403) => "it does not give JSON; add json to its search.formats".to_owned(),
        (Api::Searxng, 401) => "it wants a login".to_owned(),
        (Api::Brave | Api::Tavily, 401 | 403 | 422) => {
            "it does not take the key; check web.search.apiKey".to_owned()
        }
        (_, 429 | 432 | 433) => "there were too many searches; try again later".to_owned(),
        (_, code) => format!("it answered {code}"),
    };
    failed(ErrorCode::ExecutionError, format!("the search service refused: {why}"))
}

fn unreached(error: &HttpError) -> Fault {
    tracing::info!(%error, "web_search got no answer");
    let (code, why) = match error {
        HttpError::NotAllowed { .. } => (
            ErrorCode::UpstreamUnavailable,
            "it is not at a public address; open that address by web.allowPrivate if it is the right one",
        ),
        HttpError::Redirect { .. } => {
            (ErrorCode::ExecutionError, "it redirects elsewhere; set web.search.url to where it is")
        }
        HttpError::TooLarge { .. } => (ErrorCode::ExecutionError, "its answer is too long"),
        HttpError::Broken { .. } => (ErrorCode::ExecutionError, "the connection broke"),
        HttpError::Setup(_) | HttpError::Request { .. } | HttpError::Connect { .. } => (
            ErrorCode::UpstreamUnavailable,
            "it cannot be connected to; check web.search.url. The log says more",
        ),
    };
    failed(code, format!("the search service cannot be used: {why}"))
}
