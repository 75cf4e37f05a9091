//! What texts may look like: names, patterns, addresses, hosts, origins, the URL of the store.

use std::net::SocketAddr;

use gantry_core::limits::PATTERN_BYTES;
use gantry_egress::Url;
use gantry_egress::address_guard::parse_range;
use gantry_rest::openapi::Method;
use gantry_tools::web::UrlPattern;

use super::transport::Transport;

/// Longest name of an agent, a queue, a rule, a server.
const MAX_NAME_BYTES: usize = 64;
/// Longest name that people are shown.
const MAX_TITLE_CHARS: usize = 100;

/// Longest name of a REST tool, so that it fits into the longest name of a tool with its namespace.
const MAX_REST_TOOL_BYTES: usize = 56;
/// Longest id of an API, which the names of its tools begin with.
const MAX_API_BYTES: usize = 32;

/// Shortest secret that signs something; what is shorter can be guessed.
const MIN_SECRET_CHARS: usize = 16;

/// What a text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Any,
    NotEmpty,
    Name,
    /// A name for people.
    Title,
    Pattern,
    /// A pattern, or the id of a provider.
    Use,
    /// One tool.
    Tool,
    Path,
    /// A path in the workspace, which is judged once that is known.
    Inside,
    Bind,
    Host,
    Origin,
    StoreUrl,
    ServerId,
    Variable,
    Header,
    /// When calls of a tool wait for a person.
    AskWhen,
    /// Somebody who may decide: the name of a key.
    Approver,
    /// An address that Gantry sends to.
    WebUrl,
    Secret,
    /// A range of IP addresses.
    Network,
    /// What a tool may fetch without asking.
    Site,
    /// A key of somebody else's service.
    Key,
    /// A key that may hold spaces, such as `Token abc`.
    Credential,
    /// The same, or nothing.
    Password,
    /// The name of a tool that is one HTTP request.
    RestTool,
    /// The id of an API.
    Api,
    /// A method of a tool that is one HTTP request.
    Method,
    /// A method that OpenAPI knows.
    AnyMethod,
    /// The address of such a tool, with places for its arguments.
    Template,
    QueryName,
    /// A variable in the address of a server.
    VariableName,
    /// Where an OpenAPI document is.
    Document,
    /// An operation of an API, or a glob.
    Operation,
}

/// How a text is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    Good,
    Bad,
    /// Right, but what it asks for comes with a later version.
    Later(&'static str),
}

