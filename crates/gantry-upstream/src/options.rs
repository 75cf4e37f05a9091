//! How an MCP server is configured: one entry under `mcpServers`, as far as it says how the server is reached and watched.

use crate::launch::Launch;
use gantry_core::digest::Digest;
pub use gantry_mcp::client::{OfferedCapabilities, Protocol};
use gantry_provider::options::{
    DAY, EnvName, HOUR, HeaderName, HeaderValue, Limit, Millis, OneOrMore, PathText, PlainValue, Secret,
    read_as, read_map, read_some,
};
use gantry_provider::redact::Redactor;
use gantry_provider::server::ServerConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

// Arguments, addresses and the values of variables and headers are often secrets, so debug output leaves them out.
/// An MCP server: a program to start (`command`), or the address at which it listens (`url`, `urls` or `address`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the configuration file")]
pub struct ServerOptions {
    /// A note for people.
    pub description: Option<String>,
    /// How it is reached: `http` is streamable HTTP, `sse` the older HTTP+SSE, `tcp` a JSON message per line. Without it:
    /// `stdio` with `command`, `tcp` with `address`, else what the scheme of the address says.
    #[serde(rename = "type", alias = "transport", alias = "transportType")]
    pub transport: Option<TransportType>,
    /// The program to start, found by PATH; no shell reads it.
    pub command: Option<String>,
    /// Arguments of the program.
    pub args: Vec<Secret>,
    /// Environment variables of the program. From Gantry's own environment it gets only PATH, HOME, LANG and TMPDIR.
    #[serde(deserialize_with = "read_map::<EnvName, PlainValue, _, _, _, _>")]
    #[schemars(with = "BTreeMap<String, Secret>")]
    pub env: BTreeMap<String, Secret>,
    /// The folder it starts in; without it, a folder of its own, outside of every workspace. Relative paths in `args` then
    /// start at the folder of the configuration.
    #[serde(deserialize_with = "read_some::<PathText, _, _>")]
    #[schemars(with = "PathText")]
    pub cwd: Option<PathBuf>,
    /// How many copies of the program run; a call goes to the one with the least to do. Only for `stdio`.
    pub replicas: Limit<1, 64>,
    /// Where it listens: `http(s)://` for `http` and `sse`, `ws(s)://` for `websocket`, `tcp://host:port` for `tcp`.
    #[serde(alias = "serverUrl", alias = "httpUrl", alias = "endpoint")]
    pub url: Option<Secret>,
    /// The same server at several addresses, instead of `url`; a call goes to the one with the least to do.
    #[serde(deserialize_with = "read_as::<OneOrMore<Secret>, _, _>")]
    #[schemars(with = "OneOrMore<Secret>")]
    pub urls: Vec<Secret>,
    /// `host:port`, instead of `url`, for `tcp`.
    pub address: Option<Secret>,
    /// Headers that are sent with every request.
    #[serde(deserialize_with = "read_map::<HeaderName, HeaderValue, _, _, _, _>")]
    #[schemars(with = "BTreeMap<String, Secret>")]
    pub headers: BTreeMap<String, Secret>,
    /// The opposite of `enabled`, as editors write it.
    pub disabled: bool,
    /// How long one attempt to start it may take. Gantry tries again in the background.
    #[serde(rename = "startupTimeoutMs")]
    pub startup_timeout: Millis<15_000, HOUR>,
    /// How Gantry checks whether the server answers.
    pub health_check: HealthCheck,
    /// The protocol to speak with it: `legacy` is 2024-11-05 to 2025-11-25, `modern` 2026-07-28, `auto` finds out.
    #[serde(deserialize_with = "ProtocolName::deserialize")]
    #[schemars(with = "ProtocolName")]
    pub protocol: Protocol,
    /// Whether clients see the server's names and URIs with the server's id in front. With `false`, a tool whose name
    /// belongs to another provider is left out.
    pub prefix: bool,
    /// Log every message to and from it, with secrets masked. Without it, `defaults.traceMCP` decides.
    #[serde(rename = "traceMCP")]
    pub trace: Option<bool>,
    /// Whether the server may ask the person behind the client, if the client can do that.
    pub elicitation: bool,
    /// Whether the server may ask the client's model, if the client allows that.
    pub sampling: bool,
    /// Whether the server gets the client's roots. Off by default, because some servers replace the folders that they
    /// may use by these roots.
    pub roots: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let OfferedCapabilities { elicitation, sampling, roots } = OfferedCapabilities::default();
        Self {
            description: None,
            transport: None,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            replicas: Limit::default(),
            url: None,
            urls: Vec::new(),
            address: None,
            headers: BTreeMap::new(),
            disabled: false,
            startup_timeout: Millis::default(),
            health_check: HealthCheck::default(),
            protocol: Protocol::Auto,
            prefix: true,
            trace: None,
            elicitation,
            sampling,
            roots,
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum TransportType {
    /// A process that reads and writes a JSON message per line.
    #[serde(alias = "process")]
    Stdio,
    /// Streamable HTTP.
    #[serde(alias = "streamable-http", alias = "streamableHttp")]
    Http,
    /// The older HTTP+SSE.
    Sse,
    /// WebSocket.
    #[serde(alias = "ws")]
    WebSocket,
    /// TCP, with a JSON message per line.
    Tcp,
}

impl TransportType {
    /// The word for it in the configuration and the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
            Self::Tcp => "tcp",
        }
    }
}

