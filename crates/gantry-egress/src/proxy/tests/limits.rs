//! Bytes, time, heads, connections, and the end.

use super::*;

/// Servers that never end, or never begin.
async fn raw(speak: impl Fn(TcpStream) -> JoinHandle<()> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            speak(stream);
        }
    });
    address
}

async fn endless() -> SocketAddr {
    raw(|mut stream| {
        tokio::spawn(async move {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
        })
    })
    .await
}

async fn silent() -> SocketAddr {
    raw(|mut stream| {
        tokio::spawn(async move {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.ok();
        })
    })
    .await
}

#[tokio::test]
async fn a_job_gets_so_many_bytes_and_then_a_reason() {
    const LIMIT: u64 = 200_000;
    let server = endless().await;
    for tunnelled in [false, true] {
        let bench = Bench::new(Rules { private: loopback(), max_bytes: LIMIT, ..Rules::default() }).await;
        let got = if tunnelled {
            let mut tunnel = bench.tunnel(&server.to_string()).await.unwrap();
            let mut all = Vec::new();
            tunnel.read_to_end(&mut all).await.ok();
            all.len()
        } else {
            bench.get(&format!("http://{server}/")).await.len()
        };
        assert!(got as u64 <= LIMIT && got > 10_000, "{got}");
        let said = bench.get(&format!("http://{server}/")).await;
        assert!(said.starts_with("HTTP/1.1 403") && said.contains("used up its 200000 bytes"), "{said}");
        let said = bench.tunnel(&server.to_string()).await.unwrap_err();
        assert!(said.contains("used up"), "{said}");
        assert_eq!(bench.end().await.refused, [server.to_string()]);
    }
}

#[tokio::test]
async fn a_connection_on_which_nothing_moves_is_closed() {
    let server = silent().await;
    let rules = Rules { private: loopback(), idle: Duration::from_secs(1), ..Rules::default() };
    let bench = Bench::new(rules).await;
    let mut tunnel = bench.tunnel(&server.to_string()).await.unwrap();
    assert_eq!(tunnel.read(&mut [0; 8]).await.unwrap_or_default(), 0);
    // One that waits for an answer, and one that has not asked yet.
    assert!(!bench.get(&format!("http://{server}/")).await.contains(" 200 "));
    assert_eq!(bench.connect().await.read(&mut [0; 8]).await.unwrap_or_default(), 0);
}

#[tokio::test]
async fn the_end_of_the_job_closes_everything() {
    let (closed, mut seen) = tokio::sync::mpsc::channel::<()>(8);
    let server = raw(move |mut stream| {
        let closed = closed.clone();
        tokio::spawn(async move {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.ok();
            closed.send(()).await.unwrap();
        })
    })
    .await;
    let bench = Bench::open().await;
    let mut tunnel = bench.tunnel(&server.to_string()).await.unwrap();
    let mut asking = bench.connect().await;
    asking.write_all(format!("GET http://{server}/ HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut waiting = bench.connect().await;
    let address = bench.address;
    bench.end().await;
    for stream in [&mut tunnel, &mut asking, &mut waiting] {
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap_or_default(), 0);
    }
    // The tunnel at least had reached the server, which sees its end.
    seen.recv().await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn heads_are_bounded() {
    let bench = Bench::open().await;
    let long = "x".repeat(3 * HEAD_BYTES);
    let said = bench.say(&format!("GET http://127.0.0.1:1/ HTTP/1.1\r\nX-Long: {long}\r\n\r\n")).await;
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 431"), "{said}");
    let many = "X-One: 1\r\n".repeat(500);
    let said = bench.say(&format!("GET http://127.0.0.1:1/ HTTP/1.1\r\n{many}\r\n")).await;
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 431"), "{said}");
    let said = bench.say("\u{0}\u{1}nonsense\r\n\r\n").await;
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{said}");
}

#[tokio::test]
async fn a_report_names_so_many_hosts() {
    let bench = Bench::new(Rules { hosts: Some(Vec::new()), ..Rules::default() }).await;
    for host in 0..Report::REFUSED + 5 {
        for _ in 0..2 {
            assert!(bench.get(&format!("http://h{host}.example/")).await.starts_with("HTTP/1.1 403"));
        }
    }
    let refused = bench.end().await.refused;
    assert_eq!(refused.len(), Report::REFUSED);
    assert_eq!(refused.last().unwrap(), "h19.example:80");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let server = Server::start(HELLO).await;
    let bench = Bench::new(Rules { private: loopback(), max_connections: 2, ..Rules::default() }).await;
    let quiet = silent().await.to_string();
    let (first, _second) = (bench.tunnel(&quiet).await.unwrap(), bench.tunnel(&quiet).await.unwrap());
    let url = server.url("/");
    let third = bench.get(&url);
    tokio::pin!(third);
    tokio::select! {
        biased;
        said = &mut third => panic!("a third was served: {said}"),
        () = std::future::ready(()) => {}
    }
    drop(first);
    assert!(third.await.ends_with("hello"));
}
