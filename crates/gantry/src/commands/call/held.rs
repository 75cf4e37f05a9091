//! A call that is held: ask the person at the terminal, wait for somebody else's decision or for the call's time, or say
//! how to go on later.

use crate::cli::Call;
use crate::client::{ApiClient, ApiResponse};
use crate::commands::approvals::ask::{Asked, Otherwise, ask};
use crate::commands::approvals::decision::Given;
use crate::commands::approvals::follow::{Followed, Until, follow};
use crate::commands::approvals::item::{Item, is_over};
use crate::commands::approvals::keyboard::Keyboard;
use crate::commands::approvals::words;
use crate::commands::reply;
use crate::term;
use http::StatusCode;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// How a held call goes on.
pub(super) enum After {
    /// It is over; this is the reply.
    Over(ApiResponse),
    /// It waits on; this was the answer to it.
    Left(ApiResponse),
}

/// Whether a call is held, or runs without us.
pub(super) fn is_held(answer: &ApiResponse) -> bool {
    answer.body.get("approvalId").is_some_and(Value::is_string) && !is_over(text(answer, "/state"))
}

/// Goes on with a call that is held.
pub(super) async fn go_on(
    client: &ApiClient,
    (call, json): (&Call, bool),
    answer: ApiResponse,
) -> anyhow::Result<After> {
    let pending = text(&answer, "/state") == "PENDING_APPROVAL";
    let patience = call.wait;
    if patience.no_wait || (pending && patience.wait.is_none() && (json || !term::is_interactive())) {
        if !json {
            say_how(client, &answer, pending).await?;
        }
        return Ok(After::Left(answer));
    }
    if pending && patience.wait.is_none() {
        return asked(client, answer).await;
    }
    let limit = patience.wait.flatten().map(Duration::from_secs);
    let time = limit.map(|limit| Instant::now() + limit);
    let mut keyboard = Keyboard::new()?;
    say_waiting(client, &answer, pending).await?;
    let until = Until { time, decided: true };
    let named = (text(&answer, "/id"), text(&answer, "/approvalId"));
    let followed = follow(client, named, until, &mut keyboard).await?;
    match followed {
        Followed::Over(over) => Ok(After::Over(reply::reply_from_record(over))),
        Followed::Late | Followed::Interrupted | Followed::Asked => left(client, answer).await,
    }
}

/// Asks the person until the call is over or left waiting. A call that has changed since they looked is asked about again.
async fn asked(client: &ApiClient, answer: ApiResponse) -> anyhow::Result<After> {
    let mut keyboard = Keyboard::new()?;
    let call = text(&answer, "/id").to_owned();
    let mut id = text(&answer, "/approvalId").to_owned();
    loop {
        let item = Item::get(client, &id).await?;
        if item.is_pending() {
            match ask(client, &item, &mut keyboard, Otherwise::Leave).await? {
                Asked::Said(decision) => match decision.give(client, &id).await? {
                    Given::Stands(item) => say_decided(&item),
                    Given::Refused(refused) => {
                        say_error(&refused);
                        if refused.status == StatusCode::FORBIDDEN {
                            return left(client, answer).await;
                        }
                    }
                    Given::Invalid(invalid) => {
                        say_error(&invalid);
                        continue;
                    }
                },
                Asked::Overtaken(item) => say_decided(&item),
                Asked::Left | Asked::Interrupted => return left(client, answer).await,
            }
        }
        match follow(client, (&call, &id), Until { time: None, decided: false }, &mut keyboard).await? {
            Followed::Over(over) => return Ok(After::Over(reply::reply_from_record(over))),
            Followed::Asked => {}
            Followed::Late | Followed::Interrupted => {
                let still =
                    if client.is_remote() { "It goes on in the running Gantry" } else { "It is cut off" };
                term::eprint(&format!("{still}; gantry approvals show {id} says how it stands."));
                return Ok(After::Left(answer));
            }
        }
        let Some(again) = Item::pending_of(client, &call).await? else { continue };
        term::eprint("What you approved has changed since you looked, so you are asked again.");
        id = again.id().to_owned();
    }
}

async fn left(client: &ApiClient, answer: ApiResponse) -> anyhow::Result<After> {
    let (id, pending) = (text(&answer, "/approvalId"), text(&answer, "/state") == "PENDING_APPROVAL");
    term::eprint(&format!("It waits as {id}."));
    term::eprint(&format!("hint: {}", later(client, id, pending).await?));
    term::eprint(&format!("hint: gantry approvals cancel {id} withdraws it"));
    Ok(After::Left(answer))
}

/// Says that a call waits, and what can be done about it.
async fn say_how(client: &ApiClient, answer: &ApiResponse, pending: bool) -> anyhow::Result<()> {
    reply::print_error(answer);
    let id = text(answer, "/approvalId");
    term::eprint(&format!("hint: {}", later(client, id, pending).await?));
    term::eprint(&if pending {
        "hint: the same call again with --wait waits for the decision".to_owned()
    } else {
        format!("hint: gantry approvals cancel {id} withdraws it")
    });
    Ok(())
}

/// What makes a call that waits go on.
async fn later(client: &ApiClient, id: &str, pending: bool) -> anyhow::Result<String> {
    if pending {
        let item = Item::get(client, id).await?;
        if !item.is_mine() {
            return Ok(term::sanitize(&item.who_may().refusal()));
        }
    }
    Ok(match (pending, client.is_remote()) {
        (true, true) => format!("gantry approvals approve {id} lets it run"),
        (true, false) => {
            format!(
                "gantry approvals approve {id} lets it run; no Gantry runs here, so it runs with that command"
            )
        }
        (false, true) => format!("gantry approvals show {id} says how it stands"),
        (false, false) => "no Gantry runs here; it runs when the next gantry serve does".to_owned(),
    })
}

/// Says for what a call is waited.
async fn say_waiting(client: &ApiClient, answer: &ApiResponse, pending: bool) -> anyhow::Result<()> {
    let id = text(answer, "/approvalId");
    let item = Item::get(client, id).await?;
    let tool = term::sanitize(item.tool());
    term::eprint(&if pending {
        format!("{tool} waits for an approval as {id} ({}). Ctrl-C leaves it waiting.", item.due())
    } else {
        format!("{tool} waits for its time as {id} ({}). Ctrl-C leaves it waiting.", item.due())
    });
    Ok(())
}

fn say_decided(item: &Item) {
    let said = item.decided().unwrap_or_else(|| words::state(item.state()).to_owned());
    let due = match item.due() {
        due if due.is_empty() => due,
        due => format!("; it {due}"),
    };
    term::eprint(&term::sanitize(&format!("{said}{due}")));
}

fn say_error(answer: &ApiResponse) {
    let message = term::sanitize(text(answer, "/error/message"));
    term::eprint(&format!("error: {message}"));
}

fn text<'a>(answer: &'a ApiResponse, pointer: &str) -> &'a str {
    answer.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
