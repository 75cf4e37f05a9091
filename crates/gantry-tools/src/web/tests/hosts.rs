//! Where a fetch gets, and where it does not.

use super::*;

/// Everything that means this machine or one beside it, however it is written.
const CLOSED: &[&str] = &[
    "http://127.0.0.1",
    "http://127.1",
    "http://127.0.1",
    "http://0x7f000001",
    "http://0x7f.0x0.0x0.0x1",
    "http://0X7F.1",
    "http://017700000001",
    "http://0177.0.0.1",
    "http://0177.0.0.0x1",
    "http://2130706433",
    "http://0",
    "http://0.0.0.0",
    "http://00000000177.1",
    "http://127.0.0.1.",
    "http://127.255.255.254",
    "http://%31%32%37.0.0.1",
    "http:127.0.0.1",
    "http:/127.0.0.1",
    "http:///127.0.0.1",
    "http:\\\\127.0.0.1",
    "http://①②⑦.⓪.⓪.①",
    "http://127。0。0。1",
    "http://127．0．0．1",
    "http://１２７.0.0.1",
    "HTTP://127.0.0.1",
    " http://127.0.0.1",
    "http://127.0.0.1#@example.com",
    "http://127.0.0.1?@example.com",
    "http://127.0.0.1\\@example.com",
    "http://[::1]",
    "http://[0:0:0:0:0:0:0:1]",
    "http://[::]",
    "http://[::ffff:127.0.0.1]",
    "http://[::ffff:7f00:1]",
    "http://[0:0:0:0:0:ffff:127.0.0.1]",
    "http://[::127.0.0.1]",
    "http://[::ffff:0:127.0.0.1]",
    "http://[64:ff9b::7f00:1]",
    "http://[64:ff9b::127.0.0.1]",
    "http://[64:ff9b:1::7f00:1]",
    "http://[2002:7f00:1::]",
    "http://[2001::1]",
    "http://[fd00:ec2::254]",
    "http://[fc00::1]",
    "http://[fe80::1]",
    "http://[fec0::1]",
    "http://[ff02::1]",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166",
    "http://0xA9FEA9FE",
    "http://0251.0376.0251.0376",
    "http://[::ffff:169.254.169.254]",
    "http://169.254.169.254.",
    "http://100.100.100.200",
    "http://192.0.0.192",
    "http://168.63.129.16",
    "http://10.0.0.1",
    "http://10.1",
    "http://172.16.0.1",
    "http://192.168.0.1",
    "http://192.168.257",
    "http://100.64.0.1",
    "http://198.18.0.1",
    "http://224.0.0.1",
    "http://255.255.255.255",
    "http://240.0.0.1",
    "http://localhost",
    "http://localhost.",
    "http://LOCALHOST",
    "http://a.localhost",
    "http://ⓛocalhost",
    "http://loc%61lhost",
];

/// What is no address that could be fetched.
const UNREADABLE: &[&str] = &[
    "ftp://example.com",
    "file:///etc/passwd",
    "gopher://127.0.0.1:70/_x",
    "data:text/plain,x",
    "javascript:alert(1)",
    "ws://127.0.0.1",
    "http://",
    "http://?x",
    "//127.0.0.1/",
    "127.0.0.1",
    "/etc/passwd",
    "http://[::1",
    "http://[::1%25lo]",
    "http://256.256.256.256",
    "http://127.0.0.1.2",
    "http://0x100000000",
    "http://a b/",
    "http://exa<mple.com",
    "http://example.com@127.0.0.1",
    "http://127.0.0.1@example.com",
    "http://user:pass@example.com/",
    "http://:@127.0.0.1@x.test",
    "http://127.0.0.1\t",
    "http://127.0.0.1/\r\nHost: x",
    "http://example.com/\u{0}",
    "http://exam\nple.com/",
    "http://x:99999/",
    "http://127.0.0.1:-1/",
    "",
];

#[tokio::test]
async fn no_spelling_of_a_private_address_gets_through() {
    let server = Server::saying(ok("", "SECRET")).await;
    let port = server.address.port();
    // Even an allow-list that has everything does not open what is private.
    for bench in
        [Bench::with(&["*", &format!("*:{port}")], &[], None), Bench::with(&[], &["10.9.8.7/32"], None)]
    {
        for url in CLOSED {
            let (code, message) = bench.fetch(url).await.code_and_message();
            assert_eq!(code, "PERMISSION_DENIED", "{url}: {message}");
            // At the port of a server that is there.
            let there =
                Url::parse(url).ok().and_then(|mut url| url.set_port(Some(port)).ok().map(|()| url)).unwrap();
            assert_eq!(
                bench.fetch(there.as_str()).await.code_and_message().0,
                "PERMISSION_DENIED",
                "{there}"
            );
        }
        for url in UNREADABLE {
            let (code, message) = bench.fetch(url).await.code_and_message();
            assert_eq!(code, "INVALID_ARGUMENTS", "{url}: {message}");
        }
    }
    assert_eq!(server.hits(), 0);
}

