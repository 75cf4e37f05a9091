//! Which operations become tools, what they are called, what they may change, and who gets them.

use super::{Rig, document, home, inspect, inspect_with, operation, rest_tools, tool_at, with};
use gantry_testkit::{Echo, TestDir};
use serde_json::{Value, json};

fn tagged(id: &str, tags: &[&str]) -> Value {
    with(operation(id), &json!({ "tags": tags }))
}

fn zoo() -> Value {
    document(&json!({
        "/pets": { "get": tagged("listPets", &["pets"]), "post": tagged("createPet", &["pets", "admin"]) },
        "/pets/{id}": {
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }],
            "get": tagged("getPet", &["pets"]), "put": tagged("replacePet", &["pets"]), "patch": tagged("changePet", &["pets"]),
            "delete": tagged("deletePet", &["pets", "admin"]), "head": tagged("headPet", &[]),
        },
        "/search": { "post": tagged("search", &["search"]) },
    }))
}

/// The operations that an entry with these keys chooses.
#[track_caller]
fn chosen(more: &Value) -> Vec<String> {
    let entry = with(json!({ "spec": "api.json", "baseUrl": "https://api.example.com" }), more);
    let home = home(&json!({ "openapiSpecs": { "zoo": entry } }));
    home.write("api.json", &zoo().to_string());
    let ran = home.run(["tools", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    rest_tools(&ran.json())
        .iter()
        .map(|name| name.strip_prefix("rest__zoo_").expect("its prefix").to_owned())
        .collect()
}

#[test]
fn rst_2_operations_are_chosen_by_method_tag_and_name() {
    let all =
        ["changePet", "createPet", "deletePet", "getPet", "headPet", "listPets", "replacePet", "search"];
    for (keys, expected) in [
        (json!({}), all.to_vec()),
        (json!({ "includeMethods": ["get"] }), vec!["getPet", "listPets"]),
        (json!({ "includeMethods": ["GET", "Delete"] }), vec!["deletePet", "getPet", "listPets"]),
        (json!({ "tagFilter": ["admin"] }), vec!["createPet", "deletePet"]),
        (json!({ "tagFilter": ["search", "admin"] }), vec!["createPet", "deletePet", "search"]),
        (
            json!({ "tagFilter": ["pets"], "includeMethods": ["get", "post"] }),
            vec!["createPet", "getPet", "listPets"],
        ),
        (json!({ "include": ["get*", "POST /search"] }), vec!["getPet", "search"]),
        (json!({ "include": ["GET /pets*"], "exclude": ["getPet"] }), vec!["listPets"]),
        (
            json!({ "exclude": ["DELETE *", "createPet"] }),
            vec!["changePet", "getPet", "headPet", "listPets", "replacePet", "search"],
        ),
        (json!({ "include": [] }), vec![]),
        (json!({ "toolsDenied": ["delete*"], "toolsAllowed": ["deletePet", "zoo_getPet"] }), vec!["getPet"]),
        (json!({ "enabled": false }), vec![]),
    ] {
        assert_eq!(chosen(&keys), expected, "{keys}");
    }
}

#[test]
fn rst_2_inspect_tells_what_is_filtered_and_changes_no_name() {
    let home = TestDir::new();
    home.write(
        "api.json",
        &with(zoo(), &json!({ "servers": [{ "url": "https://api.example.com" }] })).to_string(),
    );
    let whole = inspect(&home, "api.json");
    assert_eq!(whole["counts"], json!({ "operations": 8, "tools": 8, "filtered": 0, "skipped": 0 }));
    assert!(whole["tokens"].to_string().chars().any(|c| c.is_ascii_digit()), "{whole}");
    let ran = inspect_with(&home, "api.json", &["--tag", "admin", "--method", "delete"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let some = ran.json();
    assert_eq!(some["counts"], json!({ "operations": 8, "tools": 1, "filtered": 7, "skipped": 0 }));
    assert_eq!(some["tools"][0]["name"], tool_at(&whole, "delete", "/pets/{id}")["name"]);
}

#[test]
fn rst_2_one_bad_operation_costs_itself_only() {
    let bad =
        with(operation("bad"), &json!({ "parameters": [{ "$ref": "#/components/parameters/Nowhere" }] }));
    let paths = json!({
        "/good": { "get": operation("good") },
        "/bad": { "get": bad, "post": operation("beside") },
        "/worse": { "get": "no operation" },
        "/worst": 17,
    });
    let rig = Rig::api(&document(&paths));
    assert_eq!(rig.tools(), ["rest__api_beside", "rest__api_good"]);
    rig.sent("rest__api_beside", &json!({}));
    let report = inspect(&rig.home, "api.json");
    let skipped = report["skipped"].as_array().expect("a list");
    let reason = skipped.iter().find(|skipped| skipped["path"] == "/bad").expect("it is listed");
    assert_eq!(reason["method"], "GET");
    assert!(reason["reason"].as_str().is_some_and(|reason| reason.contains("Nowhere")), "{reason}");
    // People see it without JSON too.
    let ran = rig.home.run(["openapi", "inspect", "api.json"]);
    assert!(ran.code == 0 && ran.stdout.contains("Nowhere") && ran.stdout.contains("/bad"), "{ran:?}");
}

/// The names of the operations of these paths: path to name.
#[track_caller]
fn names(paths: &Value) -> Vec<String> {
    let home = TestDir::new();
    home.write(
        "api.json",
        &with(document(paths), &json!({ "servers": [{ "url": "https://api.example.com" }] })).to_string(),
    );
    let report = inspect_with(&home, "api.json", &["--name", "api"]).json();
    let tools = report["tools"].as_array().expect("tools").iter();
    let mut names: Vec<String> = tools
        .map(|tool| format!("{} {} = {}", tool["method"], tool["path"], tool["name"]).replace('"', ""))
        .collect();
    names.sort();
    names
}

#[test]
fn rst_2_names_are_readable_stable_and_unique() {
    let anonymous = json!({ "responses": {} });
    let long = "a_very_long_operation_name_that_goes_on_and_on_and_on_and_on_and_on";
    let paths = json!({
        "/a": { "get": operation("repos/list-for_user"), "post": operation("Same") },
        "/b": { "post": operation("same") },
        "/repos/{owner}/{repo}": { "get": anonymous },
        "/long1": { "get": operation(&format!("{long}1")) },
        "/long2": { "get": operation(&format!("{long}2")) },
    });
    let found = names(&paths);
    let name = |of: &str| {
        let line = found.iter().find_map(|line| line.strip_prefix(&format!("{of} = ")));
        line.unwrap_or_else(|| panic!("{of}: {found:?}")).to_owned()
    };
    assert!(name("GET /a").ends_with("repos_list_for_user"), "{found:?}");
    assert!(name("GET /repos/{owner}/{repo}").ends_with("get_repos_owner_repo"), "{found:?}");
    let mut folded: Vec<String> =
        found.iter().filter_map(|line| line.split(" = ").nth(1)).map(str::to_lowercase).collect();
    folded.sort();
    folded.dedup();
    assert_eq!(folded.len(), 6, "{found:?}");
    assert!(folded.iter().all(|name| name.len() <= 64 && name.starts_with("rest__")), "{found:?}");
    // Another order, and operations more, change no name.
    let mut turned = json!({ "/new": { "get": operation("fresh") } });
    for (path, item) in paths.as_object().expect("paths").iter().rev() {
        turned[path] = item.clone();
    }
    let again = names(&turned);
    assert!(found.iter().all(|line| again.contains(line)), "{found:?}\n{again:?}");
}

#[test]
fn rst_2_effects_follow_from_methods() {
    let rig = Rig::api_with(&zoo(), &json!({ "effects": { "POST /search": "read" } }));
    let ran = rig.home.run(["tools", "--format", "json"]);
    let listing = ran.json();
    let hints = |name: &str| {
        let tool = listing
            .as_array()
            .expect("tools")
            .iter()
            .find(|tool| tool["name"] == format!("rest__api_{name}"));
        let annotations = &tool.expect("the tool")["annotations"];
        (annotations["readOnlyHint"].as_bool(), annotations["destructiveHint"].as_bool())
    };
    for name in ["listPets", "getPet", "headPet", "search"] {
        assert_eq!(hints(name).0, Some(true), "{name}");
    }
    for name in ["createPet", "replacePet", "changePet"] {
        assert_eq!(hints(name), (Some(false), Some(false)), "{name}");
    }
    assert_eq!(hints("deletePet"), (Some(false), Some(true)));
    // What destroys waits for a person, and is sent once there is a yes.
    let (code, _) = super::failed(&rig.home.call("rest__api_deletePet", &json!({ "id": "7" })));
    assert_eq!((code.as_str(), rig.echo.hits("/pets/7")), ("APPROVAL_REQUIRED", 0));
    let reply = rig.home.call_yes("rest__api_deletePet", &json!({ "id": "7" }));
    assert_eq!((&reply["ok"], rig.echo.hits("/pets/7")), (&json!(true), 1), "{reply}");
}

#[test]
fn rst_2_an_agent_gets_the_tools_of_its_specifications() {
    let echo = Echo::start();
    let agents = json!({
        "pets": { "tools": ["openapi:one"] }, "some": { "tools": ["rest__two_get*", "rest__plain"] }, "none": { "tools": ["read_file"] },
    });
    let home = home(&json!({
        "openapiSpecs": { "one": { "spec": "api.json" }, "two": { "spec": "api.json" } },
        "restTools": { "plain": { "description": "x", "url": echo.url("/plain") } },
        "agents": agents,
    }));
    home.write("api.json", &with(zoo(), &json!({ "servers": [{ "url": echo.url("") }] })).to_string());
    let rig = Rig::at(echo, home);
    let tools =
        |agent: &str| rest_tools(&rig.server.get(&format!("/api/v1/tools?agent={agent}")).json()["items"]);
    let pets = tools("pets");
    assert!(pets.len() == 8 && pets.iter().all(|name| name.starts_with("rest__one_")), "{pets:?}");
    assert_eq!(tools("some"), ["rest__plain", "rest__two_getPet"]);
    assert_eq!(tools("none"), Vec::<String>::new());
    let call = |agent: &str, tool: &str| {
        crate::pipeline::post(&rig.server, &json!({ "tool": tool, "arguments": {}, "agent": agent })).json()
    };
    assert_eq!(call("pets", "rest__one_listPets")["ok"], true);
    for (agent, tool) in
        [("pets", "rest__two_listPets"), ("none", "rest__one_listPets"), ("some", "rest__two_listPets")]
    {
        assert_eq!(call(agent, tool)["error"]["code"], "TOOL_NOT_FOUND", "{agent} {tool}");
    }
    assert_eq!(rig.echo.hits("/pets"), 1);
}
