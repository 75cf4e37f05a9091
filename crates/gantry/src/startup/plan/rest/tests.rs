//! What the configuration of REST services comes to.

use super::*;
use crate::config::{Config, Env, Error, MAIN_PROJECT, Source};
use gantry_core::toolset::ToolSelector;
use gantry_runtime::Options;
use std::fs;
use tempfile::TempDir;

fn load(text: &str) -> Result<Loaded, Error> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("gantry.yaml"), text).unwrap();
    Config::load(&Source::new(folder.path()), &Env::from([]))
}

fn main(loaded: &Loaded) -> &Project {
    loaded.config.project(MAIN_PROJECT).unwrap()
}

#[track_caller]
fn options(text: &str) -> Options {
    let loaded = load(text).unwrap_or_else(|error| panic!("{error}"));
    super::super::options("default", main(&loaded), &loaded.data).unwrap_or_else(|error| panic!("{error:#}"))
}

#[track_caller]
fn refused(text: &str) -> String {
    load(text).unwrap_err().to_string()
}

fn uses(options: &Options, agent: &str) -> Vec<ToolSelector> {
    options.agents[agent].selection.include.clone()
}

const APIS: &str = "openapiSpecs: { pets: { spec: p.json }, shop: { spec: s.json, enabled: false } }\n";

#[test]
fn rst_2_an_agent_has_all_tools_of_an_api_by_its_id() {
    let options = options(&format!(
        "{APIS}restTools: {{ a: {{ description: D, url: 'http://a/' }} }}\n\
         agents:\n  one: {{ tools: ['openapi:pets', 'rest__a'] }}\n  two: {{ tools: {{ use: ['openapi:shop', rest] }} }}\n\
         \x20 all: {{ tools: ['openapi:*'] }}\n",
    ));
    let provider = |id: &str| ToolSelector::Provider(id.into());
    let a = ToolSelector::Tools(Pattern::parse("rest__a").unwrap());
    assert_eq!(uses(&options, "one"), [provider("openapi:pets"), a]);
    assert_eq!(uses(&options, "two"), [provider("openapi:shop"), provider("rest")]);
    assert_eq!(uses(&options, "all"), [provider("openapi:pets"), provider("openapi:shop")]);
}

#[test]
fn rst_2_an_api_that_is_not_there_is_named_where_an_agent_wants_it() {
    let said = refused(&format!("{APIS}agents:\n  one: {{ tools: ['openapi:petz'] }}\n"));
    assert!(
        said.ends_with(
            r#"gantry.yaml:3: agents.one.tools[0]: there is no API "openapi:petz"; there are openapi:pets, openapi:shop"#
        ),
        "{said}"
    );
    let said = refused("agents: { one: { tools: { use: ['openapi:x'] } } }\n");
    assert!(said.contains("no API is configured; add it under \"openapiSpecs\""), "{said}");
}

#[test]
fn rst_1_what_is_said_of_a_tool_holds_for_that_tool() {
    let options = options(
        "queues: { net: { concurrent: 1 } }\nrestTools:\n\
         \x20 plain: { description: D, url: 'http://a/' }\n\
         \x20 full: { description: D, method: POST, url: 'http://a/', queue: net, cache: 5, requestTimeoutMs: 7 }\n\
         \x20 stream: { description: D, url: 'http://a/', streaming: { mode: sse, timeoutMs: 1000 } }\n\
         \x20 short: { description: D, url: 'http://a/', requestTimeoutMs: 9, streaming: { mode: sse } }\n",
    );
    let rest = &options.providers["rest"];
    let ms = Duration::from_millis;
    assert_eq!(rest.tools_cache["full"].get(), ms(5), "of a POST too");
    assert_eq!(rest.tools_queue["full"].0.as_deref(), Some("net"));
    let times = ["full", "stream", "short"].map(|name| rest.tools_timeout[name].get());
    assert_eq!(times, [ms(7), ms(11_000), ms(9)]);
    assert_eq!((rest.tools_cache.len(), rest.tools_queue.len(), rest.tools_timeout.len()), (1, 1, 3));
}

#[test]
fn rst_2_tools_of_an_api_are_named_with_its_id_or_without() {
    let options = options(
        "queues: { net: { concurrent: 1 } }\nopenapiSpecs:\n  pets:\n    spec: p.json\n    cache: 5\n    queue: net\n\
         \x20   toolsAllowed: [list_pets, 'pets_get_*', '*_all', 'rest__pets_x', '@rest/pets_y']\n    toolsDenied: ['delete_*']\n\
         \x20   toolsTimeout: { list_pets: 7, pets_x: 9 }\n",
    );
    let pets = &options.providers["openapi:pets"];
    let texts = |patterns: &[Pattern]| patterns.iter().map(|it| it.as_str().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        texts(pets.allowed.as_deref().unwrap()),
        ["pets_list_pets", "pets_get_*", "*_all", "rest__pets_x", "@rest/pets_y"]
    );
    assert_eq!(texts(&pets.denied), ["pets_delete_*"]);
    let ms = Duration::from_millis;
    assert_eq!(pets.tools_timeout["pets_list_pets"].get(), ms(7));
    assert_eq!(pets.tools_timeout["pets_x"].get(), ms(9));
    assert_eq!((pets.cache.some(), pets.queue.as_deref()), (Some(ms(5)), Some("net")));
}

#[test]
fn patterns_that_are_none_are_named_at_their_line() {
    let many = "*a".repeat(40);
    let said =
        refused(&format!("openapiSpecs:\n  pets:\n    spec: p.json\n    include:\n      - \"{many}\"\n"));
    assert!(said.contains("gantry.yaml:5: ") && said.contains("wildcards"), "{said}");
}

#[test]
fn what_is_switched_off_gets_no_provider() {
    let loaded = load(
        "restTools: { a: { description: D, url: 'http://a/', enabled: false }, b: { description: D, url: '${NONE_SUCH}' } }\n\
         openapiSpecs: { c: { spec: c.json, enabled: false }, d: { spec: '${NONE_SUCH}' } }\n",
    )
    .unwrap();
    let options = rest_options(main(&loaded));
    assert!(options.inline.is_empty() && options.apis.is_empty());
    assert!(gantry_rest::providers(options).unwrap().is_empty());
}
