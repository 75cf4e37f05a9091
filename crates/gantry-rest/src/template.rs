//! Texts with `${parameters.x}` in them, and what is made of those: addresses, headers, bodies.
//!
//! Everything is read once, when a tool is set up, so that what is wrong with a template is known before it is used.

mod body;
mod text;
mod url;

pub(super) use body::{BodyTemplate, Media};
pub(super) use text::Text;
pub(super) use url::UrlTemplate;

use serde_json::{Map, Value};

/// The arguments of a call.
pub(super) type Arguments = Map<String, Value>;

#[cfg(test)]
mod tests;
