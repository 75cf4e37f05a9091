//! What the tests share: a folder for one Gantry, a test Gantry with misbehaving tools, small clients, servers.
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
pub mod npm_registry;
pub mod process;
pub mod provider;
pub mod random;
pub mod real_servers;
pub mod reference;
pub mod server;
pub mod test_dir;
pub mod test_server;
pub mod tls;

pub use connection::Connection;
pub use echo::Echo;
pub use random::Random;
pub use server::Server;
pub use test_dir::{CommandOutput, TestDir};
pub use test_server::TestServer;

use serde_json::Value;

/// Whether the long forms of the crash, fault and load tests are to run.
pub fn long() -> bool {
    std::env::var_os("GANTRY_TEST_LONG").is_some()
}

/// A configuration entry with more keys, or other ones.
pub fn with(mut entry: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().expect("keys") {
        entry[key] = value.clone();
    }
    entry
}

/// The code and the message of a reply that is an error.
#[track_caller]
pub fn failed(reply: &Value) -> (String, String) {
    assert_eq!(reply["ok"], false, "{reply}");
    let field = |name: &str| reply["error"][name].as_str().expect("a text").to_owned();
    (field("code"), field("message"))
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
