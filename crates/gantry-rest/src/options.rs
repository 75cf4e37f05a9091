//! How REST services are set up.

use gantry_core::Effect;
use gantry_core::digest::Digest;
use gantry_core::pattern::Pattern;
use gantry_egress::Url;
use gantry_egress::address_guard::IpNet;
use gantry_openapi::Method;
use gantry_provider::redact::Redactor;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// All REST services of a project.
#[derive(Debug, Clone, Default)]
pub struct RestOptions {
    /// Private addresses that they may be at.
    pub private: Vec<IpNet>,
    /// Tools that are spelled out.
    pub inline: Vec<Inline>,
    /// APIs that a document describes.
    pub apis: Vec<ApiOptions>,
}

/// A tool that is one request. Its headers and its address may hold secrets, so it shows little of itself.
#[derive(Clone, PartialEq)]
pub struct Inline {
    pub name: String,
    pub description: String,
    pub method: Method,
    /// With `${parameters.x}` in the path, the query and the fragment; the host is fixed.
    pub url: String,
    /// Added to the query; templates.
    pub query: Vec<(String, String)>,
    /// Templates.
    pub headers: Vec<(String, String)>,
    /// The body: any JSON with templates in its texts. A text that is one placeholder becomes the argument itself.
    pub body: Option<Value>,
    /// What the tool takes; JSON Schema.
    pub schema: Value,
    /// What it may change, if not what its method says.
    pub effect: Option<Effect>,
    pub streaming: Option<Streaming>,
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inline")
            .field("name", &self.name)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// How an answer that comes in pieces is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streaming {
    pub mode: StreamMode,
    /// How long pieces are waited for.
    pub timeout: Duration,
    /// Bytes that are read.
    pub max_bytes: usize,
}

/// What the pieces are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamMode {
    /// A JSON value in each line.
    Ndjson,
    /// Server-sent events.
    Sse,
    /// A JSON object in each line, whose kind is said by one of its fields; the answer is put together from tokens.
    Json {
        /// What a line begins with that is not JSON, such as `data: `.
        line_prefix: String,
        /// The field that says what kind of object it is.
        discriminator_field: String,
        /// The kind of the last object.
        done_value: String,
        /// Its field with the whole answer.
        answer_field: String,
        /// The kind of an object with a piece of the answer.
        token_value: String,
        /// Its field with that piece.
        token_field: String,
    },
}

/// An API that a document describes. It shows nothing of what may be secret.
#[derive(Clone)]
pub struct ApiOptions {
    pub id: String,
    pub spec: SpecPlace,
    /// Where the API is, instead of what the document says.
    pub base_url: Option<Url>,
    /// Values of variables in the addresses of servers.
    pub variables: BTreeMap<String, String>,
    /// Sent with every request. Secrets.
    pub headers: Vec<(String, String)>,
    /// What is shown to the API, by the name of the security scheme.
    pub credentials: BTreeMap<String, Credential>,
    pub methods: Vec<Method>,
    pub tags: Vec<String>,
    pub include: Option<Vec<Pattern>>,
    pub exclude: Vec<Pattern>,
    /// What operations may change, where their method says something else.
    pub effects: Vec<(Pattern, Effect)>,
}

impl ApiOptions {
    /// Equal for equal options, and only for those.
    pub(super) fn digest(&self) -> Digest {
        let Self { id, spec, base_url, variables, headers, credentials, .. } = self;
        let Self { methods, tags, include, exclude, effects, .. } = self;
        let credentials: Vec<_> = credentials.iter().map(|(name, it)| (name, it.parts())).collect();
        let chosen = format!("{methods:?}{tags:?}{include:?}{exclude:?}{effects:?}");
        let reached = format!("{id:?}{spec:?}{base_url:?}{variables:?}{headers:?}{credentials:?}");
        Digest::of_parts(&[chosen.as_bytes(), reached.as_bytes()])
    }
}

impl fmt::Debug for ApiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiOptions").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Where a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecPlace {
    /// Absolute.
    File(PathBuf),
    /// `http` or `https`.
    Url(Url),
}

/// What is shown to an API. Shows nothing of itself.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// An API key.
    Key(String),
    /// A user and a password.
    Basic { username: String, password: String },
    /// A token that is there already.
    Token(String),
    /// What a token is got for.
    Client { id: String, secret: String, token_url: Option<Url>, scopes: Option<Vec<String>> },
}

impl Credential {
    /// Has its secrets masked.
    pub(super) fn add_to(&self, redactor: &mut Redactor) {
        match self {
            Self::Key(secret) | Self::Token(secret) => redactor.add(secret),
            Self::Basic { username, password } => redactor.add_basic(username, password),
            Self::Client { id, secret, .. } => redactor.add_basic(id, secret),
        }
    }

    /// All that it holds.
    fn parts(&self) -> (&'static str, Vec<&str>) {
        match self {
            Self::Key(key) => ("key", vec![key]),
            Self::Basic { username, password } => ("basic", vec![username, password]),
            Self::Token(token) => ("token", vec![token]),
            Self::Client { id, secret, token_url, scopes } => {
                let scopes = scopes
                    .iter()
                    .flat_map(|scopes| ["scopes"].into_iter().chain(scopes.iter().map(String::as_str)));
                let url = token_url.as_ref().map_or("", Url::as_str);
                ("client", [id, secret, url].into_iter().chain(scopes).collect())
            }
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key",
            Self::Basic { .. } => "Basic",
            Self::Token(_) => "Token",
            Self::Client { .. } => "Client",
        })
    }
}
