//! 8,500 calls that wait for a person: what it takes to hold one more, to list the first page, to decide one, and to
//! end a thousand that expired.

use super::in_process::{InProcess, folder};
use super::report::{Figures, Table, percentiles, timed};
use super::{ROUNDS, Section, progress};
use crate::process;
use crate::provider::test_tools;
use anyhow::{Context as _, Result, anyhow, ensure};
use gantry_core::pattern::Pattern;
use gantry_core::policy::{ApprovalRules, Policies};
use gantry_core::{CallRequest, Role, State};
use gantry_runtime::PipelineContext;
use gantry_runtime::approvals::{Decider, DecisionInput};
use gantry_runtime::ledger::{ApprovalFilter, ApprovalRow};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls that wait: with those below, fewer than the store holds (10,000).
const PENDING: usize = 8_500;

/// Calls that expire.
const EXPIRING: usize = 1000;

/// How often the quick things are done in a round.
const TIMES: usize = 200;

pub(super) async fn measure() -> Result<Table> {
    let mut table = Table::new(format!("{PENDING} calls that wait for a person"), &["what"]);
    for round in 0..ROUNDS {
        let folder = folder()?;
        let bench = start(folder.path(), Duration::from_secs(3600)).await?;
        progress(Section::Approvals, round, "a first call");
        table.add(&["hold a call, the store empty"], holding(&bench, 0).await?);
        let before = process::resident_kib(std::process::id());
        progress(Section::Approvals, round, "thousands of calls");
        hold_many(&bench, TIMES, PENDING - TIMES).await?;
        let kib = process::resident_kib(std::process::id()).saturating_sub(before);
        table.add(&["memory that they take"], vec![("MiB", kib as f64 / 1024.0)]);
        table.add(&["hold one more"], holding(&bench, PENDING).await?);
        progress(Section::Approvals, round, "lists and decisions");
        let listed = timed(TIMES, async |_| {
            ensure!(page(&bench).await?.len() == 50, "a page is not full");
            Ok(())
        });
        table.add(&["list the first page"], figures(listed.await?));
        table.add(&["decide one"], deciding(&bench).await?);
        bench.projects.shutdown(Duration::ZERO).await;
        progress(Section::Approvals, round, "expiry");
        table.add(&["end a thousand that expired"], expiring(folder.path()).await?);
    }
    Ok(table)
}

async fn start(folder: &Path, timeout: Duration) -> Result<InProcess> {
    InProcess::start(folder, Arc::new(test_tools(0)), |options| {
        let requires_approval = vec![Pattern::everything()];
        let rules = ApprovalRules { requires_approval, ..ApprovalRules::default() };
        let policies = Policies::compile(&[], rules);
        options.policies = policies.map_err(|_errors| anyhow!("the rules are wrong"))?.into();
        options.approvals.timeout = timeout.into();
        options.approvals.max_pending = 100_000.into();
        Ok(())
    })
    .await
}

fn figures(times: Vec<f64>) -> Figures {
    percentiles(times, [("p50 µs", 50), ("p99 µs", 99)])
}

/// Makes a call, until it waits.
async fn hold(bench: &InProcess, n: usize) -> Result<()> {
    let cx = PipelineContext::new(&bench.session);
    let request = CallRequest {
        tool: "test__echo".into(),
        arguments: Some(format!("{{\"text\":\"{n}\"}}").into()),
        ..CallRequest::default()
    };
    let entered = bench.runtime.enter(&cx).ok().context("the call was not let in")?;
    let reply = bench.runtime.run(entered, cx, request).await;
    ensure!(reply.state == State::PendingApproval, "{}", reply.to_json());
    Ok(())
}

async fn holding(bench: &InProcess, from: usize) -> Result<Figures> {
    Ok(figures(timed(TIMES, async |n| hold(bench, from + n).await).await?))
}

async fn hold_many(bench: &InProcess, from: usize, count: usize) -> Result<()> {
    for chunk in (from..from + count).collect::<Vec<_>>().chunks(256) {
        futures_util::future::try_join_all(chunk.iter().map(|n| hold(bench, *n))).await?;
    }
    Ok(())
}

async fn page(bench: &InProcess) -> Result<Vec<ApprovalRow>> {
    let filter = ApprovalFilter { state: Some(State::PendingApproval), ..ApprovalFilter::default() };
    Ok(bench.store.approvals(filter).await?.items)
}

async fn deciding(bench: &InProcess) -> Result<Figures> {
    let by = Decider {
        name: "person".into(),
        role: Role::Admin,
        owner: true,
        projects: None,
        tools: None,
        via: "http".into(),
    };
    let rows = page(bench).await?;
    let decided = timed(rows.len(), async |n| {
        bench.projects.decide(rows[n].id, &by, DecisionInput::default()).await?;
        Ok(())
    });
    Ok(figures(decided.await?))
}

/// Holds a thousand calls that have two seconds, with thousands of others in the store, and waits until all are over.
async fn expiring(folder: &Path) -> Result<Figures> {
    let bench = start(folder, Duration::from_secs(2)).await?;
    hold_many(&bench, 1_000_000, EXPIRING).await?;
    let newest = page(&bench).await?;
    let due = newest.first().and_then(|row| row.deadline_us).context("it never expires")?;
    let wait = due.saturating_sub(gantry_runtime::clock::steady_us()).max(0).unsigned_abs();
    tokio::time::sleep(Duration::from_micros(wait)).await;
    let start = Instant::now();
    let filter =
        ApprovalFilter { state: Some(State::RejectedByTimeout), limit: 1000, ..ApprovalFilter::default() };
    while bench.store.approvals(filter.clone()).await?.items.len() < EXPIRING {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let taken = start.elapsed().as_secs_f64() * 1e6;
    bench.projects.shutdown(Duration::ZERO).await;
    Ok(vec![("all, µs", taken)])
}
