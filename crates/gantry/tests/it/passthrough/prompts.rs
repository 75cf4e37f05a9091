//! UPS-10: prompts under names that say whose they are, and completion for prompts and templates.

use super::{Rig, Talk, faulty, names, with};
use serde_json::{Value, json};

const OWN: [&str; 4] = ["greet", "plain", "attach", "review"];

/// The names of all prompts.
#[track_caller]
fn prompts(client: &mut Talk) -> Vec<String> {
    names(&client.result("prompts/list", &json!({}))["prompts"])
}

#[test]
fn ups_10_prompts_of_two_servers_with_the_same_names_do_not_collide() {
    let rig = Rig::two();
    for mut client in [rig.legacy(), rig.modern()] {
        let listed = client.result("prompts/list", &json!({}))["prompts"].clone();
        let of = |server: &str| OWN.map(|own| format!("{server}__{own}"));
        assert_eq!(names(&listed), [of("one"), of("two")].concat());
        // Everything but the name is the server's.
        let arguments = json!([{ "name": "name", "required": true }, { "name": "style", "required": false }]);
        assert_eq!(
            listed[4],
            json!({ "name": "two__greet", "title": "greet", "description": "Greets by name", "arguments": arguments })
        );
        let got =
            client.result("prompts/get", &json!({ "name": "two__greet", "arguments": { "name": "Ada" } }));
        assert_eq!(got["description"], "Greets by name", "{got}");
        assert_eq!(got["messages"][0]["content"]["text"], r#"greet {"name":"Ada"}"#, "{got}");
    }
}

#[test]
fn ups_10_a_resource_that_a_prompt_brings_can_be_read() {
    let rig = Rig::two();
    let mut client = rig.legacy();
    let got = client.result("prompts/get", &json!({ "name": "two__attach" }));
    let uri = &got["messages"][1]["content"]["resource"]["uri"];
    assert_eq!(*uri, "gantry:two/faulty://text/one", "{got}");
    let read = client.result("resources/read", &json!({ "uri": uri }));
    assert_eq!(read["contents"][0]["text"], got["messages"][1]["content"]["resource"]["text"], "{read}");
}

#[test]
fn ups_10_a_prompt_that_is_not_there_is_refused() {
    let rig = Rig::two();
    for mut client in [rig.legacy(), rig.modern()] {
        for missing in ["greet", "three__greet", "one__nothing", "", "one__"] {
            let refused = client.error("prompts/get", &json!({ "name": missing }), -32602);
            assert!(
                refused["message"].as_str().is_some_and(|text| text.contains("there is no prompt")),
                "{refused}"
            );
        }
        client.error("prompts/get", &json!({}), -32602);
    }
}

#[test]
fn ups_10_a_server_without_a_prefix_keeps_the_names_of_its_prompts() {
    let bare = with(faulty(&[]), &json!({ "prefix": false, "toolsAllowed": ["echo"] }));
    let rig = Rig::of(&json!({ "bare": bare, "one": faulty(&[]) }));
    let mut client = rig.legacy();
    let expected = [OWN.map(str::to_owned), OWN.map(|own| format!("one__{own}"))].concat();
    assert_eq!(prompts(&mut client), expected);
    for name in ["review", "one__review"] {
        let got = client.result("prompts/get", &json!({ "name": name, "arguments": { "text": "x" } }));
        assert_eq!(got["messages"][0]["content"]["text"], r#"review {"text":"x"}"#, "{got}");
    }
    let got = client.result("prompts/get", &json!({ "name": "attach" }));
    assert_eq!(got["messages"][1]["content"]["resource"]["uri"], "faulty://text/one", "{got}");
}

fn completion(reference: &Value, typed: &str) -> Value {
    json!({ "ref": reference, "argument": { "name": "name", "value": typed } })
}

#[test]
fn ups_10_arguments_of_prompts_and_templates_are_completed_by_their_server() {
    let rig = Rig::two();
    for mut client in [rig.legacy(), rig.modern()] {
        for reference in [
            json!({ "type": "ref/prompt", "name": "two__greet" }),
            json!({ "type": "ref/resource", "uri": "gantry:one/faulty://user/{name}" }),
        ] {
            let completed = client.result("completion/complete", &completion(&reference, "a"));
            let expected = json!({ "total": 2, "values": ["ada", "alan"], "hasMore": false });
            assert_eq!(completed["completion"], expected, "{reference}");
        }
        for missing in [
            json!({ "type": "ref/prompt", "name": "greet" }),
            json!({ "type": "ref/prompt", "name": "three__greet" }),
            json!({ "type": "ref/resource", "uri": "gantry:three/faulty://user/{name}" }),
            // The server's own refusal.
            json!({ "type": "ref/resource", "uri": "gantry:one/faulty://nothing/{name}" }),
            json!({ "type": "ref/prompt" }),
        ] {
            client.error("completion/complete", &completion(&missing, "a"), -32602);
        }
    }
}

#[test]
fn ups_10_names_of_prompts_that_would_be_one_are_distinguished() {
    // The same server twice, under ids that are sanitised to the same namespace.
    let rig = Rig::of(&json!({ "a-b": faulty(&[]), "a.b": faulty(&[]) }));
    let mut client = rig.legacy();
    let shown = prompts(&mut client);
    let distinct: std::collections::BTreeSet<&String> = shown.iter().collect();
    assert_eq!(distinct.len(), 8, "{shown:?}");
    for name in shown.iter().filter(|name| name.contains("plain")) {
        let got = client.result("prompts/get", &json!({ "name": name }));
        assert_eq!(got["messages"][0]["content"]["text"], "plain {}", "{name}: {got}");
    }
    assert_eq!(prompts(&mut client), shown, "names are stable");
}
