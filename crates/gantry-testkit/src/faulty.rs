//! An MCP server that misbehaves on request, to prove what Gantry does when a server does.
//!
//! It writes JSON as text and knows no SDK, so that it can say what no honest library would. Without a fault it is a
//! well-behaved server of either era on any transport. The program is `src/bin/faulty.rs`; a test starts one over a
//! socket with [`Faulty::start`], and gives [`Faulty::program`] to Gantry for stdio.

mod connection;
mod era;
mod features;
pub mod lossless_samples;
mod methods;
mod options;
mod process;
mod server;
mod tools;
mod transport;
mod wire;

pub use options::{Era, Kind, Options};
pub use process::{Faulty, entry};
pub use tools::special::POISON;
pub use tools::{APART, COLLIDING, LONG_NAME, RESERVED};

use anyhow::{Context as _, Result};
use server::Server;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The newest version with a handshake.
pub const LEGACY: &str = "2025-11-25";
/// The version without one.
pub const MODERN: &str = "2026-07-28";

/// Bytes on standard error before the first answer, and with every call, of `--stderr-flood`.
const STDERR_BYTES_AT_START: usize = 8 * 1024 * 1024;
const STDERR_BYTES_PER_CALL: usize = 256 * 1024;

/// A grandchild that is not killed ends by itself.
const GRANDCHILD_LIFETIME: Duration = Duration::from_secs(300);

/// Does what the options say until the client, or the process that holds standard input, is gone.
pub fn run(options: Options) -> Result<()> {
    let faults = &options.faults;
    if faults.be_grandchild.is_some() {
        rustix::process::setsid().context("the grandchild cannot leave its session")?;
        std::thread::sleep(GRANDCHILD_LIFETIME);
        return Ok(());
    }
    if faults.exit_on_start {
        exit(3, "it was told to exit on start");
    }
    if let Some(marker) = &faults.spawn_grandchild {
        spawn_grandchild(marker)?;
    }
    if faults.stderr_flood {
        flood_stderr(STDERR_BYTES_AT_START);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(transport::serve(Arc::new(Server::new(options))));
    // A read of standard input cannot be cancelled, and nothing is worth waiting for.
    runtime.shutdown_background();
    ended
}

/// Starts a process that leaves its parent's session, so that only a killer of whole trees finds it, and forgets it.
fn spawn_grandchild(marker: &str) -> Result<()> {
    // Of the pipes it gets none: a pipe that stays open would be a second fault.
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--be-grandchild", marker]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop).context("the grandchild does not start")
}

/// Ends the process at once, and says why on standard error.
#[expect(clippy::exit, reason = "a server that dies without an answer is what is being played")]
fn exit(code: i32, why: &str) -> ! {
    std::io::stderr().write_all(format!("faulty: {why}\n").as_bytes()).ok();
    std::process::exit(code)
}

/// Blocks until all of it is read, as a chatty program does.
fn flood_stderr(bytes: usize) {
    let line = format!("{}\n", "noise ".repeat(170));
    for _ in 0..bytes.div_ceil(line.len()) {
        std::io::stderr().write_all(line.as_bytes()).ok();
    }
}
