//! `web_search`: asks the search service that the operator has configured.
//!
//! Its address is the operator's, not the agent's, so errors may say what is wrong with it.

use super::markdown::plain_text;
use crate::options::{SearchApi, WebSearchOptions};
use crate::tool::prelude::*;
use crate::tool::run_blocking;
use gantry_core::EffectState;
use gantry_egress::{HttpClient, HttpError, Url};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

const MAX_RESULTS: usize = 20;

const QUERY_CHARS: usize = 400;

const ANSWER_TIME: Duration = Duration::from_secs(20);

const ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// Characters of a title, of a snippet.
const TITLE_CHARS: usize = 300;
const SNIPPET_CHARS: usize = 1000;
/// Bytes of a title or a snippet that are read.
const FIELD_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct WebSearch {
    client: HttpClient,
    api: SearchApi,
    url: Url,
    /// The credentials of the operator among them.
    headers: HeaderMap,
}

/// Searches the web with the configured search service and returns titles, addresses and snippets. Use it to find
/// pages, and web_fetch to read them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Args {
    /// What to look for.
    #[schemars(length(min = 1, max = QUERY_CHARS))]
    query: String,
    /// How many results to return at most.
    #[serde(default = "default_results")]
    #[schemars(range(min = 1, max = MAX_RESULTS))]
    num_results: usize,
}

fn default_results() -> usize {
    5
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The best results first.
    results: Vec<SearchResult>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SearchResult {
    /// The title of the page.
    title: String,
    /// Its address.
    url: String,
    /// What the page says about the query; may be empty.
    snippet: String,
}

impl Tool for WebSearch {
    const NAME: &'static str = "web_search";
    const TITLE: &'static str = "Search the web";
    const HINTS: Annotations = Annotations { open_world_hint: Some(true), ..READS };
    const TIME_LIMIT: Option<Duration> = Some(Duration::from_mins(1));
    type Args = Args;
    type Output = Output;

    async fn run(&self, call: PermittedCall<Args>) -> Result<Output> {
        let (query, most) = (call.args.query.trim(), call.args.num_results);
        if query.is_empty() || query.chars().count() > QUERY_CHARS {
            return Err(failure::invalid(format!("the query has 1 to {QUERY_CHARS} characters")));
        }
        let hits = tokio::time::timeout(ANSWER_TIME, self.ask(query, most)).await;
        let hits = hits.map_err(|_elapsed| {
            failure::timeout(format!("the search service did not answer within {} s", ANSWER_TIME.as_secs()))
        })??;
        // Markup of a stranger can take long to read.
        let read = move || hits.iter().filter_map(Hit::to_result).take(most).collect();
        Ok(Output { results: run_blocking(EffectState::None, read).await? })
    }
}

impl WebSearch {
    pub(super) fn new(client: HttpClient, options: WebSearchOptions) -> Result<Self, HttpError> {
        let WebSearchOptions { api, url, api_key } = options;
        let key = api_key.unwrap_or_default();
        let (public, path, key) = match api {
            SearchApi::Searxng => ("", "search", None),
            SearchApi::Brave => {
                let key = (HeaderName::from_static("x-subscription-token"), key.expose().to_owned());
                ("https://api.search.brave.com", "res/v1/web/search", Some(key))
            }
            SearchApi::Tavily => {
                let key = (header::AUTHORIZATION, format!("Bearer {}", key.expose()));
                ("https://api.tavily.com", "search", Some(key))
            }
        };
        let address = url.unwrap_or_else(|| public.to_owned());
        let unusable =
            |reason: &str| HttpError::Request { address: address.clone(), reason: reason.to_owned() };
        let url = endpoint(&address, path);
        let url = url.ok_or_else(|| unusable("web.search.url is no http or https address"))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if let Some((name, key)) = key {
            let mut key = HeaderValue::from_str(&key)
                .map_err(|_illegal| unusable("web.search.apiKey has characters that no header may have"))?;
            key.set_sensitive(true);
            headers.insert(name, key);
        }
        Ok(Self { client, api, url, headers })
    }

    async fn ask(&self, query: &str, most: usize) -> Result<Vec<Hit>> {
        let (mut url, mut headers) = (self.url.clone(), self.headers.clone());
        let (mut method, mut body) = (Method::GET, String::new());
        match self.api {
            SearchApi::Searxng => {
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
            }
            SearchApi::Brave => {
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &most.to_string());
            }
            SearchApi::Tavily => {
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                method = Method::POST;
                body = json!({ "query": query, "max_results": most }).to_string();
            }
        }
        let sent = self.client.send(method, url.as_str(), headers, body.into()).await;
        let response = sent.map_err(|error| unreachable(&error))?;
        let status = response.status();
        let body = response.body(ANSWER_BYTES).await.map_err(|error| unreachable(&error))?;
        if !status.is_success() {
            return Err(refused(self.api, status));
        }
        hits(self.api, &body).ok_or_else(|| {
            let hint =
                if self.api == SearchApi::Searxng { ", or json is not among its search.formats" } else { "" };
            failure::failed(format!(
                "the search service answered something else than results; check web.search.url{hint}"
            ))
        })
    }
}

