//! The governed pipeline and everything it needs: pool, sessions, queues, cache, ledger and events.
//!
//! A call enters by [`Runtime::call`] from any entry point and leaves as a [`Reply`]. What happens in between is one
//! sentence, written in `pipeline.rs`: resolve → authorise → approve → cache → queue → execute → shape → record → reply.

pub mod approvals;
mod cache;
pub use gantry_provider::clock;
pub mod context;
pub mod event;
pub mod services;
/// The rows of the ledger, for the crates that read it.
pub mod ledger {
    pub use gantry_store::{
        ApprovalFilter, ApprovalRow, CallFilter, CallRow, DecisionRow, Error, GrantFilter, GrantRow, KeyRow,
        Page, Scope, SessionFilter, SessionSummary, State, Store, Verdict,
    };
}
pub mod ledger_view;
pub mod metrics;
pub mod options;
mod output_tool;
mod outputs;
mod pipeline;
pub mod projects;
pub mod queue;
pub mod reply;
mod runtime;
pub mod serial_gate;
pub mod session;

pub use context::PipelineContext;
pub use options::{Options, Plan};
pub use projects::Projects;
pub use reply::{CallReply, Extras, Measured, Reply};
pub use runtime::{DryRun, Error, Explanation, ListedTool, Outcome, Runtime, ToolProvider};
pub use services::{Admitted, ProcessOptions, Services};
pub use session::Session;
