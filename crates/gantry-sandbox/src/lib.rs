//! Starts programs and makes sure that nothing of them outlives its purpose: trusted ones under guards ([`spawn`]),
//! untrusted ones in a [`jail`].

pub mod jail;
mod process;
pub mod protected;
mod sys;

pub use process::{Child, Error, Exit, Spec, base_environment, guard_main, spawn};
