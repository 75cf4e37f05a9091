//! An MCP server that misbehaves on request, to prove what Gantry does when a server does.
//!
//! It writes JSON as text and knows no SDK, so that it can say what no honest library would. Without a fault it is a
//! well-behaved server of either era on any transport. The program is `src/bin/faulty.rs`; a test starts one over a
//! socket with [`Faulty::start`], and gives [`Faulty::program`] to Gantry for stdio.

mod catalogue;
mod features;
mod gate;
mod grandchild;
mod link;
mod methods;
pub mod odd;
mod options;
mod process;
mod server;
mod tools;
mod transport;
mod wire;

pub use catalogue::poison::POISON;
pub use catalogue::{COLLIDING, LONG_NAME, RESERVED};
pub use options::{Era, Fault, Kind, Options, USAGE};
pub use process::Faulty;

use anyhow::Result;
use server::Server;
use std::io::Write;
use std::sync::Arc;

/// The newest version with a handshake.
pub const LEGACY: &str = "2025-11-25";
/// The version without one.
pub const MODERN: &str = "2026-07-28";

/// Bytes on standard error before the first answer, and with every call, of `--stderr-flood`.
const STDERR_BYTES_AT_START: usize = 8 * 1024 * 1024;
const STDERR_BYTES_PER_CALL: usize = 256 * 1024;

/// Does what the options say until the other side, or whoever holds standard input, is gone.
///
/// # Errors
/// A port is taken, or standard input or output broke.
pub fn run(options: Options) -> Result<()> {
    if let Some(marker) = &options.sleeper {
        return grandchild::sleep(marker);
    }
    if options.has(Fault::ExitOnStart) {
        exit(3, "it was told to exit on start");
    }
    if let Some(marker) = &options.grandchild {
        grandchild::start(marker)?;
    }
    if options.has(Fault::StderrFlood) {
        flood_stderr(STDERR_BYTES_AT_START);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(transport::serve(Arc::new(Server::new(options))));
    // A read of standard input cannot be cancelled, and nothing is worth waiting for.
    runtime.shutdown_background();
    ended
}

/// Ends the process at once, with its last words on standard error.
#[expect(clippy::exit, reason = "a server that dies without an answer is what is being played")]
fn exit(code: i32, why: &str) -> ! {
    std::io::stderr().write_all(format!("faulty: {why}\n").as_bytes()).ok();
    std::process::exit(code)
}

/// Blocks until somebody has read it all, as a chatty program does.
fn flood_stderr(bytes: usize) {
    let line = format!("{}\n", "noise ".repeat(170));
    for _ in 0..bytes.div_ceil(line.len()) {
        std::io::stderr().write_all(line.as_bytes()).ok();
    }
}
