//! A rule's condition: a CEL expression over the call, compiled once.

use super::rule::RuleError;
use crate::limits::CONDITION_BYTES;
use crate::principal::Caller;
use crate::tool::Tool;
use cel::{Context, Program};
use serde::Serialize;
use serde_json::Value;

/// Names that an expression may use.
const KNOWN: [&str; 6] = ["args", "tool", "agent", "principal", "project", "role"];

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Condition(Program);

#[derive(Serialize)]
struct ToolFacts<'a> {
    name: &'a str,
    provider: &'a str,
    namespace: &'a str,
    original: &'a str,
    kind: &'a str,
    effect: &'a str,
}

impl Condition {
    pub(super) fn compile(text: &str) -> Result<Self, RuleError> {
        if text.len() > CONDITION_BYTES {
            return Err(RuleError::Condition {
                message: format!("it is longer than {CONDITION_BYTES} bytes"),
            });
        }
        let program =
            Program::compile(text).map_err(|error| RuleError::Condition { message: one_line(&error) })?;
        let references = program.references();
        if let Some(unknown) = references.variables().into_iter().find(|name| !KNOWN.contains(name)) {
            let message = format!("{unknown:?} is not known here; there are {}", KNOWN.join(", "));
            return Err(RuleError::Condition { message });
        }
        Ok(Self(program))
    }

    /// Whether the expression uses this name.
    pub(super) fn looks_at(&self, name: &str) -> bool {
        self.0.references().has_variable(name)
    }

    /// Whether the condition holds. Without a call it is judged on the arguments alone, as examples are.
    pub(super) fn holds(&self, call: Option<(&Caller, &Tool)>, arguments: &Value) -> Result<bool, String> {
        let mut context = Context::default();
        let mut add = |name: &str, value: &dyn erased::Facts| value.add_to(&mut context, name);
        add("args", &arguments)?;
        match call {
            Some((caller, tool)) => {
                add("tool", &tool_facts(tool))?;
                add("agent", &caller.agent_name())?;
                add("principal", &&*caller.principal)?;
                add("project", &&*caller.project)?;
                add("role", &caller.role)?;
            }
            None => {
                let none =
                    ToolFacts { name: "", provider: "", namespace: "", original: "", kind: "", effect: "" };
                add("tool", &none)?;
                for name in ["agent", "principal", "project", "role"] {
                    add(name, &"")?;
                }
            }
        }
        match self.0.execute(&context) {
            Ok(cel::Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it gives a {} where true or false is needed", other.type_of())),
            Err(error) => Err(format!("{} (use has(…) for arguments that may be missing)", one_line(&error))),
        }
    }
}

fn tool_facts(tool: &Tool) -> ToolFacts<'_> {
    ToolFacts {
        name: &tool.name,
        provider: &tool.key.provider,
        namespace: &tool.namespace,
        original: &tool.key.tool,
        kind: tool.kind.as_str(),
        effect: tool.effect.as_str(),
    }
}

fn one_line(error: &impl std::fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Anything that serde can write, behind one small object-safe face.
mod erased {
    use cel::Context;
    use serde::Serialize;

    pub(super) trait Facts {
        fn add_to(&self, context: &mut Context<'_, '_>, name: &str) -> Result<(), String>;
    }

    impl<T: Serialize> Facts for T {
        fn add_to(&self, context: &mut Context<'_, '_>, name: &str) -> Result<(), String> {
            context.add_variable(name, self).map_err(|error| error.to_string())
        }
    }
}
