//! Templates with `${parameters.x}` in them: URLs, headers, bodies.
//!
//! Templates are parsed when the tool is set up, so that mistakes are found before the first call.

mod body;
mod text;
mod url;

pub(super) use body::{BodyTemplate, Media};
pub(super) use text::Text;
pub(super) use url::UrlTemplate;

use crate::Object;

/// The arguments of a call.
pub(super) type Arguments = Object;

#[cfg(test)]
mod tests;
