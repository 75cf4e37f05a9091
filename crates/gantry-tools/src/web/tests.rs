//! The web tools, called as the pipeline calls them: judged, asked about, and run by a permit, against real servers.

mod bodies;
mod hosts;
mod redirects;
mod requests;
mod searches;

use super::*;
use crate::options::{SearchApi, WebSearchOptions};
use crate::testing::context;
use futures_util::FutureExt as _;
use gantry_core::policy::Verdict;
use gantry_core::{EffectState, Permit, Refusal, Toolset};
use gantry_egress::Url;
use gantry_egress::address_guard::parse_range;
use gantry_provider::testing::{Answer, answer, judged, presents_itself, refused, toolset, yes};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The tools with certain options.
struct Bench {
    web: ToolBox,
    toolset: Toolset,
}

impl Bench {
    /// Tools that may reach this machine, with an allow-list.
    fn new(allow: &[&str]) -> Self {
        Self::with(allow, &["127.0.0.1/32"], None)
    }

    fn with(allow: &[&str], private: &[&str], search: Option<WebSearchOptions>) -> Self {
        let allow = allow.iter().map(|pattern| UrlPattern::parse(pattern).unwrap()).collect();
        let allow_private = private.iter().map(|range| parse_range(range).unwrap()).collect();
        let web = web_tools(WebOptions { allow, allow_private, search }).unwrap();
        let toolset = toolset(web.tools());
        Self { web, toolset }
    }

    /// Tools whose allow-list has this server.
    fn for_server(server: &Server) -> Self {
        Self::new(&[&server.url("")])
    }

    fn judge(&self, tool: &str, arguments: &Value) -> Result<Verdict, Refusal> {
        judged(&self.toolset, (tool, arguments), |arguments| {
            // It only reads the arguments, so it is ready at once.
            let looked = self.web.preflight(tool, arguments).now_or_never().unwrap();
            looked.map_err(|fault| Refusal::from(fault.error))
        })
    }

    async fn run(&self, permit: &Permit) -> Answer {
        answer(permit, self.web.execute(&context(), permit).await)
    }

    /// Calls a tool; a question stays a question.
    async fn call(&self, tool: &str, arguments: Value) -> Answer {
        match self.judge(tool, &arguments) {
            Err(refusal) | Ok(Verdict::Deny(refusal)) => refused(&refusal),
            Ok(Verdict::Ask(question)) => Answer::Asked(question.reason()),
            Ok(Verdict::Allow(permit)) => self.run(&permit).await,
        }
    }

    /// Calls a tool; a person says yes to the question that there must be.
    async fn approved(&self, tool: &str, arguments: Value) -> Answer {
        match self.judge(tool, &arguments) {
            Err(refusal) | Ok(Verdict::Deny(refusal)) => refused(&refusal),
            Ok(Verdict::Allow(_)) => panic!("no approver was asked"),
            Ok(Verdict::Ask(question)) => self.run(&yes(question)).await,
        }
    }

    async fn fetch(&self, url: &str) -> Answer {
        self.call("web_fetch", json!({ "url": url })).await
    }
}

/// A server that keeps what it was asked, and answers by path.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    hits: Arc<AtomicUsize>,
}

/// What is said to a path.
type Script = Arc<dyn Fn(&str) -> Vec<u8> + Send + Sync>;

impl Server {
    /// A server that answers every path alike.
    async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start("127.0.0.1:0", move |_| answer.clone()).await
    }

    async fn start(address: &str, script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, asked: Arc::default(), hits: Arc::default() };
        let (asked, hits) = (Arc::clone(&server.asked), Arc::clone(&server.hits));
        let script: Script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                hits.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&asked), Arc::clone(&script)));
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

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, asked: Arc<Mutex<Vec<String>>>, script: Script) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .to_lowercase()
        .split("content-length: ")
        .nth(1)
        .map(|rest| rest.split("\r\n").next().unwrap().parse().unwrap());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    asked.lock().unwrap().push(format!("{head}{}", String::from_utf8_lossy(&body)));
    // A client that has had enough hangs up.
    stream.write_all(&script(&path)).await.ok();
    stream.shutdown().await.ok();
}

/// An answer with these headers and this body.
fn ok(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut answer =
        format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

fn service(api: SearchApi, url: &str, key: Option<&str>) -> WebSearchOptions {
    WebSearchOptions { api, url: Some(url.to_owned()), api_key: key.map(Into::into) }
}

fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

#[test]
fn the_tools_present_themselves_completely() {
    let bench = Bench::with(&[], &[], Some(service(SearchApi::Searxng, "https://search.test", None)));
    let names: Vec<_> =
        bench.toolset.tools().map(|tool| (tool.name.to_string(), tool.effect.as_str())).collect();
    assert_eq!(names, [("web_fetch".to_owned(), "write"), ("web_search".to_owned(), "read")]);
    for tool in bench.toolset.tools() {
        assert_eq!(tool.quarantined(), None);
        presents_itself(&tool.spec);
        assert_eq!(tool.spec.annotations.open_world_hint, Some(true));
    }
    let without = Bench::new(&[]);
    assert_eq!(without.web.tools().len(), 1);
}
