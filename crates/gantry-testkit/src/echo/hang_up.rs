//! A service that reads requests and hangs up without an answer, or in the middle of one.

use crate::TestServer;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// It runs until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct HangUp {
    server: TestServer,
    requests: Arc<AtomicUsize>,
}

impl HangUp {
    /// Starts it on a free port.
    pub fn start() -> Self {
        Self::after("")
    }

    /// The same for one that writes this before it hangs up.
    pub fn after(words: &'static str) -> Self {
        let requests = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&requests);
        let server = TestServer::listen(|listener| async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                if read_request(&mut stream).await.is_ok() {
                    counter.fetch_add(1, Ordering::SeqCst);
                    stream.write_all(words.as_bytes()).await.ok(); // The client may be gone.
                }
            }
        });
        Self { server, requests }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// How many whole requests came.
    pub fn hits(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Reads a request to its end.
async fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    stream.read_exact(&mut vec![0; length.unwrap_or(0)]).await.map(drop)
}
