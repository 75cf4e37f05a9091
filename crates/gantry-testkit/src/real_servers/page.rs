//! One page on the web, for the server that fetches pages.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// What the page says.
pub(super) const TEXT: &str = "the page of the test";

/// Bytes of a request that are read.
const REQUEST_BYTES: u64 = 64 * 1024;

/// A page that is served for as long as the test runs.
#[derive(Debug)]
pub(super) struct Page {
    address: SocketAddr,
}

impl Page {
    pub(super) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        // It waits for connections until the process ends, which a test's process does soon.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                stream.and_then(|stream| answer(&stream)).ok(); // A reader that went away is its own affair.
            }
        });
        Self { address }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/page.txt", self.address)
    }
}

fn answer(stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?).take(REQUEST_BYTES);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request)? > 0 {}
    // Without a robots.txt everything may be read.
    let (status, body) =
        if request.starts_with("GET /page.txt ") { ("200 OK", TEXT) } else { ("404 Not Found", "") };
    let length = body.len();
    let mut writer = stream;
    write!(
        writer,
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}
