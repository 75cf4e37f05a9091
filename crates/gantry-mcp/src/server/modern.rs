//! Requests that carry their own version and capabilities (2026-07-28).
//!
//! Over HTTP some of the body is repeated in headers, so that proxies can route without reading it. A request whose
//! headers differ from its body is refused: a proxy would judge the headers, and Gantry would run the body.

use super::Reply;
use super::handler::Handler;
use super::request::{Operation, ParsedRequest};
use crate::envelope::{Params, Request, cut};
use crate::error::code;
use crate::headers::{HeaderParam, decode_value};
use crate::limits::EXCERPT_CHARS;
use crate::{ErrorObject, Version, raw};
use gantry_core::json::write_string;
use http::header::AsHeaderName;
use http::{HeaderMap, HeaderName, StatusCode};
use std::borrow::Cow;
use std::fmt;

pub(super) const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");

/// Whether a message must be read as a modern one.
///
/// A handshake without a version in `_meta` is legacy also with a header of a modern version: clients of both eras that
/// fall back to it may still send the header of their first try.
pub(super) fn is_modern_request(method: &str, params: &Params<'_>, version_header: Option<&str>) -> bool {
    if params.meta(VERSION).is_some() || matches!(method, "server/discover" | "subscriptions/listen") {
        return true;
    }
    method != "initialize" && version_header.is_some_and(|version| version >= Version::MODERN.as_str())
}

/// Checks what every request must carry; `headers` are absent on transports that have none.
pub(super) fn check(request: &Request<'_>, headers: Option<&HeaderMap>) -> Result<(), ErrorObject> {
    let params = &request.params;
    let version = params.meta(VERSION).and_then(raw::string);
    let version = version.ok_or_else(|| missing("protocolVersion", "a string"))?;
    if let Some(headers) = headers {
        check_header_matches(headers, &VERSION_HEADER, Some(&version))?;
    }
    if version != Version::MODERN.as_str() {
        return Err(unsupported(&version, &[Version::MODERN]));
    }
    let capabilities = params.meta("io.modelcontextprotocol/clientCapabilities");
    if !capabilities.is_some_and(|capabilities| capabilities.starts_with('{')) {
        return Err(missing("clientCapabilities", "an object"));
    }
    let Some(headers) = headers else { return Ok(()) };
    check_header_matches(headers, &METHOD_HEADER, Some(&request.method))?;
    match params.header_name(&request.method) {
        Some(name) => check_header_matches(headers, &NAME_HEADER, name.as_deref()),
        None => Ok(()),
    }
}

pub(super) fn parse(request: &Request<'_>, handler: &dyn Handler) -> Result<ParsedRequest, Reply> {
    let operation = Operation::read(&request.method, &request.params, Version::MODERN, handler);
    let operation = operation.map_err(|error| refuse(request, &error))?;
    Ok(ParsedRequest { id: request.id.clone().into_owned(), operation, options: request.params.options() })
}

/// The error response to a request that passed [`check`].
pub(super) fn refuse(request: &Request<'_>, error: &ErrorObject) -> Reply {
    Reply::error(status(error), Some(&request.id), error)
}

/// Checks that headers repeat the arguments that the tool wants repeated.
pub(super) fn check_arguments(
    headers: &HeaderMap,
    wanted: &[HeaderParam],
    arguments: Option<&str>,
) -> Result<(), ErrorObject> {
    for param in wanted {
        let body = arguments.and_then(|arguments| param.value(arguments));
        let header = match single_value(headers, param.header.as_str())? {
            Some(header) => Some(decoded(header, &param.header)?),
            None => None,
        };
        match (&header, &body) {
            (None, None) => {}
            (Some(header), Some(body)) if header == body => {}
            (Some(header), Some(body))
                if !param.is_text(arguments.unwrap_or_default()) && same_number(header, body) => {}
            (None, Some(_)) => {
                let message = format!("the header {} is missing; repeat the argument in it", param.header);
                return Err(ErrorObject::header_mismatch(message));
            }
            (Some(header), _) => return Err(differs(&param.header, header, body.as_deref())),
        }
    }
    Ok(())
}

/// Whether two texts are the same number: `42` and `42.0` are.
fn same_number(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    match (one.parse::<i64>(), other.parse::<i64>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => number(one).is_some() && number(one) == number(other),
    }
}

/// The HTTP status of an error in answer to a request that passed [`check`].
pub(super) fn status(error: &ErrorObject) -> StatusCode {
    match error.code {
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        code::MISSING_CAPABILITY => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// An error that names the versions to choose from.
pub(super) fn unsupported(requested: &str, supported: &[Version]) -> ErrorObject {
    let names =
        supported.iter().map(|version| format!("\"{}\"", version.as_str())).collect::<Vec<_>>().join(",");
    let mut data = format!("{{\"supported\":[{names}],\"requested\":");
    write_string(&mut data, cut(requested, EXCERPT_CHARS));
    data.push('}');
    let message = "unsupported protocol version; use one of data.supported";
    ErrorObject::new(code::UNSUPPORTED_VERSION, message).with_data(data)
}

/// The one value of a header, without white space around it.
///
/// # Errors
/// When it is there twice or is not plain text: two readers would not agree on what it says.
pub(super) fn single_value(
    headers: &HeaderMap,
    name: impl AsHeaderName + fmt::Display + Copy,
) -> Result<Option<&str>, ErrorObject> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(ErrorObject::header_mismatch(format!("the header {name} is there twice; send it once")));
    }
    let Some(value) = first else { return Ok(None) };
    let text = value.to_str().ok().map(|text| text.trim_matches([' ', '\t']));
    text.map(Some)
        .ok_or_else(|| ErrorObject::header_mismatch(format!("the header {name} must be plain ASCII")))
}

fn check_header_matches(
    headers: &HeaderMap,
    name: &HeaderName,
    body: Option<&str>,
) -> Result<(), ErrorObject> {
    let header = single_value(headers, name)?;
    let Some(header) = header else {
        return match body {
            Some(_) => Err(ErrorObject::header_mismatch(format!("the header {name} is missing; send it"))),
            None => Ok(()),
        };
    };
    // Only names may hold what a header cannot; versions and methods are plain.
    let said = if *name == NAME_HEADER { decoded(header, name.as_str())? } else { Cow::Borrowed(header) };
    if body == Some(said.as_ref()) { Ok(()) } else { Err(differs(name.as_str(), &said, body)) }
}

fn differs(name: &str, header: &str, body: Option<&str>) -> ErrorObject {
    let message = format!(
        "the header {name} says {:?}, the body says {:?}; they must be equal",
        cut(header, EXCERPT_CHARS),
        cut(body.unwrap_or_default(), EXCERPT_CHARS)
    );
    ErrorObject::header_mismatch(message)
}

fn decoded<'h>(header: &'h str, name: &str) -> Result<Cow<'h, str>, ErrorObject> {
    decode_value(header).map_err(|what| ErrorObject::header_mismatch(format!("the header {name} {what}")))
}

fn missing(field: &str, kind: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("params._meta needs \"io.modelcontextprotocol/{field}\", {kind}"))
}
