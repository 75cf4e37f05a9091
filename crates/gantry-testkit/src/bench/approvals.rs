//! 8,500 calls that wait for a person: what it takes to hold one more, to list the first page, to decide one, and to
//! end a thousand that expired.

use super::report::{Figures, Table};
use super::toolset::{figures, micros};
use super::{ROUNDS, Section, progress};
use crate::process;
use crate::provider::TestTools;
use anyhow::{Context as _, Result, ensure};
use gantry_core::policy::{ApprovalRules, Policies};
use gantry_core::{CallRequest, Caller, EntryPoint, Role, State};
use gantry_provider::Provider;
use gantry_runtime::approvals::{Decider, DecisionInput};
use gantry_runtime::ledger::{ApprovalFilter, ApprovalRow};
use gantry_runtime::{Options, PipelineContext, Plan, ProcessOptions, Projects, Reply, Services, Session};
use gantry_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls that wait: with those below, fewer than the store holds (10,000).
const PENDING: usize = 8_500;

/// Calls that expire.
const EXPIRING: usize = 1000;

/// How often the quick things are done in a round.
const TIMES: usize = 200;

pub(super) async fn measure(_time: Duration) -> Result<Table> {
    let mut table = Table::new(&format!("{PENDING} calls that wait for a person"), &["what"]);
    for round in 0..ROUNDS {
        let folder = tempfile::Builder::new().prefix("gantry-bench-").tempdir()?;
        let bench = Bench::start(folder.path(), Duration::from_secs(3600)).await?;
        progress(Section::Approvals, round, "a first call");
        table.add(&["hold a call, the store empty"], bench.holding(0, TIMES).await?);
        let before = process::resident_kib(std::process::id());
        progress(Section::Approvals, round, "thousands of calls");
        bench.fill(TIMES, PENDING - TIMES).await?;
        let after = process::resident_kib(std::process::id());
        let grown = f64::from(u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX)) / 1024.0;
        table.add(&["memory that they take"], vec![("MiB", grown)]);
        table.add(&["hold one more"], bench.holding(PENDING, TIMES).await?);
        progress(Section::Approvals, round, "lists and decisions");
        table.add(&["list the first page"], bench.listing().await?);
        table.add(&["decide one"], bench.deciding().await?);
        bench.projects.shutdown(Duration::ZERO).await;
        progress(Section::Approvals, round, "expiry");
        table.add(&["end a thousand that expired"], expiring(folder.path()).await?);
    }
    Ok(table)
}

struct Bench {
    projects: Arc<Projects>,
    session: Arc<Session>,
}

impl Bench {
    async fn start(folder: &std::path::Path, timeout: Duration) -> Result<Self> {
        let (store, recovery) = Store::open(gantry_store::Options::new(folder.join("gantry.db")))?;
        let services = Services::new(store, &recovery, ProcessOptions::default());
        let tools: Arc<dyn Provider> = Arc::new(TestTools::new(0));
        let mut options = Options::new(folder.to_owned());
        let requires_approval = vec![gantry_core::pattern::Pattern::everything()];
        let rules = ApprovalRules { requires_approval, ..ApprovalRules::default() };
        options.policies =
            Policies::compile(&[], rules).map_err(|_errors| anyhow::anyhow!("no rules are wrong"))?.into();
        options.approvals.timeout = timeout.into();
        options.approvals.max_pending = 100_000.into();
        let plans = BTreeMap::from([("default".into(), Plan { options, providers: vec![tools] })]);
        let projects = Projects::start(services, plans, None).await?;
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
        Ok(Self { projects, session })
    }

    async fn hold(&self, n: usize) -> Result<Reply> {
        let runtime = self.session.runtime().context("the runtime is gone")?;
        let cx = PipelineContext::new(&self.session);
        let request = CallRequest {
            tool: "test__echo".into(),
            arguments: Some(format!("{{\"text\":\"{n}\"}}").into()),
            ..CallRequest::default()
        };
        let entered = runtime.enter(&cx).ok().context("the call was not let in")?;
        let reply = runtime.run(entered, cx, request).await;
        ensure!(reply.state == State::PendingApproval, "{}", reply.to_json());
        Ok(reply)
    }

    async fn holding(&self, from: usize, times: usize) -> Result<Figures> {
        let mut taken = Vec::with_capacity(times);
        for n in from..from + times {
            let start = Instant::now();
            self.hold(n).await?;
            taken.push(micros(start.elapsed()));
        }
        Ok(figures(taken))
    }

    /// Holds many at once.
    async fn fill(&self, from: usize, count: usize) -> Result<()> {
        for chunk in (from..from + count).collect::<Vec<_>>().chunks(256) {
            let held = futures_util::future::join_all(chunk.iter().map(|n| self.hold(*n))).await;
            held.into_iter().collect::<Result<Vec<_>>>()?;
        }
        Ok(())
    }

    async fn page(&self) -> Result<Vec<ApprovalRow>> {
        let filter = ApprovalFilter { state: Some(State::PendingApproval), ..ApprovalFilter::default() };
        Ok(self.projects.store().approvals(filter).await?.items)
    }

    async fn listing(&self) -> Result<Figures> {
        let mut taken = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let start = Instant::now();
            ensure!(self.page().await?.len() == 50, "a page is not full");
            taken.push(micros(start.elapsed()));
        }
        Ok(figures(taken))
    }

    async fn deciding(&self) -> Result<Figures> {
        let by = Decider {
            name: "person".into(),
            role: Role::Admin,
            owner: true,
            projects: None,
            tools: None,
            via: "http".into(),
        };
        let mut taken = Vec::with_capacity(50);
        for row in self.page().await? {
            let start = Instant::now();
            self.projects.decide(row.id, &by, DecisionInput::default()).await?;
            taken.push(micros(start.elapsed()));
        }
        Ok(figures(taken))
    }
}

/// Holds a thousand calls that have a second, with thousands of others in the store, and waits until all are over.
async fn expiring(folder: &std::path::Path) -> Result<Figures> {
    let bench = Bench::start(folder, Duration::from_secs(2)).await?;
    bench.fill(1_000_000, EXPIRING).await?;
    let newest = bench.page().await?;
    let due = newest.first().and_then(|row| row.deadline_us).context("it never expires")?;
    let wait = due.saturating_sub(gantry_runtime::clock::steady_us()).max(0).unsigned_abs();
    tokio::time::sleep(Duration::from_micros(wait)).await;
    let start = Instant::now();
    let filter =
        ApprovalFilter { state: Some(State::RejectedByTimeout), limit: 1000, ..ApprovalFilter::default() };
    while bench.projects.store().approvals(filter.clone()).await?.items.len() < EXPIRING {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let taken = micros(start.elapsed());
    bench.projects.shutdown(Duration::ZERO).await;
    Ok(vec![("all, µs", taken)])
}
