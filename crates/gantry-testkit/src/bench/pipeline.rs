//! A call through the whole pipeline, in this process, with a real ledger and a tool that does nothing.

use super::cpu::Cpu;
use super::load::{Load, Worker};
use super::report::{Figures, Table};
use super::{ROUNDS, Section, WARM_UP, alloc, per_call, progress};
use crate::provider::TestTools;
use anyhow::{Context as _, Result, ensure};
use gantry_core::{CallRequest, Caller, EntryPoint, Role};
use gantry_provider::Provider;
use gantry_runtime::{Options, PipelineContext, Plan, ProcessOptions, Runtime, Services, Session};
use gantry_store::Store;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What is called: a read, which is recorded after it ended, and a write, which is on the disk twice, before and after.
const TOOLS: [(&str, &str); 2] = [("read", "test__noop"), ("write", "test__noop_write")];

const WORKERS: [usize; 2] = [1, 16];

/// Which part of the time is spent once more with the allocations counted.
const COUNTED: u32 = 4;

pub(super) async fn measure(time: Duration) -> Result<Table> {
    let mut table = Table::new(
        "A call through the pipeline, in process, ledger included: `test__noop` and `test__noop_write`",
        &["effect", "workers"],
    );
    for round in 0..ROUNDS {
        let bench = Bench::start().await?;
        for (effect, tool) in TOOLS {
            for n_workers in WORKERS {
                progress(Section::Pipeline, round, &format!("{tool} ×{n_workers}"));
                let figures = bench.measure(tool, n_workers, time).await?;
                table.add(&[effect, &n_workers.to_string()], figures);
            }
        }
        bench.runtime.shutdown(Duration::from_secs(1)).await;
    }
    Ok(table)
}

/// A runtime in a folder of its own.
struct Bench {
    runtime: Arc<Runtime>,
    store: Store,
    session: Arc<Session>,
    _folder: TempDir,
}

impl Bench {
    async fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("gantry-bench-").tempdir()?;
        let (store, recovery) = Store::open(gantry_store::Options::new(folder.path().join("gantry.db")))?;
        let tools: Arc<dyn Provider> = Arc::new(TestTools::new(0));
        let options = Options::new(folder.path().to_owned());
        let services = Services::new(store.clone(), &recovery, ProcessOptions::default());
        let runtime = Runtime::start(Plan { options, providers: vec![tools] }, &services).await?;
        let caller = Caller {
            principal: "local".into(),
            role: Role::Agent,
            agent: None,
            parent_agents: Arc::default(),
            project: Arc::clone(&runtime.project),
        };
        let session = runtime.open_session(caller, EntryPoint::Http).await;
        let session = session.ok().context("the session was refused")?;
        Ok(Self { runtime, store, session, _folder: folder })
    }

    async fn measure(&self, tool: &'static str, n_workers: usize, time: Duration) -> Result<Figures> {
        let workers = (0..n_workers).map(|_| self.worker(tool)).collect();
        let (workers, _) = Load::run(workers, WARM_UP).await?;
        self.store.flush().await?;

        let (before, start) = (Cpu::here()?, Instant::now());
        let (workers, load) = Load::run(workers, time).await?;
        // A call counts as done when it is in the ledger, so the last group is waited for.
        self.store.flush().await?;
        let (wall, spent) = (start.elapsed(), Cpu::here()?.since(&before));

        alloc::start();
        let (_, counted) = Load::run(workers, time / COUNTED).await?;
        self.store.flush().await?;
        let allocated = alloc::stop();
        Ok(vec![
            ("wall µs/call", per_call(wall, load.calls)),
            ("p50 µs", load.quantile(0.5)),
            ("p99 µs", load.quantile(0.99)),
            ("CPU µs/call", per_call(spent.total, load.calls)),
            ("of it ledger", per_call(spent.ledger, load.calls)),
            ("allocations/call", allocated.times as f64 / counted.calls as f64),
            ("bytes/call", allocated.bytes as f64 / counted.calls as f64),
        ])
    }

    fn worker(&self, tool: &'static str) -> Hand {
        Hand {
            runtime: Arc::clone(&self.runtime),
            session: Arc::clone(&self.session),
            tool,
            arguments: "{}".into(),
        }
    }
}

/// Somebody in this process who calls one tool again and again.
struct Hand {
    runtime: Arc<Runtime>,
    session: Arc<Session>,
    tool: &'static str,
    arguments: Arc<str>,
}

impl Worker for Hand {
    async fn call(&mut self) -> Result<()> {
        let request = CallRequest {
            tool: self.tool.to_owned(),
            arguments: Some(Arc::clone(&self.arguments)),
            ..CallRequest::default()
        };
        let reply = self.runtime.call(PipelineContext::new(&self.session), request).await;
        ensure!(reply.is_ok(), "{} failed: {}", self.tool, reply.model_text());
        Ok(())
    }
}
