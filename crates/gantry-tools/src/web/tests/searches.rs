//! Search services, played by servers that answer as those do.

use super::*;

const BRAVE: &str = r#"{"type":"search","web":{"type":"search","results":[
    {"title":"Tokio &amp; <strong>Rust</strong>","url":"https://tokio.rs/","description":"An <strong>async</strong> runtime"},
    {"title":"Two","url":"https://b.test/"}]}}"#;

fn searxng(server: &Server) -> WebSearchOptions {
    service(SearchApi::Searxng, &server.url("/"), None)
}

async fn search(api: WebSearchOptions, arguments: Value) -> Answer {
    Bench::with(&[], &["127.0.0.1"], Some(api)).call("web_search", arguments).await
}

#[tokio::test]
async fn searxng_is_asked_for_json() {
    let reply = r#"{"query":"x","results":[
        {"title":"A","url":"https://a.test/1","content":"about   <b>a</b>&hellip;","engine":"x","description":null},
        {"title":null,"url":"https://a.test/2","content":null},
        {"title":"no url"},
        {"title":"bad","url":"javascript:alert(1)","content":"x"},
        {"title":"C","url":"https://a.test/3","content":"c"}],"answers":[]}"#;
    let server = Server::saying(ok("", reply)).await;
    let result = search(searxng(&server), json!({ "query": "a b&c=ü" })).await.done();
    assert_eq!(
        result,
        json!({ "results": [
            { "title": "A", "url": "https://a.test/1", "snippet": "about a…" },
            { "title": "", "url": "https://a.test/2", "snippet": "" },
            { "title": "C", "url": "https://a.test/3", "snippet": "c" },
        ] })
    );
    let asked = server.asked().join("");
    assert!(asked.starts_with("GET /search?q=a+b%26c%3D%C3%BC&format=json HTTP/1.1"), "{asked}");
    let one = search(searxng(&server), json!({ "query": "x", "numResults": 1 })).await.done();
    assert_eq!(one["results"].as_array().unwrap().len(), 1);
    // An instance below a path, and an address that is complete.
    for (path, asked) in
        [("/searx/", "/searx/search?"), ("/searx", "/searx/search?"), ("/a/search", "/a/search?")]
    {
        let server = Server::saying(ok("", reply)).await;
        search(service(SearchApi::Searxng, &server.url(path), None), json!({ "query": "x" })).await.done();
        assert!(server.asked().join("").starts_with(&format!("GET {asked}")), "{path}");
    }
}

#[tokio::test]
async fn brave_and_tavily_get_their_key() {
    let server = Server::saying(ok("", BRAVE)).await;
    let api = service(SearchApi::Brave, &server.url(""), Some("s3cret"));
    assert!(!format!("{api:?}").contains("s3cret"));
    let result = search(api, json!({ "query": "x", "numResults": 7 })).await.done();
    assert_eq!(result["results"][0]["title"], "Tokio & Rust");
    assert_eq!(result["results"][0]["snippet"], "An async runtime");
    let asked = server.asked().join("");
    assert!(
        asked.starts_with("GET /res/v1/web/search?q=x&count=7 ")
            && asked.contains("x-subscription-token: s3cret"),
        "{asked}"
    );

    let server = Server::saying(ok(
        "",
        r#"{"results":[{"title":"T","url":"https://t.test/","content":"c","score":0.9}]}"#,
    ))
    .await;
    let api = service(SearchApi::Tavily, &server.url(""), Some("s3cret"));
    assert_eq!(search(api, json!({ "query": "\"x\"" })).await.done()["results"][0]["snippet"], "c");
    let asked = server.asked().join("");
    assert!(asked.starts_with("POST /search ") && asked.contains("authorization: Bearer s3cret"), "{asked}");
    assert!(asked.ends_with(r#"{"query":"\"x\"","max_results":5}"#), "{asked}");
    assert_eq!(search_nothing().await, json!({ "results": [] }));
}

async fn search_nothing() -> Value {
    let server = Server::saying(ok("", r#"{"type":"search","query":{}}"#)).await;
    search(service(SearchApi::Brave, &server.url(""), Some("k")), json!({ "query": "x" })).await.done()
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let status = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    for (answer, code, words) in [
        (status("401 X"), "EXECUTION_ERROR", "web.search.apiKey"),
        (status("403 X"), "EXECUTION_ERROR", "web.search.apiKey"),
        (status("429 X"), "EXECUTION_ERROR", "too many searches"),
        (status("500 X"), "EXECUTION_ERROR", "it answered 500"),
        (status("302 X\r\nlocation: http://169.254.169.254/"), "EXECUTION_ERROR", "redirects"),
        (String::from_utf8(ok("", "<html>")).unwrap(), "EXECUTION_ERROR", "something else than results"),
        (String::from_utf8(ok("", "{}")).unwrap(), "EXECUTION_ERROR", "something else than results"),
        (String::new(), "EXECUTION_ERROR", "connection broke"),
    ] {
        let server = Server::saying(answer.as_str()).await;
        let api = service(SearchApi::Tavily, &server.url(""), Some("s3cret"));
        let told = search(api, json!({ "query": "x" })).await.code_and_message();
        assert!(told.0 == code && told.1.contains(words) && !told.1.contains("s3cret"), "{answer}: {told:?}");
    }
    let server = Server::saying(status("403 X")).await;
    assert!(
        search(searxng(&server), json!({ "query": "x" }))
            .await
            .code_and_message()
            .1
            .contains("search.formats")
    );
    // Its own address is private only if that is open, too.
    let closed = Bench::with(&[], &[], Some(searxng(&server)));
    let (code, message) = closed.call("web_search", json!({ "query": "x" })).await.code_and_message();
    assert!(code == "UPSTREAM_UNAVAILABLE" && message.contains("web.allowPrivate"), "{message}");
    assert_eq!(server.hits(), 1);
    for arguments in [
        json!({ "query": "" }),
        json!({ "query": "   " }),
        json!({ "query": "x".repeat(401) }),
        json!({ "query": "x", "numResults": 0 }),
        json!({ "query": "x", "numResults": 21 }),
        json!({ "query": "x", "n": 1 }),
        json!({}),
    ] {
        assert_eq!(
            search(searxng(&server), arguments.clone()).await.code_and_message().0,
            "INVALID_ARGUMENTS",
            "{arguments}"
        );
    }
}

#[test]
fn a_service_that_cannot_be_asked_is_refused_at_once() {
    for (api, words) in [
        (service(SearchApi::Searxng, "search.test", None), "web.search.url"),
        (service(SearchApi::Searxng, "ftp://search.test", None), "web.search.url"),
        (service(SearchApi::Brave, "https://search.test", Some("a\nb")), "web.search.apiKey"),
    ] {
        let error = web_tools(WebOptions { search: Some(api), ..WebOptions::default() }).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}
