//! A request as the API tells it, with the arguments exactly as they were sent.

use super::find::{self, Wanted};
use super::words;
use crate::client::{ApiClient, ApiResponse, encoded};
use crate::term;
use anyhow::Context as _;
use gantry_core::approval::Approvers;
use gantry_core::raw;
use serde_json::Value;

/// Seconds that one request to the API may wait for something to happen.
pub(in crate::commands) const POLL_SECONDS: u64 = 30;

/// A request for an approval.
#[derive(Debug, Clone)]
pub(in crate::commands) struct Item {
    body: Value,
    /// The same as it came, for those who print it and for the numbers in it.
    pub(in crate::commands) text: String,
}

impl Item {
    pub(super) fn new(text: &str) -> anyhow::Result<Self> {
        let body = serde_json::from_str(text).context("the answer is not a request for an approval")?;
        Ok(Self { body, text: text.to_owned() })
    }

    /// The request that the API answered with, or its error.
    pub(super) fn of(answer: ApiResponse) -> anyhow::Result<Self> {
        let text = answer.text.clone();
        answer.into_result::<serde_json::Value>()?;
        Self::new(&text)
    }

    /// Asks for one.
    pub(in crate::commands) async fn get(client: &ApiClient, id: &str) -> anyhow::Result<Self> {
        Self::of(
            client
                .send(http::Method::GET, &format!("/api/v1/approvals/{}", encoded(id)), String::new())
                .await?,
        )
    }

    /// The same once it waits for no person any more, or after a while as it is.
    pub(super) async fn poll(client: &ApiClient, id: &str) -> anyhow::Result<Self> {
        let path = format!("/api/v1/approvals/{}?wait={POLL_SECONDS}", encoded(id));
        Self::of(client.send(http::Method::GET, &path, String::new()).await?)
    }

    /// The one by which a call waits for a person now, if it does.
    pub(in crate::commands) async fn pending_of(
        client: &ApiClient,
        call: &str,
    ) -> anyhow::Result<Option<Self>> {
        let wanted = Wanted { state: Some("PENDING_APPROVAL"), call: Some(call), project: None };
        let (items, _) = find::page(client, wanted, 1, None).await?;
        Ok(items.into_iter().next())
    }

    pub(in crate::commands) fn id(&self) -> &str {
        self.said("/id")
    }

    pub(in crate::commands) fn call(&self) -> &str {
        self.said("/callId")
    }

    pub(in crate::commands) fn tool(&self) -> &str {
        self.said("/tool")
    }

    pub(in crate::commands) fn state(&self) -> &str {
        self.said("/state")
    }

    /// Whether it waits for a person.
    pub(in crate::commands) fn is_pending(&self) -> bool {
        self.state() == "PENDING_APPROVAL"
    }

    /// Whether nothing more happens to it.
    pub(super) fn is_over(&self) -> bool {
        is_over(self.state())
    }

    /// What is said at a place; nothing if nothing is.
    pub(super) fn said(&self, pointer: &str) -> &str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn at(&self, pointer: &str) -> Option<&Value> {
        self.body.pointer(pointer).filter(|value| !value.is_null())
    }

    pub(super) fn number(&self, pointer: &str) -> u64 {
        self.at(pointer).and_then(Value::as_u64).unwrap_or_default()
    }

    pub(super) fn texts(&self, pointer: &str) -> Vec<&str> {
        let list = self.at(pointer).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The arguments as they were sent, laid out for reading.
    pub(in crate::commands) fn arguments(&self) -> String {
        raw::member(&self.text, "arguments").map_or_else(String::new, term::pretty_json)
    }

    /// The arguments that were approved instead.
    pub(super) fn modified(&self) -> Option<String> {
        let decision = raw::member(&self.text, "decision")?;
        raw::member(decision, "modifiedArgs").filter(|text| *text != "null").map(term::pretty_json)
    }

    /// The agents from the topmost one down, or whoever called without one.
    pub(in crate::commands) fn who(&self) -> String {
        let path = self.texts("/agentPath");
        if path.is_empty() { self.said("/caller/principal").to_owned() } else { path.join(" > ") }
    }

    /// Whose yes it takes.
    pub(in crate::commands) fn who_may(&self) -> Approvers<'_> {
        let lists = self.at("/approvers").and_then(Value::as_array).into_iter().flatten();
        Approvers::by(lists.map(|names| names.as_array().into_iter().flatten().filter_map(Value::as_str)))
    }

    /// Whether the yes of whoever sits here counts: the command line is the person's of the data folder.
    pub(in crate::commands) fn is_mine(&self) -> bool {
        self.who_may().includes("person")
    }

    /// Whether rules ask for a person's yes; otherwise it only waits for its time.
    pub(super) fn is_asked(&self) -> bool {
        !self.texts("/rules").is_empty()
    }

    /// Whether a yes can hold for the rest of the caller's session.
    pub(super) fn has_session(&self) -> bool {
        self.at("/sessionGrant") != Some(&Value::Bool(false))
    }

    /// What was decided, by whom and by which door, in words; nothing if nobody did.
    pub(in crate::commands) fn decided(&self) -> Option<String> {
        let yes = self.at("/decision/approved")? == &Value::Bool(true);
        let mut said = String::from(if yes { "approved" } else { "denied" });
        match self.said("/decidedBy") {
            "" => {}
            by => said.push_str(&format!(" by {by}")),
        }
        match self.said("/decidedVia") {
            "" => {}
            via => said.push_str(&format!(" ({via})")),
        }
        match self.said("/decision/scope") {
            "session" if yes => said.push_str(", also for the rest of the session"),
            "always" if yes => said.push_str(", also from now on"),
            _ => {}
        }
        if self.at("/decision/modifiedArgsBytes").is_some() {
            said.push_str(", with other arguments");
        }
        match self.said("/decision/reason") {
            "" => {}
            reason => said.push_str(&format!(": {reason}")),
        }
        Some(said)
    }

    /// When it expires or runs, in words; nothing if it waits for neither.
    pub(in crate::commands) fn due(&self) -> String {
        match self.state() {
            "PENDING_APPROVAL" => match self.said("/expiresAt") {
                "" => "never expires".to_owned(),
                moment => format!("expires {}", words::ahead(moment)),
            },
            "SCHEDULED_FOR_EXECUTION" => match self.said("/scheduledFor") {
                "" => String::new(),
                moment => format!("runs {}", words::ahead(moment)),
            },
            _ => String::new(),
        }
    }
}

/// Whether nothing more happens to a call in this state. A state that is not known is nothing to wait for.
pub(in crate::commands) fn is_over(state: &str) -> bool {
    gantry_core::State::parse(state).is_none_or(gantry_core::State::is_over)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_takes_the_yes_of_those_whom_the_rules_name() {
        for (lists, words) in [
            (json!([]), "any approver"),
            (json!([["ann", "ben"], ["ben", "person"]]), "ben"),
            (json!([["ann"], ["ben"]]), "nobody is in every list (ann; ben), so it cannot be approved"),
        ] {
            let item = Item::new(&json!({ "approvers": lists }).to_string()).unwrap();
            assert_eq!(item.who_may().to_string(), words, "{lists}");
        }
    }
}
