//! The condition of a rule: a CEL expression over the call, compiled once.

use super::rule::RuleError;
use crate::limits::CONDITION_BYTES;
use crate::principal::Caller;
use crate::tool::Tool;
use cel::common::ast::{EntryExpr, Expr};
use cel::{Context, Program};
use serde::Serialize;
use serde_json::Value;

const VARIABLES: [&str; 6] = ["args", "tool", "agent", "principal", "project", "role"];

/// Limit: runs of the innermost loop of a condition, and these times the bytes of the arguments. The arguments are an agent's, and
/// CEL itself has no limit.
const LOOP_RUNS: u64 = 10_000;
const LOOP_BYTES: u64 = 1 << 32;

/// A compiled expression.
#[derive(Debug)]
pub struct Condition {
    program: Program,
    /// How many macros such as `all` and `map` it has within each other.
    loops: u32,
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
        let references = program.references();
        if let Some(unknown) = references.variables().into_iter().find(|name| !VARIABLES.contains(name)) {
            return Err(invalid(format!(
                "{unknown:?} is not known here; there are {}",
                VARIABLES.join(", ")
            )));
        }
        let loops = loops(&program.expression().expr).map_err(|why| invalid(why.to_owned()))?;
        Ok(Self { program, loops, text: text.into() })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn uses(&self, variable: &str) -> bool {
        self.program.references().has_variable(variable)
    }

    /// Whether the condition holds. Without a call it is evaluated on the arguments alone, as for the examples of a rule.
    pub(super) fn holds(&self, call: Option<(&Caller, &Tool)>, arguments: &Value) -> Result<bool, String> {
        let size = Size::of(arguments);
        let runs = size.widest.saturating_pow(self.loops);
        if self.loops > 0 && (runs > LOOP_RUNS || runs.saturating_mul(size.bytes) > LOOP_BYTES) {
            return Err(format!(
                "the arguments are too large for its loops: a list or object has {} entries, and loops within each other \
                 may run {LOOP_RUNS} times, fewer for long texts",
                size.widest
            ));
        }
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

/// What decides how long loops over a value take: the entries of its widest list or object, and its bytes.
#[derive(Default)]
struct Size {
    widest: u64,
    bytes: u64,
}

impl Size {
    fn of(value: &Value) -> Self {
        let (children, own): (Vec<Self>, usize) = match value {
            Value::Array(items) => (items.iter().map(Self::of).collect(), items.len()),
            Value::Object(members) => {
                (members.values().map(Self::of).collect(), members.keys().map(|name| name.len() + 1).sum())
            }
            Value::String(text) => (Vec::new(), text.len()),
            Value::Null | Value::Bool(_) | Value::Number(_) => (Vec::new(), 1),
        };
        let widest = children.iter().map(|child| child.widest).max().unwrap_or(0).max(children.len() as u64);
        Self { widest, bytes: children.iter().map(|child| child.bytes).sum::<u64>() + own as u64 }
    }
}

/// How deep loops are within each other. An error says what a condition may not have.
fn loops(expr: &Expr) -> Result<u32, &'static str> {
    let deepest = |parts: &mut dyn Iterator<Item = &Expr>| {
        parts.map(loops).try_fold(0, |most, found| Ok(most.max(found?)))
    };
    match expr {
        Expr::Call(call) => {
            let is_literal = call.args.last().is_some_and(|last| matches!(last.expr, Expr::Literal(_)));
            if call.func_name == "matches" && !is_literal {
                return Err("matches takes a pattern in quotes: one from the arguments could take any time");
            }
            deepest(
                &mut call
                    .target
                    .iter()
                    .map(|target| &target.expr)
                    .chain(call.args.iter().map(|arg| &arg.expr)),
            )
        }
        Expr::Comprehension(of) => {
            let inner = [&of.accu_init, &of.loop_cond, &of.loop_step, &of.result].map(|part| &part.expr);
            Ok(loops(&of.iter_range.expr)?.max(1 + deepest(&mut inner.into_iter())?))
        }
        Expr::List(list) => deepest(&mut list.elements.iter().map(|element| &element.expr)),
        Expr::Select(select) => loops(&select.operand.expr),
        Expr::Map(map) => deepest(&mut map.entries.iter().flat_map(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => vec![&entry.key.expr, &entry.value.expr],
            EntryExpr::StructField(field) => vec![&field.value.expr],
        })),
        Expr::Struct(_) => Err("a condition makes no structures"),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Ok(0),
    }
}

fn add(context: &mut Context<'_, '_>, name: &str, value: impl Serialize) -> Result<(), String> {
    context.add_variable(name, value).map_err(|error| error.to_string())
}

fn one_line(error: &impl std::fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
