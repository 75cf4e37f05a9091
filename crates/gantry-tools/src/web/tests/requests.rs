//! What is sent.

use super::*;

#[tokio::test]
async fn a_post_on_the_list_sends_headers_and_body() {
    let server = Server::saying(ok("", "ok")).await;
    let arguments = json!({
        "url": server.url("/hook?a=b c"), "method": "POST", "body": "{\"ä\":1}",
        "headers": { "Content-Type": "application/json", "cookie": "a=b" }
    });
    assert_eq!(Bench::for_server(&server).call("web_fetch", arguments).await.done()["status"], 200);
    let asked = server.asked().join("");
    assert!(asked.starts_with("POST /hook?a=b%20c HTTP/1.1\r\n") && asked.ends_with("{\"ä\":1}"), "{asked}");
    for header in
        ["content-type: application/json", "cookie: a=b", "user-agent: gantry/", "content-length: 8"]
    {
        assert!(asked.contains(header), "{header} in {asked}");
    }
}

#[tokio::test]
async fn headers_that_could_change_what_was_judged_are_refused() {
    let server = Server::saying(ok("", "ok")).await;
    let bench = Bench::for_server(&server);
    let with = async |headers: Value| {
        bench.call("web_fetch", json!({ "url": server.url("/"), "headers": headers })).await
    };
    for name in [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Proxy-Authorization",
        "proxy-connection",
        "Upgrade",
        "TE",
        "Trailer",
        "Keep-Alive",
        "Expect",
        "Accept-Encoding",
    ] {
        let (code, message) = with(json!({ name: "1" })).await.code_and_message();
        assert!(code == "INVALID_ARGUMENTS" && message.contains("set by Gantry"), "{name}: {message}");
    }
    for (name, value) in [
        ("X-A", "a\r\nX-B: b"),
        ("X-A", "a\nb"),
        ("X-A", "a\u{0}"),
        ("X-A\r\nX-B", "c"),
        ("X A", "b"),
        ("", "b"),
        ("X:A", "b"),
        ("é", "b"),
    ] {
        assert_eq!(
            with(json!({ name: value })).await.code_and_message().0,
            "INVALID_ARGUMENTS",
            "{name:?}: {value:?}"
        );
    }
    for headers in [
        json!({ "X-A": 1 }),
        json!([]),
        json!({ "x-a": "1", "X-A": "2" }),
        json!({ "X-A": "x".repeat(40_000) }),
    ] {
        assert_eq!(with(headers).await.code_and_message().0, "INVALID_ARGUMENTS");
    }
    let many: serde_json::Map<String, Value> = (0..51).map(|n| (format!("x-{n}"), json!("1"))).collect();
    assert_eq!(with(many.into()).await.code_and_message().0, "INVALID_ARGUMENTS");
    assert_eq!(server.hits(), 0);
    assert_eq!(with(json!({ "X-Umlaut": "ä" })).await.done()["status"], 200);
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused() {
    let bench = Bench::new(&["*"]);
    let url = "https://example.com/";
    for arguments in [
        json!({}),
        json!({ "url": 1 }),
        json!({ "url": url, "method": "DELETE" }),
        json!({ "url": url, "method": "get" }),
        json!({ "url": url, "body": "x" }),
        json!({ "url": url, "timeout": 0 }),
        json!({ "url": url, "timeout": -1 }),
        json!({ "url": url, "timeout": 301 }),
        json!({ "url": url, "timeout": "30" }),
        json!({ "url": url, "format": "pdf" }),
        json!({ "url": url, "follow": true }),
        json!({ "url": format!("https://example.com/{}", "x".repeat(9000)) }),
    ] {
        let (code, _) = bench.call("web_fetch", arguments.clone()).await.code_and_message();
        assert_eq!(code, "INVALID_ARGUMENTS", "{arguments}");
    }
}

#[tokio::test]
async fn a_changed_list_does_not_count_as_permission_any_more() {
    let server = Server::saying(ok("", "ok")).await;
    let listed = Bench::for_server(&server);
    let Ok(Verdict::Allow(permit)) = listed.judge("web_fetch", &json!({ "url": server.url("/") })) else {
        panic!()
    };
    let (code, message) = Bench::new(&[]).run(&permit).await.code_and_message();
    assert!(code == "APPROVAL_REQUIRED" && message.contains("no longer"), "{message}");
    assert_eq!(server.hits(), 0);
}
