//! `tools/call` over HTTP: `gantry serve` beside the echo, each as a process of its own.

use super::client::{Ask, Client, Era};
use super::cpu::{Cpu, Spent};
use super::echo::Echo;
use super::load::Load;
use super::report::{Figures, Table};
use super::{ROUNDS, SETTLE, Section, WARM_UP, per_call, progress};
use crate::Home;
use anyhow::{Context as _, Result};
use std::time::Duration;

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

const WORKERS: [usize; 3] = [1, 16, 64];

pub(super) async fn measure(time: Duration) -> Result<Table> {
    let mut table = Table::new(
        "`tools/call` of `test__noop` at `/mcp`, beside a bare axum echo",
        &["protocol", "workers", "server"],
    );
    for round in 0..ROUNDS {
        // A new home for each round, so that the ledgers of all rounds grow from nothing alike.
        let home = Home::with_test_tools();
        let (gantry, echo) = (home.serve(), Echo::start(0)?);
        for (era, n_workers) in ERAS.into_iter().flat_map(|era| WORKERS.map(|n| (era, n))) {
            progress(Section::Mcp, round, &format!("{} ×{n_workers}", era.version()));
            let mut clients = Vec::new();
            let mut plain = Vec::new();
            for _ in 0..n_workers {
                clients.push(Client::to_gantry(gantry.address, era, Ask::Call).await?);
                plain.push(Client::to_echo(echo.address, era, Ask::Call).await?);
            }
            let ours = Measured::of(gantry.pid(), clients, time).await?;
            let bare = Measured::of(echo.pid(), plain, time).await?;
            let workers = n_workers.to_string();
            table.add(&[era.version(), &workers, "gantry"], ours.figures(&bare));
            table.add(&[era.version(), &workers, "echo"], bare.figures(&bare));
        }
    }
    Ok(table)
}

/// A load and what it cost the server.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) load: Load,
    pub(super) spent: Spent,
    pub(super) answer_bytes: usize,
}

impl Measured {
    pub(super) async fn of(pid: u32, clients: Vec<Client>, time: Duration) -> Result<Self> {
        let (clients, _) = Load::run(clients, WARM_UP).await?;
        tokio::time::sleep(SETTLE).await;
        let before = Cpu::of(pid)?;
        let (clients, load) = Load::run(clients, time).await?;
        tokio::time::sleep(SETTLE).await;
        let spent = Cpu::of(pid)?.since(&before);
        let answer_bytes = clients.first().context("there is no client")?.last_body()?.len();
        Ok(Self { load, spent, answer_bytes })
    }

    /// The server's CPU time for one call, in microseconds.
    pub(super) fn cpu(&self) -> f64 {
        per_call(self.spent.total, self.load.calls)
    }

    fn figures(&self, bare: &Self) -> Figures {
        vec![
            ("calls/s", self.load.per_second()),
            ("p50 µs", self.load.quantile(0.5)),
            ("p99 µs", self.load.quantile(0.99)),
            ("server CPU µs/call", self.cpu()),
            ("of it ledger", per_call(self.spent.ledger, self.load.calls)),
            ("CPU × echo", self.cpu() / bare.cpu()),
        ]
    }
}
