//! What a request means that carries its own version and capabilities (2026-07-28).
//!
//! Over HTTP some of the body is repeated in headers, so that proxies can route without reading it. A request whose
//! headers say something else than its body would be judged by one and carried out by the other; it is refused.

use super::{Task, params::Params};
use crate::{
    ErrorObject, Version,
    envelope::{Request, cut, string},
    error::code,
    limits::ECHO_CHARS,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gantry_core::json::write_string;
use http::{HeaderMap, StatusCode};
use std::borrow::Cow;

pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// Whether a message must be read as a modern one.
///
/// A handshake without a version in `_meta` is legacy whatever the headers say: clients of both eras that fall
/// back to it may still send the header of their first try.
pub(super) fn speaks(method: &str, params: &Params<'_>, version_header: Option<&str>) -> bool {
    if params.meta.version.is_some() || matches!(method, "server/discover" | "subscriptions/listen") {
        return true;
    }
    method != "initialize" && version_header.is_some_and(|version| version >= Version::MODERN.as_str())
}

/// Checks what every request must carry; `headers` are absent on transports that have none.
pub(super) fn check(
    request: &Request<'_>,
    params: &Params<'_>,
    headers: Option<&HeaderMap>,
) -> Result<(), ErrorObject> {
    let version =
        params.meta.version.and_then(string).ok_or_else(|| missing("protocolVersion", "a string"))?;
    if let Some(headers) = headers {
        mirror(headers, VERSION_HEADER, Some(&version))?;
    }
    if version != Version::MODERN.as_str() {
        return Err(unsupported(&version, &[Version::MODERN]));
    }
    if !params.meta.capabilities.is_some_and(|capabilities| capabilities.get().starts_with('{')) {
        return Err(missing("clientCapabilities", "an object"));
    }
    let Some(headers) = headers else { return Ok(()) };
    mirror(headers, METHOD_HEADER, Some(&request.method))?;
    if request.method == "tools/call" {
        mirror(headers, NAME_HEADER, params.tool_name().as_deref())
    } else {
        Ok(())
    }
}

/// Decides what a request means that passed [`check`].
pub(super) fn task(method: &str, params: &Params<'_>) -> Result<Task, ErrorObject> {
    match method {
        "tools/list" => params.first_page().map(|()| Task::List),
        "tools/call" => params.call(Version::MODERN).map(Task::Call),
        other => Err(ErrorObject::method_not_found(other)),
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
    write_string(&mut data, cut(requested, ECHO_CHARS));
    data.push('}');
    let message = "unsupported protocol version; use one of data.supported";
    ErrorObject::new(code::UNSUPPORTED_VERSION, message).with_data(data)
}

/// The one value of a header, without white space around it.
///
/// # Errors
/// When it is there twice or is not plain text: two readers would not agree on what it says.
pub(super) fn single<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<Option<&'h str>, ErrorObject> {
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

/// Checks that a header says what the body says.
fn mirror(headers: &HeaderMap, name: &'static str, body: Option<&str>) -> Result<(), ErrorObject> {
    let header = single(headers, name)?;
    let Some(header) = header else {
        return match body {
            Some(_) => Err(ErrorObject::header_mismatch(format!("the header {name} is missing; send it"))),
            None => Ok(()),
        };
    };
    // Only names may hold what a header cannot; versions and methods are plain.
    let said = if name == NAME_HEADER { decoded(header)? } else { Cow::Borrowed(header) };
    if body == Some(said.as_ref()) {
        return Ok(());
    }
    let message = format!(
        "the header {name} says {:?}, the body says {:?}; they must be equal",
        cut(&said, ECHO_CHARS),
        cut(body.unwrap_or_default(), ECHO_CHARS)
    );
    Err(ErrorObject::header_mismatch(message))
}

/// Undoes the encoding `=?base64?…?=` of values that a header cannot hold.
fn decoded(header: &str) -> Result<Cow<'_, str>, ErrorObject> {
    let Some(encoded) = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(Cow::Borrowed(header));
    };
    let bytes = STANDARD.decode(encoded).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(Cow::Owned).ok_or_else(|| {
        ErrorObject::header_mismatch(format!("the header {NAME_HEADER} is not base64 of UTF-8 text"))
    })
}

fn missing(field: &str, kind: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("params._meta needs \"io.modelcontextprotocol/{field}\", {kind}"))
}
