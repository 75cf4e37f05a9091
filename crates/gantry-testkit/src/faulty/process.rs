//! A faulty server that runs as a process of its own until it is dropped.

use super::options::Kind;
use crate::process::ChildGuard;
use crate::test_dir::executable;
use clap::ValueEnum as _;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A running server behind a socket.
#[must_use]
#[derive(Debug)]
pub struct Faulty {
    child: ChildGuard,
    /// What it printed: `tcp://127.0.0.1:1234`, `http://127.0.0.1:1234/mcp`, `http://…/sse` or `ws://…/`.
    pub url: String,
    pub address: SocketAddr,
}

/// The configuration of a faulty server on stdio with these arguments.
pub fn entry(args: &[&str]) -> Value {
    json!({ "command": Faulty::program(), "args": args })
}

impl Faulty {
    /// The program, to be started over stdio.
    pub fn program() -> PathBuf {
        executable("faulty")
    }

    /// Starts one behind a socket, on a free port.
    pub fn start(kind: Kind, args: &[&str]) -> Self {
        Self::start_at(kind, 0, args)
    }

    /// The same on a port that was free before, for a server that comes back.
    pub fn start_at(kind: Kind, port: u16, args: &[&str]) -> Self {
        assert_ne!(kind, Kind::Stdio, "Gantry itself starts the one on stdio");
        let kind = kind.to_possible_value().expect("no kind is skipped");
        let mut command = Command::new(Self::program());
        command
            .args(["--over", kind.get_name(), "--port", &port.to_string()])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = ChildGuard(command.spawn().expect("the faulty server starts"));
        let url = child.first_line();
        let (_, rest) = url.split_once("://").unwrap_or_else(|| panic!("no URL: {url:?}"));
        let address = rest.split('/').next().unwrap_or_default().parse().expect("an address");
        Self { child, url, address }
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }
}
