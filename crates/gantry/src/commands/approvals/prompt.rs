//! The prompt: shows one request on the terminal and asks for a decision.

use super::editor;
use super::format;
use super::terminal::{Input, Typed};
use super::wait::{LONG_POLL_SECONDS, POLL_PAUSE};
use crate::client::ApiClient;
use crate::commands::arguments;
use crate::term;
use gantry_core::State;
use gantry_core::approval::Approvers;
use gantry_server::model::{Approval, Decision, Scope};
use serde_json::value::RawValue;

/// How much of long arguments a prompt shows: lines, and characters of each line.
const SHOWN_LINES: usize = 40;
const SHOWN_CHARACTERS: usize = 2000;

/// Why a prompt ended.
pub(in crate::commands) enum PromptResult {
    /// The user decided.
    Decided(Decision),
    /// The user skipped the request.
    Skipped,
    /// The request was decided elsewhere or has expired.
    Over(Box<Approval>),
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// A choice of the prompt: the letter to type, and its label.
type Choice = (&'static str, &'static str);

/// Skips the only request: the call goes on waiting.
pub(in crate::commands) const LEAVE: Choice = ("l", "[l]eave it waiting");

/// Skips one of many requests.
pub(super) const SKIP: Choice = ("k", "s[k]ip");

/// The choices for a request, without the letters that do not apply to it.
fn choices(without: &[Option<&str>], skip: Choice) -> Vec<Choice> {
    let all = [
        ("a", "[a]pprove once"),
        ("s", "for this [s]ession"),
        ("w", "al[w]ays"),
        ("e", "[e]dit"),
        ("d", "[d]eny"),
        ("f", "show in [f]ull"),
        skip,
    ];
    all.into_iter().filter(|(letter, _)| !without.contains(&Some(letter))).collect()
}

/// Shows a request and asks until the user has decided or the request is over.
pub(in crate::commands) async fn prompt(
    client: &ApiClient,
    approval: &Approval,
    input: &mut Input,
    skip: Choice,
) -> anyhow::Result<PromptResult> {
    let mut edited: Option<Box<RawValue>> = None;
    let mut is_cut = show(approval, None, false);
    loop {
        // A caller without a session of its own cannot have a grant for it.
        let without = [(!approval.session_grant).then_some("s"), (!is_cut).then_some("f")];
        let (letters, labels): (Vec<_>, Vec<_>) = choices(&without, skip).into_iter().unzip();
        input.flush()?;
        term::prompt(&format!("{}?", labels.join(", ")));
        let line = match answer(client, approval, input).await? {
            Ok(line) => line.to_lowercase(),
            Err(ended) => return Ok(ended),
        };
        let approve = |scope| Decision { approved: true, scope, modified_args: edited.clone(), reason: None };
        match line.as_str() {
            letter if !letters.contains(&letter) => {
                term::eprint(&format!("Type one of {} and Enter.", letters.join(", ")));
            }
            "a" => return Ok(PromptResult::Decided(approve(Scope::Once))),
            "s" => return Ok(PromptResult::Decided(approve(Scope::Session))),
            "w" => return Ok(PromptResult::Decided(approve(Scope::Always))),
            "e" => {
                match edit(approval, edited.as_deref()).await {
                    Ok(arguments) => edited = arguments,
                    Err(error) => {
                        let error = term::sanitize_lines(&format!("{error:#}"));
                        term::eprint(&format!("error: {error}; the arguments are unchanged"));
                    }
                }
                is_cut = show(approval, edited.as_deref(), false);
            }
            "f" => is_cut = show(approval, edited.as_deref(), true),
            "d" => {
                term::prompt("Why? The caller reads it; Enter for no reason:");
                return Ok(match answer(client, approval, input).await? {
                    Ok(reason) => PromptResult::Decided(Decision {
                        reason: Some(reason).filter(|reason| !reason.is_empty()),
                        ..Decision::default()
                    }),
                    Err(ended) => ended,
                });
            }
            _ => return Ok(PromptResult::Skipped),
        }
    }
}

/// The line that the user types; an `Err` if the prompt ends first.
async fn answer(
    client: &ApiClient,
    approval: &Approval,
    input: &mut Input,
) -> anyhow::Result<Result<String, PromptResult>> {
    let ended = tokio::select! {
        biased;
        over = until_over(client, approval) => PromptResult::Over(Box::new(over?)),
        typed = input.next() => match typed? {
            Typed::Line(line) => return Ok(Ok(line)),
            Typed::End => PromptResult::Skipped,
            Typed::Interrupt => PromptResult::Interrupted,
        },
    };
    // The cursor stands behind the question.
    term::eprint("");
    Ok(Err(ended))
}

/// Returns when a request needs no decision any more.
async fn until_over(client: &ApiClient, approval: &Approval) -> anyhow::Result<Approval> {
    let path = format!("{}?wait={LONG_POLL_SECONDS}", super::path(&approval.id.to_string()));
    loop {
        tokio::time::sleep(POLL_PAUSE).await;
        let now: Approval = client.get(&path).await?;
        if now.state != State::PendingApproval {
            return Ok(now);
        }
    }
}

/// Opens the arguments in the editor; `None` if they are those of the request.
async fn edit(approval: &Approval, edited: Option<&RawValue>) -> anyhow::Result<Option<Box<RawValue>>> {
    let original = format::arguments(approval.arguments.as_deref());
    let draft = edited.map_or_else(|| original.clone(), |arguments| format::arguments(Some(arguments)));
    let arguments = arguments::parse_object(&editor::edit(draft).await?)?;
    Ok((term::pretty_json(arguments.get()) != original).then_some(arguments))
}

/// Shows a request with its arguments, whole or cut. Returns whether they are cut.
fn show(approval: &Approval, edited: Option<&RawValue>, whole: bool) -> bool {
    term::eprint("");
    term::eprint(&term::bold(&format!("{} needs an approval", term::sanitize(&approval.tool))));
    for (label, text) in details(approval) {
        if !text.is_empty() {
            term::eprint(&format!("  {label:10} {}", term::sanitize(&text)));
        }
    }
    term::eprint(&match edited {
        None => format!("  arguments  {} bytes", approval.arguments_bytes),
        Some(_) => "  arguments  edited".to_owned(),
    });
    let arguments = format::arguments(edited.or(approval.arguments.as_deref()));
    let is_cut = !whole && is_long(&arguments);
    let (lines, characters) = if is_cut { (SHOWN_LINES, SHOWN_CHARACTERS) } else { (usize::MAX, usize::MAX) };
    for line in term::truncate_lines(&arguments, lines, characters) {
        term::eprint(&format!("    {line}"));
    }
    if edited.is_some() {
        term::eprint("  These are your arguments; the call runs with them if you approve.");
    } else if is_cut {
        let id = approval.id;
        term::eprint(&format!("  The arguments are cut; gantry approvals show {id} shows all of it."));
    }
    is_cut
}

/// Whether arguments are too long to be shown whole unless the user asks for it.
fn is_long(arguments: &str) -> bool {
    arguments.lines().count() > SHOWN_LINES
        || arguments.lines().any(|line| line.chars().count() > SHOWN_CHARACTERS)
}

fn details(approval: &Approval) -> [(&'static str, String); 6] {
    let caller = &approval.caller;
    let approvers = match format::approvers(approval) {
        Approvers::Any => ("approver", String::new()),
        approvers @ Approvers::OneOf(_) => ("approver", approvers.to_string()),
        none @ Approvers::None(_) => ("but", none.refusal()),
    };
    [
        ("why", approval.reason.to_string()),
        ("agent", approval.agent_path.join(" > ")),
        ("caller", format!("{} by {}", caller.principal, caller.door)),
        ("effect", approval.effect.to_string()),
        approvers,
        ("request", format!("{}, {}", approval.id, format::due(approval))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_depend_on_the_request() {
        let labels = |without, skip| {
            choices(&[Some(without)], skip).iter().map(|(_, label)| *label).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(labels("f", SKIP), "[a]pprove once, for this [s]ession, al[w]ays, [e]dit, [d]eny, s[k]ip");
        assert_eq!(
            labels("s", LEAVE),
            "[a]pprove once, al[w]ays, [e]dit, [d]eny, show in [f]ull, [l]eave it waiting"
        );
    }

    #[test]
    fn arguments_are_long_by_their_lines_or_by_one_of_them() {
        assert!(!is_long(&"x\n".repeat(SHOWN_LINES)) && is_long(&"x\n".repeat(SHOWN_LINES + 1)));
        assert!(!is_long(&"x".repeat(SHOWN_CHARACTERS)) && is_long(&"x".repeat(SHOWN_CHARACTERS + 1)));
    }
}
