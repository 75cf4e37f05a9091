//! The tools: what each is called, claims, takes and does, in one table.

pub(super) mod special;
mod talk;

use super::connection::Request;
use super::lossless_samples::{HUGE_NUMBER_RESULT, SAMPLE_DEFINITION, SAMPLE_RESULT};
use super::server::{Change, Frame, Server};
use super::wire::{Failure, INVALID_PARAMS, Reply};
use super::{STDERR_BYTES_PER_CALL, exit, flood_stderr};
use crate::provider::properties;
use futures_util::future::{BoxFuture, ready};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use special::{LINK_RESULT, LYING_RESULT, NUMBERS_RESULT};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A name of a hundred characters.
pub const LONG_NAME: &str =
    "a_name_of_exactly_one_hundred_characters_which_is_longer_than_the_sixty_four_that_models_will_take_x";

/// Two names that become one when sanitised.
pub const COLLIDING: [&str; 2] = ["a-b", "a.b"];

/// Names that Gantry keeps for itself.
pub const RESERVED: [&str; 5] =
    ["final_report", "batch", "agent__final_report", "router__handoff-to", "rest"];

/// How often a tool looks for a file that it waits for.
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(5);

const MEGABYTE: usize = 1024 * 1024;

/// A line of a flood, without its end: long enough to be quick, short enough for any limit.
const GARBAGE_LINE_BYTES: usize = 1023;

/// What a tool's annotations claim.
#[derive(Debug, Clone, Copy)]
enum Effect {
    Reads,
    Writes,
    Destroys,
}

#[derive(Debug, Clone, Copy)]
struct Tool<'a> {
    name: &'a str,
    effect: Effect,
    description: &'a str,
    /// Its arguments, each as `name:type`.
    arguments: &'a str,
    run: Run,
}

type Run = for<'a> fn(&'a Request, &'a Arguments) -> BoxFuture<'a, Reply>;

/// The arguments of all tools together.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    text: String,
    level: String,
    uri: String,
    ms: u64,
    /// A file: the call lasts until it is there.
    until: String,
    mb: usize,
    count: u64,
    steps: u64,
    notes: Option<u64>,
    rounds: Option<u64>,
    a: i64,
    b: i64,
}

impl Arguments {
    fn time(&self) -> Duration {
        Duration::from_millis(self.ms)
    }
}

/// What stands between characters that are to be told apart.
pub const APART: &str = "·";

/// A text that Gantry would mask, with something between its characters if the call has `apart` as its text.
fn spelled(said: String, arguments: &Arguments) -> String {
    if arguments.text != "apart" {
        return said;
    }
    said.chars().flat_map(|c| [c.to_string(), APART.to_owned()]).collect()
}

macro_rules! tools {
    ($($name:literal $effect:ident $description:literal $arguments:literal => $run:expr;)*) => {
        &[$(Tool { name: $name, effect: Effect::$effect, description: $description, arguments: $arguments, run: $run }),*]
    };
}

