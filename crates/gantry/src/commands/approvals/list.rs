//! `gantry approvals list` and `show`.

use super::find::{self, WAITING, Wanted};
use super::item::Item;
use super::words;
use crate::cli::{ListApprovals, OneApproval};
use crate::client::{ApiClient, CommandContext, Scope};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term::{self, RowWithNote};
use gantry_core::approval::Approvers;

pub(super) async fn list(context: CommandContext, wanted: &ListApprovals) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = listed(&client, json, wanted).await;
    client.close().await;
    done
}

async fn listed(client: &ApiClient, json: bool, wanted: &ListApprovals) -> anyhow::Result<Outcome> {
    let state = wanted.state.as_deref().map(words::typed_state).transpose()?;
    let states = match &state {
        Some(state) => vec![Some(*state)],
        None if wanted.all => vec![None],
        None => WAITING.map(Some).into(),
    };
    let (mut items, mut more) = (Vec::new(), false);
    for state in states {
        let which = Wanted { state, project: wanted.project.name(), call: None };
        let (page, next) = find::page(client, which, wanted.limit, None).await?;
        items.extend(page);
        more |= next.is_some();
    }
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    more |= items.len() > limit;
    items.truncate(limit);
    if json {
        print_json(&items);
    } else if items.is_empty() {
        let all = wanted.all || wanted.state.is_some();
        term::eprint(if all { "No requests match." } else { "Nothing waits for a person or for its time." });
    } else {
        print_table(&items);
    }
    if more && !json {
        term::eprint("There are more; use --limit, --project or --state.");
    }
    Ok(Outcome::Success)
}

fn print_json(items: &[Item]) {
    let list = items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>().join(",");
    term::print(&term::pretty_json(&format!("[{list}]")));
}

fn print_table(items: &[Item]) {
    let rows: Vec<RowWithNote> = items.iter().map(|item| (row(item), None)).collect();
    let head = ["ID", "STATE", "AGE", "DUE", "PROJECT", "TOOL", "WHO", "WHY"];
    term::table_hiding_constant_columns(
        &head,
        rows,
        &[("STATE", "waiting"), ("DUE", ""), ("PROJECT", MAIN_PROJECT)],
    );
}

fn row(item: &Item) -> Vec<String> {
    let said = |pointer: &str| item.said(pointer).to_owned();
    vec![
        said("/id"),
        words::state(item.state()).to_owned(),
        words::ago(item.said("/createdAt")),
        item.due(),
        said("/caller/project"),
        said("/tool"),
        item.who(),
        said("/reason"),
    ]
}

pub(super) async fn show(context: CommandContext, wanted: &OneApproval) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::LedgerOnly).await?;
    let done = shown(&client, json, wanted).await;
    client.close().await;
    done
}

async fn shown(client: &ApiClient, json: bool, wanted: &OneApproval) -> anyhow::Result<Outcome> {
    let item = Item::get(client, &find::approval(client, &wanted.id).await?).await?;
    if json {
        term::print(&term::pretty_json(&item.text));
        return Ok(Outcome::Success);
    }
    lines(&item).iter().for_each(|line| term::print(&term::sanitize(line)));
    print_arguments("arguments", &item.arguments());
    if let Some(modified) = item.modified() {
        print_arguments("approved instead", &modified);
    }
    if item.is_pending() {
        let id = item.id();
        term::eprint(&if item.is_mine() {
            format!("Decide with gantry approvals approve {id}, or deny {id} --reason TEXT.")
        } else {
            format!("Your yes does not count; gantry approvals deny {id} --reason TEXT says no.")
        });
    }
    Ok(Outcome::Success)
}

fn print_arguments(title: &str, arguments: &str) {
    term::print(&format!("  {title}"));
    arguments.lines().for_each(|line| term::print(&format!("    {line}")));
}

/// What there is to know about a request besides the arguments, in lines.
fn lines(item: &Item) -> Vec<String> {
    let said = |pointer: &str| item.said(pointer).to_owned();
    let mut lines = vec![format!("{} is {}", item.id(), words::state(item.state()))];
    let mut say = |what: &str, found: String| {
        if !found.is_empty() {
            lines.push(format!("  {what:12} {found}"));
        }
    };
    let moment = |pointer: &str| match item.said(pointer) {
        "" => String::new(),
        at => format!("{} UTC", term::timestamp(at)),
    };
    say("tool", joined(" of ", [said("/tool"), said("/provider")]));
    say("effect", said("/effect"));
    say("why", said("/reason"));
    say("agent", item.texts("/agentPath").join(" > "));
    say("caller", joined(" by ", [said("/caller/principal"), said("/caller/door")]));
    say("project", said("/caller/project"));
    say("session", said("/caller/session"));
    say("call", said("/callId"));
    say("step", if item.said("/stepId") == item.call() { String::new() } else { said("/stepId") });
    say("rules", item.texts("/rules").join(", "));
    // What only waits for its time takes nobody's yes.
    if item.is_asked() {
        let who = item.who_may();
        say("may decide", if let Approvers::None(_) = who { who.refusal() } else { who.to_string() });
    }
    say("asked", moment("/createdAt"));
    let due = |pointer: &str| match words::ahead(item.said(pointer)) {
        ahead if ahead.is_empty() || item.is_over() => moment(pointer),
        ahead => format!("{} ({ahead})", moment(pointer)),
    };
    say("expires", due("/expiresAt"));
    say("runs", due("/scheduledFor"));
    say(
        "waits",
        match item.number("/delayMs") {
            ms if ms > 0 && item.is_asked() => format!("{ms} ms after the yes"),
            _ => String::new(),
        },
    );
    say(
        "cost",
        match item.number("/estimatedCost") {
            0 => String::new(),
            cost => format!("{cost}, estimated"),
        },
    );
    say(
        "tried",
        match item.number("/attempts") {
            0 | 1 => String::new(),
            attempts => format!("{attempts} times"),
        },
    );
    say("decided", joined(", ", [item.decided().unwrap_or_default(), moment("/decidedAt")]));
    say("ended", said("/message"));
    say("replaces", said("/supersedes"));
    lines
}

/// Those of two texts that say something.
fn joined(between: &str, texts: [String; 2]) -> String {
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(between)
}
