//! The keys of REST services: tools that are one request each, and APIs that a document describes.

use super::{
    CACHE, DAY, NONE, PROVIDER_QUEUE, REQUEST_TIMEOUT, TOOLS_ALLOWED, TOOLS_CACHE, TOOLS_DENIED, TOOLS_QUEUE,
    TOOLS_TIMEOUT, key, number, section, without_effect,
};
use crate::config::table::{Fallback, Key, Kind, Unit, Zero};
use crate::config::text::Rule;

const EFFECT: Kind = Kind::Choice(&["read", "write", "destructive"], &[]);

pub(super) const TOOL: &[Key] = &[
    key(
        "description",
        Kind::Text(Rule::NotEmpty),
        Fallback::Required,
        "What it does and when to use it, for a model.",
        "The weather in a city",
    ),
    key(
        "method",
        Kind::Text(Rule::Method),
        Fallback::Text("GET"),
        "The method of the request. It also says what a call may change: GET and HEAD read, DELETE destroys, the others \
         write.",
        "POST",
    ),
    key(
        "url",
        Kind::Text(Rule::Template),
        Fallback::Required,
        "Where it is sent. `${parameters.city}` in the path or in the query is the argument `city`, encoded.",
        r#""https://api.example.com/weather/${parameters.city}""#,
    ),
    key(
        "query",
        Kind::Secrets(Rule::QueryName),
        NONE,
        "Added to the query; `${parameters.x}` as in `url`.",
        r#"{ units: metric, lang: "${parameters.language}" }"#,
    ),
    key(
        "headers",
        Kind::Secrets(Rule::Header),
        NONE,
        "Sent with the request; `${parameters.x}` is the argument `x`.",
        r#"{ Authorization: "Bearer ${WEATHER_TOKEN:-none}" }"#,
    ),
    key(
        "bodyTemplate",
        Kind::Json,
        Fallback::Absent("no body"),
        "The body: any value, sent as JSON. A text in it that is nothing but `${parameters.x}` is the argument itself, \
         whatever its type.",
        r#"{ city: "${parameters.city}", days: "${parameters.days}" }"#,
    ),
    key(
        "parametersSchema",
        Kind::Object,
        Fallback::Absent("no arguments"),
        "What the tool takes, as JSON Schema. Variables are not replaced in it.",
        "{ type: object, properties: { city: { type: string } }, required: [city] }",
    ),
    Key { meaning: "The queue that its calls go through.", ..PROVIDER_QUEUE },
    Key {
        meaning: "How long a successful result answers the same call again. It holds for every method, because it is said \
                  of this very tool.",
        ..CACHE
    },
    Key { meaning: "How long a call may take.", ..REQUEST_TIMEOUT },
    key(
        "effect",
        EFFECT,
        Fallback::Absent("what the method says"),
        "What a call may change, where the method says something else.",
        "read",
    ),
    ENABLED,
    section(
        "streaming",
        Kind::Section(STREAMING),
        "How an answer that comes in pieces is read. Without it, an answer is read whole.",
    ),
    without_effect("hasComplexQueryParams", QUERY_WORDS),
    without_effect("queryParamNames", QUERY_WORDS),
];

const QUERY_WORDS: &str = "has no effect: every parameter is written into the query as its type demands";

const ENABLED: Key =
    key("enabled", Kind::Flag, Fallback::Flag(true), "Whether it is offered at all.", "false");

const STREAMING: &[Key] = &[
    key(
        "mode",
        Kind::Choice(&["json-stream", "ndjson", "sse"], &[]),
        Fallback::Required,
        "`ndjson` is a JSON value in each line, `sse` are server-sent events, `json-stream` is a JSON object in each line \
         with pieces of one answer.",
        "ndjson",
    ),
    text("linePrefix", "", "Of `json-stream`: what a line begins with before its JSON.", "'data: '"),
    text("discriminatorField", "type", "Of `json-stream`: the field that says what an object is.", "event"),
    text("doneValue", "done", "Of `json-stream`: what it says in the last object.", "end"),
    text(
        "answerField",
        "answer",
        "Of `json-stream`: the field of the last object with the whole answer.",
        "result",
    ),
    text(
        "tokenValue",
        "token",
        "Of `json-stream`: what it says in an object with a piece of the answer.",
        "delta",
    ),
    text("tokenField", "content", "Of `json-stream`: the field of that object with the piece.", "text"),
    key(
        "timeoutMs",
        number(Unit::Milliseconds, Zero::Default, DAY),
        Fallback::Number(60_000),
        "How long pieces are waited for in all. Without `requestTimeoutMs`, a call may take 10 seconds longer.",
        "120000",
    ),
    key(
        "maxBytes",
        number(Unit::Bytes, Zero::Default, 64 << 20),
        Fallback::Number(1 << 20),
        "How much is read.",
        "4194304",
    ),
];

