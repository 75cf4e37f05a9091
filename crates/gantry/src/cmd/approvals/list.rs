//! `gantry approvals list` and `show`.

use super::find::{self, WAITING, Wanted};
use super::item::Item;
use super::words;
use crate::cli::{ListApprovals, OneApproval};
use crate::config::MAIN_PROJECT;
use crate::desk::{Desk, Setup};
use crate::exit::Done;
use crate::output::{self, Noted};
use gantry_core::approval::Approvers;

pub(super) async fn list(setup: Setup, wanted: &ListApprovals) -> anyhow::Result<Done> {
    let desk = setup.records().await?;
    let done = listed(&desk, wanted).await;
    desk.close().await;
    done
}

async fn listed(desk: &Desk, wanted: &ListApprovals) -> anyhow::Result<Done> {
    let state = wanted.state.as_deref().map(words::typed_state).transpose()?;
    let states = match &state {
        Some(state) => vec![Some(*state)],
        None if wanted.all => vec![None],
        None => WAITING.map(Some).into(),
    };
    let (mut items, mut more) = (Vec::new(), false);
    for state in states {
        let which = Wanted { state, project: wanted.of.project.as_deref(), call: None };
        let (page, next) = find::page(desk, which, wanted.limit, None).await?;
        items.extend(page);
        more |= next.is_some();
    }
    let limit = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    more |= items.len() > limit;
    items.truncate(limit);
    if wanted.json {
        print_json(&items);
    } else if items.is_empty() {
        let all = wanted.all || wanted.state.is_some();
        output::talk(if all { "No requests match." } else { "Nothing waits for a person or for its time." });
    } else {
        print_table(&items);
    }
    if more && !wanted.json {
        output::talk("There are more; use --limit, --project or --state.");
    }
    Ok(Done::Well)
}

fn print_json(items: &[Item]) {
    let list = items.iter().map(|item| item.text.as_str()).collect::<Vec<_>>().join(",");
    output::data(&output::pretty(&format!("[{list}]")));
}

fn print_table(items: &[Item]) {
    let rows: Vec<Noted> = items.iter().map(|item| (row(item), None)).collect();
    let head = ["ID", "STATE", "AGE", "DUE", "PROJECT", "TOOL", "WHO", "WHY"];
    output::sparse_table(&head, rows, &[("STATE", "waiting"), ("DUE", ""), ("PROJECT", MAIN_PROJECT)]);
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

pub(super) async fn show(setup: Setup, wanted: &OneApproval) -> anyhow::Result<Done> {
    let desk = setup.records().await?;
    let done = shown(&desk, wanted).await;
    desk.close().await;
    done
}

async fn shown(desk: &Desk, wanted: &OneApproval) -> anyhow::Result<Done> {
    let item = Item::get(desk, &find::approval(desk, &wanted.id).await?).await?;
    if wanted.json {
        output::data(&output::pretty(&item.text));
        return Ok(Done::Well);
    }
    lines(&item).iter().for_each(|line| output::data(&output::clean(line)));
    print_arguments("arguments", &item.arguments());
    if let Some(modified) = item.modified() {
        print_arguments("approved instead", &modified);
    }
    if item.is_pending() {
        let id = item.id();
        output::talk(&if item.is_mine() {
            format!("Decide with gantry approvals approve {id}, or deny {id} --reason TEXT.")
        } else {
            format!("Your yes does not count; gantry approvals deny {id} --reason TEXT says no.")
        });
    }
    Ok(Done::Well)
}

fn print_arguments(title: &str, arguments: &str) {
    output::data(&format!("  {title}"));
    arguments.lines().for_each(|line| output::data(&format!("    {line}")));
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
        at => format!("{} UTC", output::moment(at)),
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
