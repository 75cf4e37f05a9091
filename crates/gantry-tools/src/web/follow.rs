//! Runs a fetch: asks, follows what may be followed, reads the answer.

use super::answer::{self, Page};
use super::fault;
use super::fetch::{Fetch, Ground, for_strangers};
use super::gate::{Gate, URL_BYTES};
use gantry_core::{ErrorCode, Fault, Permit, ToolError};
use gantry_egress::{HttpClient, HttpResponse, Url};
use http::{Method, StatusCode, header};
use serde_json::Value;

/// Redirects that are followed.
const REDIRECTS: usize = 5;

/// Does what the permit is for.
pub(super) async fn run(client: &HttpClient, gate: &Gate, permit: &Permit) -> Result<Value, Fault> {
    let fetch = Fetch::parse(permit.arguments(), gate).map_err(Fault::without_effect)?;
    let ground = Ground::of(permit.precondition());
    if ground == Ground::List && !gate.lists(&fetch.url) {
        return Err(Fault::without_effect(fault::outdated()));
    }
    let walk = Walk { client, gate, fetch: &fetch, ground };
    match tokio::time::timeout(fetch.timeout, walk.to_the_end()).await {
        Ok(page) => shaped(page?, &fetch).await,
        Err(_) => Err(fault::timeout(&fetch.method, &fetch.url, fetch.timeout)),
    }
}

/// The result. A large page takes a while to read, so that happens on a thread that may block.
async fn shaped(page: Page, fetch: &Fetch) -> Result<Value, Fault> {
    let format = fetch.format;
    tokio::task::spawn_blocking(move || page.into_json(format)).await.map_err(|crash| {
        let message = format!("the page could not be read: {crash}");
        fault::after_sending(&fetch.method, ToolError::new(ErrorCode::InternalError, message))
    })
}

/// A fetch under way.
pub(super) struct Walk<'a> {
    pub(super) client: &'a HttpClient,
    pub(super) gate: &'a Gate,
    pub(super) fetch: &'a Fetch,
    pub(super) ground: Ground,
}

impl Walk<'_> {
    async fn to_the_end(&self) -> Result<Page, Fault> {
        let Fetch { method, body, .. } = self.fetch;
        let (mut url, mut headers) = (self.fetch.url.clone(), self.fetch.headers.clone());
        for hop in 0..=REDIRECTS {
            let body = body.clone().into();
            let asked = self.client.exchange(method.clone(), url.as_str(), headers.clone(), body).await;
            let response = asked.map_err(|error| fault::http(method, &url, &error))?;
            let Some(target) = target(method, &response) else {
                return answer::read(response, method, url, hop > 0).await;
            };
            let next = self.judge(&url, &target)?;
            if next.origin() != url.origin() {
                headers = for_strangers(&headers);
            }
            url = next;
        }
        Err(fault::too_many_redirects(&self.fetch.url, REDIRECTS))
    }

    /// Where a redirect leads, if it may be followed.
    pub(super) fn judge(&self, from: &Url, target: &str) -> Result<Url, Fault> {
        if target.len() > URL_BYTES {
            let start: String = target.chars().take(80).collect();
            return Err(fault::redirect(
                from,
                &format!("{start}…"),
                &format!("it is longer than {URL_BYTES} bytes"),
            ));
        }
        let next = from.join(target).map_err(|_unread| fault::redirect(from, target, "it is no address"))?;
        let next = self.gate.check(next).map_err(|error| fault::redirect(from, target, &error.message))?;
        let refuse = |why: &str| Err(fault::redirect(from, next.as_str(), why));
        if from.scheme() == "https" && next.scheme() == "http" {
            return refuse("it is not encrypted");
        }
        if self.gate.lists(&next) || (self.ground == Ground::Word && is_same_host(&self.fetch.url, &next)) {
            return Ok(next);
        }
        refuse(match self.ground {
            Ground::List => "it is not on the allow-list; fetch that url itself to ask a person",
            Ground::Word => "the approval is for another host; fetch that url itself to ask for it",
        })
    }
}

/// Whether a yes for one address is a yes for the other: the same host, at the same port or a usual one.
fn is_same_host(asked: &Url, next: &Url) -> bool {
    asked.host_str() == next.host_str() && (next.port().is_none() || next.port() == asked.port())
}

/// Where the answer points instead. What was sent is not sent again elsewhere, so only a GET is ever followed.
fn target(method: &Method, response: &HttpResponse) -> Option<String> {
    let follows = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    if *method != Method::GET || !follows.contains(&response.status()) {
        return None;
    }
    let location = response.headers().get(header::LOCATION)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}
