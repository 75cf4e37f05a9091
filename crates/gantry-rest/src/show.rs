//! How operations show themselves as tools, and what all requests have in common.

use gantry_core::Effect;
use gantry_core::tool::{Annotations, OwnRule, ToolSpec};
use gantry_egress::HOP_BY_HOP;
use gantry_openapi::{Method, Operation};
use http::header::{self, HeaderName};

/// What is asked for, if nothing else is said.
pub(super) const ACCEPT: &str = "application/json, */*;q=0.5";

/// Whether callers do not set this header: it is about the connection, or follows from the body.
pub(super) fn is_of_connection(name: &HeaderName) -> bool {
    *name == header::CONTENT_LENGTH || HOP_BY_HOP.contains(name)
}

/// The hints of a tool that sends this.
pub(super) fn annotations(method: Method, effect: Effect) -> Annotations {
    Annotations {
        read_only_hint: Some(effect == Effect::Read),
        destructive_hint: Some(effect == Effect::Destructive),
        idempotent_hint: Some(method.is_idempotent()),
        open_world_hint: Some(true),
    }
}

/// An operation as a tool of this name.
pub(super) fn spec(operation: &Operation, name: String, effect: Effect) -> ToolSpec {
    ToolSpec {
        name,
        title: operation.title.clone(),
        description: operation.description.clone(),
        input_schema: operation.input_schema.clone(),
        output_schema: operation.output_schema.clone(),
        annotations: annotations(operation.method, effect),
        own_rule: OwnRule::Never,
        raw: None,
        target: Some(operation.target()),
    }
}
