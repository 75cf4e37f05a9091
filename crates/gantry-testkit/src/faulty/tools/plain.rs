//! Tools that answer by themselves: plain work, and what proves who did it.

use super::super::catalogue::{LINK_RESULT, LYING_RESULT, NUMBERS_RESULT, poison, rows};
use super::super::link::Request;
use super::super::odd::{ODD_HUGE_RESULT, ODD_RESULT};
use super::super::server::Server;
use super::super::wire::Reply;
use super::{Arguments, failed, text};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often it is looked for a file.
const LOOK: Duration = Duration::from_millis(5);

pub(super) async fn call(request: &Request, name: &str, arguments: &Arguments) -> Option<Reply> {
    let server = request.server();
    Some(match name {
        "echo" => text(&arguments.text),
        "fail" => failed(&arguments.text),
        "add" => sum(arguments),
        "sleep" if !arguments.until.is_empty() => sleep_until(request, Path::new(&arguments.until)).await,
        "sleep" => sleep(request, Duration::from_millis(arguments.ms), "slept").await,
        "journal" => {
            server.journal(&arguments.text);
            text("written")
        }
        "wipe" => {
            server.journal(&format!("wiped {}", arguments.text));
            text("wiped")
        }
        "headers" => text(&request.link.headers.to_string()),
        "pid" => text(&std::process::id().to_string()),
        "env" => text(&environment()),
        "session" => text(&counters(request, server)),
        "odd" => Reply::Result(ODD_RESULT.into()),
        "odd-huge" => Reply::Result(ODD_HUGE_RESULT.into()),
        "lying-output" => Reply::Result(LYING_RESULT.into()),
        "numbers" => Reply::Result(NUMBERS_RESULT.into()),
        "link" => Reply::Result(LINK_RESULT.into()),
        "rows" => Reply::Result(rows(arguments.count)),
        poisoned if poisoned.starts_with("poison") => text(&poison::description(poisoned)),
        _ => return None,
    })
}

fn sum(arguments: &Arguments) -> Reply {
    let sum = json!({ "sum": arguments.a.saturating_add(arguments.b) });
    let content = json!([{ "type": "text", "text": sum.to_string() }]);
    Reply::Result(json!({ "content": content, "structuredContent": sum, "isError": false }).to_string())
}

/// Sleeps, unless nobody waits for it any more, which the journal then says.
pub(super) async fn sleep(request: &Request, time: Duration, answer: &str) -> Reply {
    tokio::select! {
        () = tokio::time::sleep(time) => text(answer),
        why = request.stopped() => {
            request.server().journal(why);
            Reply::Silence
        }
    }
}

/// Sleeps until the file is there, so that a test says when the call ends.
async fn sleep_until(request: &Request, file: &Path) -> Reply {
    while !file.exists() {
        if let Reply::Silence = sleep(request, LOOK, "slept").await {
            return Reply::Silence;
        }
    }
    text("slept")
}

fn environment() -> String {
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let variables: Map<String, Value> =
        std::env::vars_os().map(|(name, value)| (lossy(name), Value::String(lossy(value)))).collect();
    Value::Object(variables).to_string()
}

fn counters(request: &Request, server: &Server) -> String {
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let counters = json!({
        "session": request.link.session.number,
        "sessions": count(&server.n_sessions),
        "connections": count(&server.n_connections),
        "calls": count(&server.n_calls),
        "chattered": count(&server.n_chattered),
    });
    counters.to_string()
}
