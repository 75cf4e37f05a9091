//! The condition of a rule: a CEL expression over the call, compiled once.

use super::rule::RuleError;
use crate::limits::CONDITION_BYTES;
use crate::principal::Caller;
use crate::tool::Tool;
use cel::common::ast::{EntryExpr, Expr};
use cel::{Context, IdedExpr, Program};
use serde::Serialize;
use serde_json::Value;

const VARIABLES: [&str; 6] = ["args", "tool", "agent", "principal", "project", "role"];

/// A compiled expression.
#[derive(Debug)]
pub struct Condition {
    program: Program,
    text: Box<str>,
}

#[derive(Serialize, Default)]
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
        let invalid = |message| RuleError::Condition { message };
        if text.len() > CONDITION_BYTES {
            return Err(invalid(format!("it is longer than {CONDITION_BYTES} bytes")));
        }
        let program = Program::compile(text).map_err(|error| invalid(one_line(&error)))?;
        check_cost(&program.expression().expr).map_err(|why| invalid(why.to_owned()))?;
        let references = program.references();
        if let Some(unknown) = references.variables().into_iter().find(|name| !VARIABLES.contains(name)) {
            return Err(invalid(format!(
                "{unknown:?} is not known here; there are {}",
                VARIABLES.join(", ")
            )));
        }
        Ok(Self { program, text: text.into() })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn uses(&self, variable: &str) -> bool {
        self.program.references().has_variable(variable)
    }

    /// Whether the condition holds. Without a call it is evaluated on the arguments alone, as for the examples of a rule.
    pub(super) fn holds(&self, call: Option<(&Caller, &Tool)>, arguments: &Value) -> Result<bool, String> {
        let mut context = Context::default();
        add(&mut context, "args", arguments)?;
        if let Some((caller, tool)) = call {
            let facts = ToolFacts {
                name: &tool.name,
                provider: &tool.key.provider,
                namespace: &tool.namespace,
                original: &tool.key.tool,
                kind: tool.kind.as_str(),
                effect: tool.effect.as_str(),
            };
            add(&mut context, "tool", facts)?;
            add(&mut context, "agent", caller.agent_name())?;
            add(&mut context, "principal", &*caller.principal)?;
            add(&mut context, "project", &*caller.project)?;
            add(&mut context, "role", caller.role)?;
        } else {
            add(&mut context, "tool", ToolFacts::default())?;
            for name in ["agent", "principal", "project", "role"] {
                add(&mut context, name, "")?;
            }
        }
        match self.program.execute(&context) {
            Ok(cel::Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it gives a {} where true or false is needed", other.type_of())),
            Err(error) => Err(format!("{} (use has(…) for arguments that may be missing)", one_line(&error))),
        }
    }
}

/// Refuses what could take any time over the arguments of an agent; CEL has no limit of its own.
fn check_cost(expr: &Expr) -> Result<(), &'static str> {
    let parts: Vec<&IdedExpr> = match expr {
        Expr::Call(call) => {
            let is_literal = call.args.last().is_some_and(|last| matches!(last.expr, Expr::Literal(_)));
            if call.func_name == "matches" && !is_literal {
                return Err("matches takes a pattern in quotes, and none from the arguments");
            }
            call.target.as_deref().into_iter().chain(&call.args).collect()
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&*select.operand],
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)).collect(),
        Expr::Comprehension(_) => {
            return Err("loops such as all, exists, map and filter could take any time over the arguments");
        }
        Expr::Struct(_) | Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
    };
    parts.iter().try_for_each(|part| check_cost(&part.expr))
}

fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

fn add(context: &mut Context<'_, '_>, name: &str, value: impl Serialize) -> Result<(), String> {
    context.add_variable(name, value).map_err(|error| error.to_string())
}

fn one_line(error: &impl std::fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
