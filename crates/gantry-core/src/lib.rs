//! The words and the rules of Gantry: what a tool, a call, a permit and a refusal are, and who may do what.
//!
//! **Invariant:** nothing here does I/O or awaits. Everything is a pure function of its arguments, so every rule
//! can be tested by the thousand and no failure of the outside world can be mistaken for a decision.
//!
//! The life of a call reads as a chain of types, each of which can only be made from the one before:
//! `CallRequest → ResolvedCall → Permit → Slot → RawOutput → Shaped → Receipt → Reply`. This crate owns the
//! first three and the rules between them; `gantry-runtime` owns the rest.

pub mod approval;
pub mod budget;
pub mod call;
pub mod digest;
pub mod error;
pub mod format;
pub mod id;
pub mod json;
pub mod limits;
pub mod names;
pub mod pattern;
pub mod permit;
pub mod policy;
pub mod principal;
pub mod raw;
pub mod redact;
pub mod schema;
pub mod shape;
pub mod state;
pub mod tool;
pub mod toolset;
pub mod yaml;

pub use call::{CallRequest, Priority, ResolvedCall};
pub use error::{CallError, CallFailure, EffectState, ErrorCode, Refusal, ToolError};
pub use permit::Permit;
pub use policy::Verdict;
pub use principal::{Caller, EntryPoint, Role};
pub use state::State;
pub use tool::{Effect, Tool, ToolKind};
pub use toolset::Toolset;