#[tokio::test]
async fn an_opened_address_is_reached_and_its_neighbours_are_not() {
    let server = Server::saying(ok("", "hello")).await;
    let port = server.address.port();
    let bench = Bench::new(&[&format!("127.0.0.1:{port}"), &format!("127.0.0.2:{port}")]);
    for host in ["127.0.0.1", "2130706433", "127.1", "0x7f.1"] {
        let result = bench.fetch(&format!("http://{host}:{port}/x")).await.done();
        assert_eq!((&result["body"], &result["url"]), (&json!("hello"), &json!(server.url("/x"))));
    }
    for host in ["127.0.0.2", "[::1]", "10.0.0.1"] {
        assert_eq!(
            bench.fetch(&format!("http://{host}:{port}/")).await.code_and_message().0,
            "PERMISSION_DENIED",
            "{host}"
        );
    }
}

#[tokio::test]
async fn what_is_not_on_the_list_is_asked_about_in_words_that_show_it() {
    let bench = Bench::new(&["https://docs.rs/tokio/*"]);
    for (url, shown) in [
        ("https://docs.rs/serde", "GET https://docs.rs/serde at docs.rs"),
        ("https://docs.rs/tokio/../serde", "GET https://docs.rs/serde at docs.rs"),
        ("https://docs.rs/tokio/%2e%2e/serde", "GET https://docs.rs/serde at docs.rs"),
        ("https://docs.rs/tokio/%2f..%2fserde", "GET https://docs.rs/tokio/%2f..%2fserde at docs.rs"),
        ("https://DOCS.rs.evil.tld/tokio/", "GET https://docs.rs.evil.tld/tokio/ at docs.rs.evil.tld"),
        ("https://dоcs.rs/tokio/", "at xn--"),
        ("http://docs.rs/tokio/", "GET http://docs.rs/tokio/ at docs.rs"),
        ("https://docs.rs:8443/tokio/", "GET https://docs.rs:8443/tokio/ at docs.rs"),
    ] {
        let question = bench.fetch(url).await.asked();
        assert!(question.contains(shown) && question.contains("not on the allow-list"), "{url}: {question}");
    }
    let arguments = json!({
        "url": format!("https://a.test/{}", "x".repeat(2000)),
        "method": "POST", "body": "héllo", "headers": { "Authorization": "Bearer s3cret", "X-Note": "1" }
    });
    let question = bench.call("web_fetch", arguments).await.asked();
    assert!(question.contains("POST https://a.test/x") && question.contains("body of 6 bytes"), "{question}");
    assert!(
        question.contains("(2015 characters)") && question.contains("headers authorization, x-note"),
        "{question}"
    );
    assert!(!question.contains("s3cret"), "{question}");
}

#[tokio::test]
async fn ports_of_other_services_are_refused_unless_the_list_names_them() {
    let bench = Bench::new(&["example.com:25"]);
    for url in ["http://example.com:22", "https://example.com:25/x@y", "http://example.com:6"] {
        let answer = bench.fetch(&url.replace(":25", ":23")).await;
        assert_eq!(answer.code_and_message().0, "PERMISSION_DENIED", "{url}");
    }
    bench.fetch("http://other.example:8080/").await.asked();
    bench.fetch("http://other.example:443/").await.asked();
    let looked = bench.web.preflight("web_fetch", r#"{"url":"http://example.com:25/"}"#).await;
    assert!(looked.unwrap().ask.is_none());
}

#[tokio::test]
async fn errors_do_not_show_which_addresses_exist() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let bench = Bench::with(&[&format!("*:{port}"), "*.invalid"], &["127.0.0.1/32"], None);
    let told = async |host: &str| {
        let error = bench.fetch(&format!("http://{host}:{port}/")).await.error();
        assert_eq!((error.code.as_str(), &error.details), ("UPSTREAM_UNAVAILABLE", &None));
        error.message.replace(host, "HOST")
    };
    // Nothing listens; a name with an address that is not open beside one that is; no such name.
    let words = told("127.0.0.1").await;
    assert_eq!(words, told("localhost").await);
    assert_eq!(words, told("nowhere.invalid").await);
}
