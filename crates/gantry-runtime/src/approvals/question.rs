//! What the person behind a client is asked about a held call, in which way, and what their answer means.

use super::decide::Given;
use crate::context::CallCx;
use crate::options::{ApprovalOptions, Delivery};
use gantry_core::raw;
use gantry_core::shape::truncated;
use gantry_provider::client::{Answered, Question};
use gantry_store::{ApprovalRow, Scope};
use serde_json::json;

/// Bytes of arguments that a question shows. What has more is not decided in a form: nobody says yes to what they do not see.
const SHOWN_BYTES: usize = 4096;

/// The way in which a caller waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The person opens an address.
    Url,
    /// The person fills in a form.
    Form,
    /// The call is held open.
    Hold,
}

/// The way that the configuration and the client leave for this call.
pub(super) fn way(options: &ApprovalOptions, page: Option<&str>, cx: &CallCx, row: &ApprovalRow) -> Way {
    let can = |mode: &str| {
        let params = format!("{{\"mode\":\"{mode}\"}}");
        cx.audience.capabilities().can("elicitation/create", &params)
    };
    let url = page.is_some() && can("url");
    // Who would not be listened to is not asked.
    let may_form = cx.person.as_ref().is_some_and(|person| person.may_approve(row)) && can("form");
    let form = may_form && is_shown_whole(row);
    match options.delivery {
        // Who knows tasks has been given one before it came to this.
        Delivery::Auto | Delivery::Tasks if url => Way::Url,
        Delivery::Auto | Delivery::Tasks if form => Way::Form,
        Delivery::Url if url => Way::Url,
        Delivery::Form if form => Way::Form,
        Delivery::Form if may_form && url => Way::Url,
        Delivery::Auto
        | Delivery::Tasks
        | Delivery::Url
        | Delivery::Form
        | Delivery::Hold
        | Delivery::Pending => Way::Hold,
    }
}

/// The question that is put to the person behind the client, if this way has one.
pub(super) fn question(row: &ApprovalRow, way: Way, page: Option<&str>) -> Option<Question> {
    match (way, page) {
        (Way::Url, Some(page)) => Some(url(row, page)),
        (Way::Form, _) => Some(form(row)),
        (Way::Url | Way::Hold, _) => None,
    }
}

fn form(row: &ApprovalRow) -> Question {
    let scopes: &[&str] =
        if row.asked.own_session { &["once", "session", "always"] } else { &["once", "always"] };
    let params = json!({
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
    });
    Question { key: row.id.to_string(), method: "elicitation/create".into(), params: params.to_string() }
}

fn url(row: &ApprovalRow, page: &str) -> Question {
    let params = json!({
        "mode": "url",
        "message": format!("{}\nOpen the page to decide.", message(row)),
        "url": format!("{page}{}", row.id),
        "elicitationId": row.id,
    });
    Question { key: row.id.to_string(), method: "elicitation/create".into(), params: params.to_string() }
}

/// Whether a question shows all of the arguments.
fn is_shown_whole(row: &ApprovalRow) -> bool {
    raw::visible(&row.asked.arguments).len() <= SHOWN_BYTES
}

/// What is asked, in words.
fn message(row: &ApprovalRow) -> String {
    let who = match row.asked.agent_path.as_slice() {
        [] => "A client".to_owned(),
        path => format!("Agent {}", path.join(" > ")),
    };
    // What the person reads must not be able to hide, or to look like words of ours.
    let arguments = raw::visible(&row.asked.arguments);
    let shown = truncated(&arguments, SHOWN_BYTES);
    let cut = if shown.len() < arguments.len() {
        format!(" … ({} bytes in all)", row.asked.arguments.len())
    } else {
        String::new()
    };
    format!(
        "{who} wants to run {}.\n\nReason for asking: {}\nArguments: {shown}{cut}\n\n({})",
        row.name, row.asked.reason, row.id
    )
}

/// What a person said in a form. Whoever closes it has said nothing; whoever declines has said no.
pub(super) fn given(answer: &Answered) -> Option<Given> {
    let answer = answer.as_ref().ok()?;
    let action = raw::string_member(answer, "action")?;
    if action == "decline" {
        return Some(Given::default());
    }
    let content = raw::member(answer, "content").filter(|_| action == "accept")?;
    let text = |key: &str| raw::string_member(content, key);
    let approved = match &*text("decision")? {
        "approve" => true,
        "deny" => false,
        _ => return None,
    };
    let scope = match text("scope").as_deref() {
        None | Some("once" | "") => Scope::Once,
        Some("session") => Scope::Session,
        Some("always") => Scope::Always,
        Some(_) => return None,
    };
    Some(Given { approved, modified_args: None, reason: text("reason").map(Into::into), scope })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str) -> Option<(bool, Option<String>, Scope)> {
        given(&Ok(answer.to_owned())).map(|given| (given.approved, given.reason, given.scope))
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
