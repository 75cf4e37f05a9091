//! A service that reads requests and hangs up without an answer, or in the middle of one.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// It runs until the test ends.
#[derive(Debug)]
pub struct HangUp {
    /// Where it listens.
    pub address: SocketAddr,
    came: Arc<AtomicUsize>,
}

impl HangUp {
    /// Starts it on a free port.
    #[must_use]
    pub fn start() -> Self {
        Self::after("")
    }

    /// The same for one that says this before it hangs up.
    #[must_use]
    pub fn after(words: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let service = Self { address: listener.local_addr().expect("its address"), came: Arc::default() };
        let came = Arc::clone(&service.came);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if read_request(&mut stream).is_some() {
                    came.fetch_add(1, Ordering::SeqCst);
                    // Whoever asked may be gone.
                    stream.write_all(words.as_bytes()).ok();
                }
            }
        });
        service
    }

    /// The address of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many whole requests came.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.came.load(Ordering::SeqCst)
    }
}

/// Reads a request to its end.
fn read_request(stream: &mut TcpStream) -> Option<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()
}
