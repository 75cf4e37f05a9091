//! Where a redirect leads, and where it does not.

use super::*;
use gantry_egress::Redirect;

#[tokio::test]
async fn redirects_are_followed_within_the_list_and_reported() {
    let server = Server::start("127.0.0.1:0", |path| match path {
        "/a" => redirect("b?x=1#frag"),
        "/b?x=1" => redirect("/c"),
        _ => ok("", "end"),
    })
    .await;
    let result = Bench::for_server(&server).fetch(&server.url("/a#top")).await.done();
    assert_eq!((&result["body"], &result["redirected"]), (&json!("end"), &json!(true)));
    assert_eq!(result["url"], server.url("/c"));
    let result = Bench::for_server(&server).fetch(&server.url("/c")).await.done();
    assert_eq!(result.get("redirected"), None);
}

#[tokio::test]
async fn redirects_end_after_five() {
    let server = Server::start("127.0.0.1:0", |path| {
        let n: u32 = path.trim_start_matches('/').parse().unwrap();
        if n == 0 { ok("", "end") } else { redirect(&format!("/{}", n - 1)) }
    })
    .await;
    let bench = Bench::for_server(&server);
    assert_eq!(bench.fetch(&server.url("/5")).await.done()["body"], "end");
    let (code, message) = bench.fetch(&server.url("/6")).await.code_and_message();
    assert!(code == "EXECUTION_ERROR" && message.contains("more than 5 times"), "{message}");
    assert_eq!(server.hits(), 12);
    let around = Server::saying(redirect("/x")).await;
    assert_eq!(
        Bench::for_server(&around).fetch(&around.url("/x")).await.code_and_message().0,
        "EXECUTION_ERROR"
    );
    assert_eq!(around.hits(), 6);
}

#[tokio::test]
async fn a_redirect_passes_the_same_gates() {
    let inner = Server::saying(ok("", "SECRET")).await;
    let port = inner.address.port();
    let outer = Server::start("127.0.0.2:0", move |path| {
        redirect(&path.strip_prefix('/').unwrap().replace("PORT", &port.to_string()))
    })
    .await;
    let bench = Bench::with(&["*", &format!("*:{port}"), &outer.url("/*")], &["127.0.0.2/32"], None);
    for target in [
        "http://127.0.0.1:PORT/",
        "http://2130706433:PORT/",
        "http://0x7f.1:PORT/",
        "http://[::ffff:127.0.0.1]:PORT/",
        "//127.0.0.1:PORT/",
        "http://localhost:PORT/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "ftp://example.com/",
        "data:text/html,x",
        "http://u:p@127.0.0.2/",
        "http://example.com:22/",
        "http://[",
    ] {
        let error = bench.fetch(&outer.url(&format!("/{target}"))).await.error();
        assert_eq!(error.code.as_str(), "PERMISSION_DENIED", "{target}: {}", error.message);
        assert!(
            error.message.contains("redirects to") && error.message.contains("not followed"),
            "{}",
            error.message
        );
    }
    assert_eq!(inner.hits(), 0);
}

#[tokio::test]
async fn the_list_does_not_lead_off_the_list() {
    let other = Server::saying(ok("", "other")).await;
    let target = other.url("/x?q=1");
    let server = Server::saying(redirect(&target)).await;
    let error = Bench::for_server(&server).fetch(&server.url("/")).await.error();
    assert_eq!(error.code.as_str(), "PERMISSION_DENIED");
    assert!(
        error.message.contains(&target) && error.message.contains("fetch that url itself"),
        "{}",
        error.message
    );
    assert_eq!(error.details.unwrap()["redirect"], target);
    assert_eq!(other.hits(), 0);
    let both = Bench::new(&[&server.url("/*"), &other.url("/x")]);
    assert_eq!(both.fetch(&server.url("/")).await.done()["body"], "other");
}

#[tokio::test]
async fn a_yes_is_for_one_host() {
    let other = Server::start("127.0.0.2:0", |_| ok("", "other")).await;
    let target = other.url("/");
    let server = Server::start("127.0.0.1:0", move |path| match path {
        "/away" => redirect(&target),
        "/here" => redirect("/end"),
        "/port" => redirect("http://127.0.0.1:9/"),
        _ => ok("", "end"),
    })
    .await;
    let bench = Bench::with(&[], &["127.0.0.0/8"], None);
    let approved = async |path: &str| bench.approved("web_fetch", json!({ "url": server.url(path) })).await;
    assert_eq!(approved("/here").await.done()["body"], "end");
    let error = approved("/away").await.error();
    assert!(
        error.message.contains("approval is for another host") && error.message.contains(&other.url("/")),
        "{error:?}"
    );
    assert!(approved("/port").await.error().message.contains("another host"));
    assert_eq!(other.hits(), 0);
}

#[tokio::test]
async fn headers_for_one_server_do_not_go_to_another() {
    let other = Server::saying(ok("", "other")).await;
    let target = other.url("/");
    let server = Server::start(
        "127.0.0.1:0",
        move |path| if path == "/1" { redirect("/2") } else { redirect(&target) },
    )
    .await;
    let bench = Bench::new(&[&server.url(""), &other.url("")]);
    let headers = json!({
        "Authorization": "Bearer s3cret", "Cookie": "s3cret", "X-Api-Key": "s3cret", "Accept-Language": "de"
    });
    let arguments = json!({ "url": server.url("/1"), "headers": headers });
    assert_eq!(bench.call("web_fetch", arguments).await.done()["body"], "other");
    assert!(server.asked().iter().all(|asked| asked.matches("s3cret").count() == 3), "{:?}", server.asked());
    let asked = other.asked().join("");
    assert!(!asked.contains("s3cret") && asked.contains("accept-language: de"), "{asked}");
}

#[tokio::test]
async fn what_was_posted_is_not_posted_elsewhere() {
    for status in [301, 302, 303, 307, 308] {
        let answer = format!("HTTP/1.1 {status} X\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n");
        let server = Server::saying(answer).await;
        let arguments = json!({ "url": server.url("/"), "method": "POST", "body": "x" });
        let result = Bench::for_server(&server).call("web_fetch", arguments).await.done();
        assert_eq!((&result["status"], &result["headers"]["location"]), (&json!(status), &json!("/other")));
        assert_eq!(server.hits(), 1);
    }
}

#[tokio::test]
async fn encryption_is_not_given_up_on_the_way() {
    let allow = ["a.test", "b.test"].map(|pattern| UrlPattern::parse(pattern).unwrap()).into();
    let policy = UrlPolicy { allow, allow_private: Vec::new() };
    let fetch = WebFetch { client: HttpClient::guarded(&[]), policy };
    let judge = |from: &str, to: &str| {
        let from = Url::parse(from).unwrap();
        let redirect = Redirect { from: &from, location: to, visited: &[] };
        let judged = fetch.judge_redirect(redirect, &from, web_fetch::Basis::AllowList);
        judged.map_err(|fault| fault.error.message)
    };
    for to in ["http://a.test/", "http://b.test/"] {
        assert!(judge("https://a.test/", to).unwrap_err().contains("not encrypted"), "{to}");
    }
    assert!(judge("http://a.test/", "https://b.test/").is_ok());
    assert!(judge("https://a.test/", "//b.test/x").is_ok());
    assert!(judge("https://a.test/", &"x".repeat(9000)).unwrap_err().contains("longer than"));
}
