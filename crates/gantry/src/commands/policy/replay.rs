//! `gantry policy replay`: which recorded calls would have another outcome now.

use crate::Extra;
use crate::cli::{GlobalOptions, Replay};
use crate::client::{ApiClient, CommandContext, Scope, load};
use crate::commands::audit::caller;
use crate::config::{MAIN_PROJECT, Source};
use crate::exit::{Outcome, UsageError};
use crate::startup::ActiveConfig;
use crate::term::{self, Column, plural, thousands};
use gantry_core::id::CallId;
use gantry_core::names::Style;
use gantry_core::pattern::Pattern;
use gantry_core::policy::{RecordedCall, ReplayOutcome, Unknown, replay};
use gantry_core::tool::{ApprovalRule, Effect, Origin, Settings, Tool, ToolKind};
use gantry_core::toolset::{Candidate, Pool, SpawnContext, Toolset};
use gantry_core::{Caller, Role, State};
use gantry_runtime::Plan;
use gantry_server::model::{CallRecord, List, RecordedError, Timestamp};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Calls that one request reads.
const PAGE: &str = "1000";

const COLUMNS: [Column<Difference>; 7] = [
    Column::new("ID", |it| it.id.to_string()),
    Column::new("STARTED (UTC)", |it| term::timestamp(it.started_at)),
    Column::unless("PROJECT", &[MAIN_PROJECT], |it| it.project.to_string()),
    Column::new("TOOL", |it| it.tool.to_string()),
    Column::new("CALLER", |it| caller(&it.principal, it.agent.as_deref())),
    Column::new("WAS", |it| it.was.to_owned()),
    Column::new("NOW", |it| match it.rules.as_slice() {
        [] => it.now.to_owned(),
        rules => format!("{} by {}", it.now, rules.join(", ")),
    }),
];

pub(super) async fn run(options: &GlobalOptions, extra: Extra, args: &Replay) -> anyhow::Result<Outcome> {
    let wanted = args.tool.as_deref().map(Pattern::parse).transpose();
    let wanted = wanted.map_err(|error| UsageError(format!("--tool: {error}")))?;
    let context = CommandContext::new(options, extra.clone())?;
    let config = args.under.clone().or_else(|| context.source.config.clone());
    let source = Source { config, ..context.source.clone() };
    let loaded = load(&source)?;
    let active = ActiveConfig::new(source, loaded, extra);
    let evaluator = PolicyEvaluator::new(active.plans(&active.current(), None)?);
    let data = context.data_dir.path().display().to_string();
    let mut result = Replayed::default();
    let work = async |client: &ApiClient| {
        let mut cursor: Option<String> = None;
        loop {
            let query = [
                ("project", args.project.name()),
                ("since", args.since.as_deref()),
                ("until", args.until.as_deref()),
                ("cursor", cursor.as_deref()),
                ("limit", Some(PAGE)),
            ];
            let page: List<CallRecord> = client.get("/api/v1/audit", &query).await?;
            for call in page.items.iter().filter(|call| call.arguments_digest.is_some()) {
                let Some((was, tool)) = RecordedOutcome::of(call).zip(evaluator.tool(call)) else { continue };
                if wanted.as_ref().is_none_or(|pattern| tool.matches(pattern)) {
                    result.add(call, was, evaluator.replay(call, tool), args.limit);
                }
            }
            if page.next.is_none() {
                return Ok(());
            }
            cursor = page.next;
        }
    };
    context.with_client(Scope::LedgerOnly, work).await?;
    if options.json {
        term::print_json(&result);
    } else if result.calls == 0 {
        term::eprint(&format!("No recorded call in {data} matches."));
    } else {
        result.print();
    }
    Ok(Outcome::Success)
}

/// The recorded calls, counted by the outcome that they would have now.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Replayed {
    calls: usize,
    held: usize,
    denied: usize,
    let_through: usize,
    /// Calls whose outcome cannot be predicted, by reason.
    undecidable: BTreeMap<String, usize>,
    /// The calls with another outcome, newest first, up to a limit.
    items: Vec<Difference>,
}

