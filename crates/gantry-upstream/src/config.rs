//! How an MCP server is configured: the way to it, and how it is watched.

use gantry_core::digest::Digest;
pub use gantry_mcp::client::{Declared, Protocol};
use gantry_provider::server::ServerConfig;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How one MCP server is reached and watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Its id: the key under `mcpServers`, and its namespace.
    pub id: Arc<str>,
    /// The way to it.
    pub transport: TransportConfig,
    /// The era to speak.
    pub protocol: Protocol,
    /// Whether its names and URIs are shown under its namespace.
    pub prefix: bool,
    /// What the server may ask clients; Gantry declares it when it connects.
    pub declared: Declared,
    /// How long one attempt to start may take.
    pub startup_timeout: Duration,
    /// How often it is checked.
    pub health: HealthCheck,
    /// Whether every message is shown as an event (`traceMCP`).
    pub trace: bool,
    /// Why it is not started, if so: it says `enabled: false`, or a variable that it needs is not set.
    pub disabled: Option<DisabledReason>,
}

impl ServerConfig for ServerSettings {
    fn id(&self) -> &Arc<str> {
        &self.id
    }

    fn is_prefixed(&self) -> bool {
        self.prefix
    }

    fn is_same(&self, other: &dyn ServerConfig) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }
}

/// Why a server is not started at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisabledReason {
    /// Its configuration says `enabled: false`.
    Disabled,
    /// Its configuration cannot be used, for this reason.
    Unusable(String),
}

/// The way to a server; several addresses, or several processes, are replicas of each other.
///
/// Arguments and values of variables and headers are often secrets, so debug output leaves them out.
#[derive(Clone, PartialEq, Eq)]
pub enum TransportConfig {
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
        /// How many processes of it run.
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

impl TransportConfig {
    /// A digest of where and what the server is. Another program or address is another server; secrets and the number of
    /// replicas make no difference.
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

/// Addresses, and the headers that are sent with every request to them.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// At least one.
    pub urls: Vec<String>,
    /// Headers.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for TransportConfig {
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

/// How often a server is pinged, and how long an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthCheck {
    /// How often it is asked.
    pub interval: Duration,
    /// How long it may take to answer.
    pub timeout: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let process = TransportConfig::Stdio {
            command: "npx".into(),
            args: vec!["--token=SECRET".into()],
            env: BTreeMap::from([("TOKEN".to_owned(), "SECRET".to_owned())]),
            cwd: "/".into(),
            replicas: 1,
        };
        let urls = vec!["https://example.com/?key=SECRET".to_owned()];
        let headers = vec![("Authorization".to_owned(), "SECRET".to_owned())];
        let remote = TransportConfig::Http(Remote { urls, headers });
        let shown = format!("{process:?} {remote:?}");
        assert!(!shown.contains("SECRET"), "{shown}");
        assert!(shown.contains("TOKEN") && shown.contains("Authorization"), "{shown}");
    }

    #[test]
    fn a_connection_is_kept_only_if_every_setting_is_the_same() {
        let remote = |token: &str| {
            let (urls, headers) = (vec!["https://a/".to_owned()], vec![("Key".to_owned(), token.to_owned())]);
            crate::tests::settings(TransportConfig::Http(Remote { urls, headers }))
        };
        let first = remote("one");
        assert!(first.is_same(&remote("one")));
        assert!(!first.is_same(&remote("two")), "a secret that changed has to be sent");
        assert!(!first.is_same(&ServerSettings { trace: true, ..remote("one") }));
    }
}
