//! Asking the person at the terminal about one request.

use super::decision::Decision;
use super::editor;
use super::follow::Pace;
use super::item::Item;
use super::keyboard::{Keyboard, Typed};
use crate::cli::Scope;
use crate::cmd::arguments;
use crate::desk::Desk;
use crate::output;

/// Lines of arguments that a question shows, and characters of each.
const SHOWN_LINES: usize = 40;
const SHOWN_CHARACTERS: usize = 2000;

/// What came of a question.
pub(in crate::cmd) enum Asked {
    /// The person decided.
    Said(Decision),
    /// They did not want to.
    Left,
    /// It waits for nobody any more: somebody else decided, or it is too late.
    Overtaken(Item),
    /// They want to stop.
    Interrupted,
}

/// The last of the choices, which decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cmd) enum Otherwise {
    /// Of one call: it waits on.
    Leave,
    /// Of one of many: the next, please.
    Skip,
}

impl Otherwise {
    fn shown(self) -> &'static str {
        match self {
            Self::Leave => "[l]eave it waiting",
            Self::Skip => "s[k]ip",
        }
    }

    fn letter(self) -> &'static str {
        match self {
            Self::Leave => "l",
            Self::Skip => "k",
        }
    }
}

/// Shows a request and asks what to do, until there is an answer or none is needed any more.
pub(in crate::cmd) async fn ask(
    desk: &Desk,
    item: &Item,
    keyboard: &mut Keyboard,
    otherwise: Otherwise,
) -> anyhow::Result<Asked> {
    let mut edited = None;
    show(item, None);
    loop {
        keyboard.forget()?;
        output::ask(&format!(
            "[a]pprove once, for this [s]ession, al[w]ays, [e]dit, [d]eny, {}?",
            otherwise.shown()
        ));
        let line = match heard(desk, item, keyboard).await? {
            Heard::Line(line) => line.to_lowercase(),
            Heard::Nothing(asked) => return Ok(asked),
        };
        let yes = |scope| Decision::yes(scope, edited.clone());
        match line.as_str() {
            "a" | "approve" => return Ok(Asked::Said(yes(Scope::Once))),
            "s" | "session" => return Ok(Asked::Said(yes(Scope::Session))),
            "w" | "always" => return Ok(Asked::Said(yes(Scope::Always))),
            "e" | "edit" => {
                edited = changed(item, edited).await;
                show(item, edited.as_deref());
            }
            "d" | "deny" => {
                output::ask("Why? The caller reads it; Enter for no reason:");
                return Ok(match heard(desk, item, keyboard).await? {
                    Heard::Line(reason) => Asked::Said(Decision::no(reason)),
                    Heard::Nothing(asked) => asked,
                });
            }
            other if other == otherwise.letter() => return Ok(Asked::Left),
            _ => output::talk(&format!("Type one of a, s, w, e, d, {} and Enter.", otherwise.letter())),
        }
    }
}

enum Heard {
    Line(String),
    /// No answer, and why not.
    Nothing(Asked),
}

/// What the person types, unless something comes first.
async fn heard(desk: &Desk, item: &Item, keyboard: &mut Keyboard) -> anyhow::Result<Heard> {
    let heard = tokio::select! {
        biased;
        item = overtaken(desk, item.id()) => Heard::Nothing(Asked::Overtaken(item?)),
        typed = keyboard.typed() => match typed? {
            Typed::Line(line) => Heard::Line(line),
            Typed::End => Heard::Nothing(Asked::Left),
            Typed::Interrupt => Heard::Nothing(Asked::Interrupted),
        },
    };
    if matches!(heard, Heard::Nothing(_)) {
        output::talk("");
    }
    Ok(heard)
}

/// Returns when a request waits for no person any more.
async fn overtaken(desk: &Desk, id: &str) -> anyhow::Result<Item> {
    let mut pace = Pace::default();
    loop {
        pace.keep().await;
        let item = Item::poll(desk, id).await?;
        if !item.is_pending() {
            return Ok(item);
        }
    }
}

/// The arguments as the person wants them; those of before if they cannot be used.
async fn changed(item: &Item, before: Option<String>) -> Option<String> {
    let original = item.arguments();
    let draft = before.clone().unwrap_or_else(|| original.clone());
    let text = match editor::edit(draft).await {
        Ok(text) => text,
        Err(error) => {
            output::talk(&format!("error: {}", output::clean_lines(&format!("{error:#}"))));
            return before;
        }
    };
    match arguments::parse(&text) {
        Ok(arguments) => {
            let arguments = output::pretty(arguments.get());
            (arguments != original).then_some(arguments)
        }
        Err(error) => {
            output::talk(&format!("error: {}; nothing was changed", output::clean_lines(&error.to_string())));
            before
        }
    }
}

/// Puts a request before the person.
fn show(item: &Item, edited: Option<&str>) {
    output::talk("");
    output::talk(&output::loud(&format!("{} needs an approval", output::clean(item.tool()))));
    for (what, found) in about(item) {
        if !found.is_empty() {
            output::talk(&format!("  {what:10} {}", output::clean(&found)));
        }
    }
    let arguments = item.arguments();
    output::talk(&match edited {
        None => format!("  arguments  {} bytes", item.number("/argumentsBytes")),
        Some(_) => "  arguments  edited".to_owned(),
    });
    for line in output::within(edited.unwrap_or(&arguments), SHOWN_LINES, SHOWN_CHARACTERS) {
        output::talk(&format!("    {line}"));
    }
    if edited.is_some() {
        output::talk("  These are your arguments; the call runs with them if you approve.");
    }
}

fn about(item: &Item) -> [(&'static str, String); 6] {
    let agents = item.texts("/agentPath").join(" > ");
    let caller = format!("{} by {}", item.said("/caller/principal"), item.said("/caller/door"));
    let approvers = item.approvers();
    let id = format!("{}, {}", item.id(), item.due());
    [
        ("why", item.said("/reason").to_owned()),
        ("agent", agents),
        ("caller", caller),
        ("effect", item.said("/effect").to_owned()),
        ("takes", if approvers.is_empty() { approvers } else { format!("the yes of {approvers}") }),
        ("request", id),
    ]
}
