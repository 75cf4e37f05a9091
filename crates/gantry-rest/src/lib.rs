//! REST services as tools: single requests that the configuration spells out, and APIs that an OpenAPI document describes.
//!
//! The tools that are spelled out are one provider, `rest`; each API is one of its own, `openapi:<id>`. All of them are in
//! the namespace `rest`, and all that they send passes one [`RestClient`].
//!
//! **Invariant:** the credentials that the configuration has for a service are sent to that service only. They are masked in
//! every message about a request that failed.

mod answer;
mod api;
mod client;
mod document_watch;
mod encode;
mod fault;
mod inline;
mod load;
mod offer;
mod options;
mod security;
mod show;
mod stream;
mod template;
mod token;

pub use client::RestClient;
pub use load::{files, load};
pub use options::{ApiOptions, Credential, Inline, RestOptions, SpecPlace, StreamMode, Streaming};
pub use security::fits;

use api::Api;
use gantry_provider::Provider;
use inline::InlineTools;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The namespace of all tools of REST services, and the provider of those that the configuration spells out.
pub const NAMESPACE: &str = "rest";

/// How the ids of APIs begin, as providers.
const API_PREFIX: &str = "openapi:";

/// The provider of an API.
#[must_use]
pub fn provider_id(api: &str) -> String {
    format!("{API_PREFIX}{api}")
}

/// The providers of these services. Nothing is read or sent yet.
///
/// # Errors
/// Says which tool cannot be used, and why.
pub fn providers(options: RestOptions) -> Result<Vec<Arc<dyn Provider>>, String> {
    let RestOptions { private, inline, apis } = options;
    let client = Arc::new(RestClient::new(private));
    let mut names = BTreeSet::new();
    for tool in &inline {
        if !names.insert(tool.name.clone()) {
            return Err(format!("restTools.{}: there are two tools of this name", tool.name));
        }
    }
    let watchers = Arc::default();
    let mut all: Vec<Arc<dyn Provider>> = Vec::new();
    if !inline.is_empty() {
        all.push(Arc::new(InlineTools::new(inline, &client)?));
    }
    for options in apis {
        all.push(Arc::new(Api::new(options, &names, (&client, &watchers))?));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