/// The tools that are always there, with a schema that is right.
const TOOLS: &[Tool<'_>] = tools! {
    "echo" Reads "Answers its text" "text:string" => |_, a| now(text(&a.text));
    "fail" Reads "Fails with its text" "text:string" => |_, a| now(failed(&a.text));
    "add" Reads "Adds two integers" "a:integer b:integer" => |_, a| now(sum(a));
    "sleep" Reads "Answers later; a cancelled call is journalled" "ms:integer" => |r, a| Box::pin(sleep(r, a));
    "journal" Writes "Appends its text to the journal" "text:string" => |r, a| {
        r.server().journal(&a.text);
        now(text("written"))
    };
    "wipe" Destroys "Appends `wiped` and its text to the journal" "text:string" => |r, a| {
        r.server().journal(&format!("wiped {}", a.text));
        now(text("wiped"))
    };
    "params" Reads "Answers the parameters of this request byte for byte" "any:" => |r, _| now(text(&r.raw_params));
    "headers" Reads "Answers the HTTP headers that came with this call" "" => |r, a| now(text(&spelled(r.connection.headers.to_string(), a)));
    "pid" Reads "Answers the id of this process" "" => |_, _| now(text(&std::process::id().to_string()));
    "env" Reads "Answers the environment of this process" "" => |_, _| now(text(&environment()));
    "session" Reads "Answers how many sessions, connections, calls and chattered messages there were" "" => |r, _| now(text(&counters(r)));
    "odd-huge" Reads "Answers a number that no double can hold" "" => |_, _| now(Reply::Result(HUGE_NUMBER_RESULT.into()));
    "progress" Reads "Reports progress, works on for a while, and answers; a cancelled call is journalled" "steps:integer ms:integer"
        => |r, a| Box::pin(talk::progress(r, a));
    "log" Reads "Logs its text, or does so that long after it has answered" "text:string level:string ms:integer"
        => |r, a| Box::pin(talk::log(r, a));
    "ask" Reads "Asks the user, works on for a while, and answers what the user said" "text:string rounds:integer ms:integer"
        => |r, a| Box::pin(talk::ask(r, a, talk::elicitation(&a.text)));
    "sample" Reads "Asks the client's model" "text:string" => |r, a| Box::pin(talk::ask(r, a, talk::sampling(&a.text)));
    "roots" Reads "Asks for the client's folders" "" => |r, a| Box::pin(talk::ask(r, a, talk::roots()));
    "grow" Reads "Adds a tool and says so" "" => |r, _| grow(r, &r.server().grown.tools, Change::Tools);
    "grow-prompt" Reads "Adds a prompt and says so" "" => |r, _| grow(r, &r.server().grown.prompts, Change::Prompts);
    "grow-resource" Reads "Adds a resource and says so" "" => |r, _| grow(r, &r.server().grown.resources, Change::Resources);
    "rug-pull" Reads "Changes the description of `versioned` and says so" "" => |r, _| Box::pin(async {
        let version = r.server().definition.fetch_add(1, Ordering::Relaxed) + 1;
        r.server().notify(Change::Tools).await;
        text(&format!("Definition {version}"))
    });
    "touch" Reads "Says that a resource has changed" "uri:string" => |r, a| Box::pin(async {
        r.server().notify(Change::Resource(&a.uri)).await;
        text("touched")
    });
    "forget" Reads "Makes the server forget this HTTP session" "" => |r, _| {
        r.connection.session.state.lock().unwrap().version = None;
        now(text("forgotten"))
    };
    "hang" Reads "Never answers" "" => |r, _| Box::pin(async {
        r.stopped().await;
        Reply::Silence
    });
    "die" Reads "Exits without an answer" "" => |r, _| die(r);
    "hang-up" Reads "Closes the connection without an answer" "" => |r, _| Box::pin(hang_up(r));
    "flood" Reads "Writes megabytes that are no message, then answers" "mb:integer" => |r, a| Box::pin(async {
        let line = format!("{}\n", "garbage ".repeat(GARBAGE_LINE_BYTES / 8));
        for _ in 0..a.mb {
            r.send(Frame::Garbage(line.repeat(MEGABYTE / GARBAGE_LINE_BYTES))).await;
        }
        text("flooded")
    });
    "chatter" Reads "Logs and reports progress that often, or without end, before or that long after it answers; a cancelled call is journalled"
        "notes:integer ms:integer" => |r, a| Box::pin(talk::chatter(r, a));
    "long-line" Reads "Answers with that many megabytes in one message" "mb:integer" => |_, a| now(text(&"x".repeat(a.mb * MEGABYTE)));
    "bad-json" Reads "Answers with half a message" "" => |r, _|
        now(Reply::Verbatim(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":["#, r.id)));
};

/// `--lying-schema`.
const LYING: &[Tool<'_>] = tools! {
    "lying-type" Reads "Its inputSchema is none" "" => own_name;
    "lying-root" Reads "Its inputSchema is none" "" => own_name;
    "lying-text" Reads "Its inputSchema is none" "" => own_name;
    "lying-null" Reads "Its inputSchema is none" "" => own_name;
    "lying-id" Reads "Its inputSchema is none" "" => own_name;
    "costly-circles" Reads "Its inputSchema is none" "" => own_name;
    "costly-pattern" Reads "Its inputSchema is none" "" => own_name;
    "lying-output" Reads "Breaks its own outputSchema" "" => |_, _| now(Reply::Result(LYING_RESULT.into()));
};

/// `--rich-results`.
const RICH: &[Tool<'_>] = tools! {
    "numbers" Reads "Answers an array" "" => |_, _| now(Reply::Result(NUMBERS_RESULT.into()));
    "link" Reads "Answers a link to a resource" "" => |_, _| now(Reply::Result(LINK_RESULT.into()));
    "rows" Reads "Answers that many rows, and in its text only how many" "count:integer" => |_, a| now(Reply::Result(special::rows(a.count)));
};

fn named<'a>(name: &'a str, description: &'a str) -> Tool<'a> {
    Tool { name, effect: Effect::Reads, description, arguments: "", run: own_name }
}

/// Gives every tool that is listed now to `take`, in a stable order. The tool `odd` has no part in it.
fn each(server: &Server, mut take: impl FnMut(Tool<'_>)) {
    let options = &server.options;
    TOOLS.iter().copied().for_each(&mut take);
    let (version, faults) = (server.definition.load(Ordering::Relaxed), &options.faults);
    take(named("versioned", &format!("Definition {version}")));
    let asked_for = options.tools.iter().map(String::as_str);
    for name in [LONG_NAME].into_iter().chain(COLLIDING).chain(RESERVED).chain(asked_for) {
        take(named(name, "Answers its own name"));
    }
    for n in 1..=server.grown.tools.load(Ordering::Relaxed) {
        take(named(&format!("grown-{n}"), "Grown while running"));
    }
    let groups = [(faults.lying_schema, LYING), (faults.rich_results, RICH)];
    groups
        .into_iter()
        .filter(|(is_on, _)| *is_on)
        .for_each(|(_, tools)| tools.iter().copied().for_each(&mut take));
    for (name, _) in special::POISON.iter().filter(|_| faults.poison) {
        take(Tool { run: poisoned, ..named(name, &special::poisoned(name)) });
    }
}

/// Every definition, as JSON text, in a stable order.
pub(super) fn definitions(server: &Server) -> Vec<String> {
    let mut texts = Vec::new();
    each(server, |tool| texts.push(definition(tool).to_string()));
    texts.push(SAMPLE_DEFINITION.to_owned());
    texts
}

fn definition(tool: Tool<'_>) -> Value {
    let annotations = match tool.effect {
        Effect::Reads => json!({ "readOnlyHint": true, "openWorldHint": false }),
        Effect::Writes => json!({ "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false }),
        Effect::Destroys => json!({ "readOnlyHint": false, "destructiveHint": true }),
    };
    let mut definition = json!({
        "name": tool.name,
        "title": format!("Tool {}", tool.name),
        "description": tool.description,
        "inputSchema": { "type": "object", "properties": properties(tool.arguments) },
        "annotations": annotations,
    });
    if tool.name == "add" {
        definition["inputSchema"]["required"] = json!(["a", "b"]);
    }
    if let Some(schema) = special::input_schema(tool.name) {
        definition["inputSchema"] = schema;
    }
    if let Some(schema) = special::output_schema(tool.name) {
        definition["outputSchema"] = schema;
    }
    definition
}

pub(super) async fn call(request: &Request) -> Reply {
    let (server, name) = (request.server(), request.params.name.as_str());
    let mut run: Option<Run> = (name == "odd").then_some(|_, _| now(Reply::Result(SAMPLE_RESULT.into())));
    each(server, |tool| run = run.or((tool.name == name).then_some(tool.run)));
    let Some(run) = run else {
        return Failure::new(INVALID_PARAMS, format!("Unknown tool: {name}")).into();
    };
    server.n_calls.fetch_add(1, Ordering::Relaxed);
    if server.options.faults.stderr_flood {
        flood_stderr(STDERR_BYTES_PER_CALL);
    }
    if server.options.faults.exit_mid_call {
        die(request);
    }
    if server.options.faults.close_socket_on_call {
        return hang_up(request).await;
    }
    match request.arguments() {
        Ok(arguments) => run(request, &arguments).await,
        Err(_) if name == "params" => run(request, &Arguments::default()).await,
        Err(reply) => reply,
    }
}

fn now<'a>(reply: Reply) -> BoxFuture<'a, Reply> {
    Box::pin(ready(reply))
}

/// What has no work of its own proves that it was the one that was called.
fn own_name<'a>(request: &'a Request, _: &'a Arguments) -> BoxFuture<'a, Reply> {
    now(text(&request.params.name))
}

fn poisoned<'a>(request: &'a Request, _: &'a Arguments) -> BoxFuture<'a, Reply> {
    now(text(&special::poisoned(&request.params.name)))
}

/// A result with one text.
fn text(text: &str) -> Reply {
    let content = json!([{ "type": "text", "text": text }]);
    Reply::Result(json!({ "content": content, "isError": false }).to_string())
}

/// A result that says the tool failed.
pub(super) fn failed(why: &str) -> Reply {
    let content = json!([{ "type": "text", "text": why }]);
    Reply::Result(json!({ "content": content, "isError": true }).to_string())
}

fn sum(arguments: &Arguments) -> Reply {
    let sum = json!({ "sum": arguments.a.saturating_add(arguments.b) });
    let content = json!([{ "type": "text", "text": sum.to_string() }]);
    Reply::Result(json!({ "content": content, "structuredContent": sum, "isError": false }).to_string())
}

/// Sleeps for a time, or until a file is there, so that a test says when the call ends.
async fn sleep(request: &Request, arguments: &Arguments) -> Reply {
    if arguments.until.is_empty() {
        return work(request, arguments.time(), "slept").await;
    }
    while !Path::new(&arguments.until).exists() {
        if let Reply::Silence = work(request, FILE_POLL_INTERVAL, "slept").await {
            return Reply::Silence;
        }
    }
    text("slept")
}

/// Takes this long, unless the client does not wait any more, which the journal then says.
async fn work(request: &Request, time: Duration, answer: &str) -> Reply {
    let slept = request.unless_stopped(tokio::time::sleep(time)).await;
    slept.map_or_else(|silence| silence, |()| text(answer))
}

fn grow<'a>(request: &'a Request, count: &'a AtomicU64, change: Change<'a>) -> BoxFuture<'a, Reply> {
    Box::pin(async move {
        let n = count.fetch_add(1, Ordering::Relaxed) + 1;
        request.server().notify(change).await;
        text(&format!("grown-{n}"))
    })
}

fn environment() -> String {
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let variables: Map<String, Value> =
        std::env::vars_os().map(|(name, value)| (lossy(name), Value::String(lossy(value)))).collect();
    Value::Object(variables).to_string()
}

fn counters(request: &Request) -> String {
    let (server, count) = (request.server(), |counter: &AtomicU64| counter.load(Ordering::Relaxed));
    let counters = json!({
        "session": request.connection.session.number,
        "sessions": count(&server.n_sessions),
        "connections": count(&server.n_connections),
        "calls": count(&server.n_calls),
        "chattered": count(&server.n_chattered),
    });
    counters.to_string()
}

/// Exits; the journal shows how often it was called.
fn die(request: &Request) -> ! {
    request.server().journal(&format!("died in {}", request.params.name));
    exit(7, &format!("it was told to die in {}", request.params.name))
}

/// Closes the connection; the journal shows how often it was called.
async fn hang_up(request: &Request) -> Reply {
    request.server().journal(&format!("hung up in {}", request.params.name));
    request.send(Frame::HangUp).await;
    Reply::Silence
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_long_name_has_a_hundred_characters() {
        assert_eq!(super::LONG_NAME.len(), 100);
    }
}
