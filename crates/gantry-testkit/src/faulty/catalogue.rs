//! The tools as they are listed.

mod lies;
pub(super) mod poison;
mod rich;

use super::odd::ODD_DEFINITION;
use super::options::Fault;
use super::server::Server;
use Effect::{Destroys, Reads, Writes};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

pub(super) use lies::LYING_RESULT;
pub(super) use rich::{LINK_RESULT, NUMBERS_RESULT, rows};

/// A name of a hundred characters.
pub const LONG_NAME: &str =
    "a_name_of_exactly_one_hundred_characters_which_is_longer_than_the_sixty_four_that_models_will_take_x";

/// Two names that become one when sanitised.
pub const COLLIDING: [&str; 2] = ["a-b", "a.b"];

/// Names that Gantry keeps for itself.
pub const RESERVED: [&str; 5] =
    ["final_report", "batch", "agent__final_report", "router__handoff-to", "rest"];

/// What a tool's annotations claim.
#[derive(Debug, Clone, Copy)]
enum Effect {
    Reads,
    Writes,
    Destroys,
}

/// Name, what it claims to do, description, and the properties of its arguments.
type Row = (&'static str, Effect, &'static str, &'static str);

const TEXT: &str = r#"{"text":{"type":"string"}}"#;
const NOTHING: &str = "{}";

/// The tools that are always there, with a schema that is right.
const TOOLS: &[Row] = &[
    ("echo", Reads, "Answers its text", TEXT),
    ("fail", Reads, "Fails with its text", TEXT),
    ("sleep", Reads, "Answers later; a cancelled call is journalled", r#"{"ms":{"type":"integer"}}"#),
    ("journal", Writes, "Appends its text to the journal", TEXT),
    ("wipe", Destroys, "Appends `wiped` and its text to the journal", TEXT),
    ("params", Reads, "Answers the parameters of this request byte for byte", r#"{"any":{}}"#),
    ("headers", Reads, "Answers the HTTP headers that came with this call", NOTHING),
    ("pid", Reads, "Answers the id of this process", NOTHING),
    ("env", Reads, "Answers the environment of this process", NOTHING),
    (
        "session",
        Reads,
        "Answers how many sessions, connections, calls and chattered messages there were",
        NOTHING,
    ),
    ("odd-huge", Reads, "Answers a number that no double can hold", NOTHING),
    (
        "progress",
        Reads,
        "Reports progress, works on for a while, and answers; a cancelled call is journalled",
        r#"{"steps":{"type":"integer"},"ms":{"type":"integer"}}"#,
    ),
    (
        "log",
        Reads,
        "Logs its text, or does so that long after it has answered",
        r#"{"text":{"type":"string"},"level":{"type":"string"},"ms":{"type":"integer"}}"#,
    ),
    (
        "ask",
        Reads,
        "Asks the user, works on for a while, and answers what the user said",
        r#"{"text":{"type":"string"},"rounds":{"type":"integer"},"ms":{"type":"integer"}}"#,
    ),
    ("sample", Reads, "Asks the client's model", TEXT),
    ("roots", Reads, "Asks for the client's folders", NOTHING),
    ("grow", Reads, "Adds a tool and says so", NOTHING),
    ("grow-prompt", Reads, "Adds a prompt and says so", NOTHING),
    ("grow-resource", Reads, "Adds a resource and says so", NOTHING),
    ("rug-pull", Reads, "Changes the description of `versioned` and says so", NOTHING),
    ("touch", Reads, "Says that a resource has changed", r#"{"uri":{"type":"string"}}"#),
    ("forget", Reads, "Makes the server forget this HTTP session", NOTHING),
    ("hang", Reads, "Never answers", NOTHING),
    ("die", Reads, "Exits without an answer", NOTHING),
    ("hang-up", Reads, "Closes the connection without an answer", NOTHING),
    ("flood", Reads, "Writes megabytes that are no message, then answers", r#"{"mb":{"type":"integer"}}"#),
    (
        "chatter",
        Reads,
        "Logs and reports progress that often, or without end, before or that long after it answers; a cancelled call is journalled",
        r#"{"notes":{"type":"integer"},"ms":{"type":"integer"}}"#,
    ),
    ("long-line", Reads, "Answers with that many megabytes in one message", r#"{"mb":{"type":"integer"}}"#),
    ("bad-json", Reads, "Answers with half a message", NOTHING),
];

/// Every definition, as JSON text, in a stable order.
pub(super) fn tools(server: &Server) -> Vec<String> {
    let options = &server.options;
    let rows = TOOLS.iter();
    let mut tools: Vec<Value> =
        rows.map(|(name, effect, text, properties)| definition(name, *effect, text, properties)).collect();
    tools.push(sum());
    tools.push(versioned(server.definition.load(Ordering::Relaxed)));
    let asked_for = options.tools.iter().map(String::as_str);
    let named = [LONG_NAME].into_iter().chain(COLLIDING).chain(RESERVED).chain(asked_for);
    tools.extend(named.map(|name| definition(name, Reads, "Answers its own name", NOTHING)));
    let grown = 1..=server.grown.tools.load(Ordering::Relaxed);
    tools.extend(grown.map(|n| definition(&format!("grown-{n}"), Reads, "Grown while running", NOTHING)));
    if options.has(Fault::LyingSchema) {
        tools.extend(lies::tools());
    }
    if options.has(Fault::RichResults) {
        tools.extend(rich::tools());
    }
    if options.has(Fault::Poison) {
        tools.extend(poison::tools());
    }
    tools.iter().map(ToString::to_string).chain([ODD_DEFINITION.to_owned()]).collect()
}

/// Whether a tool is listed.
pub(super) fn has(server: &Server, name: &str) -> bool {
    tools(server)
        .iter()
        .any(|text| serde_json::from_str::<Value>(text).is_ok_and(|definition| definition["name"] == name))
}

fn definition(name: &str, effect: Effect, description: &str, properties: &str) -> Value {
    let properties: Value = serde_json::from_str(properties).expect("the table holds JSON");
    json!({
        "name": name,
        "title": format!("Tool {name}"),
        "description": description,
        "inputSchema": { "type": "object", "properties": properties },
        "annotations": annotations(effect),
    })
}

fn annotations(effect: Effect) -> Value {
    match effect {
        Reads => json!({ "readOnlyHint": true, "openWorldHint": false }),
        Writes => json!({ "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false }),
        Destroys => json!({ "readOnlyHint": false, "destructiveHint": true }),
    }
}

/// A tool whose structured answer keeps the promise of its outputSchema.
fn sum() -> Value {
    let number = json!({ "type": "integer" });
    let mut tool =
        definition("add", Reads, "Adds two integers", r#"{"a":{"type":"integer"},"b":{"type":"integer"}}"#);
    tool["inputSchema"]["required"] = json!(["a", "b"]);
    tool["outputSchema"] = json!({ "type": "object", "properties": { "sum": number }, "required": ["sum"] });
    tool
}

/// The tool whose definition changes.
fn versioned(version: u64) -> Value {
    definition("versioned", Reads, &format!("Definition {version}"), NOTHING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_name_has_a_hundred_characters() {
        assert_eq!(LONG_NAME.len(), 100);
    }
}
