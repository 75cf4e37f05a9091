//! What search services answer, as far as it matters.

use super::Api;
use serde::Deserialize;
use serde_json::Value;

/// A page that was found. Titles and snippets may have markup.
#[derive(Debug, Deserialize)]
pub(super) struct Hit {
    pub(super) url: String,
    title: Option<String>,
    /// What SearXNG and Tavily call the snippet, and what Brave does.
    content: Option<String>,
    description: Option<String>,
}

impl Hit {
    pub(super) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or_default()
    }

    pub(super) fn snippet(&self) -> &str {
        self.content.as_deref().or(self.description.as_deref()).unwrap_or_default()
    }
}

/// The pages, best first; none if the answer is none of this service. A page that cannot be read is left out.
pub(super) fn hits(api: Api, body: &[u8]) -> Option<Vec<Hit>> {
    let mut answer: Value = serde_json::from_slice(body).ok()?;
    let found = match api {
        Api::Searxng | Api::Tavily => answer.get_mut("results")?.take(),
        Api::Brave => {
            answer.get("type").filter(|kind| *kind == "search")?;
            // Left out where nothing was found.
            answer.pointer_mut("/web/results").map_or_else(|| Value::Array(Vec::new()), Value::take)
        }
    };
    let Value::Array(found) = found else { return None };
    Some(found.into_iter().filter_map(|hit| serde_json::from_value(hit).ok()).collect())
}
