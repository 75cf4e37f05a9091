//! Real processes, looked at from outside: what they are given, and that nothing of them is left.
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "tests start processes, and a test that cannot go on has to fail loudly"
)]

mod end;
mod jail;
mod start;
mod world;
