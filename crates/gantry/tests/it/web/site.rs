//! A web site on this machine that counts who comes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What the site says to a path: a whole answer.
type Script = Arc<dyn Fn(&str) -> Vec<u8> + Send + Sync>;

/// A site. Its thread ends with the test.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    hits: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub(super) fn new(script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let site = Self { address, hits: Arc::default(), asked: Arc::default() };
        let (hits, asked, script) =
            (Arc::clone(&site.hits), Arc::clone(&site.asked), Arc::new(script) as Script);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                hits.fetch_add(1, Ordering::SeqCst);
                let (asked, script) = (Arc::clone(&asked), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, &asked, &script));
            }
        });
        site
    }

    /// A site that answers every request alike.
    pub(super) fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |_| answer.clone())
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    /// Heads and bodies of what it was asked.
    pub(super) fn asked(&self) -> String {
        self.asked.lock().expect("the list").join("\n")
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<Vec<String>>, script: &Script) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        // A client that hangs up has asked nothing.
        if stream.read_exact(&mut byte).is_err() {
            return;
        }
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head
        .to_lowercase()
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).expect("the body");
    let path = head.split(' ').nth(1).expect("a path").to_owned();
    asked.lock().expect("the list").push(format!("{head}{}", String::from_utf8_lossy(&body)));
    // A client that has had enough hangs up.
    stream.write_all(&script(&path)).ok();
}

/// An answer of this type.
pub(super) fn page(kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(super) fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .into_bytes()
}
