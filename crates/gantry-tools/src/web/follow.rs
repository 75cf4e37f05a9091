//! Runs a fetch: asks, follows what may be followed, reads the answer.

use super::answer::{self, Page};
use super::fault;
use super::fetch::{Basis, Fetch};
use super::gate::{Gate, URL_BYTES};
use gantry_core::{ErrorCode, Fault, Permit, ToolError};
use gantry_egress::{FollowError, HttpClient, OutboundRequest, REDIRECTS, Redirect, Url, follow};
use serde_json::Value;

/// Does what the permit is for.
pub(super) async fn run(client: &HttpClient, gate: &Gate, permit: &Permit) -> Result<Value, Fault> {
    let fetch = Fetch::parse(permit.arguments(), gate).map_err(Fault::without_effect)?;
    let basis = Basis::of(permit.precondition());
    if basis == Basis::AllowList && !gate.lists(&fetch.url) {
        return Err(Fault::without_effect(fault::outdated()));
    }
    let fetcher = Fetcher { client, gate, fetch: &fetch, basis };
    match tokio::time::timeout(fetch.timeout, fetcher.follow_redirects()).await {
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
pub(super) struct Fetcher<'a> {
    pub(super) client: &'a HttpClient,
    pub(super) gate: &'a Gate,
    pub(super) fetch: &'a Fetch,
    pub(super) basis: Basis,
}

impl Fetcher<'_> {
    async fn follow_redirects(&self) -> Result<Page, Fault> {
        let Fetch { method, url, headers, body, .. } = self.fetch;
        let request = OutboundRequest {
            method: method.clone(),
            url: url.clone(),
            headers: headers.clone(),
            body: body.clone().into(),
            connect_retries: &[],
        };
        let decide = |redirect: Redirect<'_>| self.judge(redirect.from, redirect.location).map(Some);
        match follow(self.client, request, decide).await {
            Ok(followed) if followed.too_many => Err(fault::too_many_redirects(url, REDIRECTS)),
            Ok(followed) => answer::read(followed, method).await,
            Err(FollowError::Http { error, url, .. }) => Err(fault::http(method, &url, &error)),
            Err(FollowError::Refused(fault)) => Err(fault),
        }
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
        if self.gate.lists(&next) || (self.basis == Basis::Approval && is_same_host(&self.fetch.url, &next)) {
            return Ok(next);
        }
        refuse(match self.basis {
            Basis::AllowList => "it is not on the allow-list; fetch that url itself to ask a person",
            Basis::Approval => "the approval is for another host; fetch that url itself to ask for it",
        })
    }
}

/// Whether a yes for one address is a yes for the other: the same host, at the same port or a usual one.
fn is_same_host(asked: &Url, next: &Url) -> bool {
    asked.host_str() == next.host_str() && (next.port().is_none() || next.port() == asked.port())
}
