//! APIs: where their documents come from, and what is shown to them.

use super::server::answer;
use super::*;
use gantry_core::pattern::Pattern;
use gantry_core::{Effect, ErrorCode};
use gantry_egress::Url;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) fn api(spec: SpecPlace) -> ApiOptions {
    ApiOptions {
        id: "a".into(),
        spec,
        base_url: None,
        server_variables: Default::default(),
        headers: Vec::new(),
        auth: Default::default(),
        include_methods: Vec::new(),
        tag_filter: Vec::new(),
        include: None,
        exclude: Vec::new(),
        effects: Vec::new(),
        files: None,
    }
}

/// A document with these paths and schemes.
pub(super) fn document(server: &str, paths: Value, schemes: Value) -> Value {
    let mut document = json!({
        "openapi": "3.0.3", "info": { "title": "Things", "version": "1" }, "servers": [{ "url": server }],
    });
    document["paths"] = paths;
    document["components"]["securitySchemes"] = schemes;
    document
}

fn answers() -> Value {
    json!({ "200": { "description": "ok" } })
}

/// An operation of this id, with the security that it needs.
pub(super) fn operation(id: &str, security: Value) -> Value {
    let mut operation = json!({ "operationId": id, "responses": answers() });
    operation["security"] = security;
    operation
}

fn place(folder: &Path, document: &Value) -> SpecPlace {
    let path = folder.join("api.json");
    std::fs::write(&path, document.to_string()).unwrap();
    SpecPlace::File(path)
}

/// The API of a document in a file, ready.
pub(super) async fn ready(document: &Value, change: impl FnOnce(&mut ApiOptions)) -> Api {
    let folder = tempfile::tempdir().unwrap();
    let mut options = api(place(folder.path(), document));
    change(&mut options);
    let api = Api::new(options, &BTreeSet::new(), &client()).unwrap();
    api.prepare().await.unwrap();
    api
}

pub(super) async fn ask(api: &Api, tool: &str, arguments: Value) -> Result<RawOutput, CallFailure> {
    api.execute(&cx(LIMIT), &permit(api, tool, &arguments)).await
}

fn names(api: &Api) -> Vec<String> {
    api.tools().into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn rst_2_an_operation_is_a_tool_and_its_arguments_become_a_request() {
    let server = Server::saying(ok("application/json", "[]")).await;
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } });
    let document = document(
        &server.url("/v1"),
        json!({ "/things/{id}": { "get": {
            "operationId": "getThing", "responses": answers(),
            "parameters": [
                parameter("id", "path"), parameter("q", "query"), parameter("X-Trace", "header"),
                parameter("X-Fixed", "header")
            ]
        } } }),
        json!({}),
    );
    let api = ready(&document, |options| options.headers = vec![("X-Fixed".into(), "ours".into())]).await;
    assert_eq!(names(&api), ["a_getThing"]);
    let arguments = json!({ "id": "a/b", "q": "x y", "X-Trace": "t", "X-Fixed": "theirs" });
    let output = ask(&api, "a_getThing", arguments).await.unwrap();
    assert_eq!(output, RawOutput::Json("[]".into()));
    let request = server.request();
    assert!(request.starts_with("GET /v1/things/a%2Fb?q=x%20y HTTP/1.1"), "{request}");
    assert!(request.contains("x-trace: t\r\n") && !request.contains("cookie:"), "{request}");
    assert!(request.contains("x-fixed: ours\r\n") && !request.contains("theirs"), "{request}");
    assert!(api.instructions().unwrap().contains("Things"));
}

#[tokio::test]
async fn rst_2_effects_can_be_said_otherwise() {
    let paths = json!({ "/search": { "post": operation("search", json!([])) }, "/x": { "get": operation("x", json!([])) } });
    let document = document("https://x.test", paths, json!({}));
    let api = ready(&document, |options| {
        let pattern = |text: &str| Pattern::parse(text).unwrap();
        options.effects =
            vec![(pattern("POST /search"), Effect::Read), (pattern("rest__a_x"), Effect::Write)];
    })
    .await;
    let effects: Vec<_> =
        api.tools().iter().map(|tool| (tool.name.clone(), tool.annotations.effect())).collect();
    assert_eq!(effects, [("a_search".to_owned(), Effect::Read), ("a_x".to_owned(), Effect::Write)]);
}

