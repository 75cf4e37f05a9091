//! Every method in both eras: what it leads to, and what a server that lacks it says.

use super::{Fake, error_code, handshake, post};

const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
const INFO: &str = r#""io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}"#;

async fn legacy(server: &super::TestServer, session: &str, method: &str, params: &str) -> String {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
    post(server, &[("mcp-session-id", session)], &body).await
}

async fn modern(server: &super::TestServer, method: &'static str, params: &str, name: &str) -> String {
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{TASKS}}}"#
    );
    let comma = if params.is_empty() { "" } else { "," };
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{comma}{meta}}}}}"#);
    let mut sent = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    if !name.is_empty() {
        sent.push(("mcp-name", name));
    }
    post(server, &sent, &body).await
}

/// Methods with params that fit, the name that the header repeats, and what the handler is asked.
const ASKED: [(&str, &str, &str); 6] = [
    ("resources/read", r#""uri":"a:1","x":1.10"#, "a:1"),
    ("prompts/get", r#""name":"p","arguments":{"a":"b"}"#, "p"),
    (
        "completion/complete",
        r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}"#,
        "",
    ),
    ("tasks/get", r#""taskId":"t""#, "t"),
    ("tasks/update", r#""taskId":"t","inputResponses":{"k":{}}"#, "t"),
    ("tasks/cancel", r#""taskId":"t""#, "t"),
];

#[tokio::test]
async fn capabilities_are_what_the_server_has() {
    let server = Fake::full();
    let all = r#""capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}"#;
    let initialize =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    assert!(post(&server, &[], initialize).await.contains(&format!("{all}}}")));
    let discover = modern(&server, "server/discover", "", "").await;
    let extensions = r#","extensions":{"io.modelcontextprotocol/tasks":{},"x/y":{"a":1.10}}}"#;
    assert!(discover.contains(&format!("{all}{extensions}")), "{discover}");
}

#[tokio::test]
async fn lists_are_whole_and_hinted_in_the_modern_era() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    for (method, member) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        let items = format!(r#""{member}":[{{"name":"{member}","x":1.10}}]"#);
        assert_eq!(
            legacy(&server, &session, method, "").await,
            format!(r#"200 {{"jsonrpc":"2.0","id":1,"result":{{{items}}}}}"#)
        );
        assert_eq!(
            modern(&server, method, "", "").await,
            format!(
                r#"200 {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete",{items},"ttlMs":0,"cacheScope":"private","_meta":{{{INFO}}}}}}}"#
            )
        );
        assert_eq!(error_code(&legacy(&server, &session, method, r#""cursor":"x""#).await), -32602);
    }
}

#[tokio::test]
async fn requests_reach_the_handler_and_results_come_back_in_the_clients_version() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    for (method, params, name) in ASKED {
        let answer = modern(&server, method, params, name).await;
        let hints = if method == "resources/read" { r#","ttlMs":0,"cacheScope":"private""# } else { "" };
        assert_eq!(
            answer,
            format!(
                r#"200 {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","n":1.10,"_meta":{{"a":1,{INFO}}}{hints}}}}}"#
            )
        );
        assert_eq!(server.handler().asked().pop().unwrap(), format!("{method} {{{params}}}"));
        let answer = legacy(&server, &session, method, params).await;
        if method.starts_with("tasks/") {
            assert_eq!(error_code(&answer), -32601);
        } else {
            assert_eq!(answer, r#"200 {"jsonrpc":"2.0","id":1,"result":{"n":1.10,"_meta":{"a":1}}}"#);
        }
    }
}

#[tokio::test]
async fn what_a_server_lacks_does_not_exist() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    for (method, params, name) in ASKED {
        assert_eq!(error_code(&legacy(&server, &session, method, params).await), -32601, "{method}");
        let answer = modern(&server, method, params, name).await;
        assert!(answer.starts_with("404") && error_code(&answer) == -32601, "{answer}");
    }
    for method in ["resources/list", "prompts/list", "resources/subscribe", "logging/setLevel"] {
        assert_eq!(error_code(&legacy(&server, &session, method, r#""uri":"a""#).await), -32601, "{method}");
    }
}

#[tokio::test]
async fn params_that_do_not_fit_are_refused() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    for (method, params) in [
        ("resources/read", ""),
        ("resources/read", r#""uri":1"#),
        ("prompts/get", r#""name":{}"#),
        ("completion/complete", r#""ref":{}"#),
        ("completion/complete", r#""ref":1,"argument":{}"#),
        ("resources/subscribe", ""),
        ("resources/unsubscribe", ""),
        ("logging/setLevel", r#""level":1"#),
    ] {
        assert_eq!(error_code(&legacy(&server, &session, method, params).await), -32602, "{method} {params}");
    }
    assert!(server.handler().asked().is_empty());
    let long = format!(r#""uri":"{}""#, "x".repeat(9000));
    assert_eq!(error_code(&legacy(&server, &session, "resources/subscribe", &long).await), -32602);
}

#[tokio::test]
async fn a_resource_is_subscribed_to_once() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    for method in ["subscribe", "subscribe", "unsubscribe", "unsubscribe", "subscribe"] {
        let answer = legacy(&server, &session, &format!("resources/{method}"), r#""uri":"a""#).await;
        assert_eq!(error_code(&answer), 0);
    }
    let asked = server.handler().asked();
    let asked: Vec<_> = asked.iter().filter_map(|asked| asked.split(['/', ' ']).nth(1)).collect();
    assert_eq!(asked, ["subscribe", "unsubscribe", "subscribe"]);
}

#[tokio::test]
async fn a_missing_resource_has_the_code_of_the_era() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let params = r#""uri":"missing""#;
    assert_eq!(error_code(&legacy(&server, &session, "resources/read", params).await), -32002);
    assert_eq!(error_code(&modern(&server, "resources/read", params, "missing").await), -32602);
    assert_eq!(error_code(&legacy(&server, &session, "prompts/get", r#""name":"missing""#).await), -32602);
}

#[tokio::test]
async fn a_missing_capability_is_named_to_older_clients() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let answer = legacy(&server, &session, "tools/call", r#""name":"needy""#).await;
    assert!(answer.contains("needs sampling; the client must declare the capability sampling"), "{answer}");
    assert!(answer.contains(r#""isError":true"#), "{answer}");
}

#[tokio::test]
async fn tasks_are_for_clients_that_declare_them() {
    let server = Fake::full();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let sent = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tasks/get"), ("mcp-name", "t")];
    let answer = post(&server, &sent, body).await;
    assert!(answer.starts_with("400") && error_code(&answer) == -32021, "{answer}");
    assert!(answer.contains(r#""requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#));
}

#[tokio::test]
async fn names_in_headers_are_those_of_the_body() {
    let server = Fake::full();
    for (method, params, name) in ASKED {
        if name.is_empty() {
            continue;
        }
        let answer = modern(&server, method, params, "other").await;
        assert!(answer.starts_with("400") && error_code(&answer) == -32020, "{answer}");
        let answer = modern(&server, method, params, "").await;
        assert_eq!(error_code(&answer), -32020, "{answer}");
    }
    let encoded = modern(&server, "resources/read", r#""uri":"a:é""#, "=?base64?YTrDqQ==?=").await;
    assert_eq!(error_code(&encoded), 0, "{encoded}");
}

#[tokio::test]
async fn arguments_in_headers_are_those_of_the_body() {
    let server = Fake::full();
    let call = async |arguments: &str, sent: &[(&'static str, &str)]| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"headed","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let mut all = vec![
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "headed"),
        ];
        all.extend_from_slice(sent);
        let answer = post(&server, &all, &body).await;
        (answer.get(..3).unwrap().to_owned(), error_code(&answer))
    };
    let (region, n) = ("mcp-param-region", "mcp-param-n");
    let rows = [
        ("{}", vec![], true),
        (r#"{"Region":null}"#, vec![], true),
        (r#"{"Region":"eu"}"#, vec![(region, "eu")], true),
        (r#"{"Region":"Hello"}"#, vec![(region, "=?base64?SGVsbG8=?=")], true),
        (r#"{"Region":"Hello"}"#, vec![(region, "=?base64?SGVsbG8?=")], false),
        (r#"{"Region":"SGVsbG8="}"#, vec![(region, "SGVsbG8=")], true),
        (r#"{"Region":"eu"}"#, vec![(region, "us")], false),
        (r#"{"Region":"eu"}"#, vec![], false),
        ("{}", vec![(region, "eu")], false),
        (r#"{"Region":"eu"}"#, vec![(region, "eu"), (region, "eu")], false),
        (r#"{"N":42.0}"#, vec![(n, "42")], true),
        (r#"{"N":9007199254740993}"#, vec![(n, "9007199254740992")], false),
        (r#"{"Region":"42.0"}"#, vec![(region, "42")], false),
        (r#"{"N":42}"#, vec![(n, "nan")], false),
    ];
    for (arguments, sent, fits) in rows {
        let expected = if fits { ("200".to_owned(), 0) } else { ("400".to_owned(), -32020) };
        assert_eq!(call(arguments, &sent).await, expected, "{arguments} {sent:?}");
    }
}
