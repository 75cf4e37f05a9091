//! `gantry approvals approve`, `deny` and `cancel`.

use super::decision::{Decision, Given, is_object};
use super::find;
use super::follow::{Followed, Until, follow};
use super::item::Item;
use super::keyboard::Keyboard;
use super::words;
use crate::cli::{Approve, Deny, OneApproval};
use crate::client::{ApiClient, ApiResponse, CommandContext, Scope, encoded};
use crate::commands::{arguments, reply};
use crate::exit::{Outcome, UsageError};
use crate::term;
use gantry_core::raw;
use gantry_runtime::ledger::Scope as GrantScope;
use http::StatusCode;
use serde_json::Value;

pub(super) async fn approve(context: CommandContext, wanted: &Approve) -> anyhow::Result<Outcome> {
    let modified = wanted.args.as_deref().map(arguments::read).transpose()?;
    if modified.as_ref().is_some_and(|arguments| !is_object(arguments)) {
        return Err(UsageError("--args takes an object, such as '{\"path\": \"copy.txt\"}'".into()).into());
    }
    let is_running = context.running_server()?.is_some();
    if wanted.no_wait && !is_running {
        let message = "no Gantry runs on this data folder, so the call runs in this process, which has to wait for it; \
                       leave --no-wait out, or start gantry serve first";
        return Err(UsageError(message.into()).into());
    }
    let decision = Decision {
        approved: true,
        scope: wanted.scope(),
        modified: modified.map(|arguments| arguments.get().to_owned()),
        reason: wanted.reason.clone(),
    };
    // The whole client: the call may run here, with the servers of its project.
    let json = context.json;
    let client = context.connect(Scope::All).await?;
    let done = approved(&client, json, wanted, &decision).await;
    client.close().await;
    done
}

async fn approved(
    client: &ApiClient,
    json: bool,
    wanted: &Approve,
    decision: &Decision,
) -> anyhow::Result<Outcome> {
    let id = find::approval(client, &wanted.id).await?;
    let item = match decision.give(client, &id).await? {
        Given::Stands(item) => item,
        Given::Refused(answer) => return Ok(refused(&answer, json)),
        Given::Invalid(answer) => return answer.into_result::<serde_json::Value>().map(|_| Outcome::Failure),
    };
    let waits = wanted.wait || !client.is_remote();
    if waits && item.state() == "SCHEDULED_FOR_EXECUTION" && !client.is_remote() {
        term::eprint("No Gantry runs on this data folder. It runs when one does at that time: gantry serve.");
        return Ok(shown(&item, json));
    }
    if !waits {
        return Ok(shown(&item, json));
    }
    let mut keyboard = Keyboard::new()?;
    term::eprint(&format!("{}. Ctrl-C leaves it.", in_words(&item)));
    let until = Until { time: None, decided: false };
    let followed = follow(client, (item.call(), item.id()), until, &mut keyboard).await?;
    ended(client, &item, followed, json).await
}

/// Tells how the call ended that was approved.
async fn ended(
    client: &ApiClient,
    item: &Item,
    followed: Followed,
    as_json: bool,
) -> anyhow::Result<Outcome> {
    let answer = match followed {
        Followed::Over(answer) => reply::reply_from_record(answer),
        Followed::Asked => {
            let again = Item::pending_of(client, item.call()).await?;
            let id = again.as_ref().map_or("a new request", Item::id);
            term::eprint(&format!(
                "Nothing was run: what you approved has changed since it was asked. It is asked again as {id}; see \
                 gantry approvals show {id}"
            ));
            return Ok(Outcome::Failure);
        }
        Followed::Late | Followed::Interrupted => {
            let still = if client.is_remote() { "It goes on in the running Gantry" } else { "It is cut off" };
            term::eprint(&format!("{still}; gantry approvals show {} says how it stands.", item.id()));
            return Ok(Outcome::Failure);
        }
    };
    if as_json {
        let item = Item::get(client, item.id()).await?;
        term::print(&term::pretty_json(&raw::with(&item.text, "reply", answer.text.trim())));
        return Ok(if reply::is_ok(&answer) { Outcome::Success } else { Outcome::Failure });
    }
    if reply::is_ok(&answer) {
        let ms = answer.body.get("latencyMs").and_then(Value::as_u64).unwrap_or_default();
        term::eprint(&format!("done: {} ended well after {ms} ms", term::sanitize(item.tool())));
    }
    Ok(reply::show(&answer, false))
}

pub(super) async fn deny(context: CommandContext, wanted: &Deny) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = denied(&client, json, wanted).await;
    client.close().await;
    done
}

async fn denied(client: &ApiClient, json: bool, wanted: &Deny) -> anyhow::Result<Outcome> {
    let id = find::approval(client, &wanted.id).await?;
    let reason = wanted.reason.clone();
    let decision = Decision { approved: false, scope: GrantScope::Once, modified: None, reason };
    Ok(match decision.give(client, &id).await? {
        Given::Stands(item) => shown(&item, json),
        Given::Refused(answer) => refused(&answer, json),
        Given::Invalid(answer) => answer.into_result::<serde_json::Value>().map(|_| Outcome::Failure)?,
    })
}

pub(super) async fn cancel(context: CommandContext, wanted: &OneApproval) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = canceled(&client, json, wanted).await;
    client.close().await;
    done
}

async fn canceled(client: &ApiClient, json: bool, wanted: &OneApproval) -> anyhow::Result<Outcome> {
    let id = find::approval(client, &wanted.id).await?;
    let answer = client
        .send(http::Method::POST, &format!("/api/v1/approvals/{}/cancel", encoded(&id)), String::new())
        .await?;
    if matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::CONFLICT | StatusCode::GONE) {
        return Ok(refused(&answer, json));
    }
    Ok(shown(&Item::of(answer)?, json))
}

/// A request that somebody just decided about.
fn shown(item: &Item, as_json: bool) -> Outcome {
    term::print(&if as_json { term::pretty_json(&item.text) } else { in_words(item) });
    Outcome::Success
}

fn in_words(item: &Item) -> String {
    let (id, tool, state) = (item.id(), item.tool(), item.state());
    term::sanitize(&match state {
        "APPROVED_READY" | "EXECUTING" => format!("approved {id}: {tool} runs now"),
        "SCHEDULED_FOR_EXECUTION" => format!(
            "approved {id}: {tool} {} ({} UTC)",
            item.due(),
            term::timestamp(item.said("/scheduledFor"))
        ),
        "REJECTED_BY_USER" | "CANCELLED_BY_SYSTEM" => {
            format!("{} {id}: {tool} does not run", words::state(state))
        }
        state => format!("{} {id}: {tool}", words::state(state)),
    })
}

/// The decision came to nothing, because it was too late or not theirs.
pub(super) fn refused(answer: &ApiResponse, as_json: bool) -> Outcome {
    if as_json {
        term::print_json(&answer.body);
    }
    let message = answer.body.pointer("/error/message").and_then(Value::as_str);
    term::eprint(&format!("error: {}", term::sanitize(message.unwrap_or("nothing was decided"))));
    Outcome::Failure
}