#[tokio::test]
async fn rst_2_credentials_are_shown_where_the_scheme_says_and_only_where_it_is_needed() {
    let server = Server::saying(ok("application/json", "1")).await;
    let schemes = json!({
        "inQuery": { "type": "apiKey", "in": "query", "name": "k" },
        "inHeader": { "type": "apiKey", "in": "header", "name": "X-Key" },
        "inCookie": { "type": "apiKey", "in": "cookie", "name": "ck" },
        "basic": { "type": "http", "scheme": "basic" },
        "bearer": { "type": "http", "scheme": "bearer" },
        "absent": { "type": "http", "scheme": "bearer" }
    });
    let need = |names: &[&str]| {
        let all: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!([]))).collect();
        Value::Object(all)
    };
    let of = |id: &str, security: Value| json!({ "get": operation(id, security) });
    let paths = json!({
        "/q": of("q", json!([need(&["inQuery"])])), "/h": of("h", json!([need(&["inHeader"])])),
        "/c": of("c", json!([need(&["inCookie"])])), "/b": of("b", json!([need(&["basic"])])),
        "/t": of("t", json!([{}, need(&["absent"]), need(&["bearer", "inHeader"])])),
        "/n": of("n", json!([])), "/m": of("m", json!([need(&["absent"])]))
    });
    let api = ready(&document(&server.url(""), paths, schemes), |options| {
        let key = |text: &str| Credential::Key { api_key: text.into() };
        options.auth.extend([
            ("inQuery".into(), key("query key")),
            ("inHeader".into(), key("header-key")),
            ("inCookie".into(), key("cookie-key")),
            ("basic".into(), Credential::Basic { username: "ann".into(), password: "pw".into() }),
            ("bearer".into(), Credential::Token { token: "tok".into() }),
        ]);
    })
    .await;
    let all: [(&str, &[&str]); 7] = [
        ("q", &["/q?k=query%20key "]),
        ("h", &["x-key: header-key\r\n"]),
        ("c", &["cookie: ck=cookie-key\r\n"]),
        ("b", &["authorization: Basic YW5uOnB3\r\n"]),
        ("t", &["authorization: Bearer tok\r\n", "x-key: header-key\r\n"]),
        ("n", &[]),
        ("m", &[]),
    ];
    for (n, (tool, expected)) in all.into_iter().enumerate() {
        ask(&api, &format!("a_{tool}"), json!({})).await.unwrap();
        let request = server.asked()[n].clone();
        for part in expected {
            assert!(request.contains(part), "{tool}: {request} has {part}");
        }
        for part in ["query%20key", "header-key", "cookie-key", "YW5u", "Bearer"] {
            let wanted = expected.iter().any(|expected| expected.contains(part));
            assert_eq!(request.contains(part), wanted, "{tool}: {request}, {part}");
        }
    }
}

#[tokio::test]
async fn an_api_that_does_not_know_who_asks_gets_the_advice_to_set_it_and_no_secret_is_repeated() {
    let server = Server::start(|request| answer("401 Unauthorized", "", request)).await;
    let paths = json!({ "/x": { "get": operation("x", json!([{ "one": [] }, { "two": [] }])) } });
    let schemes = json!({ "one": { "type": "http", "scheme": "bearer" }, "two": { "type": "http", "scheme": "basic" } });
    let document = document(&server.url(""), paths, schemes);
    let api = ready(&document, |options| options.headers = vec![("X-Own".into(), "own-secret".into())]).await;
    let fault = ask(&api, "a_x", json!({})).await.unwrap_err();
    assert!(
        fault.error.message.ends_with("(set openapiSpecs.a.auth.one or openapiSpecs.a.auth.two)"),
        "{fault:?}"
    );
    assert!(!format!("{fault:?} {api:?}").contains("own-secret"), "{fault:?} {api:?}");
}

#[test]
fn who_has_a_document_from_the_web_says_where_credentials_go() {
    let url = |text: &str| Url::parse(text).unwrap();
    let options = || ApiOptions {
        headers: vec![("Authorization".into(), "x".into())],
        ..api(SpecPlace::Url(url("https://x.test/api.json")))
    };
    let made = |api: ApiOptions| providers(RestOptions { apis: vec![api], ..RestOptions::default() });
    let error = made(options()).unwrap_err();
    assert!(error.starts_with("openapiSpecs.a: ") && error.ends_with("set baseUrl"), "{error}");
    made(ApiOptions { base_url: Some(url("https://x.test/v1")), ..options() }).unwrap();
    made(ApiOptions { headers: Vec::new(), ..options() }).unwrap();
    assert!(made(ApiOptions { id: "x".repeat(50), ..options() }).is_err());
}

