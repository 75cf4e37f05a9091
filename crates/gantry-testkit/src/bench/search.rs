//! `search_code` on this repository and on a generated tree of 200,000 files: literal search beside ripgrep, and ranked
//! search, with the files in the page cache and, where the bench runs as root, without. Each call goes through the whole
//! pipeline; each `rg` is a process of its own.

mod tree;

use super::report::{Figures, Table};
use super::{ROUNDS, Section, progress};
use anyhow::{Context as _, Result, ensure};
use gantry_core::{CallRequest, Caller, EntryPoint, Role};
use gantry_provider::Provider;
use gantry_runtime::{Options, PipelineContext, Plan, ProcessOptions, Runtime, Services, Session};
use gantry_store::Store;
use gantry_tools::builtin::BuiltinProvider;
use gantry_tools::options::SearchOptions;
use gantry_tools::search::search_tools;
use gantry_tools::workspace::ProtectedPaths;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Files of the generated tree.
const FILES: usize = 200_000;
/// Empties the page cache, and the cache of names, when "3" is written to it.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

pub(super) async fn measure(time: Duration) -> Result<Table> {
    let mut table = Table::new(
        "search_code beside rg (rg as a process, search_code through the pipeline)",
        &["tree", "search"],
    );
    let folder = tempfile::Builder::new().prefix("gantry-bench-").tempdir()?;
    progress(Section::Search, 0, &format!("writing {FILES} files"));
    let generated = folder.path().join("tree");
    tree::write(&generated, FILES)?;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let rare = [tree::word(5_000), tree::word(4_321)].join(" ");
    let common = [tree::word(1), tree::word(2), tree::word(40)].join(" ");
    let name = format!("{}_{}", tree::word(900), tree::word(30));
    let trees = [
        (
            "repository",
            repository,
            "OUTCOME_UNKNOWN",
            ["ledger entry", "how is a permit made", "tool"].map(str::to_owned),
        ),
        ("200,000 files", generated, tree::NEEDLE, [rare, common, name]),
    ];
    for (label, path, needle, questions) in trees {
        let bench = Bench::start(&path).await?;
        for round in 0..ROUNDS {
            let question = json!({ "query": &questions[0] });
            progress(Section::Search, round, &format!("{label}, ranked, nothing in the page cache"));
            if empty_page_cache() {
                let start = Instant::now();
                bench.call(&question).await?;
                let ms = start.elapsed().as_secs_f64() * 1e3;
                table.add(&[label, "ranked, nothing in the page cache"], vec![("p50 ms", ms)]);
            }
            bench.call(&question).await?;
            bench.compare(&mut table, (round, label, needle, time)).await?;
            for (kind, question) in ["rare words", "common words", "an identifier"].iter().zip(&questions) {
                progress(Section::Search, round, &format!("{label}, ranked: {question}"));
                let figures =
                    repeat(time, async || bench.call(&json!({ "query": question })).await.map(drop)).await?;
                table.add(&[label, &format!("ranked, {kind}")], figures);
            }
        }
        bench.runtime.shutdown(Duration::from_secs(1)).await;
    }
    Ok(table)
}

/// A runtime with `search_code` on a folder.
struct Bench {
    runtime: Arc<Runtime>,
    session: Arc<Session>,
    workspace: PathBuf,
    _folder: TempDir,
}

impl Bench {
    async fn start(workspace: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("gantry-bench-").tempdir()?;
        let (store, recovery) = Store::open(gantry_store::Options::new(folder.path().join("gantry.db")))?;
        let search = search_tools(workspace, ProtectedPaths::default(), SearchOptions::default())?;
        let options = Options::new(folder.path().to_owned());
        let services = Services::new(store, &recovery, ProcessOptions::default());
        let own: Arc<dyn Provider> = Arc::new(BuiltinProvider::workspace(vec![search]));
        let runtime = Runtime::start(Plan { options, providers: vec![own] }, &services).await?;
        let caller = Caller {
            principal: "local".into(),
            role: Role::Agent,
            agent: None,
            parent_agents: Arc::default(),
            project: Arc::clone(&runtime.project),
        };
        let session =
            runtime.open_session(caller, EntryPoint::Http).await.ok().context("the session was refused")?;
        Ok(Self { runtime, session, workspace: workspace.to_owned(), _folder: folder })
    }

    async fn call(&self, arguments: &Value) -> Result<Value> {
        let request = CallRequest {
            tool: "search_code".to_owned(),
            arguments: Some(arguments.to_string().into()),
            ..CallRequest::default()
        };
        let reply = self.runtime.call(PipelineContext::new(&self.session), request).await;
        ensure!(reply.is_ok(), "search_code failed: {}", reply.model_text());
        Ok(serde_json::from_str(&reply.model_text()).unwrap_or_default())
    }

    /// The same literal search by both, which must find the same.
    async fn compare(
        &self,
        table: &mut Table,
        (round, label, needle, time): (usize, &str, &str, Duration),
    ) -> Result<()> {
        progress(Section::Search, round, &format!("{label}, literal: {needle}"));
        let arguments = json!({ "query": needle, "mode": "literal", "maxResults": 1000 });
        let found = self.call(&arguments).await?["matches"].as_array().map_or(0, Vec::len);
        ensure!(found > 0, "search_code does not find {needle}");
        let figures = repeat(time, async || self.call(&arguments).await.map(drop)).await?;
        table.add(&[label, "literal, search_code"], figures);
        let Ok(by_rg) = self.rg(needle) else { return Ok(()) };
        ensure!(by_rg == found, "rg finds {by_rg} lines, search_code {found}");
        table.add(&[label, "literal, rg"], repeat(time, async || self.rg(needle).map(drop)).await?);
        Ok(())
    }

    /// How many lines ripgrep finds.
    fn rg(&self, needle: &str) -> Result<usize> {
        let output = Command::new("rg")
            .args([
                "--line-number",
                "--no-heading",
                "--no-config",
                "--fixed-strings",
                "--smart-case",
                "--",
                needle,
                ".",
            ])
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .output()
            .context("rg cannot be started")?;
        Ok(output.stdout.iter().filter(|byte| **byte == b'\n').count())
    }
}

/// Whether the files are no longer in memory. Only root may do that, to the whole machine.
fn empty_page_cache() -> bool {
    rustix::fs::sync();
    std::fs::write(DROP_CACHES, "3").is_ok()
}

/// Does something again and again.
async fn repeat(time: Duration, mut work: impl AsyncFnMut() -> Result<()>) -> Result<Figures> {
    let end = Instant::now() + time;
    let mut times = Vec::new();
    while times.len() < 5 || Instant::now() < end {
        let start = Instant::now();
        work().await?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get((times.len() - 1) * part / 100).copied().unwrap_or(f64::NAN);
    Ok(vec![("p50 ms", at(50)), ("p95 ms", at(95))])
}
