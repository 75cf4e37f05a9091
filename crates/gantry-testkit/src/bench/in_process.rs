//! A Gantry in this process with a SQLite ledger on disk, for what is measured without HTTP.

use anyhow::{Context as _, Result, ensure};
use gantry_core::{CallRequest, Caller, EntryPoint, Role};
use gantry_provider::Provider;
use gantry_runtime::{
    Options, PipelineContext, Plan, ProcessOptions, Projects, Reply, Runtime, Services, Session,
};
use gantry_store::Store;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// One project with one provider, and a client in it.
pub(super) struct InProcess {
    pub(super) projects: Arc<Projects>,
    pub(super) runtime: Arc<Runtime>,
    pub(super) session: Arc<Session>,
    pub(super) store: Store,
}

impl InProcess {
    pub(super) async fn start(
        folder: &Path,
        provider: Arc<dyn Provider>,
        adjust: impl FnOnce(&mut Options) -> Result<()>,
    ) -> Result<Self> {
        let (store, services) = services(folder)?;
        let mut options = Options::new(folder.to_owned());
        adjust(&mut options)?;
        let plans = BTreeMap::from([("default".into(), Plan { options, providers: vec![provider] })]);
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
        Ok(Self { projects, runtime, session, store })
    }

    /// Calls a tool, which must succeed.
    pub(super) async fn call(&self, tool: &str, arguments: Arc<str>) -> Result<Reply> {
        let request =
            CallRequest { tool: tool.to_owned(), arguments: Some(arguments), ..CallRequest::default() };
        let reply = self.runtime.call(PipelineContext::new(&self.session), request).await;
        ensure!(reply.is_ok(), "{tool} failed: {}", reply.model_text());
        Ok(reply)
    }
}

/// What the projects of one process share, with a store in this folder.
pub(super) fn services(folder: &Path) -> Result<(Store, Arc<Services>)> {
    let (store, recovery) = Store::open(gantry_store::Options::new(folder.join("gantry.db")))?;
    Ok((store.clone(), Services::new(store, &recovery, ProcessOptions::default())))
}

/// A folder for a store, gone when dropped.
pub(super) fn folder() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("gantry-bench-").tempdir()?)
}
