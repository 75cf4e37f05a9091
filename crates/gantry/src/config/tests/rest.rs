//! REST services: what entries mean, what is refused, what one service suffers from alone, and what is never shown.

use super::refused::check;
use super::{Folder, env, load, values, yaml};
use crate::config::document::Format;
use crate::config::dotenv::Variables;
use crate::config::load::parse;
use crate::config::resolve::Base;
use crate::config::{Api, Config, RestTool};
use expect_test::expect;
use gantry_core::tool::Effect;
use gantry_rest::openapi::Method;
use gantry_rest::{ApiOptions, Credential, Inline, SpecPlace, StreamMode, Streaming};
use gantry_upstream::options::DisabledReason;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

#[track_caller]
fn tool(entry: &str) -> RestTool {
    let text = format!("queues: {{ net: {{ concurrent: 1 }} }}\nrestTools: {{ x: {entry} }}");
    yaml(&text).main().rest_tools["x"].clone()
}

/// The request of a tool.
#[track_caller]
fn found_tool(tool: &RestTool) -> &Inline {
    tool.tool.as_ref().unwrap()
}

#[track_caller]
fn entry(entry: &str) -> Api {
    let text = format!("queues: {{ net: {{ concurrent: 1 }} }}\nopenapiSpecs: {{ x: {entry} }}");
    yaml(&text).main().apis["x"].clone()
}

/// What an API is.
#[track_caller]
fn api(text: &str) -> ApiOptions {
    entry(text).options.unwrap()
}

/// What a file says, and its warnings.
#[track_caller]
fn with_warnings(text: &str) -> (Config, Vec<String>) {
    let base = Base { folder: "/home/project".into(), data: "/home/project/.gantry".into(), accepted: None };
    let parsed = parse(text, Format::Yaml, Path::new("gantry.yaml"), &base, &Variables::new(&env()))
        .unwrap_or_else(|error| panic!("{text}\nis refused:\n{error}"));
    (parsed.config, parsed.warnings)
}

#[test]
fn rst_1_a_tool_has_the_defaults_of_the_reference() {
    let found = tool("{ description: D, url: 'https://a.example/x' }");
    assert_eq!(found_tool(&found).name, "x");
    assert_eq!((found_tool(&found).method, found_tool(&found).effect), (Method::Get, None));
    assert_eq!(found_tool(&found).parameters_schema, json!({ "type": "object", "properties": {} }));
    assert!(
        found_tool(&found).query.is_empty()
            && found_tool(&found).headers.is_empty()
            && found_tool(&found).body_template.is_none()
    );
    assert!(found_tool(&found).streaming.is_none() && found.off().is_none());
    assert_eq!((found.run.queue, found.run.cache.some(), found.run.timeout.some()), (None, None, None));
}

#[test]
fn rst_1_every_key_of_a_tool_is_read() {
    let found = tool(
        "{ description: D, method: post, url: 'https://a.example/${parameters.x}?k=${SECRET}', \
         query: { a: '${parameters.a}', b: '${SECRET}' }, headers: { X-K: '${SECRET}' }, \
         bodyTemplate: { n: 1, list: ['${SECRET}', '${parameters.y}'], none: null }, \
         parametersSchema: { type: object, description: '${UNSET}', required: [x] }, \
         queue: net, cache: 5, requestTimeoutMs: 7, effect: destructive, \
         streaming: { mode: sse, timeoutMs: 11, maxBytes: 13 } }",
    );
    let inline = &found_tool(&found);
    assert_eq!((inline.method, inline.effect), (Method::Post, Some(Effect::Destructive)));
    assert_eq!(inline.url, "https://a.example/${parameters.x}?k=hunter2");
    assert_eq!(
        inline.query,
        [("a", "${parameters.a}"), ("b", "hunter2")].map(|(k, v)| (k.to_owned(), v.to_owned()))
    );
    assert_eq!(inline.headers, [("X-K".to_owned(), "hunter2".to_owned())]);
    assert_eq!(
        inline.body_template,
        Some(json!({ "n": 1, "list": ["hunter2", "${parameters.y}"], "none": null })),
        "variables are put in, parameters stay"
    );
    assert_eq!(
        inline.parameters_schema,
        json!({ "type": "object", "description": "${UNSET}", "required": ["x"] })
    );
    assert_eq!(found.run.queue.as_deref(), Some("net"));
    let ms = |millis| Some(Duration::from_millis(millis));
    assert_eq!((found.run.cache.some(), found.run.timeout.some()), (ms(5), ms(7)));
    let streaming = inline.streaming.as_ref().unwrap();
    assert_eq!((streaming.mode, streaming.max_bytes.get()), (StreamMode::Sse, 13));
    assert_eq!(streaming.timeout.get(), Duration::from_millis(11));
    assert!(!format!("{found:?}").contains("hunter2"), "what is secret is not shown");
}

