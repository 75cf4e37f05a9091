//! Options of REST services, in the shape of the configuration file: one entry of `restTools`, one of `openapiSpecs`.
//!
//! The keys of an entry about running its tools (`queue`, `cache`, `requestTimeoutMs`, `tools…`, `enabled`) are the
//! engine's and not among these.

use crate::openapi::Method;
use gantry_core::Effect;
use gantry_core::digest::Digest;
use gantry_core::pattern::Pattern;
use gantry_egress::Url;
use gantry_egress::address_guard::IpNet;
use gantry_provider::options::{Secret, millis};
use gantry_provider::redact::Redactor;
use schemars::JsonSchema;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde_json::{Map, Value, from_value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// All REST services of a project.
#[derive(Debug, Clone, Default)]
pub struct RestOptions {
    /// Private address ranges that services may be at.
    pub private: Vec<IpNet>,
    /// Tools that are one request each.
    pub inline: Vec<Inline>,
    /// APIs that a document describes.
    pub apis: Vec<ApiOptions>,
}

/// A tool that is one HTTP request. Address, headers and body may hold secrets, so `Debug` shows little.
#[derive(Clone, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Inline {
    /// The key of the entry, which the reader of the file fills in.
    #[serde(skip)]
    pub name: String,
    /// What it does and when to use it, for a model.
    pub description: String,
    /// The method of the request. It also says what a call may change: GET and HEAD read, DELETE destroys, the others
    /// write.
    #[serde(default)]
    #[schemars(with = "String")]
    pub method: Method,
    /// Where it is sent. `${parameters.city}` in the path or in the query is the argument `city`, encoded.
    pub url: String,
    /// Added to the query; `${parameters.x}` as in `url`.
    #[serde(default, deserialize_with = "pairs")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub query: Vec<(String, String)>,
    /// Sent with the request; `${parameters.x}` is the argument `x`.
    #[serde(default, deserialize_with = "pairs")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: Vec<(String, String)>,
    /// The body: any value, sent as JSON. A text in it that is nothing but `${parameters.x}` is the argument itself, of
    /// any type.
    pub body_template: Option<Value>,
    /// What the tool takes, as JSON Schema; no arguments without it.
    #[serde(default)]
    pub parameters_schema: Value,
    /// What a call may change, where the method says something else.
    #[schemars(with = "Option<String>")]
    pub effect: Option<Effect>,
    /// How an answer that comes in pieces is read. Without it, an answer is read whole.
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
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Streaming {
    /// What the pieces are.
    pub mode: StreamMode,
    /// Of `json-stream`: what a line begins with before its JSON.
    pub line_prefix: Option<String>,
    /// Of `json-stream`: the field that says what an object is; `type` by default.
    pub discriminator_field: Option<String>,
    /// Of `json-stream`: what it says in the last object; `done` by default.
    pub done_value: Option<String>,
    /// Of `json-stream`: the field of the last object with the whole answer; `answer` by default.
    pub answer_field: Option<String>,
    /// Of `json-stream`: what it says in an object with a piece of the answer; `token` by default.
    pub token_value: Option<String>,
    /// Of `json-stream`: the field of that object with the piece; `content` by default.
    pub token_field: Option<String>,
    /// How long pieces are waited for in all. Without `requestTimeoutMs`, a call may take 10 seconds longer.
    #[serde(rename = "timeoutMs", with = "millis", default = "Streaming::default_timeout")]
    #[schemars(with = "u64")]
    pub timeout: Duration,
    /// How many bytes are read.
    #[serde(default = "Streaming::default_max_bytes")]
    pub max_bytes: usize,
}

impl Streaming {
    fn default_timeout() -> Duration {
        Duration::from_secs(60)
    }

    fn default_max_bytes() -> usize {
        1 << 20
    }

    /// How an answer is read whose tool has no options for streams.
    pub(super) fn unconfigured(mode: StreamMode) -> Self {
        Self {
            mode,
            line_prefix: None,
            discriminator_field: None,
            done_value: None,
            answer_field: None,
            token_value: None,
            token_field: None,
            timeout: Duration::from_secs(30),
            max_bytes: 4 << 20,
        }
    }
}

/// What the pieces of an answer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamMode {
    /// A JSON object in each line, with pieces of one answer.
    JsonStream,
    /// A JSON value in each line.
    Ndjson,
    /// Server-sent events.
    Sse,
}

