//! Two projects with ten thousand tools and a thousand agents each: what it takes to know what an agent sees, and to change
//! something in one of them.

use super::report::{Figures, Table};
use super::toolset::{AGENTS, PROVIDERS, TOOLS_EACH, agent, candidate, figures, micros};
use super::{ROUNDS, Section, progress};
use anyhow::{Context as _, Result, ensure};
use gantry_core::Permit;
use gantry_core::error::{CallFailure, ErrorCode, ToolError};
use gantry_core::names::Style;
use gantry_core::tool::{Origin, ToolSpec};
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput};
use gantry_runtime::options::AgentOptions;
use gantry_runtime::projects::{Load, Plans};
use gantry_runtime::{Options, Plan, ProcessOptions, Projects, Runtime, Services};
use gantry_store::Store;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const NAMES: [&str; 2] = ["default", "other"];

/// Changes of the configuration in each round.
const CHANGES: usize = 20;

pub(super) async fn measure(time: Duration) -> Result<Table> {
    let tools = PROVIDERS * TOOLS_EACH;
    let title = format!("Two projects, each with {tools} tools of {PROVIDERS} providers and {AGENTS} agents");
    let mut table = Table::new(&title, &["what"]);
    let bench = Bench::start().await?;
    for round in 0..ROUNDS {
        progress(Section::Projects, round, "agents");
        let rt = bench.runtime(NAMES[0])?;
        // Another set-up, so that nothing is known of any agent yet.
        bench.change(0).await?;
        table.add(&["an agent's toolset, the first time"], asking(&rt, AGENTS)?);
        table.add(&["an agent's toolset, known"], asking(&rt, asks(time))?);
        progress(Section::Projects, round, "changes");
        table.add(&["one agent of one project changed"], changing(&bench, 0).await?);
        table.add(&["one provider of one project changed"], changing(&bench, 1).await?);
    }
    bench.projects.shutdown(Duration::ZERO).await;
    Ok(table)
}

/// How often known toolsets are asked for.
fn asks(time: Duration) -> usize {
    usize::try_from(time.as_millis()).unwrap_or(AGENTS).max(AGENTS) * 10
}

fn asking(rt: &Runtime, times: usize) -> Result<Figures> {
    let mut taken = Vec::with_capacity(times);
    for n in 0..times {
        let name = format!("agent{}", n % AGENTS);
        let start = Instant::now();
        let toolset = black_box(rt.toolset(Some(&name)));
        taken.push(micros(start.elapsed()));
        ensure!(toolset.is_ok_and(|toolset| !toolset.is_empty()), "{name} sees nothing");
    }
    let longest = taken.iter().copied().fold(0.0, f64::max);
    let mut figures = figures(taken);
    figures.push(("max µs", longest));
    Ok(figures)
}

/// Changes one project again and again; the pool of the other one must stay the very same.
async fn changing(bench: &Bench, what: usize) -> Result<Figures> {
    let other = bench.runtime(NAMES[1])?.pool();
    let mut taken = Vec::with_capacity(CHANGES);
    for _ in 0..CHANGES {
        let start = Instant::now();
        bench.change(what).await?;
        taken.push(micros(start.elapsed()));
    }
    ensure!(Arc::ptr_eq(&other, &bench.runtime(NAMES[1])?.pool()), "the other project was rebuilt");
    Ok(figures(taken))
}

struct Bench {
    projects: Arc<Projects>,
    next: Arc<Next>,
    folder: tempfile::TempDir,
}

impl Bench {
    async fn start() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("gantry-bench-").tempdir()?;
        let (store, recovery) = Store::open(gantry_store::Options::new(folder.path().join("gantry.db")))?;
        let services = Services::new(store, &recovery, ProcessOptions::default());
        let next = Arc::new(Next(Mutex::new((0, None))));
        let plans = NAMES.map(|name| Ok((Arc::from(name), plan(name, folder.path(), [0, 0])?)));
        let plans = plans.into_iter().collect::<Result<BTreeMap<_, _>>>()?;
        let projects = Projects::start(services, plans, Some(Arc::clone(&next) as _)).await?;
        Ok(Self { projects, next, folder })
    }

    fn runtime(&self, project: &str) -> Result<Arc<Runtime>> {
        Ok(self.projects.peek(project, None).context("the project is not there")?.runtime)
    }

    /// Changes the description of an agent (0) or a provider (1) of the first project.
    async fn change(&self, what: usize) -> Result<()> {
        let plan = {
            let mut next = self.next.0.lock().unwrap_or_else(PoisonError::into_inner);
            next.0 += 1;
            let mut versions = [0, 0];
            versions[what] = next.0;
            plan(NAMES[0], self.folder.path(), versions)?
        };
        self.next.0.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(plan);
        let reloaded = self.projects.reload().await;
        ensure!(reloaded.is_ok_and(|it| it.projects.len() == 1), "the change was not taken");
        Ok(())
    }
}

/// The configuration that is read next.
#[derive(Debug)]
struct Next(Mutex<(usize, Option<Plan>)>);

impl Load for Next {
    fn load(&self) -> Result<Option<Plans>, String> {
        let plan = self.0.lock().unwrap_or_else(PoisonError::into_inner).1.take();
        Ok(plan.map(|plan| Plans {
            process: ProcessOptions::default(),
            projects: BTreeMap::from([(NAMES[0].into(), Some(plan)), (NAMES[1].into(), None)]),
        }))
    }

    fn keep(&self) {}
}

fn plan(name: &str, folder: &Path, [agent_version, provider_version]: [usize; 2]) -> Result<Plan> {
    let mut agents = BTreeMap::new();
    for n in 0..AGENTS {
        let description = (n == 0).then(|| format!("version {agent_version}"));
        let options = AgentOptions { description, selection: agent(n)?, ..AgentOptions::default() };
        agents.insert(format!("agent{n}").into(), options);
    }
    let options = Options { project: name.into(), agents, ..Options::new(folder.join(name)) };
    let providers = (0..PROVIDERS).map(|n| {
        let version = if n == 0 { provider_version } else { 0 };
        Arc::new(Fillers::new(n, version)) as Arc<dyn Provider>
    });
    Ok(Plan { options, providers: providers.collect() })
}

/// A provider whose tools are only there.
#[derive(Debug)]
struct Fillers {
    origin: Origin,
    tools: Vec<ToolSpec>,
}

impl Fillers {
    fn new(provider: usize, version: usize) -> Self {
        let mut tools = Vec::with_capacity(TOOLS_EACH);
        let mut origin = None;
        for n in 0..TOOLS_EACH {
            let mut made = candidate(provider, n);
            if version > 0 {
                made.spec.description = format!("version {version}");
            }
            tools.push(made.spec);
            origin = Some(made.origin);
        }
        let empty = || Origin { provider: "".into(), namespace: "".into(), kind: gantry_core::ToolKind::Mcp };
        Self { origin: origin.unwrap_or_else(empty), tools }
    }
}

impl Provider for Fillers {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn naming(&self) -> Style {
        Style::Prefixed
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.clone()
    }

    fn execute<'a>(
        &'a self,
        _cx: &'a CallContext,
        _permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, CallFailure>> {
        let error = ToolError::new(ErrorCode::ExecutionError, "fillers are only there");
        Box::pin(std::future::ready(Err(CallFailure::without_effect(error))))
    }
}
