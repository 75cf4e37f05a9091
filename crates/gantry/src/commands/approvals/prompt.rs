//! The prompt: shows one request on the terminal, asks for a decision and sends it.

use super::decide::{POLL_PAUSE, POLL_SECONDS, decide, print_refused};
use super::format;
use super::terminal::{self, Input, Typed};
use crate::client::ApiClient;
use crate::commands::arguments;
use crate::term;
use gantry_core::State;
use gantry_core::approval::{Approvers, answers};
use gantry_server::model::{Approval, Decision, Scope};
use http::StatusCode;
use serde_json::value::RawValue;

/// How much of long arguments a prompt shows: lines, and characters of each line.
const SHOWN_LINES: usize = 40;
const SHOWN_CHARACTERS: usize = 2000;

pub(in crate::commands) enum Answer {
    Decided(Box<Approval>),
    /// The request was decided elsewhere or has expired.
    Over(Box<Approval>),
    /// The user decided, too late or without the right to; that was printed.
    Refused(StatusCode),
    Skipped,
    Interrupted,
}

/// A choice of the prompt: the letter to type, and its label.
type Choice = (&'static str, &'static str);

/// Skips the only request: the call goes on waiting.
pub(in crate::commands) const LEAVE: Choice = ("l", "[l]eave it waiting");

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

pub(in crate::commands) async fn ask(
    client: &ApiClient,
    approval: &Approval,
    input: &mut Input,
    skip: Choice,
) -> anyhow::Result<Answer> {
    loop {
        let decision = match prompt(client, approval, input, skip).await? {
            Ok(decision) => decision,
            Err(ended) => return Ok(ended),
        };
        match decide(client, approval.id, &decision).await? {
            Ok(approval) => return Ok(Answer::Decided(Box::new(approval))),
            Err(response) => {
                print_refused(&response)?;
                // A bad request decided nothing, so the user is asked again.
                if response.status != StatusCode::BAD_REQUEST {
                    return Ok(Answer::Refused(response.status));
                }
            }
        }
    }
}

/// Shows a request and reads the decision about it; an `Err` if the prompt ends without one.
async fn prompt(
    client: &ApiClient,
    approval: &Approval,
    input: &mut Input,
    skip: Choice,
) -> anyhow::Result<Result<Decision, Answer>> {
    let mut edited: Option<Box<RawValue>> = None;
    let mut is_cut = show(approval, None, false);
    loop {
        let unless = |scope, letter| (!approval.scopes.contains(&scope)).then_some(letter);
        let without = [unless(Scope::Session, "s"), unless(Scope::Always, "w"), (!is_cut).then_some("f")];
        let (letters, labels): (Vec<_>, Vec<_>) = choices(&without, skip).into_iter().unzip();
        input.flush()?;
        term::prompt(&format!("{}?", labels.join(", ")));
        let line = match read_line(client, approval, input).await? {
            Ok(line) => line.to_lowercase(),
            Err(ended) => return Ok(Err(ended)),
        };
        let scope = match line.as_str() {
            letter if !letters.contains(&letter) => {
                term::eprint(&format!("Type one of {} and Enter.", letters.join(", ")));
                continue;
            }
            "a" => Scope::Once,
            "s" => Scope::Session,
            "w" => Scope::Always,
            "e" => {
                match edit(approval, edited.as_deref()).await {
                    Ok(arguments) => edited = arguments,
                    Err(error) => {
                        let error = term::sanitize_lines(&format!("{error:#}"));
                        term::eprint(&format!("error: {error}; the arguments are unchanged"));
                    }
                }
                is_cut = show(approval, edited.as_deref(), false);
                continue;
            }
            "f" => {
                is_cut = show(approval, edited.as_deref(), true);
                continue;
            }
            "d" => {
                term::prompt("Why? The caller reads it; Enter for no reason:");
                let deny = |reason: String| Decision {
                    reason: Some(reason).filter(|reason| !reason.is_empty()),
                    ..Decision::default()
                };
                return Ok(read_line(client, approval, input).await?.map(deny));
            }
            _ => return Ok(Err(Answer::Skipped)),
        };
        return Ok(Ok(Decision { approved: true, scope, modified_args: edited, reason: None }));
    }
}