#[tokio::test]
async fn credentials_do_not_follow_a_document_from_the_web_elsewhere() {
    let elsewhere = Server::saying(ok("application/json", "1")).await;
    let home = Server::saying(ok("application/json", "1")).await;
    let mut paths =
        json!({ "/x": { "get": operation("x", json!([])), "servers": [{ "url": elsewhere.url("") }] } });
    paths["/y"] = json!({ "get": operation("y", json!([])) });
    let said = ok("application/json", document(&elsewhere.url(""), paths, json!({})).to_string());
    let web = Server::saying(said).await;
    let options = ApiOptions {
        headers: vec![("Authorization".into(), "Bearer for-home".into())],
        base_url: Some(Url::parse(&home.url("/v1")).unwrap()),
        ..api(SpecPlace::Url(Url::parse(&web.url("/api.json")).unwrap()))
    };
    let api = Api::new(options, &BTreeSet::new(), &client()).unwrap();
    api.prepare().await.unwrap();
    for tool in names(&api) {
        ask(&api, &tool, json!({})).await.unwrap();
    }
    assert!(elsewhere.asked().is_empty());
    assert!(!home.asked().is_empty());
    assert!(
        !web.request().to_lowercase().contains("authorization"),
        "the document is fetched without credentials"
    );
}

#[tokio::test]
async fn rst_2_a_changed_file_changes_the_tools_and_a_broken_one_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let write = |document: &Value| place(folder.path(), document);
    let with = |id: &str| {
        document("https://x.test", json!({ "/x": { "get": operation(id, json!([])) } }), json!({}))
    };
    let api = Api::new(api(write(&with("one"))), &BTreeSet::new(), &client()).unwrap();
    api.prepare().await.unwrap();
    let mut version = api.subscribe().unwrap();
    assert_eq!(names(&api), ["a_one"]);
    let permit = permit(&api, "a_one", &json!({}));
    // Files that are as they were are not read again, and one that cannot be read changes nothing.
    version.mark_unchanged();
    api.prepare().await.unwrap();
    std::fs::write(folder.path().join("api.json"), "{ broken").unwrap();
    api.prepare().await.unwrap();
    assert!(!version.has_changed().unwrap());
    assert_eq!(names(&api), ["a_one"]);
    write(&with("other"));
    api.prepare().await.unwrap();
    assert_eq!(names(&api), ["a_other"]);
    let fault = api.execute(&cx(LIMIT), &permit).await.unwrap_err();
    assert_eq!(fault.error.code, ErrorCode::ToolNotFound, "what was judged is not there any more");
}

#[tokio::test]
async fn rst_2_a_file_in_another_order_has_the_tools_that_were_judged_and_one_with_other_targets_has_not() {
    let server = Server::saying(ok("application/json", "1")).await;
    let folder = tempfile::tempdir().unwrap();
    let with = |path: &str, schema: Value| {
        let parameter = json!({ "name": "q", "in": "query", "schema": schema });
        let operation = json!({ "operationId": "x", "responses": answers(), "parameters": [parameter] });
        let mut paths = json!({});
        paths[path] = json!({ "get": operation });
        document(&server.url(""), paths, json!({}))
    };
    let text = json!({ "type": "string" });
    let schema = json!({ "type": "object", "properties": { "a": text, "b": text } });
    let turned = json!({ "type": "object", "properties": { "b": text, "a": text } });
    let spec = place(folder.path(), &with("/x", schema));
    let api = Api::new(api(spec), &BTreeSet::new(), &client()).unwrap();
    api.prepare().await.unwrap();
    let (before, permit) = (api.tools().remove(0), permit(&api, "a_x", &json!({ "q": { "a": "y" } })));
    let put = async |document: &Value| {
        place(folder.path(), document);
        api.prepare().await.unwrap();
    };
    put(&with("/x", turned.clone())).await;
    let now = api.tools().remove(0);
    assert!(before != now && before.fingerprint() == now.fingerprint(), "{now:?}");
    api.execute(&cx(LIMIT), &permit).await.unwrap();
    assert!(server.request().starts_with("GET /x?a=y "));
    put(&with("/y", turned)).await;
    let fault = api.execute(&cx(LIMIT), &permit).await.unwrap_err();
    assert_eq!(fault.error.code, ErrorCode::ToolNotFound);
}

