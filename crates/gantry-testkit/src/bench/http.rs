//! `tools/call` and `tools/list` over HTTP: `gantry serve` beside the minimal server, each as a process of its own.

use super::client::{Client, Era, Method};
use super::cpu::{CpuTime, Threads};
use super::load::{Load, Worker as _};
use super::report::{Figures, Table};
use super::{ROUNDS, SETTLE, Section, WARM_UP, minimal, per_call, progress};
use crate::{Server, TestDir};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::time::Duration;

pub(super) const WORKERS: [usize; 3] = [1, 16, 64];

/// Tools in the list.
const TOOLS: usize = 1000;

pub(super) async fn calls(time: Duration) -> Result<Table> {
    let title = "`tools/call` of `test__noop` at `/mcp`, beside a bare axum echo";
    let mut table = Table::new(title, &["protocol", "workers", "server"]);
    for round in 0..ROUNDS {
        // A new folder for each round, so that the ledgers of all rounds grow from nothing alike.
        let home = TestDir::with_test_tools();
        let (gantry, (server, address)) = (home.serve(), minimal::start_http(0)?);
        for (era, n) in [Era::Legacy, Era::Modern].into_iter().flat_map(|era| WORKERS.map(|n| (era, n))) {
            progress(Section::Mcp, round, &format!("{} ×{n}", era.version()));
            let (mut clients, mut plain) = (Vec::new(), Vec::new());
            for _ in 0..n {
                clients.push(Client::to_gantry(gantry.address, era, Method::Call).await?);
                plain.push(Client::to_minimal(address, era, Method::Call).await?);
            }
            let ours = Measured::of(gantry.pid(), clients, time).await?;
            let bare = Measured::of(server.pid(), plain, time).await?;
            for (name, measured) in [("gantry", &ours), ("echo", &bare)] {
                let mut figures = measured.load.figures();
                figures.extend([
                    ("server CPU µs/call", measured.cpu()),
                    ("of it ledger", per_call(measured.spent.ledger, measured.load.calls)),
                    ("CPU × echo", measured.cpu() / bare.cpu()),
                ]);
                table.add(&[era.version(), &n.to_string(), name], figures);
            }
        }
    }
    Ok(table)
}

pub(super) async fn lists(time: Duration) -> Result<Table> {
    let title = format!("`tools/list` of {TOOLS} tools at `/mcp`, one worker, beside a bare axum echo");
    let mut table = Table::new(title, &["server"]);
    let own = n_tools(&TestDir::with_test_tools().serve()).await?;
    let fillers = TOOLS.checked_sub(own).context("there are too many tools already")?;
    for round in 0..ROUNDS {
        progress(Section::List, round, &format!("{own} + {fillers} tools"));
        let home = TestDir::with_test_tools().env("TEST_GANTRY_FILLERS", &fillers.to_string());
        let gantry = home.serve();
        let listed = n_tools(&gantry).await?;
        ensure!(listed == TOOLS, "{listed} tools are listed, not {TOOLS}");

        let client = Client::to_gantry(gantry.address, Era::Legacy, Method::List).await?;
        let ours = Measured::of(gantry.pid(), vec![client], time).await?;
        let (server, address) = minimal::start_http(ours.answer_bytes)?;
        let client = Client::to_minimal(address, Era::Legacy, Method::List).await?;
        let bare = Measured::of(server.pid(), vec![client], time).await?;
        ensure!(bare.answer_bytes == ours.answer_bytes, "the minimal server's answers have another length");
        table.add(&["gantry"], list_figures(&ours, &bare));
        table.add(&["echo"], list_figures(&bare, &bare));
    }
    Ok(table)
}

/// How many tools a server lists.
async fn n_tools(gantry: &Server) -> Result<usize> {
    let mut client = Client::to_gantry(gantry.address, Era::Legacy, Method::List).await?;
    client.call().await?;
    let answer: Value = serde_json::from_slice(&client.last_body)?;
    answer["result"]["tools"].as_array().map(Vec::len).context("the list is not a list")
}

fn list_figures(measured: &Measured, bare: &Measured) -> Figures {
    let [(_, p50), (_, p99)] = measured.load.times[..] else { return Vec::new() };
    vec![
        ("p50 ms", p50 / 1e3),
        ("p99 ms", p99 / 1e3),
        ("server CPU ms/list", measured.cpu() / 1e3),
        ("bytes", measured.answer_bytes as f64),
        ("CPU × echo", measured.cpu() / bare.cpu()),
    ]
}

/// A load and what it cost the server.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) load: Load,
    spent: CpuTime,
    answer_bytes: usize,
}

impl Measured {
    pub(super) async fn of(pid: u32, clients: Vec<Client>, time: Duration) -> Result<Self> {
        let (clients, _) = Load::run(clients, WARM_UP).await?;
        tokio::time::sleep(SETTLE).await;
        let before = Threads::of(pid)?;
        let (clients, load) = Load::run(clients, time).await?;
        tokio::time::sleep(SETTLE).await;
        let spent = Threads::of(pid)?.since(&before);
        let answer_bytes = clients.first().context("there is no client")?.last_body.len();
        Ok(Self { load, spent, answer_bytes })
    }

    /// The server's CPU time for one call, in microseconds.
    pub(super) fn cpu(&self) -> f64 {
        per_call(self.spent.total, self.load.calls)
    }
}
