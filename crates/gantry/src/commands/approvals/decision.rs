//! What a person decides, and telling Gantry.

use super::item::Item;
use crate::client::{ApiClient, ApiResponse, encoded};
use gantry_core::raw;
use gantry_runtime::ledger::Scope as GrantScope;
use http::StatusCode;
use serde_json::value::RawValue;

/// A decision.
#[derive(Debug)]
pub(in crate::commands) struct Decision {
    pub(super) approved: bool,
    pub(super) scope: GrantScope,
    /// The arguments to run it with instead, as text.
    pub(super) modified: Option<String>,
    pub(super) reason: Option<String>,
}

/// What became of a decision.
pub(in crate::commands) enum Given {
    /// It stands.
    Stands(Item),
    /// It came too late, or is not theirs to make; the answer says which.
    Refused(ApiResponse),
    /// What was said cannot be, such as arguments that do not fit. Nothing was decided.
    Invalid(ApiResponse),
}

/// Whether these can be the arguments of a call.
pub(super) fn is_object(arguments: &RawValue) -> bool {
    arguments.get().starts_with('{')
}

impl Decision {
    pub(super) fn yes(scope: GrantScope, modified: Option<String>) -> Self {
        Self { approved: true, scope, modified, reason: None }
    }

    pub(super) fn no(reason: String) -> Self {
        Self { approved: false, scope: GrantScope::Once, modified: None, reason: Some(reason) }
    }

    fn body(&self) -> String {
        let approved = if self.approved { "true" } else { "false" };
        let scope = serde_json::to_string(&self.scope).unwrap_or_default();
        let reason = self.reason.as_deref().filter(|reason| !reason.is_empty()).map(raw::quoted);
        let mut members = vec![("approved", approved)];
        if self.approved {
            members.push(("scope", &scope));
        }
        members.extend(reason.as_deref().map(|reason| ("reason", reason)));
        members.extend(self.modified.as_deref().map(|modified| ("modifiedArgs", modified)));
        raw::object(members)
    }

    /// Gives the decision.
    pub(in crate::commands) async fn give(&self, client: &ApiClient, id: &str) -> anyhow::Result<Given> {
        let path = format!("/api/v1/approvals/{}/decision", encoded(id));
        let answer = client.send(http::Method::POST, &path, self.body()).await?;
        Ok(match answer.status {
            StatusCode::FORBIDDEN | StatusCode::CONFLICT | StatusCode::GONE => Given::Refused(answer),
            StatusCode::BAD_REQUEST => Given::Invalid(answer),
            _ => Given::Stands(Item::of(answer)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apr_3_a_decision_says_what_was_chosen_and_no_more() {
        let edited = Some("{\"n\": 1e400}".to_owned());
        let yes = Decision::yes(GrantScope::Session, edited);
        assert_eq!(yes.body(), r#"{"approved":true,"scope":"session","modifiedArgs":{"n": 1e400}}"#);
        assert_eq!(Decision::no("no \"way\"".into()).body(), r#"{"approved":false,"reason":"no \"way\""}"#);
        assert_eq!(Decision::no(String::new()).body(), r#"{"approved":false}"#);
    }
}
