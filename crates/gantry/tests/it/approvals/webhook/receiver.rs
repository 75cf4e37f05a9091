//! A webhook's other end: takes messages, keeps them, and answers as a test wants it to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A message as it came.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// By name, in small letters.
    headers: HashMap<String, String>,
    /// The body.
    pub(super) raw: String,
    /// The same, read.
    pub(super) body: Value,
    /// What was answered.
    pub(super) status: u16,
}

impl Message {
    #[track_caller]
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }

    /// The signature that it has to have.
    pub(super) fn signature(&self, secret: &str) -> String {
        let key = match secret.strip_prefix("whsec_") {
            Some(encoded) => STANDARD.decode(encoded).expect("base64"),
            None => secret.as_bytes().to_vec(),
        };
        let mut code: Hmac<Sha256> = Hmac::new_from_slice(&key).expect("any length will do");
        let (id, time) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        code.update(format!("{id}.{time}.{}", self.raw).as_bytes());
        format!("v1,{}", STANDARD.encode(code.finalize().into_bytes()))
    }
}

#[derive(Debug, Default)]
struct Inside {
    answers: VecDeque<u16>,
    messages: Vec<Message>,
    connections: usize,
}

/// Listens on an address of its own until the test ends.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) url: String,
    inside: Arc<Mutex<Inside>>,
}

impl Receiver {
    /// One that answers.
    pub(super) fn start() -> Self {
        Self::listening(serve)
    }

    /// One that takes connections and says nothing.
    pub(super) fn silent() -> Self {
        Self::listening(|stream, _| {
            // Until the other side hangs up.
            std::io::copy(&mut { stream }, &mut std::io::sink()).ok();
        })
    }

    fn listening(serve: fn(TcpStream, &Mutex<Inside>)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook/with-a-secret", listener.local_addr().expect("an address"));
        let inside = Arc::new(Mutex::new(Inside::default()));
        let shared = Arc::clone(&inside);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                shared.lock().expect("nobody panics inside").connections += 1;
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { url, inside }
    }

    /// Answers the next messages like this, and all after them with 200. One with the status 0 is never answered.
    pub(super) fn answer<const N: usize>(&self, statuses: [u16; N]) {
        self.inside.lock().expect("nobody panics inside").answers = statuses.into();
    }

    /// What came so far.
    pub(super) fn messages(&self) -> Vec<Message> {
        self.inside.lock().expect("nobody panics inside").messages.clone()
    }

    /// How many connections were opened.
    pub(super) fn connections(&self) -> usize {
        self.inside.lock().expect("nobody panics inside").connections
    }
}

/// Takes one message. One whose sender is killed in the middle does not count.
fn serve(stream: TcpStream, inside: &Mutex<Inside>) {
    let mut reader = BufReader::new(stream);
    let (mut headers, mut line) = (HashMap::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|n| n > 0) && !line.trim().is_empty() {
        if let Some((name, value)) = line.trim().split_once(": ") {
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        line.clear();
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    let mut body = vec![0; length];
    if length == 0 || reader.read_exact(&mut body).is_err() {
        return;
    }
    let raw = String::from_utf8(body).expect("UTF-8");
    let body = serde_json::from_str(&raw).expect("JSON");
    let mut inside = inside.lock().expect("nobody panics inside");
    let status = inside.answers.pop_front().unwrap_or(200);
    let answer = format!("HTTP/1.1 {status} Said\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
    // Counted before it is answered, so that who has the answer finds it here.
    inside.messages.push(Message { headers, raw, body, status });
    drop(inside);
    if status == 0 {
        // Until the other side hangs up.
        std::io::copy(&mut reader, &mut std::io::sink()).ok();
    } else {
        reader.get_mut().write_all(answer.as_bytes()).ok();
    }
}