/// An API that an OpenAPI document describes. Addresses and headers may hold secrets, so `Debug` shows little.
#[derive(Clone, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiOptions {
    /// The key of the entry, which the reader of the file fills in.
    #[serde(skip)]
    pub id: String,
    /// The document: a path, which starts at the folder of the configuration, or an http:// or https:// address. What it
    /// refers to is read from below its folder, or from its origin.
    #[schemars(with = "String")]
    pub spec: SpecPlace,
    /// Where the API is; the first server of the document by default.
    #[schemars(with = "Option<String>")]
    pub base_url: Option<Url>,
    /// Values of the variables in the addresses of the document's servers.
    #[serde(default)]
    pub server_variables: BTreeMap<String, String>,
    /// Sent with every request.
    #[serde(default, deserialize_with = "pairs")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: Vec<(String, String)>,
    /// Credentials for the API, by the name of the document's security scheme. No tool has an argument for them.
    #[serde(default)]
    pub auth: BTreeMap<String, Credential>,
    /// Only operations with these methods; all by default.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub include_methods: Vec<Method>,
    /// Only operations with one of these tags; all by default.
    #[serde(default)]
    pub tag_filter: Vec<String>,
    /// Only these operations: the name of the operation in the tool's name, an `operationId`, or `METHOD /path`, with
    /// globs. `[]` is none.
    #[schemars(with = "Option<Vec<String>>")]
    pub include: Option<Vec<Pattern>>,
    /// None of these operations, also where `include` names them; as `include`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub exclude: Vec<Pattern>,
    /// What operations may change, where their method says something else; as `include`. The first one that fits holds.
    #[serde(default, deserialize_with = "pairs")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub effects: Vec<(Pattern, Effect)>,
}

impl ApiOptions {
    /// Equal for equal options, and only for those.
    pub(super) fn digest(&self) -> Digest {
        let Self { id, spec, base_url, server_variables, headers, auth, .. } = self;
        let Self { include_methods, tag_filter, include, exclude, effects, .. } = self;
        let selected = format!("{include_methods:?}{tag_filter:?}{include:?}{exclude:?}{effects:?}");
        let secrets: Vec<_> = auth.values().map(Credential::secret).collect();
        let sent = format!("{id:?}{spec:?}{base_url:?}{server_variables:?}{headers:?}{auth:?}{secrets:?}");
        Digest::of_parts(&[selected.as_bytes(), sent.as_bytes()])
    }
}

impl fmt::Debug for ApiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiOptions").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Where a document is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(from = "String")]
pub enum SpecPlace {
    /// A path; absolute once its reader has joined it to the folder of the configuration.
    File(PathBuf),
    /// `http` or `https`.
    Url(Url),
}

impl From<String> for SpecPlace {
    fn from(text: String) -> Self {
        match Url::parse(&text).ok().filter(|_| text.contains("://")) {
            Some(url) => Self::Url(url),
            None => Self::File(text.into()),
        }
    }
}

/// A credential for an API.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Credential {
    /// For `apiKey`.
    Key {
        /// The key.
        api_key: Secret,
    },
    /// For `http` basic.
    Basic {
        /// The user.
        username: String,
        /// The password.
        password: Secret,
    },
    /// For `http` bearer, `openIdConnect` and `oauth2`.
    Token {
        /// A token that is there already.
        token: Secret,
    },
    /// For `oauth2` with client credentials.
    Client {
        /// The client.
        client_id: String,
        /// Its secret.
        client_secret: Secret,
        /// Where tokens are requested; the address in the document by default.
        #[schemars(with = "Option<String>")]
        token_url: Option<Url>,
        /// What they are requested for; what the operation needs by default.
        scopes: Option<Vec<String>>,
    },
}

impl Credential {
    /// The part of it that is secret.
    fn secret(&self) -> &str {
        match self {
            Self::Key { api_key: secret } | Self::Token { token: secret } => secret.expose(),
            Self::Basic { password: secret, .. } | Self::Client { client_secret: secret, .. } => {
                secret.expose()
            }
        }
    }

    /// Has its secrets masked.
    pub(super) fn add_to(&self, redactor: &mut Redactor) {
        match self {
            Self::Key { .. } | Self::Token { .. } => redactor.add(self.secret()),
            Self::Basic { username, .. } => redactor.add_basic(username, self.secret()),
            Self::Client { client_id, .. } => redactor.add_basic(client_id, self.secret()),
        }
    }
}

