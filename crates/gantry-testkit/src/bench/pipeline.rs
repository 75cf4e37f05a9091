//! A call through the whole pipeline, in this process, with a real ledger on disk and a tool that does nothing.

use super::cpu::Threads;
use super::load::{Load, Worker};
use super::report::{Figures, Table};
use super::{ROUNDS, Section, WARM_UP, alloc, per_call, progress};
use crate::provider::test_tools;
use anyhow::{Context as _, Result, ensure};
use gantry_core::{CallRequest, Caller, EntryPoint, Role};
use gantry_runtime::{Options, PipelineContext, Plan, ProcessOptions, Projects, Runtime, Services, Session};
use gantry_store::Store;
use std::collections::BTreeMap;
use std::path::Path;
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
        let folder = tempfile::Builder::new().prefix("gantry-bench-").tempdir()?;
        let bench = Arc::new(InProcess::start(folder.path()).await?);
        for ((effect, tool), n_workers) in TOOLS.into_iter().flat_map(|tool| WORKERS.map(|n| (tool, n))) {
            progress(Section::Pipeline, round, &format!("{tool} ×{n_workers}"));
            let caller = || InProcessCaller { bench: Arc::clone(&bench), tool, arguments: "{}".into() };
            let callers = (0..n_workers).map(|_| caller()).collect();
            table.add(&[effect, &n_workers.to_string()], calling(&bench.store, callers, time).await?);
        }
        bench.projects.shutdown(Duration::from_secs(1)).await;
    }
    Ok(table)
}

async fn calling(store: &Store, callers: Vec<InProcessCaller>, time: Duration) -> Result<Figures> {
    let (callers, _) = Load::run(callers, WARM_UP).await?;
    store.flush().await?;

    let pid = std::process::id();
    let (before, start) = (Threads::of(pid)?, Instant::now());
    let (callers, load) = Load::run(callers, time).await?;
    // A call counts as done when it is in the ledger, so the last group is waited for.
    store.flush().await?;
    let (wall, spent) = (start.elapsed(), Threads::of(pid)?.since(&before));

    alloc::start();
    let (_, counted) = Load::run(callers, time / COUNTED).await?;
    store.flush().await?;
    let allocated = alloc::stop();
    Ok(vec![
        ("wall µs/call", per_call(wall, load.calls)),
        ("p50 µs", load.p50),
        ("p99 µs", load.p99),
        ("CPU µs/call", per_call(spent.total, load.calls)),
        ("of it ledger", per_call(spent.ledger, load.calls)),
        ("allocations/call", allocated.times as f64 / counted.calls as f64),
        ("bytes/call", allocated.bytes as f64 / counted.calls as f64),
    ])
}

/// One project with the test tools, and a client in it.
struct InProcess {
    projects: Arc<Projects>,
    runtime: Arc<Runtime>,
    session: Arc<Session>,
    store: Store,
}

impl InProcess {
    async fn start(folder: &Path) -> Result<Self> {
        let (store, recovery) = Store::open(gantry_store::Options::new(folder.join("gantry.db")))?;
        let services = Services::new(store.clone(), &recovery, ProcessOptions::default());
        let plan = Plan { options: Options::new(folder.to_owned()), providers: vec![Arc::new(test_tools())] };
        let projects = Projects::start(services, BTreeMap::from([("default".into(), plan)]), None).await?;
        let runtime = projects.peek("default", None).context("the project is not there")?.runtime;
        let caller = Caller {
            principal: "local".into(),
            role: Role::Agent,
            agent: None,
            parent_agents: Arc::default(),
            project: "default".into(),
        };
        let session = runtime.open_session(caller, EntryPoint::Http).await;
        let session = session.ok().context("the session was refused")?;
        Ok(Self { projects, runtime, session, store })
    }
}

/// Calls one tool again and again.
struct InProcessCaller {
    bench: Arc<InProcess>,
    tool: &'static str,
    arguments: Arc<str>,
}

impl Worker for InProcessCaller {
    async fn call(&mut self) -> Result<()> {
        let (tool, arguments) = (self.tool.to_owned(), Some(Arc::clone(&self.arguments)));
        let request = CallRequest { tool, arguments, ..CallRequest::default() };
        let reply = self.bench.runtime.call(PipelineContext::new(&self.bench.session), request).await;
        ensure!(reply.is_ok(), "{} failed: {}", self.tool, reply.model_text());
        Ok(())
    }
}
