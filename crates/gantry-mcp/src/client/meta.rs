//! The `_meta` of requests in either era.

use super::types::OfferedCapabilities;
use crate::exchange::{ClientChannel, LogLevel};
use crate::{Version, raw};
use std::borrow::Cow;

pub(super) const CLIENT_INFO: &str =
    concat!(r#"{"name":"gantry","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

const PROTOCOL: &str = "io.modelcontextprotocol/";
/// Keys that Gantry sets itself, or that mean something only between a client and Gantry.
const OWN_KEYS: [&str; 7] = [
    "protocolVersion",
    "clientInfo",
    "clientCapabilities",
    "logLevel",
    "subscriptionId",
    "serverInfo",
    "related-task",
];

/// The capabilities of every client that a server may meet.
pub(super) fn declared_capabilities(declared: OfferedCapabilities) -> String {
    let offered = [
        (declared.elicitation, "elicitation", r#"{"form":{},"url":{}}"#),
        (declared.sampling, "sampling", "{}"),
        (declared.roots, "roots", "{}"),
    ];
    raw::object(offered.into_iter().filter(|(on, ..)| *on).map(|(_, name, value)| (name, value)))
}

/// The capabilities of one client, without what this server may not use.
fn client_capabilities(client: &dyn ClientChannel, declared: OfferedCapabilities) -> String {
    let withheld = |name: &str| match name {
        "elicitation" => !declared.elicitation,
        "sampling" => !declared.sampling,
        "roots" => !declared.roots,
        _ => false,
    };
    raw::without(client.capabilities().text(), withheld)
}

/// Whether a key of `_meta` is for Gantry itself, so that it is not passed on.
fn is_for_gantry(key: &str) -> bool {
    key == "progressToken"
        || key.starts_with("gantry/")
        || key.strip_prefix(PROTOCOL).is_some_and(|key| OWN_KEYS.contains(&key))
}

/// The `_meta` of a client as far as it is passed on.
fn passed_on(meta: Option<&str>) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
    let members = meta.and_then(raw::members).unwrap_or_default();
    let members = members.into_iter().filter(|(key, _)| !is_for_gantry(key));
    members.map(|(key, value)| (key, value.into())).collect()
}

/// The params of a request to a client as far as they are passed on: a client knows nothing of a task that Gantry runs,
/// and the progress of a response is not forwarded.
pub(super) fn client_request(params: &str) -> Cow<'_, str> {
    let meta = raw::member(params, "_meta");
    let members = meta.and_then(raw::members).unwrap_or_default();
    let kept = members.iter().filter(|(key, _)| !is_for_gantry(key)).count();
    match meta {
        Some(_) if kept == 0 => raw::without(params, |key| key == "_meta").into(),
        Some(meta) if kept < members.len() => {
            raw::with(params, "_meta", &raw::without(meta, is_for_gantry)).into()
        }
        _ => params.into(),
    }
}

fn with_meta(params: &str, members: &[(Cow<'_, str>, Cow<'_, str>)]) -> String {
    raw::with(params, "_meta", &raw::object(members.iter().map(|(key, value)| (&**key, &**value))))
}

pub(super) fn legacy(params: &str, meta: Option<&str>, token: Option<u64>) -> String {
    let mut members = passed_on(meta);
    if let Some(token) = token {
        members.push(("progressToken".into(), token.to_string().into()));
    }
    if members.is_empty() { params.to_owned() } else { with_meta(params, &members) }
}

/// The params of a modern request; without a client, of one of Gantry's own.
pub(super) fn modern(
    params: &str,
    meta: Option<&str>,
    token: Option<u64>,
    declared: OfferedCapabilities,
    client: Option<&dyn ClientChannel>,
) -> String {
    let mut members = passed_on(meta);
    let capabilities = client
        .map_or_else(|| declared_capabilities(declared), |client| client_capabilities(client, declared));
    let version = raw::quoted(Version::MODERN.as_str());
    let mut set =
        |key: &str, value: Cow<'static, str>| members.push((format!("{PROTOCOL}{key}").into(), value));
    set("protocolVersion", version.into());
    set("clientInfo", CLIENT_INFO.into());
    set("clientCapabilities", capabilities.into());
    if let Some(level) = client.and_then(ClientChannel::log_level).map(LogLevel::as_str) {
        set("logLevel", raw::quoted(level).into());
    }
    if let Some(token) = token {
        members.push(("progressToken".into(), token.to_string().into()));
    }
    with_meta(params, &members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::NoClient;

    #[test]
    fn a_client_keeps_its_own_keys_and_loses_those_of_the_protocol() {
        let meta = r#"{"traceparent":"00-1","progressToken":9,"gantry/x":1,"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/ui":{}}"#;
        assert_eq!(
            legacy(r#"{"name":"t"}"#, Some(meta), Some(3)),
            r#"{"name":"t","_meta":{"traceparent":"00-1","io.modelcontextprotocol/ui":{},"progressToken":3}}"#
        );
        assert_eq!(legacy("{}", Some("{}"), None), "{}");
    }

    #[test]
    fn a_question_keeps_what_a_server_says_and_loses_what_it_says_to_gantry() {
        let kept = r#"{"message":"m", "_meta":{"a":1.0}}"#;
        assert_eq!(client_request(kept), kept);
        assert_eq!(client_request(r#"{"message":"m"}"#), r#"{"message":"m"}"#);
        let task =
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"},"a":1.0},"message":"m"}"#;
        assert_eq!(client_request(task), r#"{"_meta":{"a":1.0},"message":"m"}"#);
        assert_eq!(client_request(r#"{"message":"m","_meta":{"progressToken":1}}"#), r#"{"message":"m"}"#);
    }

    #[test]
    fn a_modern_request_says_who_asks_and_what_it_can() {
        let client = NoClient::default();
        let stamped = modern("{}", None, None, OfferedCapabilities::default(), Some(&client));
        let meta = raw::member(&stamped, "_meta").unwrap();
        assert_eq!(
            raw::string_member(meta, "io.modelcontextprotocol/protocolVersion").unwrap(),
            "2026-07-28"
        );
        assert_eq!(raw::member(meta, "io.modelcontextprotocol/clientCapabilities"), Some("{}"));
        assert_eq!(raw::member(meta, "io.modelcontextprotocol/logLevel"), None);
    }
}
