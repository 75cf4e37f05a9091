//! Tools that say something to the client, or ask it, before they answer.

use super::super::gate::Speaks;
use super::super::link::Request;
use super::super::server::{Change, Frame, Outlet, Server};
use super::super::wire::{
    Failure, INVALID_PARAMS, LOG_LEVEL_KEY, MISSING_CAPABILITY, Reply, note, request as to_client,
};
use super::plain::sleep;
use super::{Arguments, failed, text};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Something only the client can answer.
struct Question {
    capability: &'static str,
    method: &'static str,
    params: Value,
}

pub(super) async fn call(request: &Request, name: &str, arguments: &Arguments) -> Option<Reply> {
    let server = request.server();
    Some(match name {
        "progress" => progress(request, arguments.steps, Duration::from_millis(arguments.ms)).await,
        "log" => log(request, arguments).await,
        "chatter" => chatter(request, arguments).await,
        "ask" => ask(request, &elicitation(&arguments.text), arguments).await,
        "sample" => ask(request, &sampling(&arguments.text), arguments).await,
        "roots" => {
            let roots = Question { capability: "roots", method: "roots/list", params: json!({}) };
            ask(request, &roots, arguments).await
        }
        "grow" => {
            let n = server.grown.tools.fetch_add(1, Ordering::Relaxed) + 1;
            server.tell(Change::Tools).await;
            text(&format!("grown-{n}"))
        }
        "grow-prompt" => {
            let n = server.grown.prompts.fetch_add(1, Ordering::Relaxed) + 1;
            server.tell(Change::Prompts).await;
            text(&format!("grown-{n}"))
        }
        "grow-resource" => {
            let n = server.grown.resources.fetch_add(1, Ordering::Relaxed) + 1;
            server.tell(Change::Resources).await;
            text(&format!("grown-{n}"))
        }
        "rug-pull" => {
            let version = server.definition.fetch_add(1, Ordering::Relaxed) + 1;
            server.tell(Change::Tools).await;
            text(&format!("Definition {version}"))
        }
        "touch" => {
            server.tell(Change::Resource(&arguments.uri)).await;
            text("touched")
        }
        _ => return None,
    })
}

fn elicitation(message: &str) -> Question {
    let schema =
        json!({ "type": "object", "properties": { "answer": { "type": "string" } }, "required": ["answer"] });
    let params = json!({ "message": message, "requestedSchema": schema });
    Question { capability: "elicitation", method: "elicitation/create", params }
}

fn sampling(prompt: &str) -> Question {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    Question { capability: "sampling", method: "sampling/createMessage", params }
}

async fn progress(request: &Request, steps: u64, then: Duration) -> Reply {
    let token = request.params.meta("progressToken");
    for step in 1..=steps {
        if !token.is_null() {
            let message = format!("step {step}");
            let params =
                json!({ "progressToken": token, "progress": step, "total": steps, "message": message });
            request.send(Frame::Note(note("notifications/progress", &params))).await;
        }
    }
    sleep(request, then, &format!("{steps} steps")).await
}

/// Says what is right on the wire and far too much, before it answers or that long after.
async fn chatter(request: &Request, arguments: &Arguments) -> Reply {
    let (server, outlet) = (request.link.server.clone(), request.link.outlet.clone());
    let token = request.params.meta("progressToken");
    let token = if token.is_null() { json!("nobody's") } else { token };
    let (count, wait) = (arguments.notes.unwrap_or(u64::MAX), Duration::from_millis(arguments.ms));
    let speaking = async move {
        tokio::time::sleep(wait).await;
        speak(&server, &outlet, &token, count).await;
    };
    if wait > Duration::ZERO {
        tokio::spawn(speaking);
        return text("chatters");
    }
    tokio::select! {
        () = speaking => text("chattered"),
        why = request.stopped() => {
            request.server().journal(why);
            Reply::Silence
        }
    }
}

