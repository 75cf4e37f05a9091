//! The doors of Gantry as a client goes through them: messages in, messages out.

use bytes::Bytes;
use gantry_egress::{HttpResponse, LocalServer};
use gantry_testkit::process::ChildGuard;
use gantry_testkit::{Server, TestDir};
use http::{Method, header};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

/// Where to go in.
#[derive(Clone, Copy)]
pub(crate) enum Door<'a> {
    /// Streamable HTTP at this path.
    Http(&'a Server, &'a str),
    /// `/sse` and `/messages`.
    Sse(&'a Server),
    /// WebSocket at this path.
    Ws(&'a Server, &'a str),
    /// `gantry mcp` with these arguments, in front of the server that runs in this home or on its own.
    Stdio(&'a TestDir, &'a [&'a str]),
    /// No Gantry at all: the server of this entry of `mcpServers`, started in this home.
    Direct(&'a TestDir, &'a Value),
}

/// A door that is open.
pub(crate) struct Way {
    mouth: Mouth,
    pub(crate) heard: Receiver<String>,
    runtime: Option<Runtime>,
}

enum Mouth {
    Http(Http),
    Sse(LocalServer, String),
    Ws(tokio::sync::mpsc::UnboundedSender<String>),
    Stdio(ChildGuard),
}

/// A client of streamable HTTP.
struct Http {
    server: LocalServer,
    path: String,
    seen: Arc<Mutex<Seen>>,
    ears: Sender<String>,
}

/// What a client of streamable HTTP has to remember.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    /// The session, once there is one.
    pub(crate) session: Option<String>,
    /// The ids of all events.
    pub(crate) events: Vec<String>,
}

impl Door<'_> {
    #[track_caller]
    pub(super) fn open(self) -> Way {
        let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = workers.expect("a runtime");
        let (ears, heard) = channel();
        let mouth = match self {
            Self::Http(server, path) => {
                Mouth::Http(Http { server: server.client(), path: path.into(), seen: Arc::default(), ears })
            }
            Self::Sse(server) => open_sse(&runtime, server.client(), ears),
            Self::Ws(server, path) => open_ws(&runtime, &server.client(), path, ears),
            Self::Stdio(home, args) => open_stdio(home.command(["mcp"].iter().chain(args)), ears),
            Self::Direct(home, entry) => open_stdio(program(home, entry), ears),
        };
        Way { mouth, heard, runtime: Some(runtime) }
    }
}

impl Way {
    /// Says a message. Requests over HTTP are answered in the background, everything else is taken before this returns.
    #[track_caller]
    pub(super) fn say(&mut self, text: &str) {
        let runtime = self.runtime.as_ref().expect("still open");
        match &mut self.mouth {
            Mouth::Http(http) => http.say(runtime, text),
            Mouth::Sse(server, path) => {
                let request = http::Request::builder().method(Method::POST).uri(&**path);
                let request = request.header(header::CONTENT_TYPE, "application/json");
                let sent = runtime.block_on(server.send(request, Bytes::from(text.to_owned())));
                assert_eq!(sent.expect("an answer").0, 202, "{text}");
            }
            Mouth::Ws(frames) => frames.send(text.into()).expect("the socket is open"),
            Mouth::Stdio(child) => {
                let input = child.0.stdin.as_mut().expect("a pipe");
                input.write_all(format!("{text}\n").as_bytes()).expect("it reads");
            }
        }
    }

    /// Opens the stream for what belongs to no request, where that has a stream of its own.
    pub(super) fn listen(&self) {
        let (Mouth::Http(http), Some(runtime)) = (&self.mouth, &self.runtime) else { return };
        let request = http.request(Method::GET).header(header::ACCEPT, "text/event-stream");
        let answer = runtime.block_on(http.server.open(request, Bytes::new())).expect("an answer");
        assert_eq!(answer.status(), 200, "the stream of the session opens");
        let (seen, ears) = (Arc::clone(&http.seen), http.ears.clone());
        runtime.spawn(async move { read(answer, &seen, &ears).await });
    }

    /// What a client of streamable HTTP remembers.
    #[track_caller]
    pub(crate) fn seen(&self) -> Seen {
        let Mouth::Http(http) = &self.mouth else { panic!("this is not streamable HTTP") };
        http.seen.lock().expect("not poisoned").clone()
    }

    /// Where a client of HTTP+SSE sends its messages.
    #[track_caller]
    pub(crate) fn messages(&self) -> &str {
        let Mouth::Sse(_, path) = &self.mouth else { panic!("this is not HTTP+SSE") };
        path
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background(); // With its tasks go the connections.
        }
    }
}

impl Http {
    fn request(&self, method: Method) -> http::request::Builder {
        let request = http::Request::builder().method(method).uri(&*self.path);
        match &self.seen.lock().expect("not poisoned").session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }

