//! How the pipeline calls a tool, for tests of the parts: resolved, judged, asked about, and run by a permit.
//!
//! Every result passes the tool's output schema on its way through [`answer`].

use super::{NAMESPACE, Part, origin};
use gantry_core::approval::{Decision, Question, redeem};
use gantry_core::names::Style;
use gantry_core::policy::{OwnVerdict, Policies, Verdict, judge};
use gantry_core::schema::Schema;
use gantry_core::tool::{OwnRule, Settings, ToolSpec};
use gantry_core::toolset::{Candidate, Place, Pool, Selection};
use gantry_core::{
    CallRequest, Caller, EffectState, Fault, Permit, Refusal, ResolvedCall, Role, ToolError, Toolset,
};
use serde_json::Value;
use std::sync::Arc;

/// What came of a call.
#[derive(Debug)]
pub(in crate::provider) enum Answer {
    Done(Value),
    Asked(String),
    Refused(ToolError),
    Failed(Fault),
}

impl Answer {
    #[track_caller]
    pub(in crate::provider) fn done(self) -> Value {
        let Self::Done(value) = self else { panic!("not done: {self:?}") };
        value
    }

    #[track_caller]
    pub(in crate::provider) fn asked(self) -> String {
        let Self::Asked(reason) = self else { panic!("not asked: {self:?}") };
        reason
    }

    /// The error, before which nothing may have happened.
    #[track_caller]
    pub(in crate::provider) fn error(self) -> ToolError {
        match self {
            Self::Refused(error) => error,
            Self::Failed(Fault { error, effect: EffectState::None }) => error,
            Self::Failed(_) | Self::Done(_) | Self::Asked(_) => panic!("no error without effect: {self:?}"),
        }
    }

    #[track_caller]
    pub(in crate::provider) fn code(self) -> &'static str {
        self.error().code.as_str()
    }

    /// The code and the message.
    #[track_caller]
    pub(in crate::provider) fn told(self) -> (&'static str, String) {
        let error = self.error();
        (error.code.as_str(), error.message)
    }
}

/// The tools of a part as an agent has them.
pub(in crate::provider) fn toolset(part: &dyn Part) -> Toolset {
    let candidates = part.tools().iter().map(|spec| Candidate {
        origin: origin(NAMESPACE),
        style: Style::Bare,
        spec: spec.clone(),
        settings: Settings::default(),
    });
    let pool = Arc::new(Pool::build(candidates.collect()));
    Toolset::resolve(&pool, &Selection::everything(), &Place::top(2)).0
}

/// What policies, schema and the tool's own rule come to; `look` is asked for the latter where it depends.
pub(in crate::provider) fn judged(
    toolset: &Toolset,
    (tool, arguments): (&str, &Value),
    look: impl FnOnce(&str) -> Result<OwnVerdict, Refusal>,
) -> Result<Verdict, Refusal> {
    let caller = Caller {
        principal: "p".into(),
        role: Role::Agent,
        agent: None,
        project: "default".into(),
        above: Arc::default(),
    };
    let arguments = Some(arguments.to_string().into());
    let request = CallRequest { tool: tool.into(), arguments, ..CallRequest::default() };
    let call = ResolvedCall::resolve(toolset, &request)?;
    let judged = judge(&Policies::default(), &caller, call)?;
    let own = match judged.call().tool().spec.own_rule {
        OwnRule::Never => OwnVerdict::default(),
        OwnRule::Always => panic!("none of Gantry's own tools always asks"),
        OwnRule::Depends => look(judged.call().arguments())?,
    };
    Ok(judged.conclude(&caller, own))
}

/// A person says yes.
pub(in crate::provider) fn yes(question: Question) -> Permit {
    let decision = Decision { binding: question.binding(), approved: true, by: "somebody".into() };
    redeem(question, &decision).unwrap()
}

/// What came of a call that was run.
pub(in crate::provider) fn answer(permit: &Permit, outcome: Result<String, Fault>) -> Answer {
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

/// What came of a call that was not run.
pub(in crate::provider) fn refused(refusal: &Refusal) -> Answer {
    Answer::Refused(refusal.error().clone())
}

/// A tool says all that somebody has to know who uses it.
#[track_caller]
pub(in crate::provider) fn presents_itself(spec: &ToolSpec) {
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