/// The line that the user types; an `Err` if the prompt ends first.
async fn read_line(
    client: &ApiClient,
    approval: &Approval,
    input: &mut Input,
) -> anyhow::Result<Result<String, Answer>> {
    let ended = tokio::select! {
        biased;
        over = until_over(client, approval) => Answer::Over(Box::new(over?)),
        typed = input.next() => match typed? {
            Typed::Line(line) => return Ok(Ok(line)),
            Typed::End => Answer::Skipped,
            Typed::Interrupt => Answer::Interrupted,
        },
    };
    // The cursor stands behind the question.
    term::eprint("");
    Ok(Err(ended))
}

async fn until_over(client: &ApiClient, approval: &Approval) -> anyhow::Result<Approval> {
    let (path, wait) = (super::path(&approval.id), POLL_SECONDS.to_string());
    loop {
        tokio::time::sleep(POLL_PAUSE).await;
        let now: Approval = client.get(&path, &[("wait", Some(&wait))]).await?;
        if now.state != State::PendingApproval {
            return Ok(now);
        }
    }
}

/// Opens the arguments in the editor; `None` if they are those of the request.
async fn edit(approval: &Approval, edited: Option<&RawValue>) -> anyhow::Result<Option<Box<RawValue>>> {
    let original = format::arguments(approval.arguments.as_deref());
    let draft = edited.map_or_else(|| original.clone(), |arguments| format::arguments(Some(arguments)));
    let arguments = arguments::parse(&terminal::edit(draft).await?)?;
    // `null` would count as no edit, and the call would run with its own arguments.
    anyhow::ensure!(arguments.get().starts_with('{'), "the arguments of a call are an object: {{…}}");
    Ok((term::pretty_json(arguments.get()) != original).then_some(arguments))
}

/// Shows a request with its arguments, whole or cut. Returns whether they are cut.
fn show(approval: &Approval, edited: Option<&RawValue>, whole: bool) -> bool {
    term::eprint("");
    let title = format!("{} needs an approval", term::sanitize(&approval.tool));
    term::eprint(&term::coloured(&std::io::stderr(), "1", &title));
    let size = match edited {
        None => format!("{} bytes", approval.arguments_bytes),
        Some(_) => "edited".to_owned(),
    };
    let fields = details(approval).into_iter().chain([("arguments", size)]);
    term::fields(10, fields).for_each(|line| term::eprint(&term::sanitize(&line)));
    let arguments = format::arguments(edited.or(approval.arguments.as_deref()));
    let shown = if whole { arguments.clone() } else { shortened(&arguments) };
    shown.lines().for_each(|line| term::eprint(&format!("    {line}")));
    // Arguments that are not here cannot have been read.
    let is_cut = shown != arguments || (edited.is_none() && approval.arguments.is_none());
    if edited.is_some() {
        term::eprint("  These are your arguments; the call runs with them if you approve.");
    } else if is_cut {
        let id = approval.id;
        term::eprint(&format!("  The arguments are cut; gantry approvals show {id} shows all of it."));
    }
    is_cut
}

fn shortened(arguments: &str) -> String {
    term::truncate_lines(arguments, SHOWN_LINES, SHOWN_CHARACTERS)
}

fn details(approval: &Approval) -> [(&'static str, String); 7] {
    let approvers = match format::approvers(&approval.approvers) {
        Approvers::Any => ("approver", String::new()),
        approvers @ Approvers::OneOf(_) => ("approver", approvers.to_string()),
        none @ Approvers::None(_) => ("but", none.refusal()),
    };
    [
        ("why", approval.reason.to_string()),
        ("agent", approval.agent_path.join(" > ")),
        ("caller", format!("{} by {}", approval.caller.principal, approval.caller.door)),
        ("effect", approval.effect.to_string()),
        approvers,
        ("a grant", answers(&approval.rules, &approval.remember)),
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
        let is_long = |text: String| shortened(&text) != text;
        let lines = |n| vec!["x"; n].join("\n");
        assert!(!is_long(lines(SHOWN_LINES)) && is_long(lines(SHOWN_LINES + 1)));
        assert!(!is_long("x".repeat(SHOWN_CHARACTERS)) && is_long("x".repeat(SHOWN_CHARACTERS + 1)));
    }
}
