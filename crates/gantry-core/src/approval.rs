//! Asking a person, and what their answer is worth.
//!
//! A [`Question`] carries the whole call. A [`Decision`] names, by its binding, the one question that it answers:
//! if the caller, the arguments, the tool's definition or the file that would be overwritten has changed since the
//! person looked, the bindings differ and the decision is worth nothing.

use crate::digest::Digest;
use crate::error::{ErrorCode, Held, Refusal};
use crate::permit::{Basis, Draft, Permit};
use std::sync::Arc;

/// A call that may run once a person says yes.
#[derive(Debug)]
pub struct Question {
    draft: Draft,
    held: Held,
}

impl Question {
    pub(crate) fn new(draft: Draft, held: Held) -> Self {
        Self { draft, held }
    }

    /// Why a person is asked.
    #[must_use]
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// What a decision must be bound to.
    #[must_use]
    pub fn binding(&self) -> Digest {
        self.draft.binding
    }

    /// The call that is asked about.
    #[must_use]
    pub fn call(&self) -> &crate::ResolvedCall {
        &self.draft.call
    }
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The binding of the question that they saw.
    pub binding: Digest,
    /// Whether they said yes.
    pub approved: bool,
    /// Who they are.
    pub by: Arc<str>,
}

/// Turns a question and the decision about it into a permit.
///
/// # Errors
/// The person said no, or what they decided about is not this call.
pub fn redeem(question: Question, decision: &Decision) -> Result<Permit, Refusal> {
    if decision.binding != question.draft.binding {
        return Err(Refusal::new(
            ErrorCode::ApprovalRequired,
            "the call is not the one that was approved: its caller, arguments, tool or target has changed. Ask again.",
        ));
    }
    if !decision.approved {
        return Err(Refusal::new(ErrorCode::RejectedByUser, format!("{} said no to this call", decision.by)));
    }
    Ok(Permit::new(question.draft, Basis::Person(Arc::clone(&decision.by))))
}
