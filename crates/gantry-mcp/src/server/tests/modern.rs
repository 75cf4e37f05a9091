//! Messages of 2026-07-28 over HTTP: the fields and headers that each must carry.

use super::{Fake, TOOLS, error_code, handshake, headers, post, said, shown};
use bytes::Bytes;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"2"}}"#;
const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const LIST: (&str, &str) = ("mcp-method", "tools/list");
const CALL: (&str, &str) = ("mcp-method", "tools/call");
const SERVER_INFO: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}"#;

/// Headers, method, parameters, and the status and code they lead to.
type Row<'a> = (Vec<(&'static str, &'a str)>, &'a str, &'a str, (u16, i64));

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
}

/// Status and code of the answer to a request.
async fn refusal(sent: &[(&'static str, &str)], method: &str, params: &str) -> (u16, i64) {
    let answer = post(&Fake::server(), sent, &request(method, params)).await;
    (answer.get(..3).unwrap().parse().unwrap(), error_code(&answer))
}

#[tokio::test]
async fn discover_names_the_version_and_the_capabilities() {
    let sent = [VERSION, ("mcp-method", "server/discover")];
    assert_eq!(
        post(&Fake::server(), &sent, &request("server/discover", META)).await,
        format!(
            r#"200 {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{"listChanged":true}}}},"instructions":"be \"kind\"","ttlMs":0,"cacheScope":"private",{SERVER_INFO}}}}}}}"#
        )
    );
}

#[tokio::test]
async fn tools_are_listed_with_cache_hints() {
    let server = Fake::server();
    assert_eq!(
        post(&server, &[VERSION, LIST], &request("tools/list", META)).await,
        format!(
            r#"200 {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","tools":{TOOLS},"ttlMs":0,"cacheScope":"private",{SERVER_INFO}}}}}}}"#
        )
    );
    assert_eq!(server.inner.sessions.len(), 0);
}

#[tokio::test]
async fn a_call_carries_type_structure_and_meta() {
    let params = format!(r#"{META},"name":"echo","arguments":{{"a":1.0}}"#);
    let sent = [VERSION, CALL, ("mcp-name", "echo")];
    assert_eq!(
        post(&Fake::server(), &sent, &request("tools/call", &params)).await,
        format!(
            r#"200 {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","content":{},"isError":false,{SERVER_INFO}}}}}}}"#,
            said(r#"{"a":1.0}"#)
        )
    );
    // What an upstream said about itself does not pass for what Gantry says.
    let params = format!(r#"{META},"name":"rich","arguments":{{}}"#);
    let answer =
        post(&Fake::server(), &[VERSION, CALL, ("mcp-name", "rich")], &request("tools/call", &params)).await;
    let (meta, info) = SERVER_INFO.split_once('{').unwrap();
    assert!(answer.ends_with(&format!(
        r#"],"structuredContent":{{}},"isError":false,{meta}{{"b/x":1e2,"a":[ 1 ],{info}}}}}}}"#
    )));
    assert_eq!(answer.matches("serverInfo").count(), 1);
}

#[tokio::test]
async fn the_handler_sees_the_exact_meta() {
    let meta = META.strip_prefix(r#""_meta":"#).unwrap().replace("{\"name\"", "{ \"x\":1.10,\"name\"");
    let params = format!(r#""name":"meta","_meta":{meta}"#);
    let answer =
        post(&Fake::server(), &[VERSION, CALL, ("mcp-name", "meta")], &request("tools/call", &params)).await;
    assert!(answer.contains(&said(&meta)), "{answer}");
}

#[tokio::test]
async fn required_fields_are_required() {
    let rows = [
        ("", -32602),
        (r#""_meta":{}"#, -32602),
        (r#""_meta":{"io.modelcontextprotocol/clientCapabilities":{}}"#, -32602),
        (r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#, -32602),
        (
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}"#,
            -32602,
        ),
        (
            r#""_meta":{"io.modelcontextprotocol/protocolVersion":5,"io.modelcontextprotocol/clientCapabilities":{}}"#,
            -32602,
        ),
    ];
    for (params, code) in rows {
        assert_eq!(refusal(&[VERSION, LIST], "tools/list", params).await, (400, code), "{params}");
        let sent = [VERSION, ("mcp-method", "server/discover")];
        assert_eq!(refusal(&sent, "server/discover", params).await, (400, code), "{params}");
    }
    let bare = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    assert_eq!(refusal(&[VERSION, LIST], "tools/list", bare).await, (200, 0));
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_the_known_one() {
    for asked in ["2099-01-01", "v999.0.0", "2025-11-25"] {
        let params = META.replace("2026-07-28", asked);
        let answer =
            post(&Fake::server(), &[("mcp-protocol-version", asked), LIST], &request("tools/list", &params))
                .await;
        assert_eq!(
            answer,
            format!(
                r#"400 {{"jsonrpc":"2.0","id":1,"error":{{"code":-32022,"message":"unsupported protocol version; use one of data.supported","data":{{"supported":["2026-07-28"],"requested":"{asked}"}}}}}}"#
            )
        );
    }
}

#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let call = format!(r#"{META},"name":"echo""#);
    let unnamed = META.to_owned();
    let unicode = format!(r#"{META},"name":"écho""#);
    let name = |name: &'static str| ("mcp-name", name);
    let rows: Vec<Row<'_>> = vec![
        (vec![LIST], "tools/list", META, (400, -32020)),
        (vec![("mcp-protocol-version", "2025-11-25"), LIST], "tools/list", META, (400, -32020)),
        (vec![VERSION, VERSION, LIST], "tools/list", META, (400, -32020)),
        (vec![VERSION], "tools/list", META, (400, -32020)),
        (vec![VERSION, CALL], "tools/list", META, (400, -32020)),
        (vec![VERSION, ("mcp-method", "TOOLS/LIST")], "tools/list", META, (400, -32020)),
        (vec![VERSION, LIST, LIST], "tools/list", META, (400, -32020)),
        (vec![VERSION, ("mcp-method", "tools/lïst")], "tools/list", META, (400, -32020)),
        (vec![VERSION, CALL], "tools/call", &call, (400, -32020)),
        (vec![VERSION, CALL, name("boom")], "tools/call", &call, (400, -32020)),
        (vec![VERSION, CALL, name("echo"), name("echo")], "tools/call", &call, (400, -32020)),
        (vec![VERSION, CALL, name("echo")], "tools/call", &unnamed, (400, -32020)),
        (vec![VERSION, CALL], "tools/call", &unnamed, (200, -32602)),
        (vec![VERSION, CALL, name("  echo\t")], "tools/call", &call, (200, 0)),
        (vec![VERSION, CALL, name("=?base64?ZWNobw==?=")], "tools/call", &call, (200, 0)),
        (vec![VERSION, CALL, name("=?base64?ZWNobw?=")], "tools/call", &call, (400, -32020)),
        (vec![VERSION, CALL, name("=?base64?//8=?=")], "tools/call", &call, (400, -32020)),
        (vec![VERSION, CALL, name("=?base64?w6ljaG8=?=")], "tools/call", &unicode, (200, -32602)),
    ];
    for (sent, method, params, expected) in rows {
        assert_eq!(refusal(&sent, method, params).await, expected, "{sent:?} {params}");
    }
}

#[tokio::test]
async fn methods_of_the_other_era_do_not_exist() {
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "prompts/list", "no/such"]
    {
        assert_eq!(
            refusal(&[VERSION, ("mcp-method", method)], method, META).await,
            (404, -32601),
            "{method}"
        );
    }
}

#[tokio::test]
async fn errors_of_a_call_have_the_status_of_their_kind() {
    for (tool, expected) in
        [("nope", (200, -32602)), ("needy", (400, -32021)), ("boom", (200, -32603)), ("echo", (200, 0))]
    {
        let params = format!(r#"{META},"name":"{tool}""#);
        assert_eq!(
            refusal(&[VERSION, CALL, ("mcp-name", tool)], "tools/call", &params).await,
            expected,
            "{tool}"
        );
    }
    let cursor = format!(r#"{META},"cursor":"x""#);
    assert_eq!(refusal(&[VERSION, LIST], "tools/list", &cursor).await, (200, -32602));
}

#[tokio::test]
async fn both_eras_share_the_endpoint() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    // A session id means nothing to a modern request, not even a foreign one.
    for id in [session.as_str(), "ffffffffffffffffffffffffffffffff"] {
        let sent = [VERSION, LIST, ("mcp-session-id", id)];
        assert!(post(&server, &sent, &request("tools/list", META)).await.contains("resultType"));
    }
    let legacy = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert!(!post(&server, &[("mcp-session-id", &session)], legacy).await.contains("resultType"));
    // A client that falls back may still send the header of its first try.
    let initialize =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    assert_eq!(error_code(&post(&server, &[VERSION], initialize).await), 0);
}

#[tokio::test]
async fn notifications_are_taken_and_answers_are_not() {
    let server = Fake::server();
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(post(&server, &[VERSION], note).await, "202");
    let answer = post(&server, &[VERSION], r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    assert!(answer.starts_with("400 "), "{answer}");
}

#[tokio::test]
async fn hanging_up_cancels_the_call() {
    let server = Fake::server();
    let body = request("tools/call", &format!(r#"{META},"name":"wait""#));
    let sent = headers(&[VERSION, CALL, ("mcp-name", "wait")]);
    tokio::select! {
        response = server.post(&sent, &"guest", Bytes::from(body)) => panic!("{}", shown(&response)),
        () = server.handler().call_begun() => {}
    }
    assert!(server.handler().last_token().is_cancelled());
}

#[tokio::test]
async fn an_answered_call_is_not_cancelled() {
    let server = Fake::server();
    let body = request("tools/call", &format!(r#"{META},"name":"echo""#));
    post(&server, &[VERSION, CALL, ("mcp-name", "echo")], &body).await;
    assert!(!server.handler().last_token().is_cancelled());
}

#[tokio::test]
async fn requests_of_several_clients_may_share_an_id() {
    let server = Fake::server();
    let body = request("tools/call", &format!(r#"{META},"name":"gate""#));
    let sent = [VERSION, CALL, ("mcp-name", "gate")];
    let open = async {
        server.handler().call_begun().await;
        server.handler().call_begun().await;
        server.handler().gate.add_permits(2);
    };
    let (first, second, ()) = tokio::join!(post(&server, &sent, &body), post(&server, &sent, &body), open);
    assert!(first.contains("through") && second.contains("through"));
}
