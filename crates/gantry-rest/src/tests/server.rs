//! A server that keeps what it was asked, and answers by a script.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What is said to a request: its head and its body.
type Script = Arc<dyn Fn(&str) -> Vec<u8> + Send + Sync>;

pub(super) struct Server {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |_| answer.clone()).await
    }

    pub(super) async fn start(script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), script)
    }

    /// One that takes a single connection: later ones find no server.
    pub(super) async fn once(answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let (asked, answer) = (Arc::clone(&server.asked), answer.into());
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            drop(listener);
            serve(stream, asked, Arc::new(move |_| answer.clone())).await;
        });
        server
    }

    pub(super) fn on(
        listener: TcpListener,
        script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let server = Self { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let (asked, script): (_, Script) = (Arc::clone(&server.asked), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&asked), Arc::clone(&script)));
            }
        });
        server
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests, each as it came.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The only request.
    #[track_caller]
    pub(super) fn request(&self) -> String {
        let mut asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked.remove(0)
    }
}

async fn serve(mut stream: TcpStream, asked: Arc<Mutex<Vec<String>>>, script: Script) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.to_lowercase().split("content-length: ").nth(1).map(str::to_owned);
    let length = length.map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let request = format!("{head}{}", String::from_utf8_lossy(&body));
    asked.lock().unwrap().push(request.clone());
    let answer = script(&request);
    // A client that has had enough hangs up.
    stream.write_all(&answer).await.ok();
    if answer.ends_with(HANGING) {
        std::future::pending::<()>().await;
    }
    stream.shutdown().await.ok();
}

/// An answer that ends like this is followed by silence.
pub(super) const HANGING: &[u8] = b"\r\n#hanging\r\n";

/// An answer with this status, these headers and this body.
pub(super) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A success of this type.
pub(super) fn ok(kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", &format!("content-type: {kind}\r\n"), body)
}

/// A success whose body ends with the connection.
pub(super) fn open(kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\n\r\n");
    [head.as_bytes(), body.as_ref()].concat()
}
