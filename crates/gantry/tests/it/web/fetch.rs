//! `web_fetch`.

use super::site::{Site, page, redirect};
use super::{done, failed, home};
use gantry_testkit::TestDir;
use gantry_testkit::tls::{Authority, HERE};
use hyper::Method;
use serde_json::{Value, json};

#[test]
fn blt_3_a_url_on_the_list_is_fetched_at_once() {
    let site = Site::saying(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=iso-8859-1\r\nSet-Cookie: s3cret\r\nX-Note: a\r\nx-note: b\r\n\
         content-length: 5\r\nconnection: close\r\n\r\nhallo",
    );
    let home = home(&[&site.url("/docs/*")]);
    let result =
        done(&home, "web_fetch", &json!({ "url": site.url("/docs/a?b=c#d"), "headers": { "X-Mine": "1" } }));
    assert_eq!((&result["status"], &result["body"]), (&json!(200), &json!("hallo")));
    assert_eq!(result["headers"]["x-note"], "a, b");
    assert_eq!(result["url"], site.url("/docs/a?b=c"));
    assert!(!result.to_string().contains("s3cret"), "{result}");
    assert!(site.asked().starts_with("GET /docs/a?b=c HTTP/1.1\r\n") && site.asked().contains("x-mine: 1"));
    let posted =
        done(&home, "web_fetch", &json!({ "url": site.url("/docs/"), "method": "POST", "body": "sent" }));
    assert_eq!(posted["status"], 200);
    assert!(site.asked().ends_with("sent"), "{}", site.asked());
    let rows = home.run(["audit", "--json"]).json();
    let rows = rows.as_array().or_else(|| rows["items"].as_array()).expect("rows").clone();
    assert_eq!(rows.iter().filter(|row| row["tool"] == "web_fetch").count(), 2, "{rows:?}");
}

#[test]
fn blt_3_a_url_off_the_list_waits_for_a_person() {
    let site = Site::saying(page("text/plain", "hello"));
    let home = home(&["example.com", &site.url("/docs/*")]);
    let server = home.serve();
    let admin = format!("Bearer {}", home.read(".gantry/admin.key").trim());
    let headers = [("authorization", admin.as_str()), ("content-type", "application/json")];
    // Beside the path, above it, and behind dots in disguise.
    for (n, path) in
        ["/docs", "/", "/docs/../x", "/docs/%2e%2e/x", "/docs/a%2f..%2f..%2fx"].into_iter().enumerate()
    {
        let reply = server
            .call("web_fetch", &json!({ "url": site.url(path), "method": "POST", "body": "12345" }))
            .json();
        assert_eq!(reply["state"], "PENDING_APPROVAL", "{path}: {reply}");
        assert_eq!(site.hits(), n / 2, "nothing was sent before the answer");
        let id = reply["approvalId"].as_str().expect("an id");
        let waiting = server.request(Method::GET, &format!("/api/v1/approvals/{id}"), &headers, "").json();
        let reason = waiting["reason"].as_str().expect("a reason");
        assert!(
            reason.contains(&format!("POST {}", site.url("/"))) && reason.contains("127.0.0.1"),
            "{reason}"
        );
        assert!(reason.contains("not on the allow-list") && reason.contains("5 bytes"), "{reason}");
        let approved = n % 2 == 1;
        let decision = json!({ "approved": approved, "reason": "a test" }).to_string();
        let decided =
            server.request(Method::POST, &format!("/api/v1/approvals/{id}/decision"), &headers, &decision);
        assert_eq!(decided.status, 200, "{decided:?}");
        server.eventually("the decision is carried out", || site.hits() == n.div_ceil(2));
    }
    assert_eq!(site.hits(), 2, "only what was approved");
}

#[test]
fn blt_3_a_person_at_the_keyboard_may_say_yes() {
    let site = Site::saying(page("text/plain", "hello"));
    let home = home(&[]);
    let arguments = json!({ "url": site.url("/") });
    let (code, message) = failed(&home.call("web_fetch", &arguments));
    assert!(code == "APPROVAL_REQUIRED" && message.contains(&site.url("/")), "{message}");
    assert_eq!(site.hits(), 0);
    let reply = home.call_yes("web_fetch", &arguments);
    assert_eq!((&reply["ok"], &reply["result"]["body"]), (&json!(true), &json!("hello")));
}

