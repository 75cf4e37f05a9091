//! Options of REST services, in the shape of the configuration file: one entry of `restTools`, one of `openapiSpecs`.
//!
//! The keys of an entry about running its tools (`queue`, `cache`, `requestTimeoutMs`, `tools…`, `enabled`) are the
//! engine's and not among these.

use crate::openapi::Method;
use gantry_core::digest::Digest;
use gantry_core::limits::PATTERN_BYTES;
use gantry_core::pattern::Pattern;
use gantry_core::{Effect, option_texts};
use gantry_egress::Url;
use gantry_egress::address_guard::IpNet;
use gantry_provider::options::{
    CredentialText, DAY, HeaderName, HeaderValue, Key, Limit, Millis, NotEmpty, OneOrMore, Pairs, Password,
    PathText, PlainValue, Secret, WebUrl, is_web_url, read_as, read_list, read_map,
};
use gantry_provider::redact::Redactor;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Unexpected};
use serde_json::{Map, Value};
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

// Address, headers and body may hold secrets, so `Debug` shows little.
/// A tool that is one HTTP request.
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "RestTool", rename_all = "camelCase", deny_unknown_fields)]
pub struct Inline {
    /// The key of the entry, which the reader of the file fills in.
    #[serde(skip)]
    pub name: String,
    /// The description for models: what the tool does and when to use it.
    #[serde(deserialize_with = "read_as::<NotEmpty, _, _>")]
    #[schemars(with = "NotEmpty")]
    pub description: String,
    /// The method of the request: GET, POST, PUT, PATCH, DELETE or HEAD. It also says what a call may change: GET and HEAD
    /// read, DELETE destroys, the others write.
    #[serde(default, deserialize_with = "request_method")]
    #[schemars(with = "String", extend("default" = "GET"))]
    pub method: Method,
    /// The address of the request. `${parameters.city}` in the path or in the query is the argument `city`, encoded.
    #[serde(deserialize_with = "read_as::<UrlText, _, _>")]
    #[schemars(with = "UrlText")]
    pub url: String,
    /// Pairs that are added to the query; `${parameters.x}` as in `url`.
    #[serde(default, deserialize_with = "read_map::<QueryName, PlainValue, _, _, _, _>")]
    #[schemars(with = "Pairs<String, PlainValue>")]
    pub query: Vec<(String, String)>,
    /// Headers of the request; `${parameters.x}` is the argument `x`.
    #[serde(default, deserialize_with = "read_map::<HeaderName, HeaderValue, _, _, _, _>")]
    #[schemars(with = "Pairs<String, HeaderValue>")]
    pub headers: Vec<(String, String)>,
    /// The body: any value, sent as JSON. A text in it that is nothing but `${parameters.x}` is the argument itself, of
    /// any type. No body unless given.
    #[serde(default, deserialize_with = "body")]
    pub body_template: Option<Value>,
    /// What the tool takes, as JSON Schema; no arguments without it. Variables are not replaced in it.
    #[serde(default = "no_arguments", deserialize_with = "read_as::<Verbatim, _, _>")]
    #[schemars(with = "Map<String, Value>", extend("default" = null))]
    pub parameters_schema: Value,
    /// What a call may change, if that differs from what the method says.
    pub effect: Option<Effect>,
    /// How an answer that comes in pieces is read. Without it, an answer is read whole.
    pub streaming: Option<Streaming>,
}

option_texts! {
    /// An address whose host is fixed; after the host it may have places for arguments.
    address UrlText =
        "an http:// or https:// address without user and password, with ${parameters.x} in its path or query only",
        is_template;
    /// The name of a query parameter, or of a variable of a server.
    plain QueryName = "a name that is not empty, on one line",
        |text| !text.is_empty() && !text.contains(char::is_control);
    /// Where an OpenAPI document is.
    address DocumentText = "a path, or an http:// or https:// address without user and password",
        |text| if text.contains("://") { is_web_url(text) } else { text.parse::<PathText>().is_ok() };
    /// An operation of an API, or a glob.
    plain OperationText = "an operation, such as list_pets or GET /pets/*",
        |text| (1..=PATTERN_BYTES).contains(&text.len()) && text.trim() == text && !text.contains(char::is_control);
    /// Some value of a variable in an address.
    plain Tag = "text that is not empty", |text| !text.trim().is_empty();
}

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

fn request_method<'de, D: Deserializer<'de>>(input: D) -> Result<Method, D::Error> {
    let word = String::deserialize(input)?;
    let method = Method::parse(&word).filter(|method| !matches!(method, Method::Options | Method::Trace));
    let expected = &"GET, POST, PUT, PATCH, DELETE or HEAD";
    method.ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&word), expected))
}

/// Null is no body.
fn body<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(input).map(|body| Some(body).filter(|body| !body.is_null()))
}

fn no_arguments() -> Value {
    serde_json::json!({ "type": "object", "properties": {} })
}

/// A JSON object that stays as it is written; the reader of the configuration knows it by its name.
#[derive(Deserialize)]
#[serde(rename = "$verbatim")]
struct Verbatim(Map<String, Value>);

