//! What the configuration of REST services comes to.

use super::*;
use crate::config::{Config, FixedEnv, Loaded, Source};
use gantry_core::toolset::ToolSelector;
use gantry_runtime::Options;
use std::fs;
use tempfile::TempDir;

#[track_caller]
fn loaded(text: &str) -> (TempDir, Loaded) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("gantry.yaml"), text).unwrap();
    let loaded = Config::load(&Source::new(folder.path()), &FixedEnv::default());
    (folder, loaded.unwrap_or_else(|error| panic!("{error}")))
}

#[track_caller]
fn options(text: &str) -> Options {
    let (_folder, loaded) = loaded(text);
    super::super::options("default", &loaded.config.main).unwrap_or_else(|error| panic!("{error:#}"))
}

#[track_caller]
fn refused(text: &str) -> String {
    let (_folder, loaded) = loaded(text);
    match super::super::options("default", &loaded.config.main) {
        Ok(options) => panic!("accepted: {options:?}"),
        Err(error) => error.to_string(),
    }
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
            r#"gantry.yaml:3: there is no API "openapi:petz"; there are openapi:pets, openapi:shop"#
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
    assert_eq!(rest.tools_cache, HashMap::from([("full".to_owned(), ms(5))]), "of a POST too");
    assert_eq!(rest.tools_queue, HashMap::from([("full".to_owned(), Some(Arc::from("net")))]));
    let times = [("full", ms(7)), ("stream", ms(11_000)), ("short", ms(9))];
    assert_eq!(rest.tools_timeout, times.map(|(name, time)| (name.to_owned(), time)).into());
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
    assert_eq!(pets.tools_timeout.get("pets_list_pets"), Some(&ms(7)));
    assert_eq!(pets.tools_timeout.get("pets_x"), Some(&ms(9)));
    assert_eq!((pets.cache, pets.queue.as_deref()), (Some(ms(5)), Some("net")));
}

#[test]
fn patterns_that_are_none_are_named_at_their_line() {
    let many = "*a".repeat(40);
    let (_folder, loaded) =
        loaded(&format!("openapiSpecs:\n  pets:\n    spec: p.json\n    include:\n      - \"{many}\"\n"));
    let said = providers(&loaded.config.main).unwrap_err().to_string();
    assert!(said.contains("gantry.yaml:5: ") && said.contains("wildcards"), "{said}");
}

#[test]
fn what_is_switched_off_gets_no_provider() {
    let (_folder, loaded) = loaded(
        "restTools: { a: { description: D, url: 'http://a/', enabled: false }, b: { description: D, url: '${NONE_SUCH}' } }\n\
         openapiSpecs: { c: { spec: c.json, enabled: false }, d: { spec: '${NONE_SUCH}' } }\n",
    );
    let options = rest_options(&loaded.config.main, &mut Vec::new());
    assert!(options.inline.is_empty() && options.apis.is_empty());
    assert!(providers(&loaded.config.main).unwrap().is_empty());
}
