//! The permit: proof that one exact call may run.
//!
//! Everything that causes an effect takes `&Permit`, so code that skips the judgement does not compile. A permit is
//! made in two places only: by the policy decision ([`crate::policy::Judged::into_verdict`]) and by redeeming a person's
//! decision or grant ([`crate::approval`]). It is bound to a digest of who asks, the tool's fingerprint, the canonical
//! arguments, the rules and the state of the world that was judged; a change of any of them is another call.
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
//! nor copied, so that one yes is one call:
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
//! and a resolved call that nobody judged has no way to become one:
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

/// On whose word a permit was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// The policies allow it and nothing asks for a person.
    Policy,
    /// This person said yes to this call.
    Person(Arc<str>),
    /// This person said yes to calls of this tool.
    Grant {
        /// The grant.
        id: GrantId,
        /// Who gave it.
        by: Arc<str>,
    },
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
    /// The only constructor, for the two functions that may judge.
    pub(crate) fn new(draft: Draft, basis: Basis) -> Self {
        let Draft { call, binding, precondition, revision: _ } = draft;
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

    /// The tool that may run.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    /// The arguments it may run with, as JSON text.
    #[must_use]
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// The digest of the canonical arguments.
    #[must_use]
    pub fn arguments_digest(&self) -> Digest {
        self.arguments_digest
    }

    /// The arguments as the log and the ledger may show them.
    #[must_use]
    pub fn recorded_arguments(&self) -> &Arc<str> {
        &self.recorded
    }

    /// What the permit is bound to; equal bindings mean equal calls by the same caller.
    #[must_use]
    pub fn binding(&self) -> Digest {
        self.binding
    }

    /// What the provider found before the call was judged and must still find when it runs.
    #[must_use]
    pub fn precondition(&self) -> Option<&str> {
        self.precondition.as_deref()
    }

    /// On whose word it was made.
    #[must_use]
    pub fn basis(&self) -> &Basis {
        &self.basis
    }
}

/// A call together with what a permit for it is bound to.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) call: ResolvedCall,
    pub(crate) binding: Digest,
    pub(crate) precondition: Option<Arc<str>>,
    /// The revision of the rules that judged it.
    pub(crate) revision: Digest,
}

impl Draft {
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
