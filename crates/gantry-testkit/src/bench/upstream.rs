//! What Gantry adds in front of an MCP server: the same server called directly and through Gantry, in one run.

mod direct;
mod thin;

pub(super) use thin::{Kind, serve};

use super::client::{Ask, Client, Era};
use super::cpu::Cpu;
use super::load::{Load, Worker};
use super::report::{Figures, Table};
use super::{ROUNDS, SETTLE, Section, WARM_UP, per_call, progress};
use crate::{Home, Server};
use anyhow::{Context as _, Result, ensure};
use direct::Pipe;
use serde_json::json;
use std::time::Duration;
use thin::Thin;

const WORKERS: [usize; 3] = [1, 16, 64];

/// Servers behind one idle Gantry.
const MANY: usize = 100;

/// How long many servers may take to be ready.
const READY: Duration = Duration::from_secs(120);

/// Calls through Gantry beside direct ones.
pub(super) async fn measure(time: Duration) -> Result<Table> {
    let title =
        "`tools/call` of one MCP server, called directly and through Gantry (2025-11-25 on both sides)";
    let mut table = Table::new(title, &["upstream", "workers", "path"]);
    for round in 0..ROUNDS {
        for (kind, n_workers) in Kind::ALL.into_iter().flat_map(|kind| WORKERS.map(|n| (kind, n))) {
            progress(Section::Upstream, round, &format!("{} ×{n_workers}", kind.name()));
            let direct = directly(kind, n_workers, time).await?;
            let through = through_gantry(kind, n_workers, time).await?;
            let workers = n_workers.to_string();
            table.add(&[kind.name(), &workers, "direct"], figures(&direct, &direct));
            table.add(&[kind.name(), &workers, "gantry"], figures(&through, &direct));
        }
    }
    Ok(table)
}

/// The memory of a Gantry that has nothing to do.
pub(super) async fn idle() -> Result<Table> {
    let mut table =
        Table::new("Memory of an idle Gantry, by the number of stdio servers behind it", &["servers"]);
    for round in 0..ROUNDS {
        for n in [0, 1, MANY] {
            progress(Section::Idle, round, &format!("{n} servers"));
            let home = Home::new().config(&configuration(&Kind::Stdio.server(None)?, n));
            let gantry = home.serve();
            ready(&gantry, n).await?;
            let guards = children(gantry.pid())?;
            let mut kept = 0.0;
            for guard in guards {
                kept += proportional(guard)?;
            }
            let own = proportional(gantry.pid())?;
            table.add(&[&n.to_string()], vec![("Gantry MiB", own), ("outer guards MiB", kept)]);
        }
    }
    Ok(table)
}

/// A load, and what it cost the process in the middle.
struct Measured {
    load: Load,
    /// What Gantry took; there is none in a direct call.
    gantry: Option<Taken>,
}

/// What Gantry took for a load.
struct Taken {
    /// CPU per call, in microseconds.
    cpu: f64,
    /// Resident memory in MiB after the load.
    memory: f64,
}

async fn directly(kind: Kind, n_workers: usize, time: Duration) -> Result<Measured> {
    let thin = Thin::start(kind)?;
    let load = match kind {
        Kind::Http => {
            let mut clients = Vec::new();
            for _ in 0..n_workers {
                clients.push(Client::to_echo(thin.address()?, Era::Legacy, Ask::Call).await?);
            }
            loaded(clients, time).await?
        }
        Kind::Stdio => loaded(Pipe::workers(thin.pipes()?, n_workers), time).await?,
    };
    Ok(Measured { load, gantry: None })
}

async fn through_gantry(kind: Kind, n_workers: usize, time: Duration) -> Result<Measured> {
    let thin = matches!(kind, Kind::Http).then(|| Thin::start(kind)).transpose()?;
    let home = Home::new().config(&configuration(&kind.server(thin.as_ref())?, 1));
    let gantry = home.serve();
    ready(&gantry, 1).await?;
    let mut clients = Vec::new();
    for _ in 0..n_workers {
        clients.push(Client::to_gantry(gantry.address, Era::Legacy, Ask::Call).await?);
    }
    let (clients, _) = Load::run(clients, WARM_UP).await?;
    tokio::time::sleep(SETTLE).await;
    let before = Cpu::of(gantry.pid())?;
    let (_, load) = Load::run(clients, time).await?;
    tokio::time::sleep(SETTLE).await;
    let cpu = per_call(Cpu::of(gantry.pid())?.since(&before).total, load.calls);
    Ok(Measured { load, gantry: Some(Taken { cpu, memory: proportional(gantry.pid())? }) })
}

async fn loaded<W: Worker>(workers: Vec<W>, time: Duration) -> Result<Load> {
    let (workers, _) = Load::run(workers, WARM_UP).await?;
    Ok(Load::run(workers, time).await?.1)
}

fn figures(measured: &Measured, direct: &Measured) -> Figures {
    let p50 = measured.load.quantile(0.5);
    let mut figures = vec![
        ("calls/s", measured.load.per_second()),
        ("p50 µs", p50),
        ("p99 µs", measured.load.quantile(0.99)),
        ("p50 × direct", p50 / direct.load.quantile(0.5)),
    ];
    if let Some(taken) = &measured.gantry {
        figures.extend([("Gantry CPU µs/call", taken.cpu), ("Gantry MiB", taken.memory)]);
    }
    figures
}

/// `n` servers, of which the first is called `test`, so that its tool has the name that the load calls.
fn configuration(server: &serde_json::Value, n: usize) -> String {
    let names = (0..n).map(|n| if n == 0 { "test".to_owned() } else { format!("test{n}") });
    let servers: serde_json::Map<_, _> = names.map(|name| (name, server.clone())).collect();
    json!({ "mcpServers": servers }).to_string()
}

/// Waits until all servers are green.
async fn ready(gantry: &Server, n: usize) -> Result<()> {
    let since = std::time::Instant::now();
    loop {
        let request = http::Request::get("/api/v1/servers");
        let (_, _, body) = gantry.client().send(request, bytes::Bytes::new()).await?;
        let servers: serde_json::Value = serde_json::from_slice(&body)?;
        let green = servers["items"]
            .as_array()
            .map_or(0, |items| items.iter().filter(|server| server["light"] == "green").count());
        if green == n {
            return Ok(());
        }
        ensure!(since.elapsed() < READY, "only {green} of {n} servers are ready: {servers}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Memory of a process in MiB, shared pages divided among those that share them.
fn proportional(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line =
        text.lines().find_map(|line| line.strip_prefix("Pss:")).context("the kernel does not say Pss")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}

/// The processes that a process has started.
fn children(pid: u32) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(entry?.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Ok(all)
}