/// How Gantry checks whether a server answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HealthCheck {
    /// How often Gantry checks the server.
    #[serde(rename = "intervalMs")]
    pub interval: Millis<30_000, DAY>,
    /// How long the server may take to answer a check.
    #[serde(rename = "timeoutMs")]
    pub timeout: Millis<5000, HOUR>,
    /// How other programs check the server. Gantry always checks over the connection, which is `jsonrpc`.
    pub kind: HealthKind,
    /// it is asked over the connection (jsonrpc)
    #[schemars(with = "String", extend("deprecated" = true))]
    pub path: UnusedPath,
}

/// How other programs ask a server whether it is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HealthKind {
    /// Over the connection.
    #[default]
    Jsonrpc,
    /// By a request.
    Http,
    /// By a program.
    Command,
}

/// A value that is not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("type" = "string", "deprecated" = true))]
pub struct UnusedPath;

impl<'de> Deserialize<'de> for UnusedPath {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        // The name has the reader of the configuration warn that the key has no effect.
        #[derive(Deserialize)]
        #[serde(rename = "$ignored")]
        struct Ignored(serde::de::IgnoredAny);
        Ignored::deserialize(input).map(|_| Self)
    }
}

/// [`Protocol`] in configuration files.
#[derive(Deserialize, JsonSchema)]
#[serde(remote = "Protocol", rename_all = "lowercase")]
#[schemars(inline)]
enum ProtocolName {
    Auto,
    Legacy,
    Modern,
}

impl ServerOptions {
    #[must_use]
    pub fn transport(&self) -> TransportType {
        let url = self.url.iter().chain(&self.urls).map(Secret::expose).next();
        self.transport.unwrap_or_else(|| match url.and_then(|url| url.split_once("://")) {
            _ if self.command.is_some() => TransportType::Stdio,
            _ if self.address.is_some() => TransportType::Tcp,
            Some((scheme, _)) if ["ws", "wss"].iter().any(|ws| scheme.eq_ignore_ascii_case(ws)) => {
                TransportType::WebSocket
            }
            Some(("tcp", _)) => TransportType::Tcp,
            Some(_) | None => TransportType::Http,
        })
    }

    /// Where it listens: URLs, or `host:port` for TCP. Several addresses are replicas of each other.
    #[must_use]
    pub fn addresses(&self) -> Vec<&str> {
        let all = self.url.iter().chain(&self.urls).chain(&self.address).map(Secret::expose);
        all.map(|address| match address.strip_prefix("tcp://") {
            Some(bare) => bare.strip_suffix('/').unwrap_or(bare),
            None => address,
        })
        .collect()
    }

    /// What the server may ask clients; Gantry declares it when it connects.
    #[must_use]
    pub fn declared(&self) -> OfferedCapabilities {
        OfferedCapabilities { elicitation: self.elicitation, sampling: self.sampling, roots: self.roots }
    }