impl Rule {
    /// The rule in the words of messages and of the reference page.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Any => "text",
            Self::NotEmpty => "text that is not empty",
            Self::Name => "a name of 1 to 64 letters, digits, _ and -",
            Self::Title => "text of 1 to 100 characters",
            Self::Pattern => "the name of a tool or a glob",
            Self::Use => "the name of a tool, a glob, or the id of a provider",
            Self::Tool => "the name of a tool",
            Self::Path => "a path",
            Self::Inside => "a path in the workspace",
            Self::Bind => "an IP address with a port, such as 127.0.0.1:7420 or [::1]:7420",
            Self::Host => "a host name without scheme, port and wildcard, such as gantry.example.com",
            Self::Origin => "an origin without path and wildcard, such as https://app.example.com",
            Self::ServerId => "a name of 1 to 64 letters, digits, spaces and _ - . / @",
            Self::Variable => "the name of a variable",
            Self::Header => "the name of a header",
            Self::StoreUrl => "a URL such as sqlite://.gantry/gantry.db",
            Self::AskWhen => "always, never or a condition in CEL",
            Self::Approver => "the name of a key, or person",
            Self::WebUrl => {
                "an http:// or https:// address without user and password, such as https://hooks.example.com/gantry"
            }
            Self::Secret => "text of at least 16 characters",
            Self::Network => "an IP address or a range of them, such as 127.0.0.1/32",
            Self::Site => "a host, *. and a domain, or an http:// or https:// address that may end in *",
            Self::Key => "text without spaces",
            Self::Credential => "text that is not empty, on one line",
            Self::Password => "text on one line",
            Self::RestTool => "a name of 1 to 56 letters, digits and _ - .",
            Self::Api => "a name of 1 to 32 letters, digits, _ and -",
            Self::Method => "GET, POST, PUT, PATCH, DELETE or HEAD",
            Self::AnyMethod => "get, put, post, delete, options, head, patch or trace",
            Self::Template => {
                "an http:// or https:// address without user and password, with ${parameters.x} in its path or query only"
            }
            Self::QueryName => "the name of a query parameter",
            Self::VariableName => "the name of a server variable",
            Self::Document => "a path, or an http:// or https:// address without user and password",
            Self::Operation => "an operation, such as list_pets or GET /pets/*",
        }
    }

    pub(super) fn judge(self, text: &str) -> Judgement {
        let good = match self {
            Self::Any => true,
            Self::NotEmpty | Self::AskWhen => !text.trim().is_empty(),
            Self::Name => is_name(text),
            Self::Title => {
                (1..=MAX_TITLE_CHARS).contains(&text.chars().count()) && !text.contains(char::is_control)
            }
            Self::Pattern => is_pattern(text),
            Self::Use => is_pattern(text) || is_server_id(text),
            Self::Tool => is_pattern(text) && !text.contains(['*', '?']),
            Self::Path | Self::Inside => !text.is_empty() && !text.contains('\0'),
            Self::Bind => text.parse::<SocketAddr>().is_ok(),
            Self::Host => is_host(text),
            Self::Origin => is_origin(text),
            Self::StoreUrl if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                return Judgement::Later("PostgreSQL");
            }
            Self::StoreUrl => sqlite_path(text).is_some(),
            Self::ServerId => is_server_id(text),
            Self::Variable => !text.is_empty() && !text.contains(['=', '\0']),
            Self::Header => http::HeaderName::from_bytes(text.as_bytes()).is_ok(),
            Self::Approver => {
                (1..=MAX_NAME_BYTES).contains(&text.len())
                    && text.trim() == text
                    && !text.contains(char::is_control)
            }
            Self::WebUrl => is_web_url(text),
            Self::Secret => text.chars().count() >= MIN_SECRET_CHARS,
            Self::Network => network(text).is_some(),
            Self::Site => UrlPattern::parse(text).is_ok(),
            Self::Key => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()),
            Self::Credential => !text.trim().is_empty() && !text.contains(char::is_control),
            Self::Password => !text.contains(char::is_control),
            Self::RestTool => is_word(text, MAX_REST_TOOL_BYTES, b"_-."),
            Self::Api => is_word(text, MAX_API_BYTES, b"_-"),
            Self::Method => {
                Method::parse(text).is_some_and(|method| !matches!(method, Method::Options | Method::Trace))
            }
            Self::AnyMethod => Method::parse(text).is_some(),
            Self::Template => is_template(text),
            Self::QueryName | Self::VariableName => !text.is_empty() && !text.contains(char::is_control),
            Self::Document if text.contains("://") => is_web_url(text),
            Self::Document => Self::Path.judge(text) == Judgement::Good,
            Self::Operation => {
                (1..=PATTERN_BYTES).contains(&text.len())
                    && text.trim() == text
                    && !text.contains(char::is_control)
            }
        };
        if good { Judgement::Good } else { Judgement::Bad }
    }
}

impl Rule {
    /// Whether the text may be a secret, or hold one.
    pub(super) fn is_secret(self) -> bool {
        matches!(
            self,
            Self::Secret
                | Self::WebUrl
                | Self::Key
                | Self::Credential
                | Self::Password
                | Self::Template
                | Self::Document
        )
    }
}

/// A range of IP addresses as `address/bits`; an address alone is a range of one.
pub(super) fn network(text: &str) -> Option<String> {
    parse_range(text).ok().map(|range| range.to_string())
}

pub(super) fn is_name(text: &str) -> bool {
    is_word(text, MAX_NAME_BYTES, b"_-")
}

/// Letters, digits and some others.
fn is_word(text: &str, max_bytes: usize, others: &[u8]) -> bool {
    (1..=max_bytes).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
}

fn is_web_url(text: &str) -> bool {
    Transport::Http.takes(text) && Url::parse(text).is_ok()
}

/// An address whose host is fixed; after the host it may have places for arguments.
fn is_template(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    // What is in braces may hold anything; the address itself has no space and no line break.
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    is_http
        && is_plain
        && !host.contains(['$', '@', '{', '}'])
        && Url::parse(text).is_ok_and(|url| url.has_host())
}

/// Editors name servers more freely than agents and queues are named.
fn is_server_id(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
        && text.trim() == text
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./@ ".contains(&byte))
}

pub(super) fn is_pattern(text: &str) -> bool {
    (1..=PATTERN_BYTES).contains(&text.len()) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// The path in a `sqlite://` URL. Parameters are not read, so a URL with some is none of ours.
pub(super) fn sqlite_path(url: &str) -> Option<&str> {
    url.strip_prefix("sqlite://").filter(|path| !path.is_empty() && !path.contains(['?', '#', '\0']))
}

fn is_host(text: &str) -> bool {
    let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
                && !text.starts_with(['.', '-'])
        }
    }
}

fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let (name, port) = match host.rsplit_once(':') {
        // The colons of an IPv6 address stand before its bracket.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && is_host(name)
        && port.is_none_or(|port| port.parse::<u16>().is_ok())
}
