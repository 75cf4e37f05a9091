//! A call through the whole pipeline, in this process, with a real ledger and a tool that does nothing.

use super::cpu::Threads;
use super::in_process::{InProcess, folder};
use super::load::{Load, Worker};
use super::report::{Figures, Table};
use super::{ROUNDS, Section, WARM_UP, alloc, per_call, progress};
use crate::provider::test_tools;
use anyhow::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is called: a read, which is recorded after it ended, and a write, which is on the disk twice, before and after.
const TOOLS: [(&str, &str); 2] = [("read", "test__noop"), ("write", "test__noop_write")];

const WORKERS: [usize; 2] = [1, 16];

/// Which part of the time is spent once more with the allocations counted.
const COUNTED: u32 = 4;

pub(super) async fn measure(time: Duration) -> Result<Table> {
    let title =
        "A call through the pipeline, in process, ledger included: `test__noop` and `test__noop_write`";
    let mut table = Table::new(title, &["effect", "workers"]);
    for round in 0..ROUNDS {
        let folder = folder()?;
        let bench = InProcess::start(folder.path(), Arc::new(test_tools(0)), |_| Ok(())).await?;
        let bench = Arc::new(bench);
        for ((effect, tool), n_workers) in TOOLS.into_iter().flat_map(|tool| WORKERS.map(|n| (tool, n))) {
            progress(Section::Pipeline, round, &format!("{tool} ×{n_workers}"));
            let caller = || InProcessCaller { bench: Arc::clone(&bench), tool, arguments: "{}".into() };
            let callers = (0..n_workers).map(|_| caller()).collect();
            table.add(&[effect, &n_workers.to_string()], calling(&bench, callers, time).await?);
        }
        bench.projects.shutdown(Duration::from_secs(1)).await;
    }
    Ok(table)
}

async fn calling(bench: &InProcess, callers: Vec<InProcessCaller>, time: Duration) -> Result<Figures> {
    let (callers, _) = Load::run(callers, WARM_UP).await?;
    bench.store.flush().await?;

    let pid = std::process::id();
    let (before, start) = (Threads::of(pid)?, Instant::now());
    let (callers, load) = Load::run(callers, time).await?;
    // A call counts as done when it is in the ledger, so the last group is waited for.
    bench.store.flush().await?;
    let (wall, spent) = (start.elapsed(), Threads::of(pid)?.since(&before));

    alloc::start();
    let (_, counted) = Load::run(callers, time / COUNTED).await?;
    bench.store.flush().await?;
    let allocated = alloc::stop();
    let mut figures = vec![("wall µs/call", per_call(wall, load.calls))];
    figures.extend(load.times);
    figures.extend([
        ("CPU µs/call", per_call(spent.total, load.calls)),
        ("of it ledger", per_call(spent.ledger, load.calls)),
        ("allocations/call", allocated.times as f64 / counted.calls as f64),
        ("bytes/call", allocated.bytes as f64 / counted.calls as f64),
    ]);
    Ok(figures)
}

/// Calls one tool again and again.
struct InProcessCaller {
    bench: Arc<InProcess>,
    tool: &'static str,
    arguments: Arc<str>,
}

impl Worker for InProcessCaller {
    async fn call(&mut self) -> Result<()> {
        self.bench.call(self.tool, Arc::clone(&self.arguments)).await.map(drop)
    }
}
