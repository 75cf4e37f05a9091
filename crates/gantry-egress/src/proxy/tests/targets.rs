//! Where a job gets, and where it does not.

use super::*;
use crate::host_pattern::HostPattern;

fn hosts(patterns: &[&str]) -> Option<Vec<HostPattern>> {
    Some(patterns.iter().map(|pattern| HostPattern::parse(pattern).unwrap()).collect())
}

#[tokio::test]
async fn a_request_is_passed_on_without_what_is_about_the_connection() {
    let server = Server::start(
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: x-mine\r\nx-mine: 1\r\nx-kept: 2\r\n\r\nhello",
    )
    .await;
    let bench = Bench::open().await;
    let answer = bench
        .say(&format!(
            "POST {}?q=%20 HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: \
             keep-alive\r\nConnection: close, X-Drop\r\nX-Drop: 1\r\nX-Keep: 2\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nabc\r\n0\r\n\r\n",
            server.url("/a/../b")
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
    assert!(answer.contains("x-kept") && !answer.contains("x-mine"), "{answer}");
    let asked = server.asked().to_lowercase();
    assert!(asked.starts_with("post /b?q=%20 http/1.1\r\n"), "{asked}");
    assert!(asked.contains(&format!("host: {}\r\n", server.address)), "{asked}");
    assert!(asked.contains("x-keep: 2") && asked.contains("transfer-encoding: chunked"), "{asked}");
    for gone in ["x-drop", "proxy-", "other.example"] {
        assert!(!asked.contains(gone), "{gone} in {asked}");
    }
    let report = bench.end().await;
    assert_eq!((report.hosts, report.refused), (vec![server.address.to_string()], vec![]));
    assert!(report.bytes > 100, "{}", report.bytes);
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways() {
    let server = Server::start(HELLO).await;
    let bench = Bench::open().await;
    let mut tunnel = bench.tunnel(&server.address.to_string()).await.unwrap();
    tunnel.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    tunnel.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, HELLO);
    assert_eq!(bench.end().await.hosts, [server.address.to_string()]);
}

#[tokio::test]
async fn no_spelling_of_a_private_address_gets_through() {
    let server = Server::start(HELLO).await;
    let port = server.address.port();
    let bench =
        Bench::new(Rules { private: vec![parse_range("10.9.8.7").unwrap()], ..Rules::default() }).await;
    let spellings = "127.0.0.1 127.1 127.0.1 0x7f000001 0x7f.0x0.0x0.0x1 017700000001 0177.0.0.1 2130706433 0 \
        0.0.0.0 127.0.0.1. 127.255.255.254 [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] \
        [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::] [fd00:ec2::254] [fe80::1] [fec0::1] localhost LOCALHOST. \
        a.localhost 169.254.169.254 2852039166 100.64.0.1 192.168.0.1 10.0.0.1 %31%32%37.0.0.1";
    for host in spellings.split_whitespace() {
        let said = bench.get(&format!("http://{host}:{port}/")).await;
        assert!(
            ["403", "502", "400"].iter().any(|code| said.starts_with(&format!("HTTP/1.1 {code}"))),
            "{host}: {said}"
        );
        let said = bench.tunnel(&format!("{host}:{port}")).await.unwrap_err();
        assert!(!said.contains(" 200 "), "{host}: {said}");
    }
    assert_eq!(server.hits(), 0);
    let report = bench.end().await;
    assert_eq!(report.hosts, Vec::<String>::new());
    assert!(report.refused.contains(&format!("127.0.0.1:{port}")), "{:?}", report.refused);
}

#[tokio::test]
async fn a_refusal_says_why_in_one_line() {
    let bench = Bench::scripted(
        Rules { hosts: hosts(&["a.example", "*.b.example:8443"]), ..Rules::default() },
        |name| {
            let private = name.starts_with("private");
            vec![if private { "10.0.0.1" } else { "8.8.8.8" }.parse().unwrap()]
        },
    )
    .await;
    for (url, words) in [
        ("http://c.example/", "c.example:80 is not among the hosts"),
        ("http://x.b.example/", "x.b.example:80 is not among the hosts"),
        ("http://private.b.example:8443/", "not at a public address"),
        ("http://a.example:22/", "port 22 of a.example is not open"),
        ("http://u:p@a.example/", "with a user"),
        ("https://a.example/", "use CONNECT"),
        ("/path", "this is a proxy"),
    ] {
        let said = bench.get(url).await;
        let last = said.lines().last().unwrap_or_default();
        assert!(last.starts_with("gantry: ") && last.contains(words), "{url}: {said}");
    }
    for (target, words) in
        [("c.example:443", "not among"), ("a.example:25", "port 25"), ("a.example", "host:port")]
    {
        let said = bench.tunnel(target).await.unwrap_err();
        assert!(said.contains(words), "{target}: {said}");
    }
    let said = bench.say("TRACE http://a.example/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.1 405"), "{said}");
    assert!(bench.end().await.refused.contains(&"c.example:443".to_owned()));
}

#[tokio::test]
async fn a_listed_host_at_an_opened_address_is_reached_at_any_port() {
    let server = Server::start(HELLO).await;
    let rules = Rules { private: loopback(), hosts: hosts(&["*.test"]), ..Rules::default() };
    let bench = Bench::scripted(rules, |_| vec!["127.0.0.1".parse().unwrap()]).await;
    let said = bench.get(&format!("http://API.test.:{}/", server.address.port())).await;
    assert!(said.ends_with("hello"), "{said}");
    let said = bench.get(&server.url("/")).await;
    assert!(said.contains("not among"), "{said}");
}

#[tokio::test]
async fn a_name_that_turns_private_gains_nothing() {
    let inner = Server::start(HELLO).await;
    let port = inner.address.port();
    let outer = Server::start_at(&format!("127.0.0.2:{port}"), HELLO).await;
    let looked_up = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looked_up);
    let rules = Rules { private: vec![parse_range("127.0.0.2").unwrap()], ..Rules::default() };
    // It leads to an open address when it is looked at, and to a closed one when it is looked at again.
    let bench = Bench::scripted(rules, move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        vec![if first { "127.0.0.2" } else { "127.0.0.1" }.parse().unwrap()]
    })
    .await;
    for turn in 0..6 {
        let said = bench.get(&format!("http://flip.example:{port}/")).await;
        let words = if turn % 2 == 0 { "hello" } else { "not at a public address" };
        assert!(said.contains(words), "{turn}: {said}");
    }
    assert_eq!((looked_up.load(Ordering::SeqCst), outer.hits(), inner.hits()), (6, 3, 0));
}

#[tokio::test]
async fn unreachable_targets_and_refused_targets_get_different_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let bench = Bench::open().await;
    let said = bench.get(&format!("http://{address}/")).await;
    assert!(said.starts_with("HTTP/1.1 502") && said.contains("cannot be connected to"), "{said}");
    assert!(bench.tunnel(&address.to_string()).await.unwrap_err().starts_with("HTTP/1.1 502"));
    let server = Server::start("").await;
    let said = bench.get(&server.url("/")).await;
    assert!(said.starts_with("HTTP/1.1 502") && said.contains("hung up"), "{said}");
    assert_eq!(bench.end().await.refused, Vec::<String>::new());
}
