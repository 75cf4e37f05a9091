//! The ways to an MCP server: which one an entry means, and which addresses it takes.

use super::tree::Node;

/// What an entry calls the keys that say how its server is reached.
#[derive(Debug)]
pub(super) struct Spelling {
    /// The key that names the transport.
    pub(super) transport: &'static str,
    /// The key that says where the server listens.
    pub(super) address: &'static str,
    /// All keys that can say that.
    pub(super) addresses: &'static [&'static str],
}

impl Spelling {
    /// In `mcpServers`.
    pub(super) const SERVER: Self =
        Self { transport: "type", address: "url", addresses: &["url", "urls", "address"] };
    /// In the catalogue of tools.
    pub(super) const CATALOGUE: Self =
        Self { transport: "transport", address: "endpoint", addresses: &["endpoint"] };
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Stdio,
    Http,
    Sse,
    WebSocket,
    Tcp,
}

/// Why an entry does not say how its server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undecided {
    /// It has neither a command nor an address.
    Nothing,
    /// It has both.
    Both,
    /// Its type is not known, which was reported.
    Unknown,
}

impl Transport {
    /// The way that an entry means, by its type or else by what it has.
    pub(super) fn of(entry: &Node, spelling: &Spelling) -> Result<Self, Undecided> {
        let get = |key: &str| entry.value.entries().iter().find(|e| e.key == key).map(|e| &e.node);
        if let Some(word) = get(spelling.transport) {
            return word.value.as_text().and_then(|text| Self::named(&text.text)).ok_or(Undecided::Unknown);
        }
        let address = spelling.addresses.iter().find_map(|key| Some((*key, get(key)?)));
        match (get("command"), address) {
            (None, None) => Err(Undecided::Nothing),
            (Some(_), Some(_)) => Err(Undecided::Both),
            (Some(_), None) => Ok(Self::Stdio),
            (None, Some(("address", _))) => Ok(Self::Tcp),
            (None, Some((_, node))) => {
                let first = node.value.items().first().unwrap_or(node);
                Ok(first.value.as_text().map_or(Self::Http, |text| Self::of_url(&text.text)))
            }
        }
    }

    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "stdio" | "process" => Self::Stdio,
            "http" | "streamable-http" | "streamableHttp" => Self::Http,
            "sse" => Self::Sse,
            "websocket" | "ws" => Self::WebSocket,
            "tcp" => Self::Tcp,
            _ => return None,
        })
    }

    fn of_url(url: &str) -> Self {
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("ws" | "wss") => Self::WebSocket,
            Some("tcp") => Self::Tcp,
            _ => Self::Http,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
            Self::Tcp => "tcp",
        }
    }

    /// Keys that mean nothing to it.
    pub(super) fn without_effect(self) -> &'static [&'static str] {
        match self {
            Self::Stdio => &["headers"],
            Self::Http | Self::Sse | Self::WebSocket => &["args", "env", "cwd", "replicas"],
            Self::Tcp => &["args", "env", "cwd", "replicas", "headers"],
        }
    }

    /// What its addresses are, in words.
    pub(super) fn address_noun(self) -> &'static str {
        match self {
            Self::Stdio | Self::Http | Self::Sse => {
                "an http:// or https:// address without user and password, such as https://mcp.example.com/mcp"
            }
            Self::WebSocket => {
                "a ws:// or wss:// address without user and password, such as wss://mcp.example.com/ws"
            }
            Self::Tcp => "a host and a port, such as tcp://127.0.0.1:9000",
        }
    }

    /// Whether this is one of its addresses.
    pub(super) fn takes(self, address: &str) -> bool {
        match self {
            Self::Stdio => false,
            Self::Http | Self::Sse => is_url(address, &["http", "https"]),
            Self::WebSocket => is_url(address, &["ws", "wss"]),
            Self::Tcp => host_and_port(address).is_some(),
        }
    }
}

fn is_url(text: &str, schemes: &[&str]) -> bool {
    let Ok(uri) = text.parse::<http::Uri>() else { return false };
    let host = uri.authority().is_some_and(|host| !host.as_str().contains('@') && !host.host().is_empty());
    host && uri.scheme_str().is_some_and(|scheme| schemes.contains(&scheme))
}

/// `host:port` of a TCP address, written with `tcp://` or without.
pub(super) fn host_and_port(text: &str) -> Option<&str> {
    let bare = text.strip_prefix("tcp://").unwrap_or(text);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    let authority = bare.parse::<http::uri::Authority>().ok()?;
    let port = authority.port_u16().filter(|port| *port > 0);
    (port.is_some() && !authority.host().is_empty() && !bare.contains('@')).then_some(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transport_takes_its_own_addresses() {
        for (transport, good, bad) in [
            (
                Transport::Http,
                ["http://localhost:1/mcp", "https://a.example/mcp?x=1", "http://[::1]:8000"].as_slice(),
                [
                    "",
                    "localhost:1",
                    "ftp://a/",
                    "ws://a/",
                    "http://",
                    "https://u:p@a/",
                    "/mcp",
                    "http://a b/",
                ]
                .as_slice(),
            ),
            (Transport::WebSocket, &["ws://a:1", "wss://a/x"], &["http://a/", "a:1"]),
            (
                Transport::Tcp,
                &["127.0.0.1:9000", "tcp://a:1", "tcp://[::1]:1/"],
                &["a", "a:0", "a:70000", "tcp://a", ":1", "u@a:1", "tcp://a:1/x"],
            ),
        ] {
            good.iter().for_each(|text| assert!(transport.takes(text), "{transport:?} {text}"));
            bad.iter().for_each(|text| assert!(!transport.takes(text), "{transport:?} {text}"));
        }
    }
}
