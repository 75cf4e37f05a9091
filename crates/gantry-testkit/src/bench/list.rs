//! `tools/list` of a thousand tools over HTTP, beside an echo that answers with as many bytes.

use super::client::{Ask, Client, Era};
use super::echo::Echo;
use super::load::Worker as _;
use super::mcp::Measured;
use super::report::{Figures, Table};
use super::{ROUNDS, Section, progress};
use crate::{Home, Server};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::time::Duration;

const TOOLS: usize = 1000;

const ERA: Era = Era::Legacy;

pub(super) async fn measure(time: Duration) -> Result<Table> {
    let title = format!("`tools/list` of {TOOLS} tools at `/mcp`, one worker, beside a bare axum echo");
    let mut table = Table::new(&title, &["server"]);
    let own = n_tools(&Home::with_test_tools().serve()).await?;
    let fillers = TOOLS.checked_sub(own).context("there are too many tools already")?;
    for round in 0..ROUNDS {
        progress(Section::List, round, &format!("{own} + {fillers} tools"));
        let home = Home::with_test_tools().env("TEST_GANTRY_FILLERS", &fillers.to_string());
        let gantry = home.serve();
        let listed = n_tools(&gantry).await?;
        ensure!(listed == TOOLS, "{listed} tools are listed, not {TOOLS}");

        let client = Client::to_gantry(gantry.address, ERA, Ask::List).await?;
        let ours = Measured::of(gantry.pid(), vec![client], time).await?;
        let echo = Echo::start(ours.answer_bytes)?;
        let client = Client::to_echo(echo.address, ERA, Ask::List).await?;
        let bare = Measured::of(echo.pid(), vec![client], time).await?;
        ensure!(bare.answer_bytes == ours.answer_bytes, "the echo's answers have another length");
        table.add(&["gantry"], figures(&ours, &bare));
        table.add(&["echo"], figures(&bare, &bare));
    }
    Ok(table)
}

/// How many tools a server lists.
async fn n_tools(gantry: &Server) -> Result<usize> {
    let mut client = Client::to_gantry(gantry.address, ERA, Ask::List).await?;
    client.call().await?;
    let answer: Value = serde_json::from_str(client.last_body()?)?;
    answer["result"]["tools"].as_array().map(Vec::len).context("the list is not a list")
}

fn figures(measured: &Measured, bare: &Measured) -> Figures {
    vec![
        ("p50 ms", measured.load.quantile(0.5) / 1e3),
        ("p99 ms", measured.load.quantile(0.99) / 1e3),
        ("server CPU ms/list", measured.cpu() / 1e3),
        ("bytes", measured.answer_bytes as f64),
        ("CPU × echo", measured.cpu() / bare.cpu()),
    ]
}