/// A call that would have another outcome now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Difference {
    id: CallId,
    started_at: Timestamp,
    project: Arc<str>,
    tool: Arc<str>,
    principal: Arc<str>,
    agent: Option<Arc<str>>,
    was: &'static str,
    now: &'static str,
    /// The rules that hold or deny it.
    rules: Vec<Arc<str>>,
}

impl Replayed {
    fn add(
        &mut self,
        call: &CallRecord,
        was: RecordedOutcome,
        outcome: Result<ReplayOutcome, String>,
        limit: usize,
    ) {
        self.calls += 1;
        let (count, now, rules) = match outcome {
            Ok(outcome) if is_same(was, &outcome) => return,
            Ok(ReplayOutcome::Held(rules)) => (&mut self.held, "held", rules),
            Ok(ReplayOutcome::Denied(rule)) => (&mut self.denied, "denied", vec![rule.into()]),
            Ok(ReplayOutcome::Runs) => (&mut self.let_through, "let through", Vec::new()),
            Ok(ReplayOutcome::Unknown(reason)) => {
                return *self.undecidable.entry(reason.to_string()).or_default() += 1;
            }
            Err(reason) => return *self.undecidable.entry(reason).or_default() += 1,
        };
        *count += 1;
        if self.items.len() < limit {
            self.items.push(Difference {
                id: call.id,
                started_at: call.started_at,
                project: Arc::clone(&call.project),
                tool: Arc::clone(&call.tool),
                principal: Arc::clone(&call.principal),
                agent: call.agent.clone(),
                was: was.as_str(),
                now,
                rules,
            });
        }
    }

    fn print(&self) {
        term::print_table(&self.items, &COLUMNS, |_| None);
        let hidden = (self.held + self.denied + self.let_through).saturating_sub(self.items.len());
        if hidden > 0 {
            term::eprint(&format!("{} more differ; use --limit.", thousands(hidden)));
        }
        term::print(&self.summary());
    }

    fn summary(&self) -> String {
        let [held, denied, let_through] = [self.held, self.denied, self.let_through].map(thousands);
        let calls = plural(self.calls, "call");
        let mut summary =
            format!("{held} of {calls} would now be held, {denied} denied, {let_through} let through");
        for (reason, count) in &self.undecidable {
            summary.push_str(&format!("; {} cannot be predicted ({reason})", thousands(count)));
        }
        summary
    }
}

fn is_same(was: RecordedOutcome, now: &ReplayOutcome) -> bool {
    matches!(
        (was, now),
        (RecordedOutcome::Ran, ReplayOutcome::Runs)
            | (RecordedOutcome::Held | RecordedOutcome::Approved, ReplayOutcome::Held(_))
            | (RecordedOutcome::Denied, ReplayOutcome::Denied(_))
            // A tool's own rule that looks at files is taken to decide as it did.
            | (RecordedOutcome::Ran, ReplayOutcome::Unknown(Unknown::Files))
    )
}

/// What the policies of then made of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordedOutcome {
    /// It ran, or was about to.
    Ran,
    /// It needed an approval, and got none.
    Held,
    /// It needed an approval, and got one.
    Approved,
    /// A policy refused it.
    Denied,
}

impl RecordedOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Held => "held",
            Self::Approved => "approved",
            Self::Denied => "denied",
        }
    }

    /// `None` for a call that was refused before policies decided.
    fn of(call: &CallRecord) -> Option<Self> {
        if call.decision.is_some() {
            return Some(Self::Approved);
        }
        let code = call.error.as_ref().map_or("", |error| &error.code);
        match call.state {
            State::PendingApproval
            | State::ApprovedReady
            | State::RejectedByUser
            | State::RejectedByTimeout => Some(Self::Held),
            State::Refused if code == "APPROVAL_REQUIRED" => Some(Self::Held),
            State::Refused if call.error.as_ref().is_some_and(is_policy) => Some(Self::Denied),
            // Policies did not decide about it, or it was canceled before.
            State::Refused | State::CancelledBySystem => None,
            State::ScheduledForExecution
            | State::Executing
            | State::CompletedSuccess
            | State::CompletedFailure
            | State::OutcomeUnknown => Some(Self::Ran),
        }
    }
}

