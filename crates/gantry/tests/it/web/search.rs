//! `web_search`, with stand-ins for the services.

use super::site::{Site, page};
use super::{done, failed};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

const FLAT: &str = r#"{"results":[
    {"title":"<b>Tokio</b> &amp; more","url":"https://tokio.rs/","content":"An <em>async</em>\n runtime"},
    {"title":"Two","url":"https://b.example/","content":"2"},{"title":"Three","url":"https://c.example/","content":"3"}]}"#;

fn home(search: &Value) -> TestDir {
    let web = json!({ "allowPrivate": ["127.0.0.1"], "search": search });
    TestDir::new().config(&json!({ "web": web }).to_string()).env("SEARCH_KEY", "s3cret")
}

fn tool_names(home: &TestDir) -> Vec<String> {
    let listing = home.run(["tools", "--json"]).json();
    let tools = listing.as_array().expect("tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn blt_3_a_search_needs_no_approval_and_gives_titles_addresses_and_snippets() {
    let brave = FLAT.replace("content", "description");
    let brave = format!(r#"{{"type":"search","web":{brave}}}"#);
    let key = json!("${SEARCH_KEY}");
    for (api, answer, start, secret) in [
        ("searxng", FLAT, "GET /search?q=rust+%26+tokio&format=json ", None),
        (
            "brave",
            brave.as_str(),
            "GET /res/v1/web/search?q=rust+%26+tokio&count=2 ",
            Some("x-subscription-token: s3cret"),
        ),
        ("tavily", FLAT, "POST /search ", Some("authorization: Bearer s3cret")),
    ] {
        let site = Site::saying(page("application/json", answer));
        let mut settings = json!({ "api": api, "url": site.url("") });
        if secret.is_some() {
            settings["apiKey"] = key.clone();
        }
        let home = home(&settings);
        let result = done(&home, "web_search", &json!({ "query": "rust & tokio", "numResults": 2 }));
        let first =
            json!({ "title": "Tokio & more", "url": "https://tokio.rs/", "snippet": "An async runtime" });
        assert_eq!(
            (result["results"].as_array().expect("results").len(), &result["results"][0]),
            (2, &first),
            "{api}"
        );
        let asked = site.asked();
        assert!(
            asked.starts_with(start) && secret.is_none_or(|secret| asked.contains(secret)),
            "{api}: {asked}"
        );
    }
}

#[test]
fn blt_3_without_a_service_there_is_no_search() {
    assert!(tool_names(&TestDir::new()).contains(&"web_fetch".to_owned()));
    assert!(!tool_names(&TestDir::new()).contains(&"web_search".to_owned()));
    assert_eq!(failed(&TestDir::new().call("web_search", &json!({ "query": "x" }))).0, "TOOL_NOT_FOUND");
}

#[test]
fn blt_3_what_is_wrong_with_the_service_is_reported_without_its_key() {
    for (answer, words) in [
        ("HTTP/1.1 401 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", "web.search.apiKey"),
        ("HTTP/1.1 429 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", "too many searches"),
        (
            "HTTP/1.1 200 X\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>",
            "something else than results",
        ),
    ] {
        let site = Site::saying(answer);
        let home = home(&json!({ "api": "tavily", "url": site.url(""), "apiKey": "${SEARCH_KEY}" }));
        let reply = home.call("web_search", &json!({ "query": "x" }));
        let (code, message) = failed(&reply);
        assert!(code == "EXECUTION_ERROR" && message.contains(words), "{message}");
        assert!(!reply.to_string().contains("s3cret"), "{reply}");
    }
    let site = Site::saying(page("application/json", FLAT));
    let closed = TestDir::new()
        .config(&json!({ "web": { "search": { "api": "searxng", "url": site.url("") } } }).to_string());
    let (code, message) = failed(&closed.call("web_search", &json!({ "query": "x" })));
    assert!(code == "UPSTREAM_UNAVAILABLE" && message.contains("web.allowPrivate"), "{message}");
    assert_eq!(site.hits(), 0);
}
