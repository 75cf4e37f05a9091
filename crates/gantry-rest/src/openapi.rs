//! From an OpenAPI document to operations that can be called: 2.0, 3.0 and 3.1, in JSON or YAML.
//!
//! **Invariant:** nothing here does I/O or awaits. A [`Bundle`] lists the documents that it wants, and its caller reads
//! them; [`import`] makes [`Operation`]s of them; [`Operation::prepare`] turns arguments into the parts of an HTTP request.
//! Documents are untrusted, so their cost is bounded (`limits.rs`), and an invalid operation costs that operation only.

mod document;
mod import;
mod limits;
mod media;
mod operation;
mod request;
mod schema;

pub use document::Bundle;
pub use import::security::{KeyPlace, Scheme, SecurityRequirement};
pub use import::{Import, ImportOptions, SkippedOperation, import};
pub use operation::{Method, Operation};
pub use request::Prepared;
pub use url::Url;
