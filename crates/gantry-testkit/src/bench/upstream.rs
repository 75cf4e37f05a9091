//! What Gantry adds in front of an MCP server: the same server called directly and through Gantry, in one run.

use super::client::{Client, Era};
use super::http::{Measured, WORKERS};
use super::load::{Load, Worker};
use super::minimal::{Kind, stdio_entry};
use super::report::Table;
use super::{ROUNDS, Section, WARM_UP, minimal, progress};
use crate::{Server, TestDir, process};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// Servers behind one idle Gantry.
const MANY: usize = 100;

/// How long many servers may take to be ready.
const START_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) async fn measure(time: Duration) -> Result<Table> {
    let title =
        "`tools/call` of one MCP server, called directly and through Gantry (2025-11-25 on both sides)";
    let mut table = Table::new(title, &["upstream", "workers", "path"]);
    for round in 0..ROUNDS {
        for (kind, n) in [Kind::Http, Kind::Stdio].into_iter().flat_map(|kind| WORKERS.map(|n| (kind, n))) {
            progress(Section::Upstream, round, &format!("{} ×{n}", kind.name()));
            let direct = directly(kind, n, time).await?;
            let (through, memory) = through_gantry(kind, n, time).await?;
            let figures = |load: &Load| {
                let mut figures = load.figures();
                figures.push(("p50 × direct", load.p50 / direct.p50));
                figures
            };
            let mut gantry = figures(&through.load);
            gantry.extend([("Gantry CPU µs/call", through.cpu()), ("Gantry MiB", memory)]);
            table.add(&[kind.name(), &n.to_string(), "direct"], figures(&direct));
            table.add(&[kind.name(), &n.to_string(), "gantry"], gantry);
        }
    }
    Ok(table)
}

pub(super) async fn idle() -> Result<Table> {
    let title = "Memory of an idle Gantry, by the number of stdio servers behind it";
    let mut table = Table::new(title, &["servers"]);
    for round in 0..ROUNDS {
        for n in [0, 1, MANY] {
            progress(Section::Idle, round, &format!("{n} servers"));
            let home = TestDir::new().config(&configuration(&stdio_entry()?, n));
            let gantry = home.serve();
            wait_until_ready(&gantry, n).await?;
            let guards = process::children(gantry.pid()).map(proportional_mib).sum::<Result<f64>>()?;
            let own = proportional_mib(gantry.pid())?;
            table.add(&[&n.to_string()], vec![("Gantry MiB", own), ("outer guards MiB", guards)]);
        }
    }
    Ok(table)
}

async fn directly(kind: Kind, n_workers: usize, time: Duration) -> Result<Load> {
    match kind {
        Kind::Http => {
            let (_server, address) = minimal::start_http()?;
            let mut clients = Vec::new();
            for _ in 0..n_workers {
                clients.push(Client::to_minimal(address, Era::Legacy).await?);
            }
            loaded(clients, time).await
        }
        Kind::Stdio => {
            let (_server, input, output) = minimal::start_stdio()?;
            loaded(Pipe::workers(input, output, n_workers), time).await
        }
    }
}

async fn loaded<W: Worker>(workers: Vec<W>, time: Duration) -> Result<Load> {
    let (workers, _) = Load::run(workers, WARM_UP).await?;
    Ok(Load::run(workers, time).await?.1)
}

/// A load through Gantry, and Gantry's memory after it.
async fn through_gantry(kind: Kind, n_workers: usize, time: Duration) -> Result<(Measured, f64)> {
    let server = (kind == Kind::Http).then(minimal::start_http).transpose()?;
    let entry = match &server {
        Some((_, address)) => {
            json!({ "type": "http", "url": format!("http://{address}/mcp"), "protocol": "legacy" })
        }
        None => stdio_entry()?,
    };
    let home = TestDir::new().config(&configuration(&entry, 1));
    let gantry = home.serve();
    wait_until_ready(&gantry, 1).await?;
    let mut clients = Vec::new();
    for _ in 0..n_workers {
        clients.push(Client::to_gantry(gantry.address, Era::Legacy).await?);
    }
    let measured = Measured::of(gantry.pid(), clients, time).await?;
    Ok((measured, proportional_mib(gantry.pid())?))
}

/// `n` servers, of which the first is called `test`, so that its tool has the name that the load calls.
fn configuration(server: &Value, n: usize) -> String {
    let names = (0..n).map(|n| if n == 0 { "test".to_owned() } else { format!("test{n}") });
    let servers: serde_json::Map<_, _> = names.map(|name| (name, server.clone())).collect();
    json!({ "mcpServers": servers }).to_string()
}

async fn wait_until_ready(gantry: &Server, n: usize) -> Result<()> {
    let since = std::time::Instant::now();
    loop {
        let request = http::Request::get("/api/v1/servers");
        let (_, _, body) = gantry.client().send(request, bytes::Bytes::new()).await?;
        let servers: Value = serde_json::from_slice(&body)?;
        let items = servers["items"].as_array().context("no list of servers")?;
        let green = items.iter().filter(|server| server["light"] == "green").count();
        if green == n {
            return Ok(());
        }
        ensure!(since.elapsed() < START_TIMEOUT, "only {green} of {n} servers are ready: {servers}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Memory of a process in MiB, shared pages divided among those that share them.
fn proportional_mib(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).context("the kernel lacks Pss")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}

/// One worker of many that call over the pipes of one process.
#[derive(Debug)]
struct Pipe(Arc<Shared>);

/// The pipes. A thread of its own reads the answers, as cheaply as it gets.
#[derive(Debug)]
struct Shared {
    input: Mutex<ChildStdin>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<String>>>,
    next: AtomicU64,
}

impl Pipe {
    fn workers(input: ChildStdin, output: ChildStdout, n: usize) -> Vec<Self> {
        let (input, next) = (Mutex::new(input), AtomicU64::new(100_000_000));
        let shared = Arc::new(Shared { input, waiting: Mutex::default(), next });
        let reading = Arc::clone(&shared);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let id = line.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).and_then(|rest| rest.get(..9));
                let id: Option<u64> = id.and_then(|id| id.parse().ok());
                if let Some(waiter) = id.and_then(|id| reading.waiting.lock().unwrap().remove(&id)) {
                    waiter.send(line).ok(); // A worker that has given up needs no answer.
                }
            }
        });
        (0..n).map(|_| Self(Arc::clone(&shared))).collect()
    }
}

impl Worker for Pipe {
    async fn call(&mut self) -> Result<()> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.0.waiting.lock().unwrap().insert(id, sender);
        let params = r#"{"name":"noop","arguments":{}}"#;
        let request =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n");
        self.0.input.lock().unwrap().write_all(request.as_bytes())?;
        let answer = receiver.await.context("the server is gone")?;
        ensure!(answer.contains(r#""text":"ok""#), "a wrong answer: {answer}");
        Ok(())
    }
}
