//! The question about a held call for the person behind a client: how it is put, and what the answer means.

use super::decide::DecisionInput;
use super::grants;
use crate::context::PipelineContext;
use crate::options::{ApprovalOptions, Delivery};
use gantry_core::approval::answers;
use gantry_core::invisible::escape_invisible;
use gantry_core::raw;
use gantry_core::truncate::truncate;
use gantry_provider::client::{ClientRequest, ClientResponse};
use gantry_store::{ApprovalRow, Scope};
use serde_json::json;

/// Bytes of arguments that a question shows. Longer ones are not decided in a form: a yes is only for what was shown.
const SHOWN_BYTES: usize = 4096;

/// How the person behind a waiting caller is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryMethod {
    Url,
    Form,
    Hold,
}

/// The method that the configuration and the client leave for this call.
pub(super) fn delivery_method(
    options: &ApprovalOptions,
    page: Option<&str>,
    cx: &PipelineContext,
    row: &ApprovalRow,
) -> DeliveryMethod {
    let can = |mode: &str| {
        let params = format!("{{\"mode\":\"{mode}\"}}");
        cx.client.capabilities().can("elicitation/create", &params)
    };
    let url = page.is_some() && can("url");
    // A person whose decision would not count is not asked.
    let may_form = cx.decider.as_ref().is_some_and(|person| person.may_approve(row)) && can("form");
    let form = may_form && escape_invisible(&row.details.arguments).len() <= SHOWN_BYTES;
    let (by_url, by_form) = match options.delivery {
        // A client that knows tasks has been given one before it came to this.
        Delivery::Auto | Delivery::Tasks => (url, form),
        Delivery::Url => (url, false),
        Delivery::Form => (url && may_form && !form, form),
        Delivery::Hold | Delivery::Pending => (false, false),
    };
    match (by_url, by_form) {
        (true, _) => DeliveryMethod::Url,
        (false, true) => DeliveryMethod::Form,
        (false, false) => DeliveryMethod::Hold,
    }
}

/// The question that is put to the person behind the client, if this method has one.
pub(super) fn question(
    row: &ApprovalRow,
    method: DeliveryMethod,
    page: Option<&str>,
) -> Option<ClientRequest> {
    let scopes = grants::scopes(&row.details);
    let params = match method {
        DeliveryMethod::Hold => return None,
        DeliveryMethod::Url => json!({
            "mode": "url",
            "message": format!("{}\nOpen the page to decide.", message(row)),
            "url": format!("{}{}", page?, row.id),
            "elicitationId": row.id,
        }),
        DeliveryMethod::Form => json!({
            "mode": "form",
            "message": message(row),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "decision": { "type": "string", "title": "Decision", "enum": ["approve", "deny"] },
                    "scope": {
                        "type": "string", "title": "For how long", "enum": scopes,
                        "default": "once"
                    },
                    "reason": { "type": "string", "title": "Reason, which the agent reads" }
                },
                "required": ["decision"]
            }
        }),
    };
    let (key, params) = (row.id.to_string(), params.to_string());
    Some(ClientRequest { key, method: "elicitation/create".into(), params })
}

fn message(row: &ApprovalRow) -> String {
    let who = match row.details.agent_path.as_slice() {
        [] => "A client".to_owned(),
        path => format!("Agent {}", path.join(" > ")),
    };
    // What the person reads must not be able to hide, or to look like words of ours.
    let arguments = escape_invisible(&row.details.arguments);
    let shown = truncate(&arguments, SHOWN_BYTES);
    let cut = if shown.len() < arguments.len() {
        format!(" … ({} bytes in all)", row.details.arguments.len())
    } else {
        String::new()
    };
    format!(
        "{who} wants to run {}.\n\nReason for asking: {}\nArguments: {shown}{cut}\n\nA yes for more than this call {}.\n\n({})",
        row.name,
        row.details.reason,
        answers(&row.details.rules, &row.details.remember),
        row.id
    )
}

/// What a person decided in a form: closing it decides nothing, declining it is a no.
pub(super) fn decision_of(answer: &ClientResponse) -> Option<DecisionInput> {
    let answer = answer.as_ref().ok()?;
    let action = raw::string_member(answer, "action")?;
    if action == "decline" {
        return Some(DecisionInput::default());
    }
    let content = raw::member(answer, "content").filter(|_| action == "accept")?;
    let text = |key: &str| raw::string_member(content, key);
    let approved = match &*text("decision")? {
        "approve" => true,
        "deny" => false,
        _ => return None,
    };
    let scope = match text("scope").as_deref() {
        None | Some("") => Scope::Once,
        Some(word) => Scope::parse(word)?,
    };
    Some(DecisionInput { approved, modified_args: None, reason: text("reason").map(Into::into), scope })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str) -> Option<(bool, Option<String>, Scope)> {
        decision_of(&Ok(answer.to_owned())).map(|given| (given.approved, given.reason, given.scope))
    }

    #[test]
    fn only_what_a_person_really_said_counts() {
        let accept = |content: &str| read(&format!(r#"{{"action":"accept","content":{content}}}"#));
        assert_eq!(accept(r#"{"decision":"approve"}"#), Some((true, None, Scope::Once)));
        assert_eq!(accept(r#"{"decision":"approve","scope":"always"}"#), Some((true, None, Scope::Always)));
        let no = Some((false, Some("no".into()), Scope::Session));
        assert_eq!(accept(r#"{"decision":"deny","reason":"no","scope":"session"}"#), no);
        assert_eq!(read(r#"{"action":"decline"}"#), Some((false, None, Scope::Once)));
        for nothing in [
            r#"{"action":"cancel","content":{"decision":"approve"}}"#,
            r#"{"action":"accept"}"#,
            r#"{"action":"accept","content":{}}"#,
            r#"{"action":"accept","content":{"decision":"yes"}}"#,
            r#"{"action":"accept","content":{"decision":"approve","scope":"forever"}}"#,
            r#"{"content":{"decision":"approve"}}"#,
        ] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }
}
