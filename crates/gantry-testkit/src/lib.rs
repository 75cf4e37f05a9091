//! What the tests stand on: a home for one Gantry, a test Gantry with misbehaving tools, small clients, servers.
//!
//! The program under test is always the real one, as a process of its own. The test Gantry (`src/bin/test-gantry.rs`)
//! is that same program with one more provider, for misbehaviour that no real tool shows.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests start processes, and a test that cannot go on has to fail loudly"
)]

pub mod bench;
pub mod connection;
pub mod coordination;
pub mod echo;
pub mod faulty;
pub mod fixture;
pub mod git_server;
pub mod home;
pub mod process;
pub mod provider;
pub mod real_servers;
pub mod server;
pub mod tls;
pub mod troubleshooting;

pub use connection::Connection;
pub use echo::Echo;
pub use home::{Home, Ran};
pub use server::Server;

/// Whether the long forms of the crash, fault and load tests are to run.
#[must_use]
pub fn long() -> bool {
    std::env::var_os("GANTRY_TEST_LONG").is_some()
}

/// The tools that Gantry has without a configuration, by name.
pub const BUILT_IN: [&str; 16] = [
    "delete_file",
    "format_code",
    "git_commit",
    "git_diff",
    "git_log",
    "git_push",
    "git_status",
    "install_package",
    "list_directory",
    "move_file",
    "read_file",
    "run_code",
    "run_tests",
    "search_code",
    "web_fetch",
    "write_file",
];