const fn text(
    name: &'static str,
    default: &'static str,
    meaning: &'static str,
    example: &'static str,
) -> Key {
    key(name, Kind::Text(Rule::Any), Fallback::Text(default), meaning, example)
}

pub(super) const API: &[Key] = &[
    key(
        "spec",
        Kind::Text(Rule::Document),
        Fallback::Required,
        "The document: a path, which starts at the folder of the configuration, or an http:// or https:// address. What it \
         refers to is read from below its folder, or from its origin.",
        "./petstore.yaml",
    ),
    key(
        "baseUrl",
        Kind::Text(Rule::WebUrl),
        Fallback::Absent("the first server of the document"),
        "Where the API is.",
        "https://petstore.example.com/v1",
    ),
    key(
        "serverVariables",
        Kind::Secrets(Rule::VariableName),
        Fallback::Absent("as the document says"),
        "Values of the variables in the addresses of the document's servers.",
        "{ region: eu }",
    ),
    key(
        "headers",
        Kind::Secrets(Rule::Header),
        NONE,
        "Sent with every request.",
        r#"{ X-Tenant: "${TENANT:-none}" }"#,
    ),
    key(
        "auth",
        Kind::Credentials(CREDENTIAL),
        NONE,
        "What is shown to the API, by the name of the document's security scheme. No tool has an argument for it.",
        r#"{ api_key: { apiKey: "${PETSTORE_KEY:-key}" } }"#,
    ),
    key(
        "includeMethods",
        Kind::Texts(Rule::AnyMethod, 1),
        Fallback::Absent("all"),
        "Only operations with these methods.",
        "[get, post]",
    ),
    key(
        "tagFilter",
        Kind::Texts(Rule::NotEmpty, 1),
        Fallback::Absent("all"),
        "Only operations with one of these tags.",
        "[pets]",
    ),
    key(
        "include",
        Kind::Texts(Rule::Operation, 0),
        Fallback::Absent("all"),
        "Only these operations: the name of the operation in the tool's name, an `operationId`, or `METHOD /path`, with \
         globs. `[]` is none.",
        r#"[listPets, "GET /pets/*"]"#,
    ),
    key(
        "exclude",
        Kind::Texts(Rule::Operation, 0),
        NONE,
        "None of these operations, whatever else is said; as `include`.",
        r#"["DELETE *"]"#,
    ),
    key(
        "effects",
        Kind::PerOperation(&EFFECT),
        Fallback::Absent("what the methods say"),
        "What operations may change, where their method says something else; as `include`. The first one that fits holds.",
        r#"{ "POST /search": read }"#,
    ),
    PROVIDER_QUEUE,
    CACHE,
    REQUEST_TIMEOUT,
    Key { meaning: OFFERED, example: r#"["list_*", get_pet]"#, ..TOOLS_ALLOWED },
    Key { example: r#"["delete_*"]"#, ..TOOLS_DENIED },
    Key { example: "{ list_pets: 60000 }", ..TOOLS_CACHE },
    Key { example: "{ create_pet: disk, list_pets: null }", ..TOOLS_QUEUE },
    Key { example: "{ export_pets: 120000 }", ..TOOLS_TIMEOUT },
    ENABLED,
];

const OFFERED: &str = "The only tools to offer: names or globs. `[]` offers none. Here and in the keys below, a tool is named with the \
                       id in front (`petstore_list_pets`) or without it.";

/// Of these, an entry has those of one kind of credential, which `check` sees to.
const CREDENTIAL: &[Key] = &[
    key("apiKey", Kind::Text(Rule::Credential), NONE, "For `apiKey`: the key.", "${PETSTORE_KEY:-key}"),
    key(
        "token",
        Kind::Text(Rule::Key),
        NONE,
        "For `http` bearer, `openIdConnect` and `oauth2`: a token that is there already.",
        "${PETSTORE_TOKEN:-token}",
    ),
    key("username", Kind::Text(Rule::Credential), NONE, "For `http` basic, with `password`.", "ada"),
    key("password", Kind::Text(Rule::Password), NONE, "The password.", "${PETSTORE_PASSWORD:-none}"),
    key(
        "clientId",
        Kind::Text(Rule::Credential),
        NONE,
        "For `oauth2` with client credentials, with `clientSecret`.",
        "gantry",
    ),
    key("clientSecret", Kind::Text(Rule::Credential), NONE, "The secret.", "${PETSTORE_SECRET:-none}"),
    key(
        "tokenUrl",
        Kind::Text(Rule::WebUrl),
        Fallback::Absent("that of the document"),
        "Where tokens are got with them.",
        "https://auth.example.com/token",
    ),
    key(
        "scopes",
        Kind::Texts(Rule::Key, 0),
        Fallback::Absent("those that the operation needs"),
        "What they are asked for.",
        r#"["pets:read"]"#,
    ),
];
