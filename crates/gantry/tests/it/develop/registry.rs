//! Registries of packages on loopback: npm's, PyPI's and cargo's, with one small package each.

use super::archive::{tgz, zip};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest as _, Sha256, Sha512};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Answers by path.
type Pages = BTreeMap<String, Vec<u8>>;

/// A server that has some pages, and writes down which were asked for. It ends with the test's process.
pub(super) struct Registry {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    /// A registry whose pages may name its address.
    fn start(pages: impl FnOnce(&str) -> Pages) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let pages = pages(&format!("http://{address}"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away is no concern of the others.
                answer(&stream, &pages, &seen).ok();
            }
        });
        Self { address, asked }
    }

    /// npm's, with `tiny-add` 1.2.0, which would leave a file behind when its install script runs.
    pub(super) fn npm() -> Self {
        let manifest = json!({
            "name": "tiny-add", "version": "1.2.0", "main": "index.js",
            "scripts": { "postinstall": "node -e \"require('fs').writeFileSync('ran.txt', 'it ran')\"" },
        });
        let package = tgz(&[
            ("package/package.json", &manifest.to_string()),
            ("package/index.js", "module.exports = (a, b) => a + b;\n"),
        ]);
        Self::start(|base| {
            let integrity = format!("sha512-{}", STANDARD.encode(Sha512::digest(&package)));
            let mut version = manifest;
            version["dist"] =
                json!({ "tarball": format!("{base}/tiny-add-1.2.0.tgz"), "integrity": integrity });
            version["hasInstallScript"] = true.into();
            let document = json!({
                "name": "tiny-add", "dist-tags": { "latest": "1.2.0" }, "versions": { "1.2.0": version },
            });
            Pages::from([
                ("/tiny-add".to_owned(), document.to_string().into()),
                ("/tiny-add-1.2.0.tgz".to_owned(), package),
            ])
        })
    }

    /// PyPI's, with `tiny_add` 1.2.0.
    pub(super) fn pypi() -> Self {
        let info = "tiny_add-1.2.0.dist-info";
        let wheel = zip(&[
            ("tiny_add.py", "def add(a, b):\n    return a + b\n"),
            (&format!("{info}/METADATA"), "Metadata-Version: 2.1\nName: tiny_add\nVersion: 1.2.0\n"),
            (
                &format!("{info}/WHEEL"),
                "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            ),
            (
                &format!("{info}/RECORD"),
                &format!("tiny_add.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"),
            ),
        ]);
        let file = "tiny_add-1.2.0-py3-none-any.whl";
        let page =
            format!("<html><body><a href=\"/files/{file}#sha256={}\">{file}</a></body></html>", hex(&wheel));
        Self::start(|_| {
            Pages::from([("/simple/tiny-add/".to_owned(), page.into()), (format!("/files/{file}"), wheel)])
        })
    }

    /// Cargo's, with `tiny-add` 1.2.0.
    pub(super) fn cargo() -> Self {
        let manifest = "[package]\nname = \"tiny-add\"\nversion = \"1.2.0\"\nedition = \"2021\"\n";
        let package = tgz(&[
            ("tiny-add-1.2.0/Cargo.toml", manifest),
            ("tiny-add-1.2.0/src/lib.rs", "pub fn add(a: i32, b: i32) -> i32 { a + b }\n"),
        ]);
        let entry = json!({
            "name": "tiny-add", "vers": "1.2.0", "deps": [], "cksum": hex(&package), "features": {}, "yanked": false,
        });
        Self::start(|base| {
            let config = json!({ "dl": format!("{base}/crates/{{crate}}-{{version}}.crate") });
            Pages::from([
                ("/index/config.json".to_owned(), config.to_string().into()),
                ("/index/ti/ny/tiny-add".to_owned(), format!("{entry}\n").into()),
                ("/crates/tiny-add-1.2.0.crate".to_owned(), package),
            ])
        })
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Forgets what was asked for.
    pub(super) fn forget(&self) {
        self.asked.lock().expect("nobody failed").clear();
    }

    /// The paths that were asked for.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nobody failed").clone()
    }
}

fn answer(stream: &TcpStream, pages: &Pages, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    seen.lock().expect("nobody failed").push(path.to_owned());
    let page = pages.get(path);
    let (status, body) = page.map_or(("404 Not Found", &b"{}"[..]), |page| ("200 OK", page));
    let kind = if path.starts_with("/simple") { "text/html" } else { "application/json" };
    let length = body.len();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}

fn hex(data: &[u8]) -> String {
    Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}
