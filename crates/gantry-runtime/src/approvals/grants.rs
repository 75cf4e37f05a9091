//! Grants: which calls a yes covers besides the one that was decided, and when none can be made.

use super::decide::DecisionError;
use crate::clock;
use gantry_core::approval::{narrower, widest};
use gantry_core::digest::Digest;
use gantry_core::error::{ErrorCode, ToolError};
use gantry_store::{ApprovalDetails, ApprovalRow, DecisionRow, GrantKey, GrantRow, Scope};
use std::sync::Arc;

/// What a grant holds under: the rules about the tool, and the server that has it. If one changes, the grant is void. What a
/// built-in tool has read, such as a file, is no part of it.
pub(crate) fn grant_scope_digest(revision: Digest, source: Option<&Arc<str>>) -> Digest {
    match source {
        None => revision,
        Some(source) => Digest::of_parts(&[revision.as_bytes(), source.as_bytes()]),
    }
}

/// The scopes that a yes may have, the narrowest first: those that every rule that asks allows. A shared session has no end,
/// so a yes for it would say nothing about how long it holds.
pub(crate) fn scopes(asked: &ApprovalDetails) -> Vec<Scope> {
    let widest = widest(&asked.rules, &asked.remember);
    let is_allowed = |scope: &Scope| *scope <= widest && (*scope != Scope::Session || asked.own_session);
    Scope::ALL.iter().copied().filter(is_allowed).collect()
}

/// Refuses a yes that reaches further than it may.
pub(super) fn check_scope(asked: &ApprovalDetails, scope: Scope) -> Result<(), DecisionError> {
    let allowed = scopes(asked);
    if allowed.contains(&scope) {
        return Ok(());
    }
    let narrower = narrower(&asked.rules, &asked.remember, scope);
    let why = if asked.rules.is_empty() {
        "no rule asks about this call, so there is nothing to remember".to_owned()
    } else if narrower.is_empty() {
        "this caller has no session of its own".to_owned()
    } else {
        format!("a yes to this call may not be `{scope}`: {narrower} (`remember` in the configuration)")
    };
    let allowed: Vec<String> = allowed.iter().map(|scope| format!("`{scope}`")).collect();
    let message = format!("{why}; decide {}", allowed.join(", or "));
    Err(DecisionError::Invalid(ToolError::new(ErrorCode::InvalidArguments, message)))
}

/// The grant that a decision makes, if it holds for more than its call.
pub(super) fn grant(row: &ApprovalRow, decision: &DecisionRow) -> Option<GrantRow> {
    let asked = &row.details;
    Some(GrantRow {
        id: decision.grant?,
        key: GrantKey {
            project: Arc::clone(&row.project),
            principal: Arc::clone(&row.principal),
            agent_path: asked.agent_path.join(" > ").into(),
            provider: Arc::clone(&asked.provider),
            tool: Arc::clone(&asked.tool),
        },
        name: Arc::clone(&row.name),
        fingerprint: asked.fingerprint,
        policy: grant_scope_digest(asked.policy, asked.source.as_ref()),
        rules: asked.rules.clone(),
        session: (decision.scope == Scope::Session).then_some(row.session),
        by: Arc::clone(&decision.by),
        approval: Some(row.id),
        created_us: clock::latest_us(),
        until_us: None,
        revoked: None,
    })
}

pub(super) fn not_recorded(error: gantry_store::Error) -> DecisionError {
    if matches!(error, gantry_store::Error::TooManyGrants { .. }) {
        let message = format!("{error}, or decide `once`; nothing was decided");
        return DecisionError::Invalid(ToolError::new(ErrorCode::InvalidArguments, message));
    }
    DecisionError::Store(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_for_one_server_if_the_server_is_known() {
        let (rules, one, other) = (Digest::of(b"rules"), Arc::from("one"), Arc::from("other"));
        assert_eq!(grant_scope_digest(rules, None), rules);
        let digest = |source| grant_scope_digest(rules, source);
        let of = [digest(None), digest(Some(&one)), digest(Some(&other))];
        assert!(of[0] != of[1] && of[1] != of[2] && of[0] != of[2], "{of:?}");
        assert_eq!(of[1], digest(Some(&one)));
    }

    #[test]
    fn too_many_grants_is_for_the_approver_to_do_something_about() {
        let said = not_recorded(gantry_store::Error::TooManyGrants { limit: 7 });
        assert!(matches!(said, DecisionError::Invalid(_)), "{said:?}");
        assert!(said.to_string().contains("`gantry approvals revoke`"), "{said}");
        assert!(matches!(not_recorded(gantry_store::Error::Full), DecisionError::Store(_)));
    }
}
