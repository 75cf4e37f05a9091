//! Asking a person, and the permits that their decisions make.
//!
//! A [`Question`] carries the whole call. A [`Decision`] names, by its binding, the one question that it answers: if the
//! caller, the arguments, the tool's definition, the rules or the file that would be overwritten has changed since the
//! person looked, the bindings differ and the decision is invalid. A [`Grant`] answers questions of one tool for longer, as
//! long as the tool's definition stays the same and no other rule asks.

mod approvers;
mod scope;

pub use approvers::Approvers;
pub use scope::{Remember, Scope, answers, narrower, widest};

use crate::ResolvedCall;
use crate::digest::Digest;
use crate::error::{ErrorCode, Refusal};
use crate::id::{ApprovalId, GrantId};
use crate::permit::{Basis, BoundCall, Permit};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskReason {
    pub(crate) rule: Arc<str>,
    /// Why, in words for that person.
    pub(crate) reason: String,
    /// Who may answer, by name; an empty list means every approver.
    pub(crate) approvers: Vec<Arc<str>>,
    /// How far a yes to it may reach.
    pub(crate) remember: Scope,
}

/// A call that may run once a person approves it.
#[derive(Debug)]
pub struct Question {
    bound: BoundCall,
    asks: Vec<AskReason>,
}

impl Question {
    pub(crate) fn new(bound: BoundCall, asks: Vec<AskReason>) -> Self {
        Self { bound, asks }
    }

    /// Why a person is asked, all reasons in one sentence.
    pub fn reason(&self) -> String {
        self.asks.iter().map(|ask| ask.reason.as_str()).collect::<Vec<_>>().join("; ")
    }

    pub fn rules(&self) -> impl Iterator<Item = &Arc<str>> {
        self.asks.iter().map(|ask| &ask.rule)
    }

    /// How far a yes may reach, by the rules that ask.
    pub fn remember(&self) -> Remember {
        let mut remember = Remember::new();
        for ask in &self.asks {
            let scope = remember.entry(Arc::clone(&ask.rule)).or_insert(ask.remember);
            // Two policies may have one name.
            *scope = ask.remember.min(*scope);
        }
        remember
    }

    /// The lists of approvers; an approver must be in each of them.
    pub fn approvers(&self) -> impl Iterator<Item = &[Arc<str>]> {
        self.asks.iter().map(|ask| ask.approvers.as_slice()).filter(|names| !names.is_empty())
    }

    /// The binding that a decision must have.
    pub fn binding(&self) -> Digest {
        self.bound.binding
    }

    /// The state that the provider found before the call was judged.
    pub fn precondition(&self) -> Option<&Arc<str>> {
        self.bound.precondition.as_ref()
    }

    /// The revision of the rules that judged the call.
    pub fn revision(&self) -> Digest {
        self.bound.revision
    }

    pub fn call(&self) -> &ResolvedCall {
        &self.bound.call
    }
}

/// What a person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The binding of the question that they saw.
    pub binding: Digest,
    pub approved: bool,
    pub by: Arc<str>,
}

/// The approval under which a held call goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    pub approval: ApprovalId,
    /// The definition of the tool when the call was held. A call that waited only for its delay must still have it.
    pub fingerprint: Digest,
    pub provider: Arc<str>,
    /// Which provider of that id it was, where that can be told.
    pub source: Option<Arc<str>>,
    /// The digest of the canonical arguments as they were sent.
    pub sent: Digest,
    /// Two requests with the same key are the same request.
    pub request_key: Digest,
    /// What a person decided, if one was asked.
    pub decision: Option<Decision>,
    /// Whether the person changed the arguments.
    pub edited: bool,
}

/// Why a decision makes no permit.
#[derive(Debug)]
pub enum RedeemError {
    Denied(Refusal),
    /// The decision is not about this call; this is the question as it is now.
    Changed(Box<Question>),
}

/// Turns a question and the decision about it into a permit.
///
/// # Errors
/// The person denied the call, or the decision is not about this call.
pub fn redeem(question: Question, decision: &Decision) -> Result<Permit, RedeemError> {
    // The approvers are part of the question: another question may be for others.
    let may_answer = question.approvers().all(|names| names.contains(&decision.by));
    if decision.binding != question.bound.binding || (decision.approved && !may_answer) {
        return Err(RedeemError::Changed(Box::new(question)));
    }
    if !decision.approved {
        let message = format!("{} said no to this call", decision.by);
        return Err(RedeemError::Denied(Refusal::new(ErrorCode::RejectedByUser, message)));
    }
    Ok(Permit::new(question.bound, Basis::Person(Arc::clone(&decision.by))))
}

/// An approval of more than one call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub id: GrantId,
    /// The definition of the tool that it was given for.
    pub fingerprint: Digest,
    /// The rules whose questions it answers.
    pub rules: Vec<Arc<str>>,
    pub scope: Scope,
    pub by: Arc<str>,
}

/// Turns a question and a grant that answers it into a permit. The caller has looked the grant up for this principal and
/// this tool of this server.
///
/// # Errors
/// The tool's definition is another one now, or a rule asks that the grant does not name, or that does not
/// allow a yes to reach so far (any more): this is the question again.
pub fn redeem_grant(question: Question, grant: &Grant) -> Result<Permit, Box<Question>> {
    let is_answered = |ask: &AskReason| grant.rules.contains(&ask.rule) && grant.scope <= ask.remember;
    let answers = question.asks.iter().all(is_answered);
    if !answers || grant.fingerprint != question.call().tool().fingerprint {
        return Err(Box::new(question));
    }
    Ok(Permit::new(question.bound, Basis::Grant { id: grant.id, by: Arc::clone(&grant.by) }))
}