/// Whether a policy refused the call. Tools refuse with the same code, so the message decides.
fn is_policy(error: &RecordedError) -> bool {
    let message = error.message.as_deref().unwrap_or_default();
    error.code == "PERMISSION_DENIED"
        && (message.starts_with("denied by policy ") || message.contains(" could not be judged, "))
}

struct PolicyEvaluator {
    plans: BTreeMap<Arc<str>, Plan>,
    /// The approval rules of Gantry's own tools, by project, provider and tool.
    own_rules: HashMap<[Arc<str>; 3], ApprovalRule>,
}

impl PolicyEvaluator {
    fn new(plans: BTreeMap<Arc<str>, Plan>) -> Self {
        let mut own_rules = HashMap::new();
        for (project, plan) in &plans {
            for provider in &plan.providers {
                let id = &provider.origin().provider;
                let key = |tool: String| [Arc::clone(project), Arc::clone(id), tool.into()];
                own_rules
                    .extend(provider.tools().into_iter().map(|tool| (key(tool.name), tool.approval_rule)));
            }
        }
        Self { plans, own_rules }
    }

    /// The tool of a call; `None` for a call of a tool that was not found.
    fn tool(&self, call: &CallRecord) -> Option<Tool> {
        let effect = Effect::parse(&call.effect)?;
        let id = [&call.project, &call.provider, &call.original].map(Arc::clone);
        // A tool of an MCP server has no rule of its own.
        let rule = self.own_rules.get(&id).copied().unwrap_or(ApprovalRule::Never);
        Some(RecordedCall::tool(&origin(call)?, &call.original, &call.tool, effect, rule))
    }

    /// What the policies would decide now; an error says why that cannot be decided.
    fn replay(&self, call: &CallRecord, tool: Tool) -> Result<ReplayOutcome, String> {
        let unknown = || format!("the configuration has no project {}", call.project);
        let plan = self.plans.get(&call.project).ok_or_else(unknown)?;
        let role = match &*call.principal {
            "person" => Some(Role::Admin),
            "local" | "mcp" => Some(Role::Agent),
            _ => None,
        };
        let recorded = RecordedCall {
            auto_approved: is_auto_approved(plan, call, &tool),
            tool: Arc::new(tool),
            caller: Caller {
                principal: Arc::clone(&call.principal),
                role: role.unwrap_or(Role::Agent),
                agent: call.agent.clone(),
                parent_agents: Arc::default(),
                project: Arc::clone(&call.project),
            },
            knows_role: role.is_some(),
            arguments: call
                .arguments_digest
                .and_then(|digest| RecordedCall::arguments(&call.arguments, digest)),
        };
        Ok(replay(&plan.options.policies, &recorded))
    }
}

fn origin(call: &CallRecord) -> Option<Origin> {
    let kind = ToolKind::parse(&call.kind)?;
    Some(Origin { provider: Arc::clone(&call.provider), namespace: Arc::clone(&call.namespace), kind })
}

/// Whether the configuration of the caller's agent approves the tool's own rule.
fn is_auto_approved(plan: &Plan, call: &CallRecord, tool: &Tool) -> bool {
    let agent = call.agent.as_deref().and_then(|agent| plan.options.agents.get(agent));
    let Some((agent, origin)) = agent.zip(origin(call)) else { return false };
    if agent.selection.auto_approve.is_empty() {
        return false;
    }
    let style = if call.tool == call.original { Style::Bare } else { Style::Prefixed };
    let candidate = Candidate { origin, style, spec: tool.spec.clone(), settings: Settings::default() };
    let (pool, place) =
        (Arc::new(Pool::build(vec![candidate])), SpawnContext::top(plan.options.limits.max_depth.into()));
    Toolset::resolve(&pool, &agent.selection, &place).0.auto_approves(tool)
}

#[cfg(test)]
mod tests;