#[test]
fn blt_3_private_addresses_are_refused_even_with_an_approval() {
    let site = Site::saying(page("text/plain", "SECRET"));
    let port = site.address.port();
    let all = json!({ "web": { "allow": ["*", format!("*:{port}")] } }).to_string();
    let server = TestDir::new().config(&all);
    let server = server.serve();
    for host in "127.0.0.1 127.1 0x7f000001 0177.0.0.1 2130706433 0 [::1] [::ffff:127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] \
                 ①②⑦.⓪.⓪.① 127。0。0。1 127.0.0.1. localhost a.localhost. 169.254.169.254 10.0.0.1 [fd00:ec2::254]"
        .split_whitespace()
    {
        let reply = server.call("web_fetch", &json!({ "url": format!("http://{host}:{port}/") })).json();
        let (code, message) = failed(&reply);
        assert!(code == "PERMISSION_DENIED" && message.contains("not a public address"), "{host}: {message}");
    }
    for url in [
        "file:///etc/passwd".to_owned(),
        format!("http://example.com@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}/\r\nX: y"),
        "127.0.0.1".to_owned(),
    ] {
        assert_eq!(
            failed(&server.call("web_fetch", &json!({ "url": url })).json()).0,
            "INVALID_ARGUMENTS",
            "{url}"
        );
    }
    // A yes does not help either.
    let home = TestDir::new();
    let reply = home.call_yes("web_fetch", &json!({ "url": site.url("/") }));
    assert_eq!(failed(&reply).0, "PERMISSION_DENIED");
    assert_eq!(site.hits(), 0);
}

#[test]
fn blt_3_names_are_checked_where_they_are_connected_to() {
    let site = Site::saying(page("text/plain", "SECRET"));
    let port = site.address.port();
    // One address of the name is open, so its text is fine; where it leads is not.
    let web = json!({ "allow": [format!("localhost:{port}"), format!("nowhere.invalid:{port}")], "allowPrivate": ["::1/128"] });
    let home = TestDir::new().config(&json!({ "web": web }).to_string());
    let outcome = |host: &str| {
        let reply = home.call("web_fetch", &json!({ "url": format!("http://{host}:{port}/") }));
        let (code, message) = failed(&reply);
        assert_eq!((code.as_str(), reply["error"].get("details")), ("UPSTREAM_UNAVAILABLE", None), "{reply}");
        message.replace(host, "HOST")
    };
    // What is refused and what is not there sound alike.
    assert_eq!(outcome("localhost"), outcome("nowhere.invalid"));
    assert_eq!(site.hits(), 0);
}

#[test]
fn blt_3_no_proxy_of_the_environment_stands_in_between() {
    let (site, proxy) =
        (Site::saying(page("text/plain", "hello")), Site::saying(page("text/plain", "proxied")));
    let mut home = home(&[&site.url("")]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        home = home.env(name, &proxy.url(""));
    }
    assert_eq!(done(&home, "web_fetch", &json!({ "url": site.url("/") }))["body"], "hello");
    assert_eq!(proxy.hits(), 0);
}

