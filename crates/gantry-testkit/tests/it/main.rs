//! The servers that the end-to-end tests stand on, spoken to without Gantry: they do what is said of them.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests start processes, and a test that cannot go on has to fail loudly"
)]

mod client;
mod faulty_faults;
mod faulty_speech;
mod faulty_transports;
mod real_servers;
