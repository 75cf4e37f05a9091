//! Tools that say something to the client, or ask it, before they answer.

use super::super::connection::Request;
use super::super::era::RequestEra;
use super::super::server::{Frame, FrameSender, Server};
use super::super::wire::{
    Failure, INVALID_PARAMS, LOG_LEVEL_KEY, MISSING_CAPABILITY, Reply, note, request as to_client,
};
use super::{Arguments, failed, text, work};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Something only the client can answer.
pub(super) struct Question {
    capability: &'static str,
    method: &'static str,
    params: Value,
}

pub(super) fn elicitation(message: &str) -> Question {
    let schema =
        json!({ "type": "object", "properties": { "answer": { "type": "string" } }, "required": ["answer"] });
    let params = json!({ "message": message, "requestedSchema": schema });
    Question { capability: "elicitation", method: "elicitation/create", params }
}

pub(super) fn sampling(prompt: &str) -> Question {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    Question { capability: "sampling", method: "sampling/createMessage", params }
}

pub(super) fn roots() -> Question {
    Question { capability: "roots", method: "roots/list", params: json!({}) }
}

pub(super) async fn progress(request: &Request, arguments: &Arguments) -> Reply {
    let (token, steps) = (request.params.meta("progressToken"), arguments.steps);
    for step in 1..=steps {
        if !token.is_null() {
            let message = format!("step {step}");
            let params =
                json!({ "progressToken": token, "progress": step, "total": steps, "message": message });
            request.send(Frame::Note(note("notifications/progress", &params))).await;
        }
    }
    work(request, arguments.time(), &format!("{steps} steps")).await
}

/// Says far too much that is right on the wire, before it answers or that long after.
pub(super) async fn chatter(request: &Request, arguments: &Arguments) -> Reply {
    let (server, sender) = (request.connection.server.clone(), request.connection.sender.clone());
    let token = request.params.meta("progressToken");
    let token = if token.is_null() { json!("unknown") } else { token };
    let (count, wait) = (arguments.notes.unwrap_or(u64::MAX), arguments.time());
    let speaking = async move {
        tokio::time::sleep(wait).await;
        speak(&server, &sender, &token, count).await;
    };
    if wait > Duration::ZERO {
        tokio::spawn(speaking);
        return text("chatters");
    }
    request.unless_stopped(speaking).await.map_or_else(|silence| silence, |()| text("chattered"))
}

/// Reports progress and logs, again and again, wanted or not, until the client is gone.
async fn speak(server: &Server, sender: &FrameSender, token: &Value, count: u64) {
    for n in 1..=count {
        let progress = json!({ "progressToken": token, "progress": n });
        let message = json!({ "level": "info", "logger": "faulty", "data": format!("chatter {n}") });
        for (method, params) in [("notifications/progress", progress), ("notifications/message", message)] {
            if sender.send(Frame::Note(note(method, &params))).await.is_err() {
                return;
            }
            server.n_chattered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub(super) async fn log(request: &Request, arguments: &Arguments) -> Reply {
    let level = if arguments.level.is_empty() { "info" } else { &arguments.level };
    let rank = |name: &str| LEVELS.iter().position(|level| *level == name);
    // The older era logs until the client sets a level, the newer one only when a request asks for it.
    let floor = match request.era {
        RequestEra::Legacy => {
            Some(rank(&request.connection.session.state.lock().unwrap().log_level).unwrap_or(0))
        }
        RequestEra::Modern => request.params.meta(LOG_LEVEL_KEY).as_str().and_then(rank),
    };
    let heard = floor.is_some_and(|floor| rank(level) >= Some(floor));
    if heard {
        let params = json!({ "level": level, "logger": "faulty", "data": arguments.text });
        let message = Frame::Note(note("notifications/message", &params));
        if arguments.ms == 0 {
            request.send(message).await;
        } else {
            let (sender, time) = (request.connection.sender.clone(), arguments.time());
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                sender.send(message).await.ok(); // A client that is gone needs no news.
            });
        }
    }
    text(if heard { "logged" } else { "not logged" })
}

/// Asks so many times, works on, and answers the last answer. The journal shows a call that ran twice.
pub(super) async fn ask(request: &Request, arguments: &Arguments, question: Question) -> Reply {
    let rounds = arguments.rounds.unwrap_or(1);
    let answer = match request.era {
        RequestEra::Legacy => ask_legacy(request, &question, rounds).await,
        RequestEra::Modern => ask_modern(request, &question, rounds),
    };
    match answer {
        Ok(answer) => {
            let reply = work(request, arguments.time(), &answer.to_string()).await;
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
        let (id, answered) = request.connection.session.ask();
        request.send(Frame::Note(to_client(&id, question.method, &question.params))).await;
        answer = request.unless_stopped(answered).await?.unwrap_or_default();
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