#[tokio::test]
async fn the_status_says_what_became_of_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let spec = SpecPlace::File(folder.path().join("api.json"));
    let api =
        Api::new(ApiOptions { include_methods: vec![Method::Get], ..api(spec) }, &BTreeSet::new(), &client());
    let api = api.unwrap();
    let status = || {
        let status = api.service_status().unwrap();
        (status.health.as_str(), status.status.into_owned(), status.tools, status.last_error.is_some())
    };
    assert_eq!(status(), ("yellow", "starting".to_owned(), 0, false));
    api.prepare().await.unwrap_err();
    assert_eq!(status(), ("red", "down".to_owned(), 0, true));
    let paths = json!({
        "/x": { "get": operation("x", json!([{ "key": [] }])), "post": operation("y", json!([])) },
        "/z": { "get": { "responses": answers(), "parameters": [{ "$ref": "#/nowhere" }] } },
    });
    let schemes = json!({ "key": { "type": "apiKey", "in": "header", "name": "x-key" } });
    place(folder.path(), &document("https://x.test", paths, schemes));
    api.prepare().await.unwrap();
    assert_eq!(status(), ("green", "ready".to_owned(), 1, false));
    let import = api.service_status().unwrap().import.unwrap();
    assert_eq!((import.operations, import.left_out, import.skipped), (3, 1, 1));
    assert_eq!(import.missing_credentials, ["key"]);
    std::fs::write(folder.path().join("api.json"), "{ broken").unwrap();
    api.prepare().await.unwrap();
    assert_eq!(status(), ("yellow", "ready".to_owned(), 1, true));
}

#[tokio::test]
async fn rst_2_a_file_that_comes_late_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.json");
    let api = Api::new(api(SpecPlace::File(path)), &BTreeSet::new(), &client()).unwrap();
    let error = api.prepare().await.unwrap_err();
    assert!(error.contains("api.json"), "{error}");
    place(
        folder.path(),
        &document("https://x.test", json!({ "/x": { "get": operation("x", json!([])) } }), json!({})),
    );
    api.prepare().await.unwrap();
    assert_eq!(names(&api), ["a_x"]);
}

#[tokio::test]
async fn rst_2_a_document_from_the_web_that_is_not_there_yet_is_tried_again() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let said = document("https://x.test", json!({ "/x": { "get": operation("x", json!([])) } }), json!({}))
        .to_string();
    let server = Server::start(move |_| {
        if is_up.load(Ordering::SeqCst) {
            ok("application/json", &said)
        } else {
            answer("503 Service Unavailable", "", "")
        }
    })
    .await;
    let place = SpecPlace::Url(Url::parse(&server.url("/api.json?key=hidden")).unwrap());
    let api = Api::new(api(place), &BTreeSet::new(), &client()).unwrap();
    let error = api.prepare().await.unwrap_err();
    assert!(error.contains("503") && !error.contains("hidden"), "{error}");
    assert!(api.tools().is_empty());
    let mut version = api.subscribe().unwrap();
    up.store(true, Ordering::SeqCst);
    tokio::time::timeout(Duration::from_secs(20), version.changed()).await.unwrap().unwrap();
    assert_eq!(names(&api), ["a_x"]);
}

#[tokio::test]
async fn what_runs_in_the_background_ends_with_the_provider() {
    let gone = Url::parse("http://127.0.0.1:1/api.json").unwrap();
    let api = Api::new(api(SpecPlace::Url(gone)), &BTreeSet::new(), &client()).unwrap();
    api.prepare().await.unwrap_err();
    let mut version = api.subscribe().unwrap();
    version.mark_unchanged();
    drop(api);
    let ended = tokio::time::timeout(Duration::from_secs(2), version.changed()).await;
    ended.expect("the task has ended").unwrap_err();
}

#[tokio::test]
async fn rst_2_other_files_are_read_only_below_the_folder_of_the_document() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.json"), r#"{"X":{"type":"string","enum":["TOP-SECRET"]}}"#)
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("near.json"), r#"{"X":{"type":"string","enum":["NEAR"]}}"#).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.json"), folder.path().join("link.json")).unwrap();
    let up = format!("../{}/secret.json", outside.path().file_name().unwrap().to_str().unwrap());
    let mut paths = serde_json::Map::new();
    for (n, file) in ["near.json", "link.json", &up].into_iter().enumerate() {
        let schema = json!({ "$ref": format!("{file}#/X") });
        let parameter = json!({ "name": "p", "in": "query", "schema": schema });
        let get =
            json!({ "operationId": format!("op{n}"), "responses": answers(), "parameters": [parameter] });
        paths.insert(format!("/p{n}"), json!({ "get": get }));
    }
    let document = document("https://x.test", Value::Object(paths), json!({}));
    let api = Api::new(api(place(folder.path(), &document)), &BTreeSet::new(), &client()).unwrap();
    api.prepare().await.unwrap();
    let shown = format!("{:?}", api.tools());
    assert!(shown.contains("NEAR"), "{shown}");
    assert!(!shown.contains("TOP-SECRET"), "{shown}");
}
