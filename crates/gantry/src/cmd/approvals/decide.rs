//! `gantry approvals approve`, `deny` and `cancel`.

use super::decision::{Decision, Given, is_object};
use super::find;
use super::follow::{Followed, Until, follow};
use super::item::Item;
use super::keyboard::Keyboard;
use super::words;
use crate::cli::{Approve, Deny, OneApproval, Scope};
use crate::cmd::{arguments, reply};
use crate::desk::{Answer, Desk, Setup, encoded};
use crate::exit::{Done, Usage};
use crate::output;
use gantry_core::raw;
use http::StatusCode;
use serde_json::Value;

pub(super) async fn approve(setup: Setup, wanted: &Approve) -> anyhow::Result<Done> {
    let modified = wanted.args.as_deref().map(arguments::read).transpose()?;
    if modified.as_ref().is_some_and(|arguments| !is_object(arguments)) {
        return Err(Usage("--args takes an object, such as '{\"path\": \"copy.txt\"}'".into()).into());
    }
    let is_running = setup.server()?.is_some();
    if wanted.no_wait && !is_running {
        let message = "no Gantry runs on this data folder, so the call runs in this process, which has to wait for it; \
                       leave --no-wait out, or start gantry serve first";
        return Err(Usage(message.into()).into());
    }
    let decision = Decision {
        approved: true,
        scope: wanted.holds(),
        modified: modified.map(|arguments| arguments.get().to_owned()),
        reason: wanted.reason.clone(),
    };
    // The whole desk: the call may run here, with the servers of its project.
    let desk = setup.desk().await?;
    let done = approved(&desk, wanted, &decision).await;
    desk.close().await;
    done
}

async fn approved(desk: &Desk, wanted: &Approve, decision: &Decision) -> anyhow::Result<Done> {
    let id = find::approval(desk, &wanted.id).await?;
    let item = match decision.give(desk, &id).await? {
        Given::Stands(item) => item,
        Given::Refused(answer) => return Ok(refused(&answer, wanted.json)),
        Given::Invalid(answer) => return answer.expect_ok().map(|_| Done::Badly),
    };
    let waits = wanted.wait || !desk.is_running();
    if waits && item.state() == "SCHEDULED_FOR_EXECUTION" && !desk.is_running() {
        output::talk("No Gantry runs on this data folder. It runs when one does at that time: gantry serve.");
        return Ok(shown(&item, wanted.json));
    }
    if !waits {
        return Ok(shown(&item, wanted.json));
    }
    let mut keyboard = Keyboard::new()?;
    output::talk(&format!("{}. Ctrl-C leaves it.", in_words(&item)));
    let until = Until { time: None, decided: false };
    let followed = follow(desk, (item.call(), item.id()), until, &mut keyboard).await?;
    ended(desk, &item, followed, wanted.json).await
}

/// Tells how the call ended that was approved.
async fn ended(desk: &Desk, item: &Item, followed: Followed, as_json: bool) -> anyhow::Result<Done> {
    let answer = match followed {
        Followed::Over(answer) => reply::settled(answer),
        Followed::Asked => {
            let again = Item::pending_of(desk, item.call()).await?;
            let id = again.as_ref().map_or("a new request", Item::id);
            output::talk(&format!(
                "Nothing was run: what you approved has changed since it was asked. It is asked again as {id}; see \
                 gantry approvals show {id}"
            ));
            return Ok(Done::Badly);
        }
        Followed::Late | Followed::Interrupted => {
            let still = if desk.is_running() { "It goes on in the running Gantry" } else { "It is cut off" };
            output::talk(&format!("{still}; gantry approvals show {} says how it stands.", item.id()));
            return Ok(Done::Badly);
        }
    };
    if as_json {
        let item = Item::get(desk, item.id()).await?;
        output::data(&output::pretty(&raw::with(&item.text, "reply", answer.text.trim())));
        return Ok(if reply::is_ok(&answer) { Done::Well } else { Done::Badly });
    }
    if reply::is_ok(&answer) {
        let ms = answer.body.get("latencyMs").and_then(Value::as_u64).unwrap_or_default();
        output::talk(&format!("done: {} ended well after {ms} ms", output::clean(item.tool())));
    }
    Ok(reply::show(&answer, false))
}

pub(super) async fn deny(setup: Setup, wanted: &Deny) -> anyhow::Result<Done> {
    let desk = setup.records().await?;
    let done = denied(&desk, wanted).await;
    desk.close().await;
    done
}

async fn denied(desk: &Desk, wanted: &Deny) -> anyhow::Result<Done> {
    let id = find::approval(desk, &wanted.id).await?;
    let reason = wanted.reason.clone();
    let decision = Decision { approved: false, scope: Scope::Once, modified: None, reason };
    Ok(match decision.give(desk, &id).await? {
        Given::Stands(item) => shown(&item, wanted.json),
        Given::Refused(answer) => refused(&answer, wanted.json),
        Given::Invalid(answer) => answer.expect_ok().map(|_| Done::Badly)?,
    })
}

pub(super) async fn cancel(setup: Setup, wanted: &OneApproval) -> anyhow::Result<Done> {
    let desk = setup.records().await?;
    let done = canceled(&desk, wanted).await;
    desk.close().await;
    done
}

async fn canceled(desk: &Desk, wanted: &OneApproval) -> anyhow::Result<Done> {
    let id = find::approval(desk, &wanted.id).await?;
    let answer = desk.post(&format!("/api/v1/approvals/{}/cancel", encoded(&id)), String::new()).await?;
    if matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::CONFLICT | StatusCode::GONE) {
        return Ok(refused(&answer, wanted.json));
    }
    Ok(shown(&Item::of(answer)?, wanted.json))
}

/// A request that somebody just decided about.
fn shown(item: &Item, as_json: bool) -> Done {
    output::data(&if as_json { output::pretty(&item.text) } else { in_words(item) });
    Done::Well
}

fn in_words(item: &Item) -> String {
    let (id, tool, state) = (item.id(), item.tool(), item.state());
    output::clean(&match state {
        "APPROVED_READY" | "EXECUTING" => format!("approved {id}: {tool} runs now"),
        "SCHEDULED_FOR_EXECUTION" => format!(
            "approved {id}: {tool} {} ({} UTC)",
            item.due(),
            output::moment(item.said("/scheduledFor"))
        ),
        "REJECTED_BY_USER" | "CANCELLED_BY_SYSTEM" => {
            format!("{} {id}: {tool} does not run", words::state(state))
        }
        state => format!("{} {id}: {tool}", words::state(state)),
    })
}

/// The decision came to nothing, because it was too late or not theirs.
pub(super) fn refused(answer: &Answer, as_json: bool) -> Done {
    if as_json {
        output::json(&answer.body);
    }
    let message = answer.body.pointer("/error/message").and_then(Value::as_str);
    output::talk(&format!("error: {}", output::clean(message.unwrap_or("nothing was decided"))));
    Done::Badly
}
