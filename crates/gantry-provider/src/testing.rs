//! Calls a tool as the pipeline does, for tests of providers: resolved, judged, approved, and run by a permit.
//!
//! Every result is checked against the tool's output schema on its way through [`answer`].

#![expect(clippy::unwrap_used, clippy::panic, reason = "only tests use this module")]

use crate::CallContext;
use crate::client::NoClient;
use gantry_core::approval::{Decision, Question, redeem};
use gantry_core::id::{CallId, SessionId};
use gantry_core::names::Style;
use gantry_core::policy::{Policies, Preflight, Verdict, judge};
use gantry_core::schema::Schema;
use gantry_core::tool::{ApprovalRule, Origin, Settings, ToolKind, ToolSpec};
use gantry_core::toolset::{Candidate, Pool, Selection, SpawnContext};
use gantry_core::{
    CallFailure, CallRequest, Caller, EffectState, Permit, Refusal, ResolvedCall, Role, ToolError, Toolset,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

impl CallContext {
    /// A call of `caller` without a client and without an engine behind it.
    pub fn detached(caller: Caller, limit: Duration) -> Self {
        Self {
            call: CallId::generate(),
            session: SessionId::generate(),
            caller: Arc::new(caller),
            cancel: CancellationToken::new(),
            limit,
            client: Arc::new(NoClient::default()),
            meta: None,
            engine: Arc::new(()),
        }
    }
}

#[derive(Debug)]
pub enum Answer {
    Done(Value),
    Asked(String),
    Refused(ToolError),
    Failed(CallFailure),
}

impl Answer {
    #[track_caller]
    pub fn done(self) -> Value {
        let Self::Done(value) = self else { panic!("not done: {self:?}") };
        value
    }

    #[track_caller]
    pub fn asked(self) -> String {
        let Self::Asked(reason) = self else { panic!("not asked: {self:?}") };
        reason
    }

    #[track_caller]
    pub fn error(self) -> ToolError {
        match self {
            Self::Refused(error) => error,
            Self::Failed(CallFailure { error, effect: EffectState::None }) => error,
            Self::Failed(_) | Self::Done(_) | Self::Asked(_) => panic!("no error without effect: {self:?}"),
        }
    }

    #[track_caller]
    pub fn code(self) -> &'static str {
        self.error().code.as_str()
    }

    #[track_caller]
    pub fn code_and_message(self) -> (&'static str, String) {
        let error = self.error();
        (error.code.as_str(), error.message)
    }
}

/// These tools of the provider `workspace` as an agent without restrictions has them.
pub fn toolset(tools: &[ToolSpec]) -> Toolset {
    let origin =
        Origin { provider: "workspace".into(), namespace: "workspace".into(), kind: ToolKind::Builtin };
    let candidates = tools.iter().map(|spec| Candidate {
        origin: origin.clone(),
        style: Style::Bare,
        spec: spec.clone(),
        settings: Settings::default(),
    });
    let pool = Arc::new(Pool::build(candidates.collect()));
    Toolset::resolve(&pool, &Selection::everything(), &SpawnContext::top(2)).0
}

pub fn caller() -> Caller {
    let project = "default".into();
    Caller { principal: "p".into(), role: Role::Agent, agent: None, project, parent_agents: Arc::default() }
}

/// The verdict of policies, schema and the tool's approval rule; `look` answers where that rule depends on the call.
pub fn judged(
    toolset: &Toolset,
    (tool, arguments): (&str, &Value),
    look: impl FnOnce(&str) -> Result<Preflight, Refusal>,
) -> Result<Verdict, Refusal> {
    let caller = caller();
    let arguments = Some(arguments.to_string().into());
    let request = CallRequest { tool: tool.into(), arguments, ..CallRequest::default() };
    let call = ResolvedCall::resolve(toolset, &request)?;
    let judged = judge(&Policies::default(), &caller, call)?;
    let own = match judged.call().tool().spec.approval_rule {
        ApprovalRule::Never => Preflight::default(),
        ApprovalRule::Always => panic!("none of Gantry's own tools always asks"),
        ApprovalRule::Depends => look(judged.call().arguments())?,
    };
    Ok(judged.into_verdict(&caller, own))
}

pub fn yes(question: Question) -> Permit {
    let decision = Decision { binding: question.binding(), approved: true, by: "approver".into() };
    redeem(question, &decision).unwrap()
}

pub fn answer(permit: &Permit, outcome: Result<String, CallFailure>) -> Answer {
    match outcome {
        Err(fault) => Answer::Failed(fault),
        Ok(text) => {
            let value: Value = serde_json::from_str(&text).unwrap();
            let schema = permit.tool().spec.output_schema.as_ref().unwrap();
            Schema::compile(&schema.value()).unwrap().check(&value).unwrap();
            Answer::Done(value)
        }
    }
}

pub fn refused(refusal: &Refusal) -> Answer {
    Answer::Refused(refusal.error().clone())
}

/// Checks that a tool documents itself: title, description, closed schemas, a description for each property.
#[track_caller]
pub fn presents_itself(spec: &ToolSpec) {
    assert!(spec.title.is_some() && spec.description.len() > 80, "{}", spec.name);
    for schema in [&spec.input_schema, spec.output_schema.as_ref().unwrap()] {
        let schema = schema.value();
        Schema::compile(&schema).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{}", spec.name);
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}: {name}", spec.name);
        }
    }
}
