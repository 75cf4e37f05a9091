//! Held calls through the whole runtime, with a tool that counts what it did.

use super::*;
use crate::commons::{Commons, Process};
use crate::options::{Options, Plan, ProviderOptions};
use crate::projects::{Loading, Projects};
use crate::provider::{BoxFuture, Provider, RawOutput};
use crate::queue;
use crate::runtime::Runtime;
use gantry_core::names::Style;
use gantry_core::policy::{Decide, Gates, Policies, RequiresApproval, RuleSpec};
use gantry_core::tool::{Annotations, Origin, OwnRule, ToolKind, ToolSpec};
use gantry_core::{CallRequest, Caller, Door, Fault, Permit, Role, State};
use gantry_store::{ApprovalFilter, Scope, Store};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;

/// Tools that always ask (`act`) or never do (`free`), and count their executions; one that never ends (`stuck`), and
/// one of which nobody says whether it asks (`unclear`).
#[derive(Debug)]
struct Counter {
    origin: Origin,
    ran: Arc<AtomicUsize>,
}

impl Provider for Counter {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn style(&self) -> Style {
        Style::Bare
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let tool = |name: &str, own_rule| ToolSpec {
            name: name.into(),
            title: None,
            description: "counts".into(),
            input_schema: json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": false }),
            output_schema: None,
            annotations: Annotations::default(),
            own_rule,
            raw: None,
        };
        let rules = [
            ("act", OwnRule::Always),
            ("free", OwnRule::Never),
            ("stuck", OwnRule::Never),
            ("unclear", OwnRule::Depends),
        ];
        rules.map(|(name, rule)| tool(name, rule)).into()
    }

    fn execute<'a>(&'a self, _cx: &'a CallCx, permit: &'a Permit) -> BoxFuture<'a, Result<RawOutput, Fault>> {
        if &*permit.tool().key.tool == "stuck" {
            return Box::pin(std::future::pending());
        }
        let count = self.ran.fetch_add(1, Ordering::SeqCst) + 1;
        let said = format!("{} {count}", permit.arguments());
        Box::pin(std::future::ready(Ok(RawOutput::Text(said))))
    }
}

struct Home {
    projects: Arc<Projects>,
    ran: Arc<AtomicUsize>,
    folder: tempfile::TempDir,
}

fn plan(folder: &std::path::Path, ran: &Arc<AtomicUsize>, rules: &[RuleSpec], gates: Gates) -> Plan {
    let mut options = Options::new(folder.to_owned());
    options.policies = Arc::new(Policies::compile(rules, gates).unwrap());
    let origin = Origin { provider: "counter".into(), namespace: "counter".into(), kind: ToolKind::Builtin };
    Plan { options, providers: vec![Arc::new(Counter { origin, ran: Arc::clone(ran) })] }
}

