//! Asking the person at the terminal about one request.

use super::decision::{Decision, is_object};
use super::editor;
use super::follow::Pace;
use super::item::Item;
use super::keyboard::{Keyboard, Typed};
use crate::client::ApiClient;
use crate::commands::arguments;
use crate::term;
use gantry_core::approval::Approvers;
use gantry_runtime::ledger::Scope as GrantScope;

/// Lines of arguments that a question shows, and characters of each.
const SHOWN_LINES: usize = 40;
const SHOWN_CHARACTERS: usize = 2000;

/// What came of a question.
pub(in crate::commands) enum Asked {
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
pub(in crate::commands) enum Otherwise {
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

/// What can be answered to a question.
#[derive(Debug, Clone, Copy)]
struct Choices {
    /// A yes for the rest of the session.
    session: bool,
    /// A look at all of the arguments, where they are cut.
    full: bool,
    otherwise: Otherwise,
}

impl Choices {
    fn question(self) -> String {
        let session = if self.session { " for this [s]ession," } else { "" };
        let full = if self.full { " show in [f]ull," } else { "" };
        format!("[a]pprove once,{session} al[w]ays, [e]dit, [d]eny,{full} {}?", self.otherwise.shown())
    }

    fn letters(self) -> String {
        let session = self.session.then_some("s");
        let full = self.full.then_some("f");
        let letters =
            [Some("a"), session, Some("w"), Some("e"), Some("d"), full, Some(self.otherwise.letter())];
        letters.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Shows a request and asks what to do, until there is an answer or none is needed any more.
pub(in crate::commands) async fn ask(
    client: &ApiClient,
    item: &Item,
    keyboard: &mut Keyboard,
    otherwise: Otherwise,
) -> anyhow::Result<Asked> {
    let mut edited = None;
    let mut choices = Choices { session: item.has_session(), full: show(item, None, false), otherwise };
    loop {
        keyboard.forget()?;
        term::prompt(&choices.question());
        let line = match heard(client, item, keyboard).await? {
            Heard::Line(line) => line.to_lowercase(),
            Heard::Nothing(asked) => return Ok(asked),
        };
        let yes = |scope| Decision::yes(scope, edited.clone());
        match line.as_str() {
            "a" | "approve" => return Ok(Asked::Said(yes(GrantScope::Once))),
            "s" | "session" if choices.session => return Ok(Asked::Said(yes(GrantScope::Session))),
            "w" | "always" => return Ok(Asked::Said(yes(GrantScope::Always))),
            "e" | "edit" => {
                edited = changed(item, edited).await;
                choices.full = show(item, edited.as_deref(), false);
            }
            "f" | "full" if choices.full => choices.full = show(item, edited.as_deref(), true),
            "d" | "deny" => {
                term::prompt("Why? The caller reads it; Enter for no reason:");
                return Ok(match heard(client, item, keyboard).await? {
                    Heard::Line(reason) => Asked::Said(Decision::no(reason)),
                    Heard::Nothing(asked) => asked,
                });
            }
            other if other == otherwise.letter() => return Ok(Asked::Left),
            _ => term::eprint(&format!("Type one of {} and Enter.", choices.letters())),
        }
    }
}

enum Heard {
    Line(String),
    /// No answer, and why not.
    Nothing(Asked),
}

/// What the person types, unless something comes first.
async fn heard(client: &ApiClient, item: &Item, keyboard: &mut Keyboard) -> anyhow::Result<Heard> {
    let heard = tokio::select! {
        biased;
        item = overtaken(client, item.id()) => Heard::Nothing(Asked::Overtaken(item?)),
        typed = keyboard.typed() => match typed? {
            Typed::Line(line) => Heard::Line(line),
            Typed::End => Heard::Nothing(Asked::Left),
            Typed::Interrupt => Heard::Nothing(Asked::Interrupted),
        },
    };
    if matches!(heard, Heard::Nothing(_)) {
        term::eprint("");
    }
    Ok(heard)
}

/// Returns when a request waits for no person any more.
async fn overtaken(client: &ApiClient, id: &str) -> anyhow::Result<Item> {
    let mut pace = Pace::default();
    loop {
        pace.keep().await;
        let item = Item::poll(client, id).await?;
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
            term::eprint(&format!("error: {}", term::sanitize_lines(&format!("{error:#}"))));
            return before;
        }
    };
    match arguments::parse(&text) {
        Ok(arguments) if !is_object(&arguments) => {
            term::eprint("error: the arguments of a call are an object, {…}; nothing was changed");
            before
        }
        Ok(arguments) => {
            let arguments = term::pretty_json(arguments.get());
            (arguments != original).then_some(arguments)
        }
        Err(error) => {
            term::eprint(&format!(
                "error: {}; nothing was changed",
                term::sanitize_lines(&error.to_string())
            ));
            before
        }
    }
}

/// Puts a request before the person, with the whole arguments or the beginning of long ones. Returns whether there is more
/// of them.
fn show(item: &Item, edited: Option<&str>, whole: bool) -> bool {
    term::eprint("");
    term::eprint(&term::bold(&format!("{} needs an approval", term::sanitize(item.tool()))));
    for (what, found) in about(item) {
        if !found.is_empty() {
            term::eprint(&format!("  {what:10} {}", term::sanitize(&found)));
        }
    }
    let arguments = item.arguments();
    term::eprint(&match edited {
        None => format!("  arguments  {} bytes", item.number("/argumentsBytes")),
        Some(_) => "  arguments  edited".to_owned(),
    });
    let shown = edited.unwrap_or(&arguments);
    let is_cut = !whole && is_long(shown);
    if is_cut {
        let beginning = term::truncate_lines(shown, SHOWN_LINES, SHOWN_CHARACTERS);
        beginning.iter().for_each(|line| term::eprint(&format!("    {line}")));
    } else {
        shown.lines().for_each(|line| term::eprint(&format!("    {line}")));
    }
    if edited.is_some() {
        term::eprint("  These are your arguments; the call runs with them if you approve.");
    } else if is_cut {
        term::eprint(&format!(
            "  The arguments are cut; gantry approvals show {} shows all of it.",
            item.id()
        ));
    }
    is_cut
}

/// Whether these arguments are too long to be put before somebody unasked.
fn is_long(arguments: &str) -> bool {
    arguments.lines().count() > SHOWN_LINES
        || arguments.lines().any(|line| line.chars().count() > SHOWN_CHARACTERS)
}

fn about(item: &Item) -> [(&'static str, String); 6] {
    let agents = item.texts("/agentPath").join(" > ");
    let caller = format!("{} by {}", item.said("/caller/principal"), item.said("/caller/door"));
    let takes = match item.who_may() {
        Approvers::Any => ("takes", String::new()),
        who @ Approvers::OneOf(_) => ("takes", format!("the yes of {who}")),
        who @ Approvers::None(_) => ("but", who.refusal()),
    };
    let id = format!("{}, {}", item.id(), item.due());
    [
        ("why", item.said("/reason").to_owned()),
        ("agent", agents),
        ("caller", caller),
        ("effect", item.said("/effect").to_owned()),
        takes,
        ("request", id),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_what_there_is() {
        let choices = |session, full| Choices { session, full, otherwise: Otherwise::Skip };
        assert_eq!(
            choices(true, false).question(),
            "[a]pprove once, for this [s]ession, al[w]ays, [e]dit, [d]eny, s[k]ip?"
        );
        assert_eq!(choices(true, false).letters(), "a, s, w, e, d, k");
        assert_eq!(
            choices(false, true).question(),
            "[a]pprove once, al[w]ays, [e]dit, [d]eny, show in [f]ull, s[k]ip?"
        );
        assert_eq!(choices(false, true).letters(), "a, w, e, d, f, k");
    }

    #[test]
    fn arguments_are_long_by_their_lines_or_by_one_of_them() {
        assert!(!is_long(&"x\n".repeat(SHOWN_LINES)) && is_long(&"x\n".repeat(SHOWN_LINES + 1)));
        assert!(!is_long(&"x".repeat(SHOWN_CHARACTERS)) && is_long(&"x".repeat(SHOWN_CHARACTERS + 1)));
    }
}
