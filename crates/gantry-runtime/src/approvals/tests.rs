//! Held calls through the whole runtime, with a tool that counts what it did.

mod again;
mod decided;
mod key_expiry;
mod together;

use super::*;
use crate::options::{Options, Plan, ProviderOptions};
use crate::projects::Projects;
use crate::queue;
use crate::runtime::Runtime;
use crate::services::{ProcessOptions, Services};
use gantry_core::names::Style;
use gantry_core::policy::{ApprovalRules, Decide, Policies, RuleSpec};
use gantry_core::tool::{Annotations, ApprovalRule, Origin, ToolKind, ToolSpec};
use gantry_core::{CallFailure, CallRequest, Caller, EntryPoint, Permit, Role, State};
use gantry_provider::{BoxFuture, CallContext, Provider, RawOutput};
use gantry_store::{ApprovalFilter, Scope, Store};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;

/// Tools that always ask (`act`) or never do (`free`), and count their executions; one that asks and ends when it is let go
/// (`slow`), one that never ends (`stuck`), and one without an answer to whether it asks (`unclear`).
#[derive(Debug)]
struct Counter {
    origin: Origin,
    ran: Arc<AtomicUsize>,
    /// The file that lets go of those that are slow.
    go: std::path::PathBuf,
}

impl Provider for Counter {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn naming(&self) -> Style {
        Style::Bare
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let tool = |name: &str, approval_rule| {
            ToolSpec {
            name: name.into(),
            title: None,
            description: "counts".into(),
            input_schema: json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": false }).into(),
            output_schema: None,
            annotations: Annotations::default(),
            approval_rule,
            raw: None,
            target: None,
        }
        };
        let rules = [
            ("act", ApprovalRule::Always),
            ("slow", ApprovalRule::Always),
            ("free", ApprovalRule::Never),
            ("stuck", ApprovalRule::Never),
            ("unclear", ApprovalRule::Depends),
        ];
        rules.map(|(name, rule)| tool(name, rule)).into()
    }

    fn execute<'a>(
        &'a self,
        _cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<RawOutput, CallFailure>> {
        if &*permit.tool().key.tool == "stuck" {
            return Box::pin(std::future::pending());
        }
        let count = self.ran.fetch_add(1, Ordering::SeqCst) + 1;
        let said = format!("{} {count}", permit.arguments());
        let is_slow = &*permit.tool().key.tool == "slow";
        Box::pin(async move {
            until(|| !is_slow || self.go.exists()).await;
            Ok(RawOutput::Text(said))
        })
    }
}

struct Home {
    projects: Arc<Projects>,
    ran: Arc<AtomicUsize>,
    folder: tempfile::TempDir,
}

fn plan(folder: &std::path::Path, ran: &Arc<AtomicUsize>, rules: &[RuleSpec], gates: ApprovalRules) -> Plan {
    let mut options = Options::new(folder.to_owned());
    options.policies = Arc::new(Policies::compile(rules, gates).unwrap());
    let origin = Origin { provider: "counter".into(), namespace: "counter".into(), kind: ToolKind::Builtin };
    let counter = Counter { origin, ran: Arc::clone(ran), go: folder.join("go") };
    Plan { options, providers: vec![Arc::new(counter)] }
}

impl Home {
    async fn with(change: impl FnOnce(&mut Plan), gates: ApprovalRules) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::again(folder, Arc::default(), change, gates).await
    }

    async fn again(
        folder: tempfile::TempDir,
        ran: Arc<AtomicUsize>,
        change: impl FnOnce(&mut Plan),
        gates: ApprovalRules,
    ) -> Self {
        let database = gantry_store::Options::new(folder.path().join("gantry.db"));
        let (store, recovery) = Store::open(database).unwrap();
        let scope = queue::QueueScope::Node;
        let one = queue::Options { name: "one".into(), concurrent: 1, max_waiting: 8, scope };
        let services = Services::new(
            store,
            &recovery,
            ProcessOptions { queues: vec![one], ..ProcessOptions::default() },
        );
        let mut plan = plan(folder.path(), &ran, &[], gates);
        change(&mut plan);
        let plans = BTreeMap::from([("default".into(), plan)]);
        let projects = Projects::start(services, plans, None).await.unwrap();
        Self { projects, ran, folder }
    }

    async fn new() -> Self {
        Self::with(|_| {}, ApprovalRules::default()).await
    }

    fn runtime(&self) -> Arc<Runtime> {
        self.projects.peek("default", None).unwrap().runtime
    }

    async fn cx(&self) -> PipelineContext {
        let caller = Caller {
            principal: "bot".into(),
            role: Role::Agent,
            agent: None,
            parent_agents: Arc::default(),
            project: "default".into(),
        };
        PipelineContext::new(&self.runtime().shared_session(caller, EntryPoint::Http).await.unwrap())
    }

    async fn call(&self, tool: &str, arguments: &str) -> Reply {
        let cx = self.cx().await;
        let request =
            CallRequest { tool: tool.into(), arguments: Some(arguments.into()), ..CallRequest::default() };
        let entered = self.runtime().enter(&cx).unwrap();
        self.runtime().run(entered, cx, request).await
    }

    async fn decide(&self, id: ApprovalId, given: DecisionInput) -> Result<ApprovalRow, DecisionError> {
        self.projects.decide(id, &ann(), given).await
    }

    /// Waits until a held call is over.
    async fn over(&self, reply: &Reply) -> Reply {
        let cx = self.cx().await;
        loop {
            let held = self.runtime().held(&cx.session, reply.id).await.unwrap().unwrap();
            if !held.is_held() {
                return held;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Lets go of what is slow.
    fn let_go(&self) {
        std::fs::write(self.folder.path().join("go"), "").unwrap();
    }

    /// Says yes to a slow call, and waits until it runs.
    async fn begin(&self, id: ApprovalId) {
        self.decide(id, yes()).await.unwrap();
        until(|| self.ran() == 1).await;
    }

    /// How an approval stands.
    async fn row(&self, id: ApprovalId) -> ApprovalRow {
        self.projects.store().approval(id).await.unwrap().unwrap()
    }

    /// Ends, and begins anew as another process would.
    async fn restart(self) -> Self {
        self.projects.shutdown(Duration::ZERO).await;
        let Self { projects, ran, folder } = self;
        drop(projects);
        let home = Self::again(folder, ran, |_| {}, ApprovalRules::default()).await;
        home.projects.services().approvals().take_over_orphans();
        home
    }

    fn ran(&self) -> usize {
        self.ran.load(Ordering::SeqCst)
    }
}

fn ann() -> Decider {
    Decider {
        name: "ann".into(),
        role: Role::Approver,
        owner: false,
        projects: None,
        tools: None,
        via: "http".into(),
    }
}

fn yes() -> DecisionInput {
    DecisionInput { approved: true, ..DecisionInput::default() }
}

fn id(reply: &Reply) -> ApprovalId {
    reply.approval.as_ref().unwrap().id
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn rule(decide: Decide) -> RuleSpec {
    RuleSpec { name: "r".into(), tools: vec!["act".into()], decide, ..RuleSpec::default() }
}

fn request(tool: &str, arguments: &str) -> CallRequest {
    CallRequest { tool: tool.into(), arguments: Some(arguments.into()), ..CallRequest::default() }
}

impl Home {
    /// The one call that waits, once there is one.
    async fn pending(&self) -> ApprovalRow {
        loop {
            let filter = ApprovalFilter { state: Some(State::PendingApproval), ..ApprovalFilter::default() };
            if let Some(row) = self.projects.store().approvals(filter).await.unwrap().items.pop() {
                return row;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
