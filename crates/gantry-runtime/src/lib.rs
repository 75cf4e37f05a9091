//! The governed pipeline and everything it needs: pool, sessions, queues, cache, ledger, events, and the providers.
//!
//! A call enters by [`Runtime::call`] from whatever door and leaves as a [`Reply`]. What happens in between is one
//! sentence, written in `pipeline.rs`: resolve → authorise → approve → cache → queue → execute → shape → record → reply.

pub mod context;
pub mod provider;