#[test]
fn blt_3_redirects_pass_the_same_gates() {
    let other = Site::saying(page("text/plain", "other"));
    let off_the_list = other.url("/off");
    let targets = off_the_list.clone();
    let site = Site::new(move |path| match path {
        "/start" => redirect("/end"),
        "/off" => redirect(&targets),
        "/private" => redirect("http://127.0.0.2:1/"),
        "/decimal" => redirect("http://2852039166/latest/meta-data/"),
        "/file" => redirect("file:///etc/passwd"),
        "/loop" => redirect("/loop"),
        _ => page("text/plain", "end"),
    });
    let home = home(&[&site.url("/*")]);
    let server = home.serve();
    let fetch = |path: &str| server.call("web_fetch", &json!({ "url": site.url(path) })).json();
    let reply = fetch("/start");
    assert_eq!(
        (&reply["result"]["body"], &reply["result"]["redirected"]),
        (&json!("end"), &json!(true)),
        "{reply}"
    );
    for path in ["/off", "/private", "/decimal", "/file"] {
        let (code, message) = failed(&fetch(path));
        assert!(code == "PERMISSION_DENIED" && message.contains("not followed"), "{path}: {message}");
    }
    let reply = fetch("/off");
    assert_eq!(reply["error"]["details"]["redirect"], off_the_list, "{reply}");
    let (code, message) = failed(&fetch("/loop"));
    assert!(code == "EXECUTION_ERROR" && message.contains("5 times"), "{message}");
    assert_eq!(other.hits(), 0);
}

#[test]
fn blt_3_tls_is_checked_and_not_given_up() {
    let plain = Site::saying(page("text/plain", "in the clear"));
    let target = plain.url("/");
    let site =
        Site::new(move |path| if path == "/down" { redirect(&target) } else { page("text/plain", "secure") });
    let authority = Authority::new("web test");
    let relay = authority.relay(site.address, &HERE);
    let stranger = Authority::new("stranger").relay(site.address, &HERE);
    let allow =
        [format!("https://{}", relay.address), format!("https://{}", stranger.address), plain.url("")];
    let home = home(&allow.each_ref().map(String::as_str));
    let trusted = authority.write(home.path()).display().to_string();
    let home = home.env("SSL_CERT_FILE", &trusted);
    let fetch = |url: String| home.call("web_fetch", &json!({ "url": url }));
    let reply = fetch(format!("https://{}/", relay.address));
    assert_eq!(reply["result"]["body"], "secure", "{reply}");
    let (code, message) = failed(&fetch(format!("https://{}/down", relay.address)));
    assert!(code == "PERMISSION_DENIED" && message.contains("not encrypted"), "{message}");
    assert_eq!(failed(&fetch(format!("https://{}/", stranger.address))).0, "UPSTREAM_UNAVAILABLE");
    assert_eq!(plain.hits(), 0);
}

#[test]
fn blt_3_answers_are_bounded_in_size_and_time() {
    let site = Site::new(|path| match path {
        "/large" => page("text/plain", "x".repeat(6 * 1024 * 1024)),
        "/html" => page("text/html", "<title>T</title><script>no</script><h1>Head</h1><p><a href=x>l</a>"),
        "/image" => page("image/png", b"\x89PNG\x00\xff"),
        // It says more than it sends, and the connection stays open as long as this thread does.
        _ => {
            std::thread::park();
            Vec::new()
        }
    });
    let home = home(&[&site.url("")]);
    let fetch = |path: &str, more: Value| {
        let mut arguments = json!({ "url": site.url(path) });
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        arguments
    };
    let read = done(&home, "web_fetch", &fetch("/html", json!({ "format": "markdown" })));
    assert_eq!(read["body"], format!("# Head\n\n[l]({})", site.url("/x")));
    assert_eq!(read["title"], "T");
    let image = done(&home, "web_fetch", &fetch("/image", json!({})));
    assert_eq!((&image["body"], &image["encoding"]), (&json!("iVBORwD/"), &json!("base64")));
    let reply = home.call("web_fetch", &fetch("/hang", json!({ "timeout": 0.3 })));
    assert_eq!(failed(&reply).0, "TIMEOUT");
    // More than fits a conversation is stored, and still cut at the limit of the tool.
    let home = home.config(
        &json!({ "web": { "allow": [site.url("")], "allowPrivate": ["127.0.0.1"] }, "defaults": { "toolResponseMaxBytes": 10_000_000 } })
            .to_string(),
    );
    let large = done(&home, "web_fetch", &fetch("/large", json!({})));
    assert_eq!(
        (large["body"].as_str().expect("text").len(), &large["truncated"]),
        (5 * 1024 * 1024, &json!(true))
    );
}
