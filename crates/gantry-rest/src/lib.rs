//! REST services as tools: single requests that the configuration spells out, and APIs that an OpenAPI document describes.
//!
//! The inline tools are one provider, `rest`; each API is one of its own, `openapi:<id>`. All of them are in the
//! namespace `rest`, and all that they send passes one [`RestClient`].
//!
//! **Invariant:** the credentials that the configuration has for a service are sent to that service only. They are masked in
//! every message about a request that failed.

mod api;
mod auth;
mod client;
mod encode;
mod error;
mod inline;
mod load;
pub mod openapi;
mod options;
mod response;
mod stream;
mod template;
mod token;
mod tool_spec;

pub use api::ImportedApi;
pub use auth::fits;
pub use client::RestClient;
pub use load::files;
pub use options::{ApiOptions, Credential, Inline, RestOptions, SpecPlace, StreamMode, Streaming};

use api::Api;
use gantry_core::tool::{Origin, ToolKind};
use gantry_egress::Url;
use gantry_egress::address_guard::is_loopback;
use gantry_provider::Provider;
use inline::InlineTools;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A JSON object.
type Object = serde_json::Map<String, serde_json::Value>;

/// The namespace of all tools of REST services, and the provider of the inline ones.
pub const NAMESPACE: &str = "rest";

#[must_use]
pub fn provider_id(api: &str) -> String {
    format!("openapi:{api}")
}

/// Where the tools of an API come from.
#[must_use]
pub fn api_origin(api: &str) -> Origin {
    Origin { provider: provider_id(api).into(), namespace: NAMESPACE.into(), kind: ToolKind::Rest }
}

/// The providers of these services. Nothing is read or sent yet.
pub fn providers(options: RestOptions) -> Result<Vec<Arc<dyn Provider>>, String> {
    let RestOptions { private, inline, apis } = options;
    let client = Arc::new(RestClient::new(private));
    let names = inline.iter().map(|tool| tool.name.clone()).collect();
    let mut all: Vec<Arc<dyn Provider>> = Vec::new();
    if !inline.is_empty() {
        all.push(Arc::new(InlineTools::new(&inline, &client)?));
    }
    for options in apis {
        all.push(Arc::new(Api::new(options, &names, &client)?));
    }
    Ok(all)
}

/// Logs, once, that credentials are sent to another machine without encryption, if they are.
fn warn_about_cleartext(warned: &AtomicBool, sender: &str, url: &Url) {
    if url.scheme() == "http" && !is_loopback(url) && !warned.swap(true, Ordering::AcqRel) {
        let host = url.host_str().unwrap_or_default();
        tracing::warn!("{sender} sends credentials to {host} without encryption");
    }
}

#[cfg(test)]
mod tests;
