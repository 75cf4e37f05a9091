//! Asking a person, and what their answer is worth.
//!
//! A [`Question`] carries the whole call. A [`Decision`] names, by its binding, the one question that it answers:
//! if the caller, the arguments, the tool's definition, the rules or the file that would be overwritten has changed
//! since the person looked, the bindings differ and the decision is worth nothing. A [`Grant`] answers questions of one
//! tool for longer, as long as the tool is defined as it was and no other rule asks.

mod who;

pub use who::Approvers;

use crate::digest::Digest;
use crate::error::{ErrorCode, Refusal};
use crate::id::{ApprovalId, GrantId};
use crate::permit::{Basis, Draft, Permit};
use std::sync::Arc;

/// One reason to ask a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The rule that asks.
    pub rule: Arc<str>,
    /// Why, in words for that person.
    pub reason: String,
    /// Who may answer, by name; nobody named means whoever may decide at all.
    pub approvers: Vec<Arc<str>>,
}

/// A call that may run once a person says yes.
#[derive(Debug)]
pub struct Question {
    draft: Draft,
    asks: Vec<Ask>,
}

impl Question {
    pub(crate) fn new(draft: Draft, asks: Vec<Ask>) -> Self {
        Self { draft, asks }
    }

    /// Why a person is asked, all reasons in one sentence.
    #[must_use]
    pub fn reason(&self) -> String {
        self.asks.iter().map(|ask| ask.reason.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// Every rule that asks.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<str>> {
        self.asks.iter().map(|ask| &ask.rule)
    }

    /// Who may answer: somebody of every list.
    pub fn approvers(&self) -> impl Iterator<Item = &[Arc<str>]> {
        self.asks.iter().map(|ask| ask.approvers.as_slice()).filter(|names| !names.is_empty())
    }

    /// What a decision must be bound to.
    #[must_use]
    pub fn binding(&self) -> Digest {
        self.draft.binding
    }

    /// What the provider found before the call was judged.
    #[must_use]
    pub fn precondition(&self) -> Option<&Arc<str>> {
        self.draft.precondition.as_ref()
    }

    /// The revision of the rules that were asked about the call.
    #[must_use]
    pub fn revision(&self) -> Digest {
        self.draft.revision
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

/// A held call that goes on: the approval under which it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    /// The approval.
    pub approval: ApprovalId,
    /// The definition of the tool when the call was held; a call that waited for its time alone must still be of that.
    pub fingerprint: Digest,
    /// The provider of the tool, and which one exactly, where that can be told.
    pub provider: Arc<str>,
    /// See `provider`.
    pub source: Option<Arc<str>>,
    /// The digest of the canonical arguments as they were sent.
    pub sent: Digest,
    /// What makes two requests the same one.
    pub dedup_key: Digest,
    /// What a person decided, if one was asked.
    pub decision: Option<Decision>,
    /// Whether the person changed the arguments.
    pub edited: bool,
}

/// Why a decision makes no permit.
#[derive(Debug)]
pub enum Void {
    /// The person said no.
    Denied(Refusal),
    /// What they decided about is not this call any more; here is the question as it stands now.
    Changed(Box<Question>),
}

/// Turns a question and the decision about it into a permit.
///
/// # Errors
/// The person said no, or what they decided about is not this call.
pub fn redeem(question: Question, decision: &Decision) -> Result<Permit, Void> {
    // Who may answer is part of the question: another one may be for others.
    let may_answer = question.approvers().all(|names| names.contains(&decision.by));
    if decision.binding != question.draft.binding || (decision.approved && !may_answer) {
        return Err(Void::Changed(Box::new(question)));
    }
    if !decision.approved {
        let message = format!("{} said no to this call", decision.by);
        return Err(Void::Denied(Refusal::new(ErrorCode::RejectedByUser, message)));
    }
    Ok(Permit::new(question.draft, Basis::Person(Arc::clone(&decision.by))))
}

/// A yes that holds for more than one call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The grant.
    pub id: GrantId,
    /// The definition of the tool that it was given for.
    pub fingerprint: Digest,
    /// The rules whose questions it answers.
    pub rules: Vec<Arc<str>>,
    /// Who gave it.
    pub by: Arc<str>,
}

/// Turns a question and a grant that answers it into a permit. That the grant is of this caller and this tool of this
/// server is for the one who looked it up to see to.
///
/// # Errors
/// The tool is defined otherwise now, or a rule asks that the grant says nothing about: here is the question again.
pub fn redeem_grant(question: Question, grant: &Grant) -> Result<Permit, Box<Question>> {
    let answers = question.rules().all(|rule| grant.rules.contains(rule));
    if !answers || grant.fingerprint != question.call().tool().fingerprint {
        return Err(Box::new(question));
    }
    Ok(Permit::new(question.draft, Basis::Grant { id: grant.id, by: Arc::clone(&grant.by) }))
}