impl From<Verbatim> for Value {
    fn from(object: Verbatim) -> Self {
        object.0.into()
    }
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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Streaming {
    /// What the pieces are: `ndjson` is a JSON value in each line, `sse` are server-sent events, `json-stream` is a JSON
    /// object in each line with pieces of one answer.
    pub mode: StreamMode,
    /// For `json-stream`: the text before the JSON of a line.
    pub line_prefix: Option<String>,
    /// For `json-stream`: the field that says the kind of an object; `type` by default.
    pub discriminator_field: Option<String>,
    /// For `json-stream`: the kind of the last object; `done` by default.
    pub done_value: Option<String>,
    /// For `json-stream`: the field of the last object that has the whole answer; `answer` by default.
    pub answer_field: Option<String>,
    /// For `json-stream`: the kind of an object with a piece of the answer; `token` by default.
    pub token_value: Option<String>,
    /// For `json-stream`: the field of such an object that has the piece; `content` by default.
    pub token_field: Option<String>,
    /// How long Gantry reads pieces, in total. Without `requestTimeoutMs`, a call may take 10 seconds longer.
    #[serde(rename = "timeoutMs", default)]
    pub timeout: Millis<60_000, DAY>,
    /// How many bytes Gantry reads at most.
    #[serde(default)]
    pub max_bytes: Limit<{ 1 << 20 }, { 64 << 20 }>,
}

impl Streaming {
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
            timeout: Duration::from_secs(30).into(),
            max_bytes: (4 << 20).into(),
        }
    }
}

/// What the pieces of an answer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum StreamMode {
    /// A JSON object in each line, with pieces of one answer.
    JsonStream,
    /// A JSON value in each line.
    Ndjson,
    /// Server-sent events.
    Sse,
}

// Addresses and headers may hold secrets, so `Debug` shows little.
/// An API that an OpenAPI document describes.
#[derive(Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename = "Api", rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiOptions {
    /// The key of the entry, which the reader of the file fills in.
    #[serde(skip)]
    pub id: String,
    /// The document: a path, which starts at the folder of the configuration, or an http:// or https:// address. What it
    /// refers to is read from below its folder, or from its origin.
    #[serde(deserialize_with = "read_as::<DocumentText, _, _>")]
    #[schemars(with = "DocumentText")]
    pub spec: SpecPlace,
    /// The only files that the document may be made of; any below its folder unless given. The reader of the
    /// configuration fills it in: a file that comes to be later is not part of it.
    #[serde(skip)]
    pub files: Option<Vec<PathBuf>>,
    /// Where the API is; the first server of the document by default.
    #[serde(default, deserialize_with = "optional_url")]
    #[schemars(with = "WebUrl")]
    pub base_url: Option<Url>,
    /// Values of the variables in the addresses of the document's servers.
    #[serde(default, deserialize_with = "read_map::<QueryName, PlainValue, _, _, _, _>")]
    #[schemars(with = "BTreeMap<String, PlainValue>")]
    pub server_variables: BTreeMap<String, String>,
    /// Headers that are sent with every request.
    #[serde(default, deserialize_with = "read_map::<HeaderName, HeaderValue, _, _, _, _>")]
    #[schemars(with = "Pairs<String, HeaderValue>")]
    pub headers: Vec<(String, String)>,
    /// Credentials for the API, by the name of the document's security scheme. No tool has an argument for them.
    #[serde(default, deserialize_with = "read_map::<QueryName, Credential, _, _, _, _>")]
    #[schemars(with = "BTreeMap<String, CredentialKeys>")]
    pub auth: BTreeMap<String, Credential>,
    /// Only operations with these methods; all by default.
    #[serde(default, deserialize_with = "read_as::<OneOrMore<Method>, _, _>")]
    #[schemars(with = "OneOrMore<String>")]
    pub include_methods: Vec<Method>,
    /// Only operations with one of these tags; all by default.
    #[serde(default, deserialize_with = "read_as::<OneOrMore<Tag>, _, _>")]
    #[schemars(with = "OneOrMore<Tag>")]
    pub tag_filter: Vec<String>,
    /// Only these operations: the name of the operation in the tool's name, an `operationId`, or `METHOD /path`, with
    /// globs. `[]` is none; all unless given.
    #[serde(default, deserialize_with = "operations_or_all")]
    #[schemars(with = "Vec<OperationText>")]
    pub include: Option<Vec<Pattern>>,
    /// None of these operations, even if `include` names them; written as in `include`.
    #[serde(default, deserialize_with = "operations")]
    #[schemars(with = "Vec<OperationText>")]
    pub exclude: Vec<Pattern>,
    /// What operations may change, if that differs from what their method says; keys as in `include`. The first key
    /// that fits counts.
    #[serde(default, deserialize_with = "read_map::<Operation, Effect, _, _, _, _>")]
    #[schemars(with = "Pairs<OperationText, Effect>")]
    pub effects: Vec<(Pattern, Effect)>,
}

/// An operation of an API, or a glob.
#[derive(Deserialize)]
#[serde(try_from = "OperationText")]
struct Operation(Pattern);

impl TryFrom<OperationText> for Operation {
    type Error = gantry_core::pattern::Error;

