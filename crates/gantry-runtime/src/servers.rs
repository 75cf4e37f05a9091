//! MCP servers as the runtime keeps them: how each is reached, and how it is doing.

use crate::options::ProviderOptions;
use gantry_core::digest::Digest;
use gantry_mcp::client::{Declared, Protocol};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use gantry_mcp::{Change, Features};

/// How one MCP server is reached and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Its id: the key under `mcpServers`, and its namespace.
    pub id: Arc<str>,
    /// The way to it.
    pub reach: Reach,
    /// The era to speak.
    pub protocol: Protocol,
    /// Whether its names and URIs are shown under its namespace.
    pub prefix: bool,
    /// What its clients may be asked.
    pub declared: Declared,
    /// How long one try to start may take.
    pub startup_timeout: Duration,
    /// How often it is asked whether it is there.
    pub health: Health,
    /// Whether every frame is logged.
    pub trace: bool,
    /// Why it is switched off, if it is: it says `enabled: false`, or a variable that it needs is not set.
    pub off: Option<Off>,
    /// How its tools are run.
    pub options: ProviderOptions,
}

impl ServerSettings {
    /// Whether these lead to the same server, reached and watched the same way; how its tools are run is another matter.
    #[must_use]
    pub fn is_reached_like(&self, other: &Self) -> bool {
        Self { options: other.options.clone(), ..self.clone() } == *other
    }
}

/// Why a server is not started at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Off {
    /// Its configuration says so.
    Disabled,
    /// Its configuration cannot be used, for this reason.
    Unusable(String),
}

/// The way to a server; several addresses, or several processes, are replicas of each other.
///
/// Values of variables and headers are secrets more often than not, so they never show in debug output.
#[derive(Clone, PartialEq, Eq)]
pub enum Reach {
    /// A process.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment besides PATH, HOME, LANG and TMPDIR.
        env: BTreeMap<String, String>,
        /// The folder that it works in.
        cwd: PathBuf,
        /// How many of it run.
        replicas: usize,
    },
    /// Streamable HTTP.
    Http(Remote),
    /// HTTP+SSE.
    Sse(Remote),
    /// WebSocket.
    WebSocket(Remote),
    /// TCP, `host:port`.
    Tcp(Vec<String>),
}

impl Reach {
    /// A digest of where and what the server is. Another program or address is another server; secrets, and how many of it
    /// run, make no difference.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut parts = vec![self.kind()];
        let folder;
        match self {
            Self::Stdio { command, args, cwd, env: _, replicas: _ } => {
                folder = cwd.to_string_lossy();
                parts.extend([command.as_str(), &folder]);
                parts.extend(args.iter().map(String::as_str));
            }
            Self::Http(remote) | Self::Sse(remote) | Self::WebSocket(remote) => {
                parts.extend(remote.urls.iter().map(String::as_str));
            }
            Self::Tcp(addresses) => parts.extend(addresses.iter().map(String::as_str)),
        }
        Digest::of_parts(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
    }

    /// The word for it in the configuration and the API.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::WebSocket(_) => "websocket",
            Self::Tcp(_) => "tcp",
        }
    }
}

/// Addresses and what is sent with every request to them.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// At least one.
    pub urls: Vec<String>,
    /// Headers.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, env, cwd, replicas, args: _ } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("env", &env.keys().collect::<Vec<_>>())
                .field("cwd", cwd)
                .field("replicas", replicas)
                .finish_non_exhaustive(),
            Self::Http(remote) | Self::Sse(remote) | Self::WebSocket(remote) => {
                f.debug_tuple(self.kind()).field(remote).finish()
            }
            Self::Tcp(addresses) => f.debug_tuple("tcp").field(addresses).finish(),
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let n_urls = self.urls.len();
        f.debug_struct("Remote").field("urls", &n_urls).field("headers", &headers).finish()
    }
}

/// How a server is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// How often it is asked.
    pub interval: Duration,
    /// How long it may take to answer.
    pub timeout: Duration,
}

/// How a server is doing, at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Light {
    /// It answers.
    Green,
    /// It is slow, missed one check, is starting, or some of its replicas are down.
    Yellow,
    /// It is down.
    Red,
    /// It is switched off.
    Off,
}

/// A server as `GET /api/v1/servers` lists it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// Its id.
    pub id: Arc<str>,
    /// The project that it belongs to.
    pub project: Arc<str>,
    /// The active agent that it runs for alone; the others of the project have a process or connection of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// `stdio`, `http`, `sse`, `websocket` or `tcp`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// How it is doing.
    pub light: Light,
    /// The same in a word or two: `ready`, `starting`, `slow`, `down`, `off`.
    pub status: &'static str,
    /// Since when, as RFC 3339.
    pub since: String,
    /// The protocol version that is spoken with it.
    pub era: Option<&'static str>,
    /// How long it took to answer last.
    pub latency_ms: Option<f64>,
    /// How many tools it has.
    pub tools: usize,
    /// How many of them are quarantined.
    pub quarantined: usize,
    /// How many resources, templates among them.
    pub resources: usize,
    /// How many prompts.
    pub prompts: usize,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When it is tried again, as RFC 3339, while it is down.
    pub retry_at: Option<String>,
    /// What looks suspicious in its definitions.
    pub flags: Vec<String>,
    /// Each replica, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<ReplicaStatus>,
}

/// One replica.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaStatus {
    /// Its address, or its number.
    pub name: String,
    /// How it is doing.
    pub light: Light,
    /// Requests under way.
    pub in_flight: usize,
    /// What went wrong last.
    pub last_error: Option<String>,
}

/// What is different between the definitions that are pinned and those that servers have now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockDiff {
    /// The server.
    pub server: Arc<str>,
    /// The tool, or `null` for the server's instructions.
    pub tool: Option<String>,
    /// `added`, `changed`, `removed`, or `unpinned` for a server that is not in the file yet.
    pub change: &'static str,
    /// The definition that is pinned; its text as a string where that is JSON which cannot be shown as a value.
    pub pinned: Option<serde_json::Value>,
    /// The one that the server has now.
    pub current: Option<serde_json::Value>,
    /// The digest of every byte of it that means something, so that two definitions which look alike are not taken for
    /// each other.
    pub fingerprint: Option<String>,
    /// What looks suspicious in the new one.
    pub flags: Vec<String>,
}

impl LockDiff {
    /// A text that stands for exactly these differences: a yes that names it is a yes to what was seen.
    #[must_use]
    pub fn revision(differences: &[Self]) -> String {
        let text = serde_json::to_string(differences).unwrap_or_default();
        Digest::of(text.as_bytes()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let process = Reach::Stdio {
            command: "npx".into(),
            args: vec!["--token=SECRET".into()],
            env: BTreeMap::from([("TOKEN".to_owned(), "SECRET".to_owned())]),
            cwd: "/".into(),
            replicas: 1,
        };
        let urls = vec!["https://example.com/?key=SECRET".to_owned()];
        let headers = vec![("Authorization".to_owned(), "SECRET".to_owned())];
        let remote = Reach::Http(Remote { urls, headers });
        let shown = format!("{process:?} {remote:?}");
        assert!(!shown.contains("SECRET"), "{shown}");
        assert!(shown.contains("TOKEN") && shown.contains("Authorization"), "{shown}");
    }
}
