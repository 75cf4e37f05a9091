//! Results of other servers on their way to clients of every version.

use super::{Fake, handshake, post};
use crate::exchange::{Capabilities, ForwardMethod};
use crate::server::convert;
use crate::server::request::ResultKind;
use crate::server::response::{ResponseContext, ResponseWriter};
use crate::{ErrorObject, Version, raw};
use proptest::collection::vec;
use proptest::prelude::*;

fn converted_for(
    capabilities: &str,
    result: &str,
    kind: ResultKind,
    version: Version,
) -> Result<String, ErrorObject> {
    let writer = ResponseWriter { server_info: r#"{"name":"g"}"#.to_owned() };
    let capabilities = &Capabilities::new(capabilities);
    let mut out = String::new();
    convert::write(&mut out, result, &ResponseContext { kind, version, capabilities }, &writer).map(|()| out)
}

fn converted(result: &str, kind: ResultKind, version: Version) -> Result<String, ErrorObject> {
    converted_for("{}", result, kind, version)
}

#[track_caller]
fn check(result: &str, kind: ResultKind, version: Version, expected: &str) {
    assert_eq!(converted(result, kind, version).unwrap(), expected);
}

#[test]
fn a_result_that_is_nested_too_deep_is_refused_as_such() {
    let nested = format!(r#"{{"a":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    for version in [Version::MODERN, Version::V2025_11_25] {
        let refused = converted(&nested, ResultKind::Call, version).unwrap_err();
        assert!(refused.message.contains("nested too deep"), "{}", refused.message);
    }
}

#[test]
fn a_modern_client_gets_the_kind_and_the_answering_server() {
    let modern = Version::MODERN;
    let info = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"g"}}"#;
    check("{}", ResultKind::Call, modern, &format!(r#"{{"resultType":"complete",{info}}}"#));
    check(
        "{ \"content\" : [ 1.10 ] }",
        ResultKind::Call,
        modern,
        &format!(r#"{{"resultType":"complete", "content" : [ 1.10 ] ,{info}}}"#),
    );
    check(
        r#"{"b":1E2,"resultType":"complete","a":0}"#,
        ResultKind::Call,
        modern,
        &format!(r#"{{"b":1E2,"resultType":"complete","a":0,{info}}}"#),
    );
    // What an upstream said about itself was said to Gantry.
    check(
        r#"{"_meta":{"z":1.10,"io.modelcontextprotocol/serverInfo":{"name":"up"},"a":{}},"content":[]}"#,
        ResultKind::Call,
        modern,
        r#"{"resultType":"complete","_meta":{"z":1.10,"a":{},"io.modelcontextprotocol/serverInfo":{"name":"g"}},"content":[]}"#,
    );
    let read = ResultKind::Forward(ForwardMethod::ReadResource);
    check(
        "{\"contents\":[]}",
        read,
        modern,
        &format!(r#"{{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"private",{info}}}"#),
    );
    check(
        r#"{"cacheScope":"public"}"#,
        read,
        modern,
        &format!(r#"{{"resultType":"complete","cacheScope":"private","ttlMs":0,{info}}}"#),
    );
    check(
        r#"{"ttlMs":1,"cacheScope":"public"}"#,
        read,
        modern,
        &format!(r#"{{"resultType":"complete","ttlMs":1,"cacheScope":"private",{info}}}"#),
    );
}

#[test]
fn a_legacy_client_gets_nothing_that_its_version_does_not_know() {
    let result = r#"{"content":[{"type":"text","text":"1.10"}],"structuredContent":[1.10],"resultType":"complete","x":{"ttlMs":1},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#;
    let text = r#"{"content":[{"type":"text","text":"1.10"}],"x":{"ttlMs":1}}"#;
    for version in Version::ALL.into_iter().filter(|version| !version.is_modern()) {
        check(result, ResultKind::Call, version, text);
    }
    let object = r#"{"structuredContent":{"a":1.10}}"#;
    check(object, ResultKind::Call, Version::V2025_06_18, object);
    check(object, ResultKind::Call, Version::V2025_03_26, "{}");
    check(
        r#"{"_meta":{"a":1,"io.modelcontextprotocol/x":1}}"#,
        ResultKind::Call,
        Version::V2025_06_18,
        r#"{"_meta":{"a":1}}"#,
    );
    // Escapes do not hide what must go.
    check(
        r#"{"_meta":{"io.modelcontext\u0070rotocol/x":1},"\u0072esultType":"complete"}"#,
        ResultKind::Call,
        Version::V2025_06_18,
        "{}",
    );
    // Nothing to change, nothing touched, white space included.
    let untouched = "{ \"content\" :\n[ ] , \"_meta\":{ } }";
    check(untouched, ResultKind::Call, Version::V2025_06_18, untouched);
}

#[test]
fn links_become_texts_where_links_are_unknown() {
    let link = r#"{"type":"resource_link","uri":"a:1","name":"n","description":"d \"q\""}"#;
    let text = r#"{"type":"text","text":"n: a:1 (d \"q\")"}"#;
    let other = r#"{"type":"image","data":"resource_link"}"#;
    let call = format!(r#"{{"content":[{link},{other}]}}"#);
    check(&call, ResultKind::Call, Version::V2025_03_26, &format!(r#"{{"content":[{text},{other}]}}"#));
    check(&call, ResultKind::Call, Version::V2025_06_18, &call);
    let prompt =
        |content: &str| format!(r#"{{"messages":[{{"role":"user","content":{content},"x":1.10}}]}}"#);
    let get = ResultKind::Forward(ForwardMethod::GetPrompt);
    check(&prompt(link), get, Version::V2024_11_05, &prompt(text));
    check(&prompt(link), get, Version::V2025_06_18, &prompt(link));
}

#[test]
fn kinds_of_results_that_a_client_did_not_ask_for_are_refused() {
    let task = r#"{"resultType":"task","taskId":"t","ttlMs":null}"#;
    for version in [Version::MODERN, Version::V2025_11_25] {
        for result in [task, r#"{"resultType":"input_required"}"#, r#"{"resultType":"new"}"#, "[]", "7", ""] {
            assert_eq!(converted(result, ResultKind::Call, version).unwrap_err().code, -32603, "{result}");
        }
    }
    let tasks = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let out = converted_for(tasks, task, ResultKind::Call, Version::MODERN).unwrap();
    assert!(out.starts_with(r#"{"resultType":"task","taskId":"t","ttlMs":null,"_meta""#), "{out}");
}

#[tokio::test]
async fn results_pass_through_the_server_as_they_are() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let result = r#"{"content":[ ],"n":1e400,"vendor":{"\u00e9":[1.10]}}"#.replace("1e400", "1.5e3");
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"raw","arguments":{result}}}}}"#
    );
    assert_eq!(
        post(&server, &[("mcp-session-id", &session)], &body).await,
        format!(r#"200 {{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
    );
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?",
        "[a-zé \\\\\"/\u{1}]{0,6}".prop_map(|text| raw::quoted(&text)),
        Just(r#""\u00e9\/\ud83d\ude00""#.to_owned()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            vec((key(), inner), 0..4).prop_map(|members| object(&members)),
        ]
    })
}

/// Keys, some of which mean something.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,4}",
        Just("_meta".to_owned()),
        Just("content".to_owned()),
        Just("messages".to_owned()),
        Just("contents".to_owned()),
        Just("io.modelcontextprotocol/x".to_owned()),
    ]
}

fn object(members: &[(String, String)]) -> String {
    let mut seen = std::collections::HashSet::new();
    let unique = members.iter().filter(|(key, _)| seen.insert(key.clone()));
    let members: Vec<_> = unique.map(|(key, value)| format!("{} : {value}", raw::quoted(key))).collect();
    format!("{{{}}}", members.join(" ,"))
}

/// The members that both eras keep, as text.
fn lasting(result: &str) -> Vec<(String, String)> {
    let members = raw::members(result).unwrap();
    let protocol = ["resultType", "ttlMs", "cacheScope", "_meta"];
    let kept = members.into_iter().filter(|(key, _)| !protocol.contains(&&**key));
    kept.map(|(key, value)| (key.into_owned(), value.to_owned())).collect()
}

fn foreign_meta(result: &str) -> Vec<(String, String)> {
    let meta = raw::member(result, "_meta").and_then(raw::members).unwrap_or_default();
    let foreign = meta.into_iter().filter(|(key, _)| !key.starts_with("io.modelcontextprotocol/"));
    foreign.map(|(key, value)| (key.into_owned(), value.to_owned())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_else_is_lost_or_rewritten_on_the_way(
        members in vec((key(), value()), 0..6),
        kind in prop_oneof![
            Just(ResultKind::Call), Just(ResultKind::Forward(ForwardMethod::ReadResource)), Just(ResultKind::Forward(ForwardMethod::GetPrompt)),
        ],
    ) {
        let result = object(&members);
        for version in [Version::V2025_06_18, Version::V2025_11_25, Version::MODERN] {
            let there = converted(&result, kind, version).unwrap();
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&there).is_ok(), "{there}");
            prop_assert_eq!(lasting(&there), lasting(&result));
            prop_assert_eq!(foreign_meta(&there), foreign_meta(&result));
            // From the other era and back, the same is left.
            let back = converted(&there, kind, Version::LAST_LEGACY).unwrap();
            prop_assert_eq!(lasting(&back), lasting(&result));
        }
    }
}