/// The URL to ask: the given one if its path says so, else one below it.
fn endpoint(url: &str, path: &str) -> Option<Url> {
    let mut url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    if !url.path().trim_end_matches('/').ends_with("/search") {
        url.path_segments_mut().ok()?.pop_if_empty().extend(path.split('/'));
    }
    Some(url)
}

/// A page that was found. Titles and snippets may have markup.
#[derive(Debug, Deserialize)]
struct Hit {
    url: String,
    title: Option<String>,
    /// What SearXNG and Tavily call the snippet.
    content: Option<String>,
    /// What Brave calls it.
    description: Option<String>,
}

impl Hit {
    fn to_result(&self) -> Option<SearchResult> {
        let url = Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let words = |html: Option<&String>, most| {
            let html = html.map(String::as_str).unwrap_or_default();
            plain_text(html.get(..html.floor_char_boundary(FIELD_BYTES)).unwrap_or_default(), most)
        };
        let snippet = self.content.as_ref().or(self.description.as_ref());
        Some(SearchResult {
            title: words(self.title.as_ref(), TITLE_CHARS),
            url: url.into(),
            snippet: words(snippet, SNIPPET_CHARS),
        })
    }
}

/// The pages, best first; none if the answer is none of this service. A page that cannot be read is left out.
fn hits(api: SearchApi, body: &[u8]) -> Option<Vec<Hit>> {
    let mut answer: Value = serde_json::from_slice(body).ok()?;
    let found = match api {
        SearchApi::Searxng | SearchApi::Tavily => answer.get_mut("results")?.take(),
        SearchApi::Brave => {
            answer.get("type").filter(|kind| *kind == "search")?;
            // Left out where nothing was found.
            answer.pointer_mut("/web/results").map_or_else(|| Value::Array(Vec::new()), Value::take)
        }
    };
    let Value::Array(found) = found else { return None };
    Some(found.into_iter().filter_map(|hit| serde_json::from_value(hit).ok()).collect())
}

fn refused(api: SearchApi, status: StatusCode) -> CallFailure {
    let why = match (api, status.as_u16()) {
        (SearchApi::Searxng, 403) => "it does not give JSON; add json to its search.formats".to_owned(),
        (SearchApi::Searxng, 401) => "it wants a login".to_owned(),
        (SearchApi::Brave | SearchApi::Tavily, 401 | 403 | 422) => {
            "it does not take the key; check web.search.apiKey".to_owned()
        }
        (_, 429 | 432 | 433) => "there were too many searches; try again later".to_owned(),
        (_, code) => format!("it answered {code}"),
    };
    failure::failed(format!("the search service refused: {why}"))
}

fn unreachable(error: &HttpError) -> CallFailure {
    tracing::info!(%error, "web_search got no answer");
    let message = |why: &str| format!("the search service cannot be used: {why}");
    match error {
        HttpError::NotAllowed { .. } => failure::unavailable(message(
            "it is not at a public address; open that address by web.allowPrivate if it is the right one",
        )),
        HttpError::Redirect { .. } => {
            failure::failed(message("it redirects elsewhere; set web.search.url to where it is"))
        }
        HttpError::TooLarge { .. } => failure::failed(message("its answer is too long")),
        HttpError::Broken { .. } => failure::failed(message("the connection broke")),
        HttpError::Request { .. } | HttpError::Connect { .. } => failure::unavailable(message(
            "it cannot be connected to; check web.search.url. The log says more",
        )),
    }
}
