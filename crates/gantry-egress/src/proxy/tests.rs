//! The proxy, spoken to as a job would: over a socket, by bytes.

mod limits;
mod secrets;
mod targets;

use super::*;
use crate::address_guard::{AddressGuard, IpNet, parse_range};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;

/// A proxy for one job.
struct Bench {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<Report>,
}

fn loopback() -> Vec<IpNet> {
    vec![parse_range("127.0.0.1/32").unwrap()]
}

impl Bench {
    async fn new(rules: Rules) -> Self {
        Self::behind(ProxySession::new(Arc::new(rules))).await
    }

    /// A proxy that may reach this machine.
    async fn open() -> Self {
        Self::new(Rules { private: loopback(), ..Rules::default() }).await
    }

    /// A proxy whose names lead where the script says.
    async fn scripted(rules: Rules, script: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static) -> Self {
        let guard = AddressGuard::scripted(&rules.private, script);
        Self::behind(ProxySession::guarded_by(guard, Arc::new(rules))).await
    }

    async fn behind(session: ProxySession) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve_at(listener, Arc::new(session), stop.clone()));
        Self { address, stop, serving }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// What comes back for these bytes until the proxy closes the connection.
    async fn say(&self, text: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A connection that is reset has still said what it said.
        stream.read_to_end(&mut answer).await.ok();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A plain request.
    async fn get(&self, url: &str) -> String {
        self.say(&format!("GET {url} HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n")).await
    }

    /// A tunnel, after the proxy has said that it is open; else what it said instead.
    async fn tunnel(&self, target: &str) -> Result<TcpStream, String> {
        let mut stream = self.connect().await;
        stream
            .write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let head = head(&mut stream).await;
        if head.starts_with("HTTP/1.1 200") {
            return Ok(stream);
        }
        stream.shutdown().await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        Err(format!("{head}{rest}"))
    }

    async fn end(self) -> Report {
        self.stop.cancel();
        self.serving.await.unwrap()
    }
}

/// The head of a message.
async fn head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { break };
        head.push(byte);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// A server that keeps what it was asked and answers always alike.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    hits: Arc<AtomicUsize>,
}

impl Server {
    async fn start(answer: &'static str) -> Self {
        Self::start_at("127.0.0.1:0", answer).await
    }

    async fn start_at(address: &str, answer: &'static str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, asked: Arc::default(), hits: Arc::default() };
        let (asked, hits) = (Arc::clone(&server.asked), Arc::clone(&server.hits));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                hits.fetch_add(1, Ordering::SeqCst);
                let asked = Arc::clone(&asked);
                tokio::spawn(async move { one(&mut stream, &asked, answer).await });
            }
        });
        server
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    fn asked(&self) -> String {
        self.asked.lock().unwrap().join("\n")
    }
}

/// Reads one request, with its body if it says how long that is, and answers it.
async fn one(
    stream: &mut (impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin),
    asked: &Mutex<Vec<String>>,
    answer: &str,
) {
    let head = head(stream).await;
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    asked.lock().unwrap().push(format!("{head}{}", String::from_utf8_lossy(&body)));
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.shutdown().await.ok();
}

const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
