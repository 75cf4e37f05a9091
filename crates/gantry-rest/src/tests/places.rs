//! Where requests of an API go, what they carry, and which files its document may be made of.

use super::apis::{api, ask, document, operation, ready};
use super::server::answer;
use super::*;
use gantry_core::ErrorCode;
use gantry_egress::Url;

#[tokio::test]
async fn rst_2_no_argument_stands_in_for_a_key() {
    let server = Server::saying(ok("application/json", "1")).await;
    let parameter =
        |name: &str, place: &str| json!({ "name": name, "in": place, "schema": { "type": "string" } });
    let of = |scheme: &str, parameters: Value| {
        let mut get = operation(scheme, json!([{ scheme: [] }]));
        get["parameters"] = parameters;
        json!({ "get": get })
    };
    let schemes = json!({
        "q": { "type": "apiKey", "in": "query", "name": "k" }, "c": { "type": "apiKey", "in": "cookie", "name": "k" }
    });
    let in_query = json!([parameter("k", "query"), parameter("other", "query"), parameter("K", "query")]);
    let paths = json!({ "/q": of("q", in_query), "/c": of("c", json!([parameter("k", "cookie")])) });
    let api = ready(&document(&server.url(""), paths, schemes), |options| {
        for name in ["q", "c"] {
            options.auth.insert(name.into(), Credential::Key { api_key: "ours".into() });
        }
    })
    .await;
    for tool in ["a_q", "a_c"] {
        // Names that a document gives a key may be left out of what the tool takes.
        let takes = api.tools().into_iter().find(|it| it.name == tool).unwrap().input_schema.value();
        let mut arguments = json!({ "k": "theirs", "K": "theirs", "other": "x" });
        arguments.as_object_mut().unwrap().retain(|name, _| takes["properties"].get(name).is_some());
        ask(&api, tool, arguments).await.unwrap();
    }
    let asked = server.asked();
    assert!(asked[0].starts_with("GET /q?other=x&k=ours HTTP"), "{}", asked[0]);
    assert!(asked[1].contains("cookie: k=ours\r\n"), "{}", asked[1]);
}

#[tokio::test]
async fn a_document_from_the_web_does_not_reach_what_was_opened_for_others() {
    let inner = Server::saying(ok("application/json", "1")).await;
    let paths = json!({ "/x": { "get": operation("x", json!([])) } });
    let said = document(&inner.url(""), paths.clone(), json!({})).to_string();
    let web = Server::saying(ok("application/json", said)).await;
    let place = SpecPlace::Url(Url::parse(&web.url("/api.json")).unwrap());
    let made = |options| Api::new(options, &BTreeSet::new(), &client()).unwrap();
    let led = made(api(place.clone()));
    led.prepare().await.unwrap();
    let fault = ask(&led, "a_x", json!({})).await.unwrap_err();
    assert_eq!(fault.error.code, ErrorCode::UpstreamUnavailable);
    assert!(fault.error.message.contains("set baseUrl") && inner.asked().is_empty(), "{fault:?}");
    // Its own place is fine, and so is one that the configuration has named.
    let own = Server::start(move |request| match request.starts_with("GET /api.json") {
        true => ok("application/json", document("/v1", paths.clone(), json!({})).to_string()),
        false => ok("application/json", "2"),
    })
    .await;
    let at_home = made(api(SpecPlace::Url(Url::parse(&own.url("/api.json")).unwrap())));
    at_home.prepare().await.unwrap();
    assert_eq!(ask(&at_home, "a_x", json!({})).await.unwrap(), RawOutput::Json("2".into()));
    let base_url = Some(Url::parse(&inner.url("")).unwrap());
    let said_here = made(ApiOptions { base_url, ..api(place) });
    said_here.prepare().await.unwrap();
    assert_eq!(ask(&said_here, "a_x", json!({})).await.unwrap(), RawOutput::Json("1".into()));
}

#[tokio::test]
async fn a_redirect_that_says_who_asks_is_not_followed() {
    let server = Server::start(|request| {
        let host = request.split("host: ").nth(1).unwrap().split("\r\n").next().unwrap();
        match request.starts_with("GET /x") {
            true => ok("text/plain", "there"),
            false => answer("302 Found", &format!("location: http://u:p@{host}/x\r\n"), ""),
        }
    })
    .await;
    let fault = failed(inline(Method::Get, server.url("/")), json!({})).await;
    assert!(fault.error.message.starts_with("HTTP 302"), "{fault:?}");
    server.request();
}

/// A document in this folder whose operations refer to these files.
fn referring(folder: &std::path::Path, files: &[&str]) -> std::path::PathBuf {
    let path = |(n, file): (usize, &&str)| {
        let mut get = operation(&format!("op{n}"), json!([]));
        get["parameters"] =
            json!([{ "name": "p", "in": "query", "schema": { "$ref": format!("{file}#/X") } }]);
        (format!("/p{n}"), json!({ "get": get }))
    };
    let paths = Value::Object(files.iter().enumerate().map(path).collect());
    let root = folder.join("api.json");
    std::fs::write(&root, document("https://x.test", paths, json!({})).to_string()).unwrap();
    root
}

#[tokio::test]
async fn rst_2_a_file_that_is_missing_is_waited_for_and_a_pipe_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let root = referring(folder.path(), &["late.json", "pipe.json"]);
    let late = folder.path().canonicalize().unwrap().join("late.json");
    assert!(files(&root).contains(&late), "{:?}", files(&root));
    let api = Api::new(api(SpecPlace::File(root)), &BTreeSet::new(), &client()).unwrap();
    api.prepare().await.unwrap();
    assert!(!format!("{:?}", api.tools()).contains("LATE"));
    std::fs::write(&late, r#"{"X":{"type":"string","enum":["LATE"]}}"#).unwrap();
    api.prepare().await.unwrap();
    assert!(format!("{:?}", api.tools()).contains("LATE"));
}

#[test]
fn a_reference_is_known_however_it_is_spelled() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().canonicalize().unwrap().join("other.yaml");
    for text in [
        r#"{"openapi": "3.0.0", "a": {"\u0024ref": "other.yaml"}}"#,
        r#"{"openapi": "3.0.0", "a": {"$r\u0065f": "other.yaml"}}"#,
        "openapi: 3.0.0\na: {\"\\x24ref\": other.yaml}",
        "openapi: 3.0.0\na:\n  ? \"$r\\\n    ef\"\n  : other.yaml",
        "openapi: 3.0.0\na:\n  $ref: # within\n    other.yaml",
        "openapi: 3.0.0\na:\n  $ref: '#/b'\nb:\n  $ref: other.yaml",
    ] {
        let root = folder.path().join("api.yaml");
        std::fs::write(&root, text).unwrap();
        assert!(files(&root).contains(&other), "{text}");
    }
}

#[tokio::test]
async fn a_document_that_cannot_be_had_is_named_once() {
    let server = Server::saying(answer("404 Not Found", "", "")).await;
    let gone = Url::parse("http://127.0.0.1:1/api.json").unwrap();
    for url in [Url::parse(&server.url("/api.json?token=hidden")).unwrap(), gone] {
        let place = SpecPlace::Url(url.clone());
        let error = load::read(&place, None, &client()).await.map(drop).unwrap_err();
        assert_eq!(error.matches("/api.json").count(), 1, "{error}");
        assert!(!error.contains("hidden"), "{error}");
    }
}