    fn try_from(text: OperationText) -> Result<Self, Self::Error> {
        Pattern::parse(&text).map(Self)
    }
}

impl From<Operation> for Pattern {
    fn from(operation: Operation) -> Self {
        operation.0
    }
}

fn operations<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Pattern>, D::Error> {
    read_list::<Operation, _, _>(input)
}

fn operations_or_all<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<Pattern>>, D::Error> {
    operations(input).map(Some)
}

fn optional_url<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Url>, D::Error> {
    let text = WebUrl::deserialize(input)?;
    Url::parse(&text).map(Some).map_err(|error| D::Error::custom(format_args!("is not an address: {error}")))
}

impl ApiOptions {
    /// Equal for equal options, and only for those.
    pub(super) fn digest(&self) -> Digest {
        let Self { id, spec, base_url, server_variables, headers, auth, .. } = self;
        let Self { include_methods, tag_filter, include, exclude, effects, files, .. } = self;
        let selected = format!("{files:?}{include_methods:?}{tag_filter:?}{include:?}{exclude:?}{effects:?}");
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

#[derive(Debug, Clone, PartialEq, Eq)]
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

impl From<DocumentText> for SpecPlace {
    fn from(text: DocumentText) -> Self {
        String::from(text).into()
    }
}

/// A credential for the API, of one kind: `apiKey`; `token`; `username` and `password`; or `clientId` and
/// `clientSecret`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "Credential", rename_all = "camelCase", deny_unknown_fields)]
struct CredentialKeys {
    /// For `apiKey`: the key.
    api_key: Option<CredentialText>,
    /// For `http` bearer, `openIdConnect` and `oauth2`: a token that you have already.
    token: Option<Key>,
    /// For `http` basic, with `password`.
    username: Option<CredentialText>,
    /// The password.
    password: Option<Password>,
    /// For `oauth2` with client credentials, with `clientSecret`.
    client_id: Option<CredentialText>,
    /// The secret.
    client_secret: Option<CredentialText>,
    /// The address that gives tokens for them; the address in the document by default.
    token_url: Option<WebUrl>,
    /// The scopes of these tokens; those that the operation needs by default.
    scopes: Option<Vec<Key>>,
}

impl TryFrom<CredentialKeys> for Credential {
    type Error = String;

    fn try_from(keys: CredentialKeys) -> Result<Self, String> {
        let client = keys.client_id.is_some()
            || keys.client_secret.is_some()
            || keys.token_url.is_some()
            || keys.scopes.is_some();
        let basic = keys.username.is_some() || keys.password.is_some();
        let kinds = [
            ("apiKey", keys.api_key.is_some()),
            ("token", keys.token.is_some()),
            ("username and password", basic),
            ("clientId and clientSecret", client),
        ];
        let found: Vec<&str> =
            kinds.iter().filter(|(_, is_there)| *is_there).map(|(kind, _)| *kind).collect();
        match found.as_slice() {
            [] => {
                return Err("needs apiKey, token, username and password, or clientId and clientSecret".into());
            }
            [_] => {}
            [one, two, ..] => {
                return Err(format!("has {one} besides {two}, which are different credentials; keep one"));
            }
        }
        let needs = |key: &str| format!("needs the key {key:?}");
        if let Some(api_key) = keys.api_key {
            return Ok(Self::Key { api_key: api_key.into() });
        }
        if let Some(token) = keys.token {
            return Ok(Self::Token { token: token.into() });
        }
        if basic {
            let username = keys.username.ok_or_else(|| needs("username"))?.into();
            return Ok(Self::Basic {
                username,
                password: keys.password.ok_or_else(|| needs("password"))?.into(),
            });
        }
        Ok(Self::Client {
            client_id: keys.client_id.ok_or_else(|| needs("clientId"))?.into(),
            client_secret: keys.client_secret.ok_or_else(|| needs("clientSecret"))?.into(),
            token_url: keys.token_url.and_then(|url| Url::parse(&url).ok()),
            scopes: keys.scopes.map(|scopes| scopes.into_iter().map(Into::into).collect()),
        })
    }
}

/// A credential for an API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "CredentialKeys")]
pub enum Credential {
    /// For `apiKey`.
    Key { api_key: Secret },
    /// For `http` basic.
    Basic { username: String, password: Secret },
    /// For `http` bearer, `openIdConnect` and `oauth2`.
    Token {
        /// A token that is there already.
        token: Secret,
    },
    /// For `oauth2` with client credentials.
    Client {
        client_id: String,
        client_secret: Secret,
        /// Where tokens are requested; the address in the document by default.
        token_url: Option<Url>,
        /// The scopes of these tokens; those that the operation needs by default.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

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
        assert_eq!((streaming.mode, streaming.max_bytes.get()), (StreamMode::JsonStream, 1 << 20));
        assert_eq!(streaming.timeout.get(), Duration::from_millis(1500));
        assert!(!format!("{tool:?}").contains("s3cret"));
        let least: Inline = from_value(json!({ "description": "D", "url": "https://a.example/" })).unwrap();
        assert_eq!((least.method, least.parameters_schema), (Method::Get, no_arguments()));
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
