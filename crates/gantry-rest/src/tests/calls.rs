//! What tools that are spelled out send, and what becomes of the answers.

use super::server::answer;
use super::*;
use gantry_core::Effect;

#[tokio::test]
async fn rst_1_a_request_is_made_from_its_templates() {
    let server = Server::saying(ok("application/json", r#"{"n":1.10,"n":2}"#)).await;
    let tool = Inline {
        query: vec![("tag".into(), "${parameters.tags}".into()), ("none".into(), "${parameters.no}".into())],
        headers: vec![
            ("X-Who".into(), "user ${parameters.user.name}".into()),
            ("X-None".into(), "a ${parameters.no}".into()),
        ],
        body_template: Some(json!({ "n": "${parameters.n}", "say": "hi ${parameters.user.name}" })),
        ..inline(Method::Post, server.url("/u/${parameters.id}?q=${parameters.q}"))
    };
    let arguments = json!({ "id": "a/b", "q": "x&y", "tags": ["1", 2], "n": 5, "user": { "name": "Ann" } });
    let result = called(tool, arguments).await;
    assert_eq!(result, RawOutput::Json(r#"{"n":1.10,"n":2}"#.into()), "the answer is passed as it came");
    let request = server.request();
    assert!(request.starts_with("POST /u/a%2Fb?q=x%26y&tag=1&tag=2 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("x-who: user Ann\r\n") && !request.contains("x-none"), "{request}");
    assert!(request.contains("content-type: application/json\r\n"), "{request}");
    assert!(request.ends_with(r#"{"n":5,"say":"hi Ann"}"#), "{request}");
}

#[tokio::test]
async fn a_body_without_end_and_arguments_that_do_not_fit_are_refused_before_anything_is_sent() {
    let server = Server::saying(ok("text/plain", "")).await;
    let url = server.url("/u/${parameters.id}");
    for id in [json!(""), json!(".."), json!("."), json!(null), json!([1])] {
        let fault = failed(inline(Method::Get, &url), json!({ "id": id })).await;
        assert_eq!(code(&fault), ("INVALID_ARGUMENTS", EffectState::None), "{id}");
    }
    let header = Inline {
        headers: vec![("X-A".into(), "${parameters.id}".into())],
        ..inline(Method::Get, server.url("/"))
    };
    let fault = failed(header, json!({ "id": "a\r\nb: c" })).await;
    assert_eq!(code(&fault), ("INVALID_ARGUMENTS", EffectState::None));
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn rst_1_forms_and_texts_are_sent_as_their_headers_say() {
    let server = Server::saying(ok("text/plain", "ok")).await;
    let typed = |kind: &str, body: Value| Inline {
        headers: vec![("Content-Type".into(), kind.into())],
        body_template: Some(body),
        ..inline(Method::Post, server.url("/"))
    };
    let form = "application/x-www-form-urlencoded";
    let object = json!({ "a": "${parameters.a}", "l": "${parameters.l}", "o": "${parameters.o}" });
    let arguments = json!({ "a": "x y&z", "l": [1, 2], "o": { "k": [true] } });
    called(typed(form, object), arguments).await;
    called(typed("text/xml", json!("${parameters.a}")), json!({ "a": "<a>5</a>" })).await;
    called(typed("application/sparql-query", json!("${parameters.a}")), json!({ "a": "SELECT" })).await;
    let none =
        Inline { body_template: Some(json!("${parameters.a}")), ..inline(Method::Post, server.url("/")) };
    called(none, json!({})).await;
    let ends = ["a=x%20y%26z&l=1&l=2&o%5Bk%5D%5B0%5D=true", "\r\n\r\n<a>5</a>", "\r\n\r\nSELECT", "\r\n\r\n"];
    for (request, end) in server.asked().iter().zip(ends) {
        assert!(request.ends_with(end), "{request} ends with {end}");
    }
    assert!(server.asked()[3].contains("content-length: 0"), "{:?}", server.asked()[3]);
    assert!(!server.asked()[3].contains("content-type"), "{:?}", server.asked()[3]);
}

#[tokio::test]
async fn answers_become_what_they_are() {
    let long_json = format!("[{}1]", "1,".repeat(1000));
    let cases: Vec<(Vec<u8>, RawOutput)> = vec![
        (ok("application/problem+json; charset=utf-8", "{ }"), RawOutput::Json("{ }".into())),
        (ok("application/json", "{broken"), RawOutput::Text("{broken".into())),
        (ok("application/json", &long_json), RawOutput::Json(long_json.clone())),
        (answer("200 OK", "", "[1]"), RawOutput::Json("[1]".into())),
        (answer("204 No Content", "", ""), RawOutput::Json(r#"{"status":204}"#.into())),
        (ok("text/csv; charset=iso-8859-1", b"a;\xe4"), RawOutput::Text("a;ä".into())),
        (ok("image/svg+xml", "<svg/>"), RawOutput::Text("<svg/>".into())),
    ];
    for (said, expected) in cases {
        let server = Server::saying(said).await;
        assert_eq!(called(inline(Method::Get, server.url("/")), json!({})).await, expected);
    }
    for (kind, block) in [
        ("image/png", r#"{"type":"image","mimeType":"image/png","data":"AAE="}"#.to_owned()),
        ("audio/wav", r#"{"type":"audio","mimeType":"audio/wav","data":"AAE="}"#.to_owned()),
        (
            "application/pdf",
            r#"{"type":"resource","resource":{"uri":"URL","mimeType":"application/pdf","blob":"AAE="}}"#
                .to_owned(),
        ),
    ] {
        let server = Server::saying(ok(kind, [0, 1])).await;
        let output = called(inline(Method::Get, server.url("/f?key=s3cret")), json!({})).await;
        let RawOutput::Content(content) = output else { panic!("{output:?}") };
        let expected = format!(r#"{{"content":[{}]}}"#, block.replace("URL", &server.url("/f")));
        assert_eq!(**content.result(), expected);
    }
    let head = answer("200 OK", "x-total: 7\r\nset-cookie: a=b\r\n", "");
    let server = Server::saying(head).await;
    let output = called(inline(Method::Head, server.url("/")), json!({})).await;
    let value: Value = serde_json::from_str(output.text()).unwrap();
    assert_eq!((&value["status"], &value["headers"]["x-total"]), (&json!(200), &json!("7")));
    assert!(value["headers"].get("set-cookie").is_none());
}

#[tokio::test]
async fn rst_1_an_error_has_the_status_and_the_body_and_says_how_far_it_may_have_got() {
    let body = r#"{"error": "no such\nthing"}"#;
    let kind = "content-type: application/json\r\nx-ratelimit-left: 3\r\nserver: x\r\n";
    let server = Server::saying(answer("404 Not Found", kind, body)).await;
    let fault = failed(inline(Method::Post, server.url("/a/b?token=abc")), json!({})).await;
    assert_eq!(code(&fault), ("EXECUTION_ERROR", EffectState::None));
    let url = server.url("/a/b");
    assert_eq!(fault.error.message, format!("HTTP 404 Not Found from POST {url}: {body}"));
    let expected = json!({
        "status": 404, "statusText": "Not Found", "method": "POST", "url": url,
        "headers": { "x-ratelimit-left": "3" }, "body": { "error": "no such\nthing" }
    });
    assert_eq!(fault.error.details.unwrap(), expected);

    let server = Server::saying(answer("500 Internal Server Error", "", "x ".repeat(50_000))).await;
    for (method, effect, changes) in [
        (Method::Get, None, EffectState::None),
        (Method::Post, None, EffectState::Possible),
        (Method::Post, Some(Effect::Read), EffectState::None),
        (Method::Get, Some(Effect::Write), EffectState::Possible),
    ] {
        let fault = failed(Inline { effect, ..inline(method, server.url("/")) }, json!({})).await;
        assert_eq!(fault.effect, changes, "{method} {effect:?}");
        let details = fault.error.details.unwrap();
        assert_eq!(details["truncated"], true);
        assert!(details["body"].as_str().unwrap().len() <= 64 * 1024);
        assert!(fault.error.message.chars().count() < 600, "{}", fault.error.message);
    }

    let server = Server::saying(answer("429 Too Many Requests", "retry-after: 7\r\n", "")).await;
    let fault = failed(inline(Method::Get, server.url("/")), json!({})).await;
    assert!(fault.error.message.ends_with("(try again in 7 s)"), "{}", fault.error.message);
}

#[tokio::test]
async fn rst_1_an_answer_that_is_too_long_is_an_error_with_advice() {
    let server = Server::saying(ok("text/plain", vec![b'x'; (16 << 20) + 1])).await;
    let fault = failed(inline(Method::Get, server.url("/")), json!({})).await;
    assert_eq!(code(&fault), ("EXECUTION_ERROR", EffectState::None));
    assert!(fault.error.message.contains("Ask for less"), "{}", fault.error.message);
    let fault = failed(inline(Method::Post, server.url("/")), json!({})).await;
    assert_eq!(fault.effect, EffectState::Possible);
}

#[tokio::test]
async fn secrets_that_a_server_repeats_are_masked_in_errors() {
    let server = Server::start(|request| {
        let echo = json!({ "request": request, "text": request.replace('"', "\\\"") }).to_string();
        answer("400 Bad Request", "content-type: application/json\r\n", echo)
    })
    .await;
    let tool = Inline {
        headers: vec![
            ("Authorization".into(), "Bearer tok/en\"quoted".into()),
            ("X-Team".into(), "blue-team-key".into()),
            ("Accept".into(), "application/vnd.x+json".into()),
        ],
        body_template: Some(json!({ "client_secret": "in-the-body", "plain": "seen-value" })),
        ..inline(Method::Post, server.url("/?api_key=in+the+query&page=visible"))
    };
    let shown = format!("{:?} {tool:?}", InlineTools::new(std::slice::from_ref(&tool), &client()).unwrap());
    let fault = failed(tool, json!({})).await;
    for text in [format!("{} {}", fault.error.message, fault.error.details.unwrap()), shown] {
        for secret in ["tok/en", "blue-team-key", "in-the-body", "in+the+query"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    let fault = fault.error.message;
    assert!(fault.contains("[redacted]") && fault.contains("application/vnd.x+json"), "{fault}");
}

#[test]
fn what_is_wrong_with_a_tool_is_known_before_it_is_used() {
    let wrong = |tool: Inline| InlineTools::new(&[tool], &client()).map(drop).unwrap_err();
    let at = |url: &str| inline(Method::Get, url);
    let with = |name: &str, value: &str| Inline {
        headers: vec![(name.into(), value.into())],
        ..at("https://x.test/")
    };
    let schema = json!({ "properties": { "userId": {} } });
    let typo = |url: &str, schema: &Value| Inline { parameters_schema: schema.clone(), ..at(url) };
    for (tool, says) in [
        (at("https://${parameters.host}/"), "the host of the url must not depend on arguments"),
        (at("https://x.test:${parameters.port}/"), "the host of the url must not depend on arguments"),
        (at("${parameters.url}"), "begin with https://"),
        (at("ftp://x.test/"), "begin with https://"),
        (at("https://x.test/${env.HOME}"), "${env.HOME} stands for nothing"),
        (at("https://x.test/${parameters.}"), "stands for nothing"),
        (at("https://x.test/${parameters.a"), "has no } that ends it"),
        (with("Connection", "close"), "is not set by hand"),
        (with("Host", "${parameters.h}"), "is not set by hand"),
        (
            Inline { body_template: Some(json!("{\"a\":1,}")), ..with("Content-Type", "application/json") },
            "bodyTemplate is no JSON",
        ),
        (at("https://x.test/a\\${parameters.h}"), "write / instead"),
        (with("X A", "b"), "is no name of a header"),
        (with("X-A", "b\nc"), "line breaks"),
        (with("Content-Type", "multipart/form-data"), "multipart"),
        (typo("https://x.test/${parameters.userid}", &schema), "there are userId"),
        (typo("https://x.test/?q=${parameters.other.x}", &schema), "there are userId"),
        (Inline { parameters_schema: json!([]), ..at("https://x.test/") }, "no JSON Schema object"),
    ] {
        let error = wrong(tool);
        assert!(error.starts_with("restTools.t: ") && error.contains(says), "{error} says {says}");
    }
    let open = json!({ "properties": {}, "additionalProperties": true });
    assert!(InlineTools::new(&[typo("https://x.test/${parameters.any}", &open)], &client()).is_ok());
}

#[test]
fn tools_tell_what_they_may_change() {
    let spec = |method, effect| {
        let tool = Inline { effect, ..inline(method, "https://x.test/") };
        InlineTools::new(&[tool], &client()).unwrap().tools().remove(0)
    };
    for (method, effect, idempotent) in [
        (Method::Get, Effect::Read, true),
        (Method::Post, Effect::Write, false),
        (Method::Put, Effect::Write, true),
        (Method::Delete, Effect::Destructive, true),
    ] {
        let spec = spec(method, None);
        assert_eq!(spec.annotations.effect(), effect, "{method}");
        assert_eq!(spec.annotations.idempotent_hint, Some(idempotent), "{method}");
        assert_eq!(spec.input_schema.value()["type"], "object");
    }
    assert_eq!(spec(Method::Post, Some(Effect::Read)).annotations.effect(), Effect::Read);
}

#[test]
fn rst_1_all_that_decides_where_a_call_goes_is_part_of_what_a_person_agrees_to() {
    let fingerprint = |change: &dyn Fn(&mut Inline)| {
        let mut tool =
            inline(Method::Post, "https://x.test/bot123456:AAbbccddeeffgghhiijjkk/${parameters.a}?q=1");
        tool.headers =
            vec![("X-Key".into(), "first-secret".into()), ("X-A".into(), "${parameters.a}".into())];
        tool.parameters_schema = json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } });
        change(&mut tool);
        let spec = InlineTools::new(&[tool], &client()).unwrap().tools().remove(0);
        (spec.fingerprint(), spec.target.unwrap().shown.to_string())
    };
    let (before, shown) = fingerprint(&|_| {});
    assert!(shown.starts_with("POST https://x.test/") && shown.ends_with("/{a}"), "{shown}");
    assert!(!shown.contains("AAbbccddeeffgghhiijjkk"), "{shown}");
    assert_eq!(fingerprint(&|tool| tool.headers[0].1 = "second-secret".into()).0, before);
    let others: [&dyn Fn(&mut Inline); 6] = [
        &|tool| tool.method = Method::Put,
        &|tool| tool.url = tool.url.replace("x.test", "y.test"),
        &|tool| tool.url = tool.url.replace("q=1", "q=2"),
        &|tool| tool.query = vec![("op".into(), "wipe".into())],
        &|tool| tool.headers[1].1 = "${parameters.b}".into(),
        &|tool| tool.body_template = Some(json!({ "op": "wipe" })),
    ];
    for (n, change) in others.into_iter().enumerate() {
        assert_ne!(fingerprint(change).0, before, "{n}");
    }
}