/// Reports progress and logs, again and again, whether anybody wants it or not, until nobody is there any more.
async fn speak(server: &Server, outlet: &Outlet, token: &Value, count: u64) {
    for n in 1..=count {
        let progress = json!({ "progressToken": token, "progress": n });
        let message = json!({ "level": "info", "logger": "faulty", "data": format!("chatter {n}") });
        for (method, params) in [("notifications/progress", progress), ("notifications/message", message)] {
            if outlet.send(Frame::Note(note(method, &params))).await.is_err() {
                return;
            }
            server.n_chattered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn log(request: &Request, arguments: &Arguments) -> Reply {
    let level = if arguments.level.is_empty() { "info" } else { &arguments.level };
    let rank = |name: &str| LEVELS.iter().position(|level| *level == name);
    // The older era logs until it is told to be quieter, the newer one only when it is asked to.
    let floor = match request.speaks {
        Speaks::Legacy => Some(rank(&request.link.session.state.lock().unwrap().log_level).unwrap_or(0)),
        Speaks::Modern => request.params.meta(LOG_LEVEL_KEY).as_str().and_then(rank),
    };
    let heard = floor.is_some_and(|floor| rank(level) >= Some(floor));
    if heard {
        let params = json!({ "level": level, "logger": "faulty", "data": arguments.text });
        let message = Frame::Note(note("notifications/message", &params));
        if arguments.ms == 0 {
            request.send(message).await;
        } else {
            let (outlet, time) = (request.link.outlet.clone(), Duration::from_millis(arguments.ms));
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                outlet.send(message).await.ok(); // Who is gone needs no news.
            });
        }
    }
    text(if heard { "logged" } else { "not logged" })
}

/// Asks so many times, works on, and answers the last answer. The journal shows a call that ran twice.
async fn ask(request: &Request, question: &Question, arguments: &Arguments) -> Reply {
    let rounds = arguments.rounds.unwrap_or(1);
    let answer = match request.speaks {
        Speaks::Legacy => ask_legacy(request, question, rounds).await,
        Speaks::Modern => ask_modern(request, question, rounds),
    };
    match answer {
        Ok(answer) => {
            let reply = sleep(request, Duration::from_millis(arguments.ms), &answer.to_string()).await;
            if !matches!(reply, Reply::Silence) {
                request.server().journal(&format!("{} ended", request.params.name));
            }
            reply
        }
        Err(reply) => reply,
    }
}

async fn ask_legacy(request: &Request, question: &Question, rounds: u64) -> Result<Value, Reply> {
    if !request.client_has(question.capability) {
        return Err(failed(&format!("the client has no {}", question.capability)));
    }
    request.server().journal(&format!("{} begun", request.params.name));
    let mut answer = Value::Null;
    for _ in 0..rounds {
        let (id, answered) = request.link.session.ask();
        request.send(Frame::Note(to_client(&id, question.method, &question.params))).await;
        answer = tokio::select! {
            answer = answered => answer.unwrap_or_default(),
            why = request.stopped() => {
                request.server().journal(why);
                return Err(Reply::Silence);
            }
        };
    }
    Ok(answer)
}

/// The round that was answered is in the state, since a modern server remembers nothing.
fn ask_modern(request: &Request, question: &Question, rounds: u64) -> Result<Value, Reply> {
    if !request.client_has(question.capability) {
        let required = json!({ "requiredCapabilities": { question.capability: {} } });
        let failure = Failure::new(MISSING_CAPABILITY, format!("{} is needed", question.capability));
        return Err(failure.with(required).into());
    }
    let round = match &request.params.request_state {
        None => {
            request.server().journal(&format!("{} begun", request.params.name));
            0
        }
        Some(state) => state
            .strip_prefix("faulty state ")
            .and_then(|round| round.parse().ok())
            .ok_or_else(|| Failure::new(INVALID_PARAMS, "this requestState is none of ours"))?,
    };
    let mut answer = Value::Null;
    if round > 0 {
        let key = format!("answer-{round}");
        let given = request.params.input_responses.get(&key).cloned();
        answer = given.ok_or_else(|| Failure::new(INVALID_PARAMS, format!("inputResponses lacks {key}")))?;
    }
    if round >= rounds {
        return Ok(answer);
    }
    let next = round + 1;
    Err(Reply::Input(json!({
        "resultType": "input_required",
        "inputRequests": { format!("answer-{next}"): { "method": question.method, "params": question.params } },
        "requestState": format!("faulty state {next}"),
    })))
}
