//! Builds the REST services of a project.

use super::servers::{off, pairs};
use super::view::{View, owned};
use super::{Base, Checked, absolute, source};
use crate::config::check::service_id;
use crate::config::model::{Api, Rest, RestTool};
use crate::config::stamp::Stamp;
use crate::config::text::Rule;
use crate::config::tree::Node;
use gantry_core::tool::Effect;
use gantry_egress::Url;
use gantry_provider::options::Secret;
use gantry_rest::openapi::Method;
use gantry_rest::{Credential, Inline, SpecPlace, StreamMode, Streaming};
use serde_json::json;
use std::collections::BTreeMap;

/// The services of a project.
pub(super) fn rest(checked: &Checked<'_>, view: &View<'_>, project: &str) -> Rest {
    let unusable = |rule, name: &str| checked.unusable.get(&(project.to_owned(), service_id(rule, name)));
    let tools = view.named("restTools");
    let apis = view.named("openapiSpecs");
    Rest {
        tools: tools
            .map(|(name, view)| (name.to_owned(), tool(name, &view, unusable(Rule::RestTool, name))))
            .collect(),
        apis: apis
            .map(|(id, view)| (id.to_owned(), api(&view, checked.base, unusable(Rule::Api, id))))
            .collect(),
    }
}

fn tool(name: &str, view: &View<'_>, unusable: Option<&String>) -> RestTool {
    let schema = view.get("parametersSchema").map(|node| node.value.to_json());
    RestTool {
        inline: Inline {
            name: name.to_owned(),
            description: view.text("description").unwrap_or_default(),
            method: view.text("method").and_then(|word| Method::parse(&word)).unwrap_or(Method::Get),
            url: view.text("url").unwrap_or_default(),
            query: pairs(view, "query").collect(),
            headers: pairs(view, "headers").collect(),
            body_template: view
                .get("bodyTemplate")
                .map(|node| node.value.to_json())
                .filter(|body| !body.is_null()),
            parameters_schema: schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} })),
            effect: view.text("effect").and_then(|word| effect(&word)),
            streaming: streaming(&view.section("streaming")),
        },
        queue: view.text("queue"),
        cache: view.duration("cache"),
        request_timeout: view.duration("requestTimeoutMs"),
        off: off(view, view.flag("enabled"), unusable),
        at: view.here(),
    }
}

fn effect(word: &str) -> Option<Effect> {
    [Effect::Read, Effect::Write, Effect::Destructive].into_iter().find(|effect| effect.as_str() == word)
}

fn streaming(view: &View<'_>) -> Option<Streaming> {
    view.node?;
    Some(Streaming {
        mode: match view.text("mode").unwrap_or_default().as_str() {
            "ndjson" => StreamMode::Ndjson,
            "sse" => StreamMode::Sse,
            _ => StreamMode::JsonStream,
        },
        line_prefix: view.text("linePrefix"),
        discriminator_field: view.text("discriminatorField"),
        done_value: view.text("doneValue"),
        answer_field: view.text("answerField"),
        token_value: view.text("tokenValue"),
        token_field: view.text("tokenField"),
        timeout: view.duration("timeoutMs").unwrap_or_default(),
        max_bytes: view.size("maxBytes"),
    })
}

fn api(view: &View<'_>, base: &Base, unusable: Option<&String>) -> Api {
    let values = |name| view.texts(name).unwrap_or_default().into_iter().map(|text| text.value);
    let text = view.text("spec").unwrap_or_default();
    let spec = place(&text, base);
    Api {
        // Without a name, for a variable is not set, there is no document to follow.
        documents: if text.is_empty() { Stamp::default() } else { Stamp::of_document(&spec) },
        spec,
        base_url: url(view, "baseUrl"),
        variables: pairs(view, "serverVariables").collect(),
        headers: pairs(view, "headers").collect(),
        credentials: view
            .named("auth")
            .filter_map(|(scheme, view)| Some((scheme.to_owned(), credential(&view)?)))
            .collect::<BTreeMap<_, _>>(),
        methods: values("includeMethods").filter_map(|word| Method::parse(&word)).collect(),
        tags: values("tagFilter").collect(),
        include: view.texts("include"),
        exclude: view.texts("exclude").unwrap_or_default(),
        effects: view.per_pattern("effects", |node: &Node| effect(&owned(&node.value)?)),
        source: source(view),
        off: off(view, view.flag("enabled"), unusable),
        at: view.here(),
    }
}

fn place(spec: &str, base: &Base) -> SpecPlace {
    match SpecPlace::from(spec.to_owned()) {
        SpecPlace::File(_) => SpecPlace::File(absolute(&base.folder, spec)),
        url @ SpecPlace::Url(_) => url,
    }
}

fn url(view: &View<'_>, name: &str) -> Option<Url> {
    view.text(name).and_then(|text| Url::parse(&text).ok())
}

fn credential(view: &View<'_>) -> Option<Credential> {
    let secret = |name| view.text(name).map(Secret::from);
    if let Some(api_key) = secret("apiKey") {
        return Some(Credential::Key { api_key });
    }
    if let Some(token) = secret("token") {
        return Some(Credential::Token { token });
    }
    if let Some((username, password)) = view.text("username").zip(secret("password")) {
        return Some(Credential::Basic { username, password });
    }
    let (client_id, client_secret) = view.text("clientId").zip(secret("clientSecret"))?;
    let scopes = view.texts("scopes");
    let scopes = scopes.map(|scopes| scopes.into_iter().map(|scope| scope.value).collect());
    Some(Credential::Client { client_id, client_secret, token_url: url(view, "tokenUrl"), scopes })
}
