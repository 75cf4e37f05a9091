//! Approve: a question becomes a permit by a person's yes, or the call is held.
//!
//! For now the only person there is the one at the keyboard of `gantry call --yes`; everybody else is told that a
//! person has to approve, and nothing runs.

use gantry_core::approval::{Decision, Question, redeem};
use gantry_core::{CallError, CallRequest, Permit};
use std::sync::Arc;

pub(super) fn obtain(request: &CallRequest, question: Question) -> Result<Permit, CallError> {
    let Some(person) = &request.approver else { return Err(question.held().clone().into()) };
    let decision = Decision { binding: question.binding(), approved: true, by: Arc::clone(person) };
    Ok(redeem(question, &decision)?)
}