    /// A digest of where and what the server is. Another program or address is another server; secrets and the number of
    /// replicas make no difference.
    #[must_use]
    pub fn endpoint_digest(&self) -> Digest {
        let mut parts = vec![self.transport().as_str()];
        let folder = self.cwd.as_ref().map(|folder| folder.to_string_lossy());
        if let Some(command) = &self.command {
            parts.extend([command, folder.as_deref().unwrap_or_default()]);
            parts.extend(self.args.iter().map(Secret::expose));
        }
        parts.extend(self.addresses());
        Digest::of_parts(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
    }

    /// Masks what the server is given: its environment, its headers, and the secrets in its addresses.
    pub(crate) fn redactor(&self) -> Redactor {
        let mut redactor = Redactor::default();
        for (name, value) in &self.headers {
            redactor.add_header(name, value.expose());
        }
        for (name, value) in &self.env {
            redactor.add_variable(name, value.expose());
        }
        self.headers.values().for_each(|value| redactor.add_perhaps(value.expose()));
        for url in self.addresses().iter().filter_map(|address| gantry_egress::Url::parse(address).ok()) {
            redactor.add_user(&url);
            url.query_pairs().for_each(|(name, value)| redactor.add_named(&name, &value));
        }
        redactor
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// Its id: the key under `mcpServers`, and its namespace.
    pub id: Arc<str>,
    pub options: ServerOptions,
    /// What it is started from, if it is a program.
    pub launch: Launch,
    pub disabled: Option<DisabledReason>,
}

impl ServerConfig for ServerSettings {
    fn id(&self) -> &Arc<str> {
        &self.id
    }

    fn is_prefixed(&self) -> bool {
        self.options.prefix
    }
}

/// Why a server is not started at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisabledReason {
    /// Its configuration says `enabled: false`.
    Disabled,
    /// It cannot be used, for this reason: a variable that it needs is not set, or what it is started from is not safe.
    Unusable(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::UpstreamServer;
    use gantry_provider::server::Server as _;
    use std::time::Duration;

    fn read(text: &str) -> ServerOptions {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
    }

    #[test]
    fn an_entry_of_the_file_is_read_for_each_transport() {
        for (text, transport, addresses) in [
            (r#"{"command":"npx","args":["-y","m"]}"#, TransportType::Stdio, &[][..]),
            (
                r#"{"url":"https://a/mcp","headers":{"Authorization":"x"}}"#,
                TransportType::Http,
                &["https://a/mcp"],
            ),
            (r#"{"type":"streamableHttp","url":"http://a/"}"#, TransportType::Http, &["http://a/"]),
            (r#"{"type":"sse","url":"http://a/sse"}"#, TransportType::Sse, &["http://a/sse"]),
            (r#"{"type":"ws","url":"ws://a/"}"#, TransportType::WebSocket, &["ws://a/"]),
            (r#"{"urls":["wss://a/","wss://b/"]}"#, TransportType::WebSocket, &["wss://a/", "wss://b/"]),
            (r#"{"url":"tcp://a:1"}"#, TransportType::Tcp, &["a:1"]),
            (r#"{"address":"[::1]:9"}"#, TransportType::Tcp, &["[::1]:9"]),
        ] {
            let options = read(text);
            assert_eq!((options.transport(), &*options.addresses()), (transport, addresses), "{text}");
        }
    }

    #[test]
    fn every_key_of_the_file_is_read_and_no_other() {
        let all = read(
            r#"{"description":"d","type":"stdio","command":"npx","args":["-y"],"env":{"A":"b"},"cwd":"/tmp","replicas":3,
                "headers":{},"disabled":true,"startupTimeoutMs":9,"healthCheck":{"intervalMs":11},
                "protocol":"legacy","prefix":false,"traceMCP":true,"elicitation":false,"sampling":false,"roots":true}"#,
        );
        let health_check =
            HealthCheck { interval: Duration::from_millis(11).into(), ..HealthCheck::default() };
        let expected = ServerOptions {
            description: Some("d".into()),
            transport: Some(TransportType::Stdio),
            command: Some("npx".into()),
            args: vec!["-y".into()],
            env: BTreeMap::from([("A".to_owned(), "b".into())]),
            cwd: Some("/tmp".into()),
            replicas: 3.into(),
            disabled: true,
            startup_timeout: Duration::from_millis(9).into(),
            health_check,
            protocol: Protocol::Legacy,
            prefix: false,
            trace: Some(true),
            elicitation: false,
            sampling: false,
            roots: true,
            ..ServerOptions::default()
        };
        assert_eq!(all, expected);
        let unknown = serde_json::from_str::<ServerOptions>(r#"{"comand":"x"}"#).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `comand`"), "{unknown}");
    }

    #[test]
    fn the_schema_has_the_keys_and_texts_of_the_reference() {
        let schema = schemars::schema_for!(ServerOptions);
        let property =
            |path: &str| schema.pointer(&format!("/properties/{path}")).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(
            property("command/description"),
            "The program to start, found by PATH; no shell reads it."
        );
        assert_eq!(property("startupTimeoutMs/type"), "integer");
        assert_eq!(property("traceMCP/type/0"), "boolean");
        assert_eq!(property("env/additionalProperties/type"), "string");
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let shown = format!(
            "{:?}",
            read(
                r#"{"command":"npx","args":["--token=SECRET"],"env":{"TOKEN":"SECRET"},"url":"https://a/?key=SECRET",
                    "urls":["https://a/?key=SECRET"],"headers":{"Authorization":"SECRET"}}"#
            )
        );
        assert!(!shown.contains("SECRET"), "{shown}");
        assert!(shown.contains("TOKEN") && shown.contains("Authorization"), "{shown}");
    }

    #[test]
    fn a_connection_is_kept_only_if_every_setting_is_the_same() {
        let remote = |token: &str| {
            let headers = BTreeMap::from([("Key".to_owned(), token.into())]);
            let url = Some("https://a/".into());
            crate::tests::settings(ServerOptions { url, headers, ..ServerOptions::default() })
        };
        let server = UpstreamServer::new(remote("one"), &crate::tests::context(Arc::new(())));
        assert!(server.has_config(&remote("one")));
        assert!(!server.has_config(&remote("two")), "a secret that changed has to be sent");
        let mut traced = remote("one");
        traced.options.trace = Some(true);
        assert!(!server.has_config(&traced));
    }
}
