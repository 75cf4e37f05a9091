//! The types and the rules of Gantry: tools, calls, permits and refusals, and who may do what.
//!
//! **Invariant:** nothing here does I/O or awaits. Everything is a pure function of its arguments, so rules can be tested
//! with generated cases and an I/O error cannot be mistaken for a decision.
//!
//! The life of a call reads as a chain of types, each of which can only be made from the one before:
//! `CallRequest → ResolvedCall → Permit → Slot → RawOutput → Shaped → Receipt → Reply`. This crate owns the
//! first three and the rules between them; `gantry-runtime` owns the rest.

#[macro_use]
mod words;

pub mod approval;
mod budget;
mod call;
pub mod digest;
pub mod error;
pub mod format;
pub mod id;
pub mod invisible;
pub mod json;
pub mod limits;
pub mod names;
pub mod options;
pub mod pattern;
mod permit;
pub mod policy;
mod principal;
pub mod raw;
pub mod redact;
pub mod schema;
mod state;
pub mod tool;
pub mod toolset;
pub mod truncate;
pub mod yaml;

pub use budget::Budget;
pub use call::{CallRequest, Priority, ResolvedCall};
pub use error::{CallError, CallFailure, EffectState, ErrorCode, Refusal, ToolError};
pub use permit::{Basis, Permit};
pub use policy::Verdict;
pub use principal::{Caller, EntryPoint, Role};
pub use state::State;
pub use tool::{Effect, Tool, ToolKind};
pub use toolset::Toolset;
