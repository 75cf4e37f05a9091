//! What is sent again, what is followed, and what has an unknown outcome.

use super::server::answer;
use super::*;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};

/// An address where nothing listens yet.
fn nowhere() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// An client that waits for so many milliseconds between its attempts.
pub(super) fn pausing(pauses: [u64; 2]) -> Arc<RestClient> {
    let mut client = RestClient::new(vec!["127.0.0.1/32".parse().unwrap()]);
    client.pauses = pauses.map(Duration::from_millis);
    Arc::new(client)
}

fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(16).unwrap()
}

#[tokio::test]
async fn rst_1_what_did_not_get_out_is_tried_again_and_arrives_once() {
    let address = nowhere();
    let tool = inline(Method::Put, format!("http://{address}/x"));
    let tools = Arc::new(InlineTools::new(&[tool], &pausing([1, 5000])).unwrap());
    let permit = permit(&*tools, "t", &json!({}));
    let calling = tokio::spawn(async move { tools.execute(&cx(LIMIT), &permit).await });
    // By then two attempts have found no server, and the third comes long after.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let server = Server::on(listen(address), |_| ok("application/json", "1"));
    assert_eq!(calling.await.unwrap().unwrap(), RawOutput::Json("1".into()));
    assert!(server.request().starts_with("PUT /x "));
}

#[tokio::test]
async fn rst_1_what_is_not_idempotent_is_tried_once_and_says_that_nothing_was_sent() {
    let tool = inline(Method::Post, format!("http://{}/x", nowhere()));
    let tools = InlineTools::new(&[tool], &pausing([1_000_000, 1])).unwrap();
    let permit = permit(&tools, "t", &json!({}));
    let called = tokio::time::timeout(Duration::from_secs(60), tools.execute(&cx(LIMIT), &permit)).await;
    let fault = called.expect("no pause is made").unwrap_err();
    assert_eq!(code(&fault), ("UPSTREAM_UNAVAILABLE", EffectState::None));
    assert!(fault.error.message.contains("Nothing was sent"), "{fault:?}");
}

#[tokio::test]
async fn rst_1_what_was_sent_and_not_answered_is_never_sent_again() {
    let server = Server::saying("").await;
    for (method, expected) in [
        (Method::Get, ("EXECUTION_ERROR", EffectState::None)),
        (Method::Put, ("OUTCOME_UNKNOWN", EffectState::Possible)),
        (Method::Post, ("OUTCOME_UNKNOWN", EffectState::Possible)),
        (Method::Delete, ("OUTCOME_UNKNOWN", EffectState::Possible)),
    ] {
        let before = server.asked().len();
        let fault = failed(inline(method, server.url("/x")), json!({})).await;
        assert_eq!(code(&fault), expected, "{method}: {fault:?}");
        assert_eq!(server.asked().len(), before + 1, "{method}");
    }
    // The same in the middle of an answer.
    let server = Server::saying("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
    let fault = failed(inline(Method::Post, server.url("/x")), json!({})).await;
    assert_eq!(code(&fault), ("OUTCOME_UNKNOWN", EffectState::Possible));
    server.request();
}

#[tokio::test]
async fn a_private_address_that_was_not_opened_gets_no_request() {
    let server = Server::saying(ok("application/json", "1")).await;
    let tools = InlineTools::new(&[inline(Method::Get, server.url("/"))], &Arc::new(RestClient::new(vec![])));
    let tools = tools.unwrap();
    let fault = tools.execute(&cx(LIMIT), &permit(&tools, "t", &json!({}))).await.unwrap_err();
    assert_eq!(code(&fault), ("UPSTREAM_UNAVAILABLE", EffectState::None));
    assert!(fault.error.message.contains("web.allowPrivate"), "{fault:?}");
    assert!(fault.error.message.contains("127.0.0.1"), "{fault:?}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin_and_only_for_what_sends_nothing() {
    let elsewhere = Server::saying(ok("text/plain", "elsewhere")).await;
    let away = elsewhere.url("/");
    let server = Server::start(move |request| {
        let to = |target: &str| answer("302 Found", &format!("location: {target}\r\n"), "");
        match request.split(' ').nth(1).unwrap() {
            "/a" => to("/b?c=1"),
            "/b?c=1" => ok("text/plain", "here"),
            "/away" => to(&away),
            "/round" => to("/about#here"),
            "/about" => to("/round"),
            path => to(&format!("{path}/on")),
        }
    })
    .await;
    let secret = vec![("Authorization".to_owned(), "Bearer tell-nobody".to_owned())];
    let get = |path: &str| Inline { headers: secret.clone(), ..inline(Method::Get, server.url(path)) };
    assert_eq!(called(get("/a"), json!({})).await, RawOutput::Text("here".into()));
    let fault = failed(get("/away"), json!({})).await;
    assert!(fault.error.message.starts_with("HTTP 302 Found from GET http://127.0.0.1"), "{fault:?}");
    let place = format!("it redirects to {}, which is not followed: ", elsewhere.url("/"));
    assert!(fault.error.message.contains(&place), "{fault:?}");
    assert_eq!(fault.error.details.unwrap()["headers"]["location"], elsewhere.url("/"));
    assert!(elsewhere.asked().is_empty(), "the header stays where it belongs");
    for (path, requests) in [("/round", 2), ("/on", 6)] {
        let before = server.asked().len();
        let fault = failed(get(path), json!({})).await;
        assert_eq!((fault.effect, server.asked().len() - before), (EffectState::None, requests), "{path}");
        assert!(fault.error.message.contains("a few times and to the same server)"), "{fault:?}");
    }
    let before = server.asked().len();
    let fault = failed(inline(Method::Post, server.url("/a")), json!({})).await;
    assert_eq!((fault.effect, server.asked().len() - before), (EffectState::Possible, 1));
    assert!(fault.error.message.contains("/b, which is not followed: "), "{fault:?}");
    assert!(fault.error.message.contains("same server; it may have"), "{fault:?}");
}

#[tokio::test]
async fn an_answer_that_points_nowhere_is_not_called_a_redirect() {
    let server = Server::saying(answer("304 Not Modified", "", "")).await;
    let message = failed(inline(Method::Get, server.url("/x")), json!({})).await.error.message;
    assert_eq!(message, format!("HTTP 304 Not Modified from GET {}", server.url("/x")));
}