    fn say(&self, runtime: &Runtime, text: &str) {
        let message = super::talk::parsed(text);
        let mut request = self.request(Method::POST);
        request = request.header(header::CONTENT_TYPE, "application/json");
        request = request.header(header::ACCEPT, "application/json, text/event-stream");
        for (name, value) in mirrored(&message) {
            request = request.header(name, value);
        }
        let (server, body) = (self.server.clone(), Bytes::from(text.to_owned()));
        let (seen, ears) = (Arc::clone(&self.seen), self.ears.clone());
        let exchange = async move {
            let answer = server.open(request, body).await.expect("an answer");
            if let Some(session) = answer.headers().get("mcp-session-id") {
                seen.lock().expect("not poisoned").session = Some(session.to_str().expect("text").to_owned());
            }
            read(answer, &seen, &ears).await;
        };
        if message.get("id").is_some() && message.get("method").is_some() {
            runtime.spawn(exchange);
        } else {
            runtime.block_on(exchange);
        }
    }
}

/// The headers that repeat a message of the newer era.
fn mirrored(message: &Value) -> Vec<(&'static str, String)> {
    let params = &message["params"];
    let Some(version) = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str() else {
        return Vec::new();
    };
    let method = message["method"].as_str().unwrap_or_default();
    let mut headers = vec![("mcp-protocol-version", version.to_owned()), ("mcp-method", method.to_owned())];
    let name = match method {
        "tools/call" | "prompts/get" => &params["name"],
        "resources/read" => &params["uri"],
        _ => &Value::Null,
    };
    headers.extend(name.as_str().map(|name| ("mcp-name", name.to_owned())));
    headers
}

/// Passes on every message of an answer, whether it comes whole or in events.
async fn read(mut answer: HttpResponse, seen: &Mutex<Seen>, ears: &Sender<String>) {
    let kind = answer.headers().get(header::CONTENT_TYPE).cloned();
    let mut text = String::new();
    let streams = kind.is_some_and(|kind| kind == "text/event-stream");
    while let Ok(Some(data)) = answer.chunk().await {
        text.push_str(std::str::from_utf8(&data).expect("UTF-8"));
        while let Some((event, rest)) = text.split_once("\n\n").filter(|_| streams) {
            pass(event, seen, ears);
            text = rest.to_owned();
        }
    }
    if !streams && !text.is_empty() {
        ears.send(text).ok(); // Who has left needs no answer.
    }
}

fn pass(event: &str, seen: &Mutex<Seen>, ears: &Sender<String>) {
    for line in event.lines() {
        if let Some(id) = line.strip_prefix("id: ") {
            seen.lock().expect("not poisoned").events.push(id.to_owned());
        }
        if let Some(data) = line.strip_prefix("data: ").filter(|data| !data.is_empty()) {
            ears.send(data.to_owned()).ok(); // Who has left needs no news.
        }
    }
}

fn open_sse(runtime: &Runtime, server: LocalServer, ears: Sender<String>) -> Mouth {
    let request = http::Request::builder().uri("/sse").header(header::ACCEPT, "text/event-stream");
    let answer = runtime.block_on(server.open(request, Bytes::new())).expect("an answer");
    assert_eq!(answer.status(), 200, "the stream opens");
    let (first, endpoint) = channel();
    runtime.spawn(async move {
        let seen = Mutex::default();
        read(answer, &seen, &first).await;
    });
    // The first event is no message: it says where to send them.
    let path = endpoint.recv_timeout(std::time::Duration::from_secs(60)).expect("the endpoint");
    std::thread::spawn(move || endpoint.iter().try_for_each(|message| ears.send(message)));
    Mouth::Sse(server, path)
}

fn open_ws(runtime: &Runtime, server: &LocalServer, path: &str, ears: Sender<String>) -> Mouth {
    let (mut reader, mut writer) = runtime.block_on(server.websocket(path)).expect("a socket");
    let (frames, mut said) = tokio::sync::mpsc::unbounded_channel::<String>();
    runtime.spawn(async move {
        while let Some(text) = said.recv().await {
            writer.send(text).await.expect("the socket is open");
        }
    });
    runtime.spawn(async move {
        while let Ok(Some(text)) = reader.next().await {
            ears.send(text).ok(); // Who has left needs no answer.
        }
    });
    Mouth::Ws(frames)
}

/// The program of an entry, with the environment that Gantry would give it.
fn program(home: &TestDir, entry: &Value) -> Command {
    let words = |key: &str| entry[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut command = Command::new(entry["command"].as_str().expect("a command"));
    let base = home.command::<[&str; 0]>([]);
    let env = base.get_envs().filter_map(|(name, value)| Some((name, value?)));
    command.args(words("args")).current_dir(home.path()).env_clear().envs(env);
    for (name, value) in entry["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().expect("a text"));
    }
    command
}

fn open_stdio(mut command: Command, ears: Sender<String>) -> Mouth {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| ears.send(line)));
    Mouth::Stdio(ChildGuard(child))
}
