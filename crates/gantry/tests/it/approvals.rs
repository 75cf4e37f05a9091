//! Approvals and scheduling: calls that wait for a person or for their time, by every door.

mod api;
mod attack;
mod cli;
mod crash;
mod hardship;
mod held;
mod keys;
mod mcp;
pub(crate) mod page;
mod race;
mod remember;
mod rules;
mod together;
mod webhook;
