//! Code with a network: the proxy and what it lets through, and nothing beside it.

use super::site::Site;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A web server on loopback that counts who comes.
struct Web {
    address: SocketAddr,
    visits: Arc<AtomicUsize>,
}

impl Web {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let visits = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&visits);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
                // A client that sends nothing gets no answer.
                if stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {
                    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
                    stream.write_all(answer.as_bytes()).ok();
                }
            }
        });
        Self { address, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

/// Asks the proxy for each address in both ways that it knows, and then goes past it.
const ASK: &str = "
import json, os, socket, sys
came = {'proxy': os.environ.get('HTTP_PROXY')}
def say(text):
    with socket.create_connection(('127.0.0.1', 3128), timeout=20) as s:
        s.sendall(text.encode())
        received = b''
        while b'\\r\\n\\r\\n' not in received or not received.endswith(b'hello'):
            more = s.recv(4096)
            if not more:
                break
            received += more
            if b'\\r\\n\\r\\n' in received and not received.startswith(b'HTTP/1.1 200'):
                break
            if received.startswith(b'HTTP/1.1 200') and text.startswith('CONNECT') and received.count(b'HTTP/1.1') == 1 and received.endswith(b'\\r\\n\\r\\n'):
                s.sendall(b'GET / HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')
        return received.decode('latin-1')
def tries(name, what):
    try:
        came[name] = what()
    except OSError as error:
        came[name] = error.errno or str(error)
for target in sys.argv[1:]:
    tries('get ' + target, lambda: say(f'GET http://{target}/ HTTP/1.1\\r\\nhost: {target}\\r\\nconnection: close\\r\\n\\r\\n'))
    tries('connect ' + target, lambda: say(f'CONNECT {target} HTTP/1.1\\r\\nhost: {target}\\r\\n\\r\\n'))
    host, port = target.rsplit(':', 1)
    tries('past ' + target, lambda: socket.create_connection((host, int(port)), timeout=5) and 'reached')
print(json.dumps(came))
";

fn text<'a>(came: &'a Value, name: &str) -> &'a str {
    came[name].as_str().unwrap_or_else(|| panic!("{name}: {came}"))
}

#[test]
fn blt_2_with_a_network_private_addresses_are_reached_only_where_they_are_allowed() {
    let web = Web::start();
    let target = web.address.to_string();
    let by_name = format!("localhost:{}", web.address.port());
    Site::each("code: { network: true }\n", |site| {
        let gantry = site.server().address.to_string();
        let targets = [
            target.as_str(),
            &by_name,
            &gantry,
            "169.254.169.254:80",
            "[::1]:80",
            "0.0.0.0:80",
            "10.0.0.1:80",
        ];
        let came = site.python(ASK, &targets);
        assert_eq!(came["proxy"], "http://127.0.0.1:3128");
        for target in targets {
            for way in ["get", "connect"] {
                let answer = text(&came, &format!("{way} {target}"));
                assert!(
                    answer.starts_with("HTTP/1.1 403") && !answer.contains("hello"),
                    "{way} {target}: {answer}"
                );
            }
            assert!(came[format!("past {target}")] != "reached", "{target}: {came}");
        }
        assert_eq!(web.visits(), 0);
    });
    Site::each("code: { network: true }\nweb: { allowPrivate: [127.0.0.1/32] }\n", |site| {
        let before = web.visits();
        let came = site.python(ASK, &[&target, &by_name, "169.254.169.254:80"]);
        for target in [&target, &by_name] {
            for way in ["get", "connect"] {
                let answer = text(&came, &format!("{way} {target}"));
                assert!(
                    answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"),
                    "{way} {target}: {answer}"
                );
            }
        }
        assert!(text(&came, "get 169.254.169.254:80").starts_with("HTTP/1.1 403"), "{came}");
        assert_eq!(web.visits(), before + 4, "only the proxy came");
    });
}

#[test]
fn blt_2_without_a_network_there_is_no_proxy_even_with_allowed_addresses() {
    let web = Web::start();
    let target = web.address.to_string();
    Site::each("web: { allowPrivate: [127.0.0.0/8] }\n", |site| {
        let came = site.python(ASK, &[&target]);
        assert_eq!(came["proxy"], json!(null));
        for way in ["get", "connect", "past"] {
            assert_eq!(came[format!("{way} {target}")], 111, "{came}");
        }
        assert_eq!(web.visits(), 0);
    });
}

#[test]
fn blt_2_programs_that_know_proxies_find_it() {
    let web = Web::start();
    let site = Site::one("code: { network: true }\nweb: { allowPrivate: [127.0.0.1/32] }\n");
    let code = "
import os, sys, urllib.request
os.environ.pop('NO_PROXY', None); os.environ.pop('no_proxy', None)
print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
";
    let url = format!("http://{}/", web.address);
    let result = site.code_with("python", code, &json!({ "args": [url] }));
    assert_eq!(result["stdout"], "hello\n", "{result}");
    site.settled();
}

#[test]
fn blt_2_a_connection_that_is_open_when_the_run_ends_is_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    let site = Site::one("code: { network: true }\nweb: { allowPrivate: [127.0.0.1/32] }\n");
    let code = "
import socket, sys
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(f'CONNECT {sys.argv[1]} HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n'.encode())
assert s.recv(4096).startswith(b'HTTP/1.1 200')
s.sendall(b'knock')
";
    let (result, read) = std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let (mut stream, _) = listener.accept().expect("somebody");
            let mut read = Vec::new();
            stream.read_to_end(&mut read).ok();
            read
        });
        (site.code_with("python", code, &json!({ "args": [target] })), serving.join().expect("its end"))
    });
    assert_eq!(result["exitCode"], 0, "{result}");
    assert_eq!(read, b"knock", "and then the end");
    site.settled();
}