/// Reads the pairs of an object in their order.
fn pairs<'de, D, K, V>(input: D) -> Result<Vec<(K, V)>, D::Error>
where
    D: Deserializer<'de>,
    K: DeserializeOwned,
    V: DeserializeOwned,
{
    let members = Map::<String, Value>::deserialize(input)?.into_iter();
    let pair = |(key, value): (String, Value)| Ok((from_value(key.into())?, from_value(value)?));
    members.map(pair).collect::<Result<_, serde_json::Error>>().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_of_rest_tools_is_read_as_the_file_has_it() {
        let tool: Inline = from_value(json!({
            "description": "Asks another model.", "method": "POST", "url": "https://m.example/${parameters.x}?key=s3cret",
            "query": { "z": "1", "a": "${parameters.a}" }, "headers": { "X-Key": "s3cret" },
            "bodyTemplate": { "question": "${parameters.q}" }, "parametersSchema": { "type": "object" }, "effect": "read",
            "streaming": { "mode": "json-stream", "linePrefix": "data: ", "doneValue": "end", "timeoutMs": 1500 },
        }))
        .unwrap();
        assert_eq!((tool.method, tool.effect), (Method::Post, Some(Effect::Read)));
        assert_eq!(tool.query.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["z", "a"]);
        let streaming = tool.streaming.clone().unwrap();
        assert_eq!((streaming.mode, streaming.max_bytes), (StreamMode::JsonStream, 1 << 20));
        assert_eq!(streaming.timeout, Duration::from_millis(1500));
        assert!(!format!("{tool:?}").contains("s3cret"));
        let least: Inline = from_value(json!({ "description": "D", "url": "https://a.example/" })).unwrap();
        assert_eq!((least.method, least.parameters_schema), (Method::Get, Value::Null));
        for wrong in [
            json!({ "description": "D", "url": "x", "uri": "y" }),
            json!({ "description": "D", "url": "x", "method": "FETCH" }),
            json!({ "description": "D", "url": "x", "streaming": {} }),
        ] {
            from_value::<Inline>(wrong).unwrap_err();
        }
    }

    #[test]
    fn schemas_have_the_keys_and_the_defaults_of_the_file() {
        let tool = schemars::schema_for!(Inline);
        assert_eq!(tool.pointer("/required").unwrap(), &json!(["description", "url"]));
        assert_eq!(tool.pointer("/properties/method/type").unwrap(), "string");
        assert_eq!(tool.pointer("/$defs/Streaming/properties/timeoutMs/default").unwrap(), 60_000);
        let api = schemars::schema_for!(ApiOptions);
        assert_eq!(api.pointer("/required").unwrap(), &json!(["spec"]));
        assert!(api.pointer("/properties/auth").is_some() && api.pointer("/properties/id").is_none());
    }

    #[test]
    fn an_entry_of_openapi_specs_is_read_as_the_file_has_it() {
        let api: ApiOptions = from_value(json!({
            "spec": "./petstore.yaml", "baseUrl": "https://p.example/v1", "serverVariables": { "region": "eu" },
            "headers": { "X-Tenant": "s3cret" },
            "auth": {
                "basic": { "username": "ada", "password": "s3cret" }, "bearer": { "token": "s3cret" },
                "key": { "apiKey": "s3cret" },
                "oauth": { "clientId": "g", "clientSecret": "s3cret", "tokenUrl": "https://t.example/", "scopes": ["a"] },
            },
            "includeMethods": ["get", "POST"], "tagFilter": ["pets"], "include": ["*_pets"], "exclude": ["POST /x"],
            "effects": { "POST /search": "read", "*": "destructive" },
        }))
        .unwrap();
        assert_eq!(api.spec, SpecPlace::File("./petstore.yaml".into()));
        assert_eq!(api.include_methods, [Method::Get, Method::Post]);
        let effects: Vec<_> = api.effects.iter().map(|(name, effect)| (name.as_str(), *effect)).collect();
        assert_eq!(effects, [("POST /search", Effect::Read), ("*", Effect::Destructive)]);
        assert!(
            matches!(&api.auth["oauth"], Credential::Client { scopes: Some(scopes), .. } if scopes == &["a"])
        );
        assert!(api.auth.values().all(|credential| credential.secret() == "s3cret"));
        assert!(!format!("{api:?}{:?}", api.auth).contains("s3cret"));
        let web: ApiOptions = from_value(json!({ "spec": "https://p.example/api.json" })).unwrap();
        assert!(matches!(web.spec, SpecPlace::Url(_)) && web.include.is_none());
        for wrong in [json!({ "apiKey": "k", "token": "t" }), json!({ "username": "u" }), json!({})] {
            from_value::<Credential>(wrong).unwrap_err();
        }
    }
}
