//! Two projects with ten thousand tools and a thousand agents each: what it takes to know what an agent sees, and to change
//! something in one of them.

use super::{AGENTS, PROVIDERS, TOOLS, TOOLS_EACH, agent, candidate, origin};
use crate::bench::in_process::{folder, services};
use crate::bench::report::{Figures, Table, percentiles, timed};
use crate::bench::{ROUNDS, Section, progress};
use crate::provider::{Run, TestProvider, fault};
use anyhow::{Context as _, Result, ensure};
use gantry_core::names::Style;
use gantry_provider::Provider;
use gantry_runtime::options::AgentOptions;
use gantry_runtime::projects::{Load, Plans};
use gantry_runtime::{Options, Plan, ProcessOptions, Projects, Runtime};
use std::collections::BTreeMap;
use std::future::ready;
use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NAMES: [&str; 2] = ["default", "other"];

/// Changes of the configuration in each round.
const CHANGES: usize = 20;

/// What a change is in: the description of an agent, or of a provider's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Agent,
    Provider,
}

pub(in crate::bench) async fn measure(time: Duration) -> Result<Table> {
    let title = format!("Two projects, each with {TOOLS} tools of {PROVIDERS} providers and {AGENTS} agents");
    let mut table = Table::new(title, &["what"]);
    let bench = Bench::start().await?;
    // How often known toolsets are asked for.
    let many = usize::try_from(time.as_millis()).unwrap_or(AGENTS).max(AGENTS) * 10;
    for round in 0..ROUNDS {
        progress(Section::Projects, round, "agents");
        let rt = bench.runtime(NAMES[0])?;
        // Another set-up, so that nothing is known of any agent yet.
        bench.change(Part::Agent).await?;
        table.add(&["an agent's toolset, the first time"], asking(&rt, AGENTS).await?);
        table.add(&["an agent's toolset, known"], asking(&rt, many).await?);
        progress(Section::Projects, round, "changes");
        table.add(&["one agent of one project changed"], changing(&bench, Part::Agent).await?);
        table.add(&["one provider of one project changed"], changing(&bench, Part::Provider).await?);
    }
    bench.projects.shutdown(Duration::ZERO).await;
    Ok(table)
}

async fn asking(rt: &Runtime, times: usize) -> Result<Figures> {
    let names: Vec<String> = (0..AGENTS).map(|n| format!("agent{n}")).collect();
    let times = timed(times, async |n| {
        let toolset = black_box(rt.toolset(Some(&names[n % AGENTS])));
        ensure!(toolset.is_ok_and(|toolset| !toolset.is_empty()), "agent{n} sees nothing");
        Ok(())
    });
    Ok(percentiles(times.await?, [("p50 µs", 50), ("p99 µs", 99), ("max µs", 100)]))
}

/// Changes one project again and again; the pool of the other one must stay the very same.
async fn changing(bench: &Bench, part: Part) -> Result<Figures> {
    let other = bench.runtime(NAMES[1])?.pool();
    let times = timed(CHANGES, async |_| bench.change(part).await).await?;
    ensure!(Arc::ptr_eq(&other, &bench.runtime(NAMES[1])?.pool()), "the other project was rebuilt");
    Ok(percentiles(times, [("p50 µs", 50), ("p99 µs", 99)]))
}

struct Bench {
    projects: Arc<Projects>,
    next: Arc<NextPlan>,
    folder: tempfile::TempDir,
}

impl Bench {
    async fn start() -> Result<Self> {
        let folder = folder()?;
        let (_, services) = services(folder.path())?;
        let next = Arc::new(NextPlan(Mutex::new((0, None))));
        let plans = NAMES.map(|name| Ok((Arc::from(name), plan(name, folder.path(), 0, None)?)));
        let plans = plans.into_iter().collect::<Result<BTreeMap<_, _>>>()?;
        let projects = Projects::start(services, plans, Some(Arc::clone(&next) as _)).await?;
        Ok(Self { projects, next, folder })
    }

    fn runtime(&self, project: &str) -> Result<Arc<Runtime>> {
        Ok(self.projects.peek(project, None).context("the project is not there")?.runtime)
    }

    /// Changes a part of the first project.
    async fn change(&self, part: Part) -> Result<()> {
        {
            let mut next = self.next.0.lock().unwrap();
            next.0 += 1;
            next.1 = Some(plan(NAMES[0], self.folder.path(), next.0, Some(part))?);
        }
        let reloaded = self.projects.reload().await;
        ensure!(reloaded.is_ok_and(|it| it.projects.len() == 1), "the change was not taken");
        Ok(())
    }
}

/// The configuration that is read next, and how many there were.
#[derive(Debug)]
struct NextPlan(Mutex<(usize, Option<Plan>)>);

impl Load for NextPlan {
    fn load(&self) -> Result<Option<Plans>, String> {
        let plan = self.0.lock().unwrap().1.take();
        Ok(plan.map(|plan| Plans {
            process: ProcessOptions::default(),
            projects: BTreeMap::from([(NAMES[0].into(), Some(plan)), (NAMES[1].into(), None)]),
        }))
    }

    fn keep(&self) {}
}

fn plan(name: &str, folder: &Path, version: usize, part: Option<Part>) -> Result<Plan> {
    let text = |of: Part| (part == Some(of)).then(|| format!("version {version}"));
    let mut agents = BTreeMap::new();
    for n in 0..AGENTS {
        let description = text(Part::Agent).filter(|_| n == 0);
        let options = AgentOptions { description, selection: agent(n)?, ..AgentOptions::default() };
        agents.insert(format!("agent{n}").into(), options);
    }
    let options = Options { project: name.into(), agents, ..Options::new(folder.join(name)) };
    let providers = (0..PROVIDERS).map(|n| {
        let description = text(Part::Provider).filter(|_| n == 0);
        let tools = (0..TOOLS_EACH).map(|tool| {
            let mut spec = candidate(n, tool).spec;
            spec.description = description.clone().unwrap_or(spec.description);
            spec
        });
        let (origin, tools) = (origin(n), tools.collect());
        let run: Run = |_, _| Box::pin(ready(Err(fault("these tools are only listed"))));
        Arc::new(TestProvider { origin, style: Style::Prefixed, tools, run }) as Arc<dyn Provider>
    });
    Ok(Plan { options, providers: providers.collect() })
}
