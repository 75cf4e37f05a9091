//! The reference server `everything` behind a socket: the one real server that has all three transports.

use super::find;
use crate::faulty::Kind;
use crate::process::ChildGuard;
use crate::test_dir::installed;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How often another port is tried when another process was quicker.
const ATTEMPTS: usize = 5;

#[must_use]
#[derive(Debug)]
pub struct Everything {
    child: ChildGuard,
    /// `http://127.0.0.1:1234/mcp` or `…/sse`.
    pub url: String,
}

impl Everything {
    /// Starts one with streamable HTTP or with HTTP+SSE, and waits until it listens.
    pub fn start(kind: Kind) -> Self {
        let started = (0..ATTEMPTS).find_map(|_| Self::try_start(kind));
        started.expect("server-everything finds a free port")
    }

    fn try_start(kind: Kind) -> Option<Self> {
        let (transport, path) = match kind {
            Kind::Http => ("streamableHttp", "mcp"),
            Kind::Sse => ("sse", "sse"),
            Kind::Stdio | Kind::Tcp | Kind::Ws => panic!("server-everything has no {kind:?} with a port"),
        };
        // It cannot say which port it got, so it is given one that was free a moment ago.
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let server = find("everything").prepare(&installed("servers"));
        let mut command = Command::new(&server.command);
        command.args(&server.args).arg(transport).env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = ChildGuard(command.spawn().expect("node starts"));
        let mut running = Self { child, url: format!("http://127.0.0.1:{port}/{path}") };
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if running.child.0.try_wait().expect("its state").is_some() {
                return None;
            }
            assert!(Instant::now() < deadline, "server-everything does not listen");
            std::thread::sleep(POLL_INTERVAL);
        }
        Some(running)
    }
}
