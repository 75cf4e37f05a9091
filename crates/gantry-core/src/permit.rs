//! The permit: proof that one exact call may run.
//!
//! Everything that causes an effect takes `&Permit`, so code that skips judging does not compile. A permit is made in two
//! places only: by the verdict of the policies ([`crate::policy::Evaluated::into_verdict`]) and by redeeming a person's
//! decision or grant ([`crate::approval`]). It is bound to a digest of the caller, the tool's fingerprint, the canonical
//! arguments, the rules and the precondition; a change of any of them is another call.
//!
//! It cannot be made by hand:
//! ```compile_fail
//! let permit = gantry_core::Permit { };
//! ```
//! nor by default, nor from JSON:
//! ```compile_fail
//! let permit = gantry_core::Permit::default();
//! ```
//! ```compile_fail
//! let permit: gantry_core::Permit = serde_json::from_str("{}").unwrap();
//! ```
//! nor copied, so that one approval is one call:
//! ```compile_fail
//! fn twice(permit: &gantry_core::Permit) -> gantry_core::Permit { permit.clone() }
//! ```
//! nor changed after the fact:
//! ```compile_fail
//! fn other_arguments(permit: &mut gantry_core::Permit) { permit.arguments = "{}".into(); }
//! ```
//! A question is not a permit; only a decision makes it one:
//! ```compile_fail
//! fn run(permit: &gantry_core::Permit) {}
//! fn skip(question: &gantry_core::approval::Question) { run(question); }
//! ```
//! and a resolved call that was not judged cannot become one:
//! ```compile_fail
//! fn skip(call: gantry_core::ResolvedCall) -> gantry_core::Permit { call.into() }
//! ```
//! while reading one is fine:
//! ```
//! fn arguments(permit: &gantry_core::Permit) -> &str { permit.arguments() }
//! ```

use crate::call::ResolvedCall;
use crate::digest::Digest;
use crate::id::GrantId;
use crate::principal::Caller;
use crate::tool::Tool;
use std::sync::Arc;

/// Who allowed a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// The policies, and no rule asks a person.
    Policy,
    /// This person, for this call.
    Person(Arc<str>),
    /// This person, for calls of this tool.
    Grant { id: GrantId, by: Arc<str> },
}

/// Proof that one exact call may run.
#[derive(Debug)]
pub struct Permit {
    tool: Arc<Tool>,
    arguments: Arc<str>,
    arguments_digest: Digest,
    recorded: Arc<str>,
    binding: Digest,
    precondition: Option<Arc<str>>,
    basis: Basis,
}

impl Permit {
    /// The only constructor, for the two places that may make one.
    pub(crate) fn new(bound: BoundCall, basis: Basis) -> Self {
        let BoundCall { call, binding, precondition, revision: _ } = bound;
        Self {
            arguments_digest: call.arguments_digest(),
            recorded: Arc::clone(call.recorded()),
            tool: Arc::clone(call.tool()),
            arguments: Arc::clone(call.arguments()),
            binding,
            precondition,
            basis,
        }
    }

    pub fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    /// The arguments it may run with, as JSON text.
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// The digest of the canonical arguments.
    pub fn arguments_digest(&self) -> Digest {
        self.arguments_digest
    }

    /// The arguments as the log and the ledger may show them.
    pub fn recorded_arguments(&self) -> &Arc<str> {
        &self.recorded
    }

    /// Equal bindings mean equal calls by the same caller.
    pub fn binding(&self) -> Digest {
        self.binding
    }

    /// The state that the provider found before the call was judged and must still find when it runs.
    pub fn precondition(&self) -> Option<&str> {
        self.precondition.as_deref()
    }

    pub fn basis(&self) -> &Basis {
        &self.basis
    }
}

/// A call and the binding of a permit for it.
#[derive(Debug)]
pub(crate) struct BoundCall {
    pub(crate) call: ResolvedCall,
    pub(crate) binding: Digest,
    pub(crate) precondition: Option<Arc<str>>,
    pub(crate) revision: Digest,
}

impl BoundCall {
    pub(crate) fn new(
        caller: &Caller,
        call: ResolvedCall,
        precondition: Option<Arc<str>>,
        revision: Digest,
    ) -> Self {
        let path = caller.path_text();
        let binding = Digest::of_parts(&[
            caller.project.as_bytes(),
            caller.principal.as_bytes(),
            path.as_bytes(),
            call.tool().key.provider.as_bytes(),
            call.tool().fingerprint.as_bytes(),
            call.canonical().text().as_bytes(),
            precondition.as_deref().unwrap_or_default().as_bytes(),
            revision.as_bytes(),
        ]);
        Self { call, binding, precondition, revision }
    }
}
