//! A faulty server that runs as a process of its own until it is dropped.

use super::options::Kind;
use crate::home::executable;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A running server behind a socket.
#[derive(Debug)]
pub struct Faulty {
    child: Child,
    /// What it printed: `tcp://127.0.0.1:1234`, `http://127.0.0.1:1234/mcp`, `http://…/sse` or `ws://…/`.
    pub url: String,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Faulty {
    /// The program, to be started over stdio.
    #[must_use]
    pub fn program() -> PathBuf {
        executable("faulty")
    }

    /// Starts one behind a socket, on a free port.
    #[must_use]
    pub fn start(kind: Kind, args: &[&str]) -> Self {
        Self::start_at(kind, 0, args)
    }

    /// The same on a port that was free before, for a server that comes back.
    #[must_use]
    pub fn start_at(kind: Kind, port: u16, args: &[&str]) -> Self {
        let flag = kind.flag().expect("a kind with a socket; Gantry itself starts the one on stdio");
        let mut child = Command::new(Self::program())
            .args([flag, &port.to_string()])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the faulty server starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("the faulty server says where it is");
        let url = line.trim_end().to_owned();
        let (_, rest) = url.split_once("://").unwrap_or_else(|| panic!("no URL: {url:?}"));
        let address = rest.split('/').next().unwrap_or_default().parse().expect("an address");
        Self { child, url, address }
    }

    /// The id of its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