impl Home {
    async fn with(change: impl FnOnce(&mut Plan), gates: Gates) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::again(folder, Arc::default(), change, gates).await
    }

    async fn again(
        folder: tempfile::TempDir,
        ran: Arc<AtomicUsize>,
        change: impl FnOnce(&mut Plan),
        gates: Gates,
    ) -> Self {
        let database = gantry_store::Options::new(folder.path().join("gantry.db"));
        let (store, recovery) = Store::open(database).unwrap();
        let one = queue::Options { name: "one".into(), concurrent: 1, max_waiting: 8 };
        let commons = Commons::new(store, &recovery, Process { queues: vec![one], ..Process::default() });
        let mut plan = plan(folder.path(), &ran, &[], gates);
        change(&mut plan);
        let plans = BTreeMap::from([("default".into(), plan)]);
        let projects = Projects::start(commons, plans, Loading::never()).await.unwrap();
        Self { projects, ran, folder }
    }

    async fn new() -> Self {
        Self::with(|_| {}, Gates::default()).await
    }

    fn runtime(&self) -> Arc<Runtime> {
        self.projects.peek("default", None).unwrap().runtime
    }

    async fn cx(&self) -> CallCx {
        let caller = Caller {
            principal: "bot".into(),
            role: Role::Agent,
            agent: None,
            above: Arc::default(),
            project: "default".into(),
        };
        CallCx::new(&self.runtime().standing_session(caller, Door::Http).await.unwrap())
    }

    async fn call(&self, tool: &str, arguments: &str) -> Reply {
        let cx = self.cx().await;
        let request =
            CallRequest { tool: tool.into(), arguments: Some(arguments.into()), ..CallRequest::default() };
        let entered = self.runtime().enter(&cx).unwrap();
        self.runtime().run(entered, cx, request).await
    }

    async fn decide(&self, id: ApprovalId, given: Given) -> Result<ApprovalRow, NotDecided> {
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

fn yes() -> Given {
    Given { approved: true, ..Given::default() }
}

fn id(reply: &Reply) -> ApprovalId {
    reply.approval.as_ref().unwrap().id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_nobody_knows_lets_nothing_through() {
    let home = Home::new().await;
    let refused = home.call("unclear", "{}").await;
    assert_eq!((refused.state, home.ran()), (State::Refused, 0));
    assert!(refused.conversation().contains("nobody knows whether unclear has to ask"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_runs_the_call_once_and_a_second_one_comes_too_late() {
    let home = Home::new().await;
    let held = home.call("act", "{\"n\":1}").await;
    assert_eq!(held.state, State::PendingApproval);
    assert_eq!(home.ran(), 0);
    home.decide(id(&held), yes()).await.unwrap();
    let done = home.over(&held).await;
    assert_eq!(done.conversation(), "{\"n\":1} 1");
    assert_eq!((done.state, done.approved_by.as_deref()), (State::CompletedSuccess, Some("ann")));
    let again = home.decide(id(&held), yes()).await;
    assert!(matches!(again, Err(NotDecided::Decided(row)) if row.state == State::CompletedSuccess));
    assert_eq!(home.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_wait_for_one_decision_and_get_one_result() {
    let home = Home::new().await;
    let first = home.call("act", "{\"n\":1}").await;
    let cx = home.cx().await;
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (runtime, cx) = (home.runtime(), CallCx::new(&cx.session));
            let request = CallRequest {
                tool: "act".into(),
                arguments: Some("{ \"n\": 1 }".into()),
                ..CallRequest::default()
            };
            tokio::spawn(async move { runtime.call(cx, request).await })
        })
        .collect();
    let other = home.call("act", "{\"n\":2}").await;
    assert_ne!(id(&other), id(&first));
    home.decide(id(&first), yes()).await.unwrap();
    for reply in futures_util::future::join_all(waiting).await {
        let reply = reply.unwrap();
        assert_eq!((reply.id, reply.conversation()), (first.id, "{\"n\":1} 1".to_owned()));
    }
    assert_eq!(home.ran(), 1);
    // It was given to somebody, so the same request is a new one now.
    let anew = home.call("act", "{\"n\":1}").await;
    assert_ne!(id(&anew), id(&first));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_and_nobody_and_withdrawn_are_told_apart() {
    let home =
        Home::with(|plan| plan.options.approvals.timeout = Duration::from_millis(50), Gates::default());
    let home = home.await;
    let denied = home.call("act", "{\"n\":1}").await;
    let no = Given { approved: false, reason: Some("not today".into()), ..Given::default() };
    home.decide(id(&denied), no).await.unwrap();
    let denied = home.over(&denied).await;
    assert_eq!(denied.state, State::RejectedByUser);
    assert_eq!(denied.conversation(), "(tool failed: denied by ann: not today. Nothing was run.)");
    let late = home.call("act", "{\"n\":2}").await;
    let expired = home.over(&late).await;
    assert_eq!(expired.state, State::RejectedByTimeout);
    assert!(expired.conversation().contains("nobody decided within 50 ms"), "{}", expired.conversation());
    assert!(matches!(home.decide(id(&late), yes()).await, Err(NotDecided::Expired(_))));
    let withdrawn = home.call("act", "{\"n\":3}").await;
    assert!(home.projects.commons().withdraw(withdrawn.id, Some("bot"), "it was a mistake").await.unwrap());
    let withdrawn = home.over(&withdrawn).await;
    assert_eq!(withdrawn.state, State::CancelledBySystem);
    assert!(withdrawn.conversation().contains("it was a mistake"), "{}", withdrawn.conversation());
    assert_eq!(home.ran(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_arguments_are_checked_and_told() {
    let home = Home::new().await;
    let held = home.call("act", "{\"n\":1}").await;
    let edit = |text: &str| Given { modified_args: Some(text.into()), ..yes() };
    assert!(matches!(home.decide(id(&held), edit("{\"n\":\"x\"}")).await, Err(NotDecided::Invalid(_))));
    home.decide(id(&held), edit("{\"n\":7}")).await.unwrap();
    let done = home.over(&held).await;
    assert_eq!(done.conversation(), "{\"n\":7} 1");
    assert_eq!(done.executed_arguments.as_deref(), Some("{\"n\":7}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_approved_and_had_not_begun_runs_after_a_restart_once() {
    let home = Home::new().await;
    let held = home.call("act", "{\"n\":1}").await;
    // Decided by a process that ends before the call begins: the clerk of the holder is told to stop first.
    home.projects.drain(Duration::ZERO).await;
    let by = ann();
    home.projects.commons().decide(id(&held), &by, yes(), None).await.unwrap();
    assert_eq!(home.ran(), 0);
    home.projects.shutdown(Duration::ZERO).await;
    let Home { projects, ran, folder } = home;
    drop(projects);
    let home = Home::again(folder, ran, |_| {}, Gates::default()).await;
    home.projects.commons().approvals().adopt();
    assert_eq!(home.over(&held).await.conversation(), "{\"n\":1} 1");
    assert_eq!(home.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_approved_and_waits_for_its_turn_when_gantry_stops_runs_after_the_restart_once() {
    let queued = |plan: &mut Plan| {
        let options = ProviderOptions { queue: Some("one".into()), ..ProviderOptions::default() };
        plan.options.providers.insert("counter".into(), options);
    };
    let home = Home::with(queued, Gates::default()).await;
    let cx = home.cx().await;
    let stuck = CallRequest { tool: "stuck".into(), ..CallRequest::default() };
    home.runtime().defer(home.runtime().enter(&cx).unwrap(), cx, stuck);
    let queue = |home: &Home| home.projects.commons().queues.load().snapshot().remove(0);
    until(|| queue(&home).in_use == 1).await;
    let held = home.call("act", "{\"n\":1}").await;
    home.decide(id(&held), yes()).await.unwrap();
    until(|| queue(&home).depth == 1).await;
    home.projects.shutdown(Duration::ZERO).await;
    let Home { projects, ran, folder } = home;
    drop(projects);
    let home = Home::again(folder, ran, queued, Gates::default()).await;
    home.projects.commons().approvals().adopt();
    let done = home.over(&held).await;
    assert_eq!((done.state, done.conversation()), (State::CompletedSuccess, "{\"n\":1} 1".into()));
    assert_eq!(home.ran(), 1);
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_rule_asks_again_and_a_denial_refuses() {
    let home = Home::new().await;
    let (held, denied) = (home.call("act", "{\"n\":1}").await, home.call("act", "{\"n\":2}").await);
    home.projects.drain(Duration::ZERO).await;
    for reply in [&held, &denied] {
        home.projects.commons().decide(id(reply), &ann(), yes(), None).await.unwrap();
    }
    home.projects.shutdown(Duration::ZERO).await;
    let Home { projects, ran, folder } = home;
    drop(projects);
    let rules = [
        RuleSpec { name: "two".into(), when: Some("args.n == 2".into()), ..rule(Decide::Deny) },
        rule(Decide::Ask),
    ];
    let change = |plan: &mut Plan| {
        plan.options.policies = Arc::new(Policies::compile(&rules, Gates::default()).unwrap());
    };
    let home = Home::again(folder, ran, change, Gates::default()).await;
    home.projects.commons().approvals().adopt();
    let refused = home.over(&denied).await;
    assert_eq!(refused.state, State::CancelledBySystem);
    assert!(refused.conversation().contains("denied by policy two"), "{}", refused.conversation());
    let pending = loop {
        let filter = ApprovalFilter { call: Some(held.id), ..ApprovalFilter::default() };
        let rows = home.projects.store().approvals(filter).await.unwrap().items;
        if let Some(row) = rows.iter().find(|row| row.state == State::PendingApproval) {
            break row.clone();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(pending.supersedes, Some(id(&held)));
    assert!(pending.asked.reason.contains("asked again"), "{}", pending.asked.reason);
    assert_eq!(home.ran(), 0);
    home.decide(pending.id, yes()).await.unwrap();
    home.over(&held).await;
    assert_eq!(home.ran(), 1);
}

fn rule(decide: Decide) -> RuleSpec {
    RuleSpec { name: "r".into(), tools: vec!["act".into()], decide: Some(decide), ..RuleSpec::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_answers_the_next_question_until_it_is_revoked() {
    let home = Home::new().await;
    let held = home.call("act", "{\"n\":1}").await;
    home.decide(id(&held), Given { scope: Scope::Always, ..yes() }).await.unwrap();
    home.over(&held).await;
    let granted = home.call("act", "{\"n\":2}").await;
    assert_eq!(granted.conversation(), "{\"n\":2} 2");
    assert_eq!(granted.approved_by.as_deref(), Some("ann"));
    let grants = home.projects.store().grants(Default::default()).await.unwrap().items;
    assert!(home.projects.store().revoke_grant(grants[0].id, "ann".into(), 1).await.unwrap());
    assert_eq!(home.call("act", "{\"n\":3}").await.state, State::PendingApproval);
    assert_eq!(home.ran(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_holds_a_call_that_nobody_has_to_approve() {
    let gates = Gates { default_delay: Duration::from_millis(30), ..Gates::default() };
    let home = Home::with(|_| {}, gates).await;
    let held = home.call("free", "{\"n\":1}").await;
    assert_eq!(held.state, State::ScheduledForExecution);
    assert_eq!(home.over(&held).await.conversation(), "{\"n\":1} 1");
    let stopped = home.call("free", "{\"n\":2}").await;
    assert!(home.projects.commons().withdraw(stopped.id, None, "no").await.unwrap());
    assert_eq!(home.over(&stopped).await.state, State::CancelledBySystem);
    assert_eq!(home.ran(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_decide_does_not() {
    let gates = Gates {
        requires_approval: RequiresApproval::Everything,
        approvers: vec![(gantry_core::pattern::Pattern::parse("*").unwrap(), vec!["eve".into()])],
        ..Gates::default()
    };
    let home = Home::with(|_| {}, gates).await;
    let held = home.call("free", "{}").await;
    let other = |change: fn(&mut Decider)| {
        let mut by = Decider { name: "eve".into(), ..ann() };
        change(&mut by);
        by
    };
    let refused: [fn(&mut Decider); 5] = [
        |by| by.role = Role::Agent,
        |by| by.name = "bot".into(),
        |by| by.name = "ann".into(),
        |by| by.projects = Some(["other".into()].into()),
        |by| by.tools = Some([gantry_core::pattern::Pattern::parse("act").unwrap()].into()),
    ];
    for change in refused {
        let by = other(change);
        let decided = home.projects.decide(id(&held), &by, yes()).await;
        assert!(matches!(decided, Err(NotDecided::Forbidden(_) | NotDecided::Unknown(_))), "{decided:?}");
    }
    home.projects.decide(id(&held), &other(|_| {}), yes()).await.unwrap();
    assert!(home.over(&held).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn edited_arguments_that_others_must_approve_are_theirs() {
    let rules = |home: &std::path::Path, ran: &Arc<AtomicUsize>| {
        let big = RuleSpec {
            name: "big".into(),
            when: Some("args.n > 100".into()),
            approvers: vec!["boss".into()],
            ..rule(Decide::Ask)
        };
        plan(home, ran, &[big], Gates::default())
    };
    let home =
        Home::with(|plan| *plan = rules(&plan.options.data.clone(), &Arc::default()), Gates::default());
    let home = home.await;
    let held = home.call("act", "{\"n\":1}").await;
    let edit = Given { modified_args: Some("{\"n\":500}".into()), ..yes() };
    let decided = home.decide(id(&held), edit.clone()).await;
    assert!(matches!(decided, Err(NotDecided::Forbidden(why)) if why.contains("boss")));
    let boss = Decider { name: "boss".into(), ..ann() };
    home.projects.decide(id(&held), &boss, edit).await.unwrap();
    assert_eq!(home.over(&held).await.executed_arguments.as_deref(), Some("{\"n\":500}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_one_of_two_that_wait_leaves_the_call_is_still_the_others() {
    let home = Home::new().await;
    let session = home.cx().await.session;
    let (first, second) = (CallCx::new(&session), CallCx::new(&session));
    let call = |cx: CallCx| {
        let (runtime, request) = (home.runtime(), request("act", "{\"n\":1}"));
        tokio::spawn(async move { runtime.call(cx, request).await })
    };
    let (leaves, leaving) = (first.cancel.clone(), call(first));
    let pending = home.pending().await;
    let stays = call(second);
    // Both wait before the first one leaves.
    while home.projects.commons().approvals().desk().waiting.get(&pending.id).map_or(0, |w| w.waiters.len())
        < 2
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    leaves.cancel();
    assert!(leaving.await.unwrap().is_held());
    home.decide(pending.id, yes()).await.unwrap();
    assert_eq!(stays.await.unwrap().conversation(), "{\"n\":1} 1");
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
