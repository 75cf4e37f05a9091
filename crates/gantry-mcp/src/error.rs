//! JSON-RPC errors of this side of the wire.

use crate::envelope::cut;
use crate::limits::EXCERPT_CHARS;
pub use gantry_provider::{ErrorObject, code};

pub(crate) fn method_not_found(method: &str) -> ErrorObject {
    let message = format!(
        "there is no method {:?} here; see the capabilities that this server declares",
        cut(method, EXCERPT_CHARS)
    );
    ErrorObject::new(code::METHOD_NOT_FOUND, message)
}