#[test]
fn rst_1_a_stream_of_json_has_the_defaults_of_those_who_write_it_so() {
    let streaming = tool("{ description: D, url: 'http://a/', streaming: { mode: json-stream } }")
        .tool
        .unwrap()
        .streaming;
    // The reader of streams has a default for each of the texts.
    let expected = Streaming {
        mode: StreamMode::JsonStream,
        line_prefix: None,
        discriminator_field: None,
        done_value: None,
        answer_field: None,
        token_value: None,
        token_field: None,
        timeout: Duration::from_secs(60).into(),
        max_bytes: (1 << 20).into(),
    };
    assert_eq!(streaming, Some(expected));
}

#[test]
fn rst_1_mistakes_in_tools_are_named_and_no_address_is_shown() {
    check(
        "restTools:\n  a b: { description: D, url: 'http://a/' }\n  a:\n    method: FETCH\n    url: 'https://${parameters.host}/x'\n\
         \x20   query: { n: 1 }\n    headers: { 'a b': x }\n    parametersSchema: [x]\n    effect: none\n    streaming: { mode: xml }\n\
         \x20 b: { description: ' ', url: 'ftp://user:pw@a/' }\n  c: { description: D, url: 'https://u:hunter2@a/' }\n  d:\n\
         \x20 e: { description: D, url: 'http://a/', timeout: 5, streaming: {} }\n",
        expect![[r#"
            gantry.yaml:2: "a b" in restTools must be a name of 1 to 56 letters, digits and _ - .
            gantry.yaml:4: restTools.a.method must be GET, POST, PUT, PATCH, DELETE or HEAD, found "FETCH"
            gantry.yaml:4: restTools.a needs the key "description"
            gantry.yaml:5: restTools.a.url must be an http:// or https:// address without user and password, with ${parameters.x} in its path or query only
            gantry.yaml:6: restTools.a.query.n must be text; put it in quotes
            gantry.yaml:7: "a b" in restTools.a.headers must be the name of a header
            gantry.yaml:8: restTools.a.parametersSchema must be a group of keys, found a list
            gantry.yaml:9: restTools.a.effect must be read or write or destructive, found "none"
            gantry.yaml:10: restTools.a.streaming.mode must be json-stream or ndjson or sse, found "xml"
            gantry.yaml:11: restTools.b.description must be text that is not empty, found " "
            gantry.yaml:11: restTools.b.url must be an http:// or https:// address without user and password, with ${parameters.x} in its path or query only
            gantry.yaml:12: restTools.c.url must be an http:// or https:// address without user and password, with ${parameters.x} in its path or query only
            gantry.yaml:13: restTools.d needs the key "description"
            gantry.yaml:13: restTools.d needs the key "url"
            gantry.yaml:14: restTools.e.streaming needs the key "mode"
            gantry.yaml:14: unknown key "timeout" in restTools.e; known keys are description, method, url, query, headers, bodyTemplate, parametersSchema, effect, streaming, enabled, queue, cache, requestTimeoutMs"#]],
    );
}

#[test]
fn rst_2_an_api_has_the_defaults_of_the_reference() {
    let found = api("{ spec: sub/petstore.yaml }");
    assert_eq!(found.spec, SpecPlace::File("/home/project/sub/petstore.yaml".into()));
    assert!(found.base_url.is_none() && found.server_variables.is_empty() && found.headers.is_empty());
    assert!(found.auth.is_empty() && found.include_methods.is_empty() && found.tag_filter.is_empty());
    assert!(found.include.is_none() && found.exclude.is_empty() && found.effects.is_empty());
    let whole = entry("{ spec: x }");
    assert!(whole.tools.enabled && whole.off().is_none());
    let remote = api("{ spec: 'https://a.example/openapi.json?v=1' }").spec;
    assert_eq!(remote, SpecPlace::Url("https://a.example/openapi.json?v=1".parse().unwrap()));
}

#[test]
fn rst_2_every_key_of_an_api_is_read() {
    let found = api(
        "{ spec: a.json, baseUrl: 'http://127.0.0.1:1/v1', serverVariables: { region: eu }, headers: { X-K: '${SECRET}' }, \
         auth: { k: { apiKey: 'Token ${SECRET}' }, t: { token: '${SECRET}' }, b: { username: u, password: '' }, \
         o: { clientId: i, clientSecret: '${SECRET}', tokenUrl: 'https://t.example/t', scopes: [a, b] }, \
         p: { clientId: i, clientSecret: s } }, \
         includeMethods: [GET, patch], tagFilter: [a b], include: ['GET /a b/*'], exclude: [x], \
         effects: { 'POST /search': read, '*': destructive }, queue: net, cache: 5, requestTimeoutMs: 7, \
         toolsAllowed: ['a*'], toolsDenied: [ab], toolsCache: { a: 1 }, toolsQueue: { a: null }, toolsTimeout: { a: 3 } }",
    );
    assert_eq!(found.base_url.as_ref().unwrap().as_str(), "http://127.0.0.1:1/v1");
    assert_eq!(found.server_variables["region"], "eu");
    let secret = "hunter2".to_owned();
    assert_eq!(found.headers, [("X-K".to_owned(), secret.clone())]);
    let client = |token_url: Option<&str>, scopes: Option<&[&str]>, secret: &str| Credential::Client {
        client_id: "i".to_owned(),
        client_secret: secret.into(),
        token_url: token_url.map(|url| url.parse().unwrap()),
        scopes: scopes.map(|scopes| scopes.iter().map(|scope| (*scope).to_owned()).collect()),
    };
    let expected = [
        ("b", Credential::Basic { username: "u".to_owned(), password: "".into() }),
        ("k", Credential::Key { api_key: "Token hunter2".into() }),
        ("o", client(Some("https://t.example/t"), Some(&["a", "b"]), &secret)),
        ("p", client(None, None, "s")),
        ("t", Credential::Token { token: secret.into() }),
    ];
    assert!(
        found.auth.iter().map(|(name, it)| (name.as_str(), it)).eq(expected.iter().map(|(n, c)| (*n, c)))
    );
    assert_eq!(found.include_methods, [Method::Get, Method::Patch]);
    assert_eq!(
        (found.tag_filter.clone(), values(found.include.as_deref().unwrap())),
        (vec!["a b".to_owned()], vec!["GET /a b/*"])
    );
    assert_eq!(values(&found.exclude), ["x"]);
    let effects: Vec<(&str, Effect)> =
        found.effects.iter().map(|(at, effect)| (at.as_str(), *effect)).collect();
    assert_eq!(effects, [("POST /search", Effect::Read), ("*", Effect::Destructive)], "in file order");
    let run = entry("{ spec: x, queue: net, toolsTimeout: { a: 3 } }").tools;
    assert_eq!(run.queue.as_deref(), Some("net"));
    assert_eq!(run.tools_timeout["a"].get(), Duration::from_millis(3));
    assert!(!format!("{found:?}").contains("hunter2"), "what is secret is not shown");
}

#[test]
fn rst_2_mistakes_in_apis_are_named() {
    check(
        "openapiSpecs:\n  a/b: { spec: x }\n  a:\n    baseUrl: nowhere\n    includeMethods: []\n    tagFilter: x\n    include: ['']\n\
         \x20   effects: { ' x': read, y: maybe }\n    queue: gone\n  b: { spec: 'file:///etc/passwd' }\n  c: { spec: '' }\n\
         \x20 d: { spec: x, includeMethods: [fetch], operations: [] }\n",
        expect![[r#"
            gantry.yaml:2: "a/b" in openapiSpecs must be a name of 1 to 32 letters, digits, _ and -
            gantry.yaml:4: openapiSpecs.a.baseUrl must be an http:// or https:// address without user and password, such as https://example.com/path
            gantry.yaml:4: openapiSpecs.a needs the key "spec"
            gantry.yaml:5: openapiSpecs.a.includeMethods needs at least one item; an empty list has no meaning here
            gantry.yaml:6: openapiSpecs.a.tagFilter must be a list, such as [a, b], or [] for none, found text
            gantry.yaml:7: openapiSpecs.a.include[0] must be an operation, such as list_pets or GET /pets/*, found ""
            gantry.yaml:8: " x" in openapiSpecs.a.effects must be an operation, such as list_pets or GET /pets/*
            gantry.yaml:8: openapiSpecs.a.effects.y must be read or write or destructive, found "maybe"
            gantry.yaml:9: openapiSpecs.a.queue: unknown queue "gone"; no queue is configured; add it under "queues"
            gantry.yaml:10: openapiSpecs.b.spec must be a path, or an http:// or https:// address without user and password
            gantry.yaml:11: openapiSpecs.c.spec must be a path, or an http:// or https:// address without user and password
            gantry.yaml:12: openapiSpecs.d.includeMethods[0] must be get, put, post, delete, options, head, patch or trace, found "fetch"
            gantry.yaml:12: unknown key "operations" in openapiSpecs.d; known keys are spec, baseUrl, serverVariables, headers, auth, includeMethods, tagFilter, include, exclude, effects, enabled, toolsAllowed, toolsDenied, queue, cache, requestTimeoutMs, toolsCache, toolsQueue, toolsTimeout"#]],
    );
}

#[test]
fn rst_2_a_credential_is_of_one_kind_and_whole_and_no_message_shows_it() {
    check(
        "openapiSpecs:\n  a:\n    spec: x\n    auth:\n      one: hunter2\n      two: { apiKey: hunter2, token: hunter2 }\n      three: { username: hunter2 }\n\
         \x20     four: { tokenUrl: 'https://a/' }\n      five: {}\n      six: { token: 'hunter2 hunter2' }\n      seven: { apiKey: [hunter2] }\n\
         \x20     eight: { apikey: hunter2 }\n      nine: { apiKey: '' }\n  b: { spec: x, auth: hunter2 }\n  c: { spec: x, auth: { k: { apiKey: 5 } } }\n",
        expect![[r#"
            gantry.yaml:5: openapiSpecs.a.auth.one must be a group of keys, found text
            gantry.yaml:6: openapiSpecs.a.auth.two has apiKey besides token, which are different credentials; keep one
            gantry.yaml:7: openapiSpecs.a.auth.three needs the key "password"
            gantry.yaml:8: openapiSpecs.a.auth.four needs the key "clientId"
            gantry.yaml:9: openapiSpecs.a.auth.five needs apiKey, token, username and password, or clientId and clientSecret
            gantry.yaml:10: openapiSpecs.a.auth.six.token must be text without spaces
            gantry.yaml:11: openapiSpecs.a.auth.seven.apiKey must be text that is not empty, on one line
            gantry.yaml:12: unknown key "apikey" in openapiSpecs.a.auth.eight; did you mean "apiKey"?
            gantry.yaml:12: openapiSpecs.a.auth.eight needs apiKey, token, username and password, or clientId and clientSecret
            gantry.yaml:13: openapiSpecs.a.auth.nine.apiKey must be text that is not empty, on one line
            gantry.yaml:14: openapiSpecs.b.auth must be a group of keys, found text
            gantry.yaml:15: openapiSpecs.c.auth.k.apiKey must be text that is not empty, on one line"#]],
    );
}

#[test]
fn a_variable_that_is_not_set_switches_off_one_service_with_the_reason() {
    let (config, warnings) = with_warnings(
        "restTools:\n  good: { description: D, url: 'http://a/' }\n  bad: { description: D, url: 'http://a/', headers: { A: '${NONE}' } }\n\
         \x20 off: { description: D, url: '${NONE}', enabled: false }\nopenapiSpecs:\n  bad: { spec: x, auth: { k: { apiKey: '${NONE}' } } }\n\
         \x20 good: { spec: x }\nmcpServers: { bad: { command: x } }\n\
         projects: { o: { workspace: o, restTools: { bad: { description: D, url: 'http://a/' } } } }\n",
    );
    let rest = config.main();
    assert!(rest.rest_tools["good"].off().is_none() && rest.apis["good"].off().is_none());
    assert_eq!(rest.rest_tools["off"].off(), Some(DisabledReason::Disabled));
    let Some(DisabledReason::Unusable(reason)) = &rest.rest_tools["bad"].off() else { panic!("{rest:?}") };
    assert!(reason.contains("gantry.yaml:3: restTools.bad.headers.A: ${NONE} is not set"), "{reason}");
    assert!(matches!(&rest.apis["bad"].off(), Some(DisabledReason::Unusable(_))));
    assert!(config.main().mcp_servers["bad"].off().is_none(), "a server of the same name is somebody else");
    assert!(config.projects["o"].rest_tools["bad"].off().is_none(), "and so is a tool of another project");
    expect![[r#"
        gantry.yaml:3: restTools.bad is switched off: gantry.yaml:3: restTools.bad.headers.A: ${NONE} is not set; set it in the environment or in .env, or write ${NONE:-default}
        gantry.yaml:6: openapiSpecs.bad is switched off: gantry.yaml:6: openapiSpecs.bad.auth.k.apiKey: ${NONE} is not set; set it in the environment or in .env, or write ${NONE:-default}"#]]
    .assert_eq(&warnings.join("\n"));
}

#[test]
fn what_others_write_and_what_means_nothing_is_named_in_a_warning() {
    let (_, warnings) = with_warnings(
        "restTools:\n  a: { description: D, url: 'http://a/', hasComplexQueryParams: true, queryParamNames: [x] }\n\
         \x20 b: { description: D, url: 'http://a/', streaming: { mode: ndjson, tokenField: x } }\n",
    );
    expect![[r#"
        gantry.yaml:2: restTools.a.hasComplexQueryParams has no effect; every parameter is written into the query as its type demands
        gantry.yaml:2: restTools.a.queryParamNames has no effect; every parameter is written into the query as its type demands
        gantry.yaml:3: restTools.b.streaming.tokenField has no effect with mode ndjson"#]]
    .assert_eq(&warnings.join("\n"));
}

#[test]
fn editors_spelling_of_variables_is_not_read_here() {
    let found = tool("{ description: D, url: 'http://a/${env:SECRET}' }");
    assert_eq!(found_tool(&found).url, "http://a/${env:SECRET}");
}

#[test]
fn rst_2_a_document_in_the_workspace_is_fenced_off() {
    let folder =
        Folder::with(&[("gantry.yaml", "openapiSpecs: { a: { spec: api/a.json } }"), ("api/a.json", "{}")]);
    let loaded = folder.load();
    let protected = loaded.protected_paths(&loaded.config.store);
    assert_eq!(protected.read_only, [folder.path("api/a.json")]);
}

#[test]
fn rst_2_so_is_every_file_that_it_refers_to() {
    let folder = Folder::with(&[
        ("gantry.yaml", "openapiSpecs: { a: { spec: api/a.yaml } }"),
        ("api/a.yaml", "openapi: 3.0.0\npaths: { /x: { $ref: 'parts/x.yaml' } }\n"),
        ("api/parts/x.yaml", "get: { parameters: [{ $ref: ../y.yaml }] }\n"),
        ("api/y.yaml", "{ name: y, in: query }\n"),
        ("api/z.yaml", "{}\n"),
    ]);
    let loaded = folder.load();
    let governing = loaded.protected_paths(&loaded.config.store).read_only;
    let real = |path: &str| folder.path(path).canonicalize().unwrap();
    for file in ["api/a.yaml", "api/parts/x.yaml", "api/y.yaml"] {
        assert!(governing.contains(&real(file)), "{file}: {governing:?}");
    }
    assert!(!governing.contains(&real("api/z.yaml")));
}

#[test]
fn toml_and_json_say_the_same() {
    let toml = "[restTools.a]\ndescription = 'D'\nurl = 'http://a/'\n[openapiSpecs.b]\nspec = 'b.json'\nauth.k.apiKey = 'x'\n";
    let json = r#"{ "restTools": { "a": { "description": "D", "url": "http://a/" } },
        "openapiSpecs": { "b": { "spec": "b.json", "auth": { "k": { "apiKey": "x" } } } } }"#;
    let (toml, json) = (load(Format::Toml, toml).unwrap(), load(Format::Json, json).unwrap());
    assert_eq!(toml.main().rest_tools["a"].tool, json.main().rest_tools["a"].tool);
    assert_eq!(
        toml.main().apis["b"].options.as_ref().unwrap().auth,
        json.main().apis["b"].options.as_ref().unwrap().auth
    );
}
