//! `tools/call` over HTTP: `gantry serve` beside the minimal server, each as a process of its own.

use super::client::{Client, Era};
use super::cpu::{CpuTime, Threads};
use super::load::Load;
use super::report::Table;
use super::{ROUNDS, SETTLE, Section, WARM_UP, minimal, per_call, progress};
use crate::TestDir;
use anyhow::Result;
use std::time::Duration;

pub(super) const WORKERS: [usize; 3] = [1, 16, 64];

pub(super) async fn measure(time: Duration) -> Result<Table> {
    let title = "`tools/call` of `test__noop` at `/mcp`, beside a bare axum echo";
    let mut table = Table::new(title, &["protocol", "workers", "server"]);
    for round in 0..ROUNDS {
        // A new folder for each round, so that the ledgers of all rounds grow from nothing alike.
        let home = TestDir::with_test_tools();
        let (gantry, (server, address)) = (home.serve(), minimal::start_http()?);
        for (era, n) in [Era::Legacy, Era::Modern].into_iter().flat_map(|era| WORKERS.map(|n| (era, n))) {
            progress(Section::Mcp, round, &format!("{} ×{n}", era.version()));
            let (mut clients, mut plain) = (Vec::new(), Vec::new());
            for _ in 0..n {
                clients.push(Client::to_gantry(gantry.address, era).await?);
                plain.push(Client::to_minimal(address, era).await?);
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

/// A load and what it cost the server.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) load: Load,
    spent: CpuTime,
}

impl Measured {
    pub(super) async fn of(pid: u32, clients: Vec<Client>, time: Duration) -> Result<Self> {
        let (clients, _) = Load::run(clients, WARM_UP).await?;
        tokio::time::sleep(SETTLE).await;
        let before = Threads::of(pid)?;
        let (_, load) = Load::run(clients, time).await?;
        tokio::time::sleep(SETTLE).await;
        Ok(Self { load, spent: Threads::of(pid)?.since(&before) })
    }

    /// The server's CPU time for one call, in microseconds.
    pub(super) fn cpu(&self) -> f64 {
        per_call(self.spent.total, self.load.calls)
    }
}
