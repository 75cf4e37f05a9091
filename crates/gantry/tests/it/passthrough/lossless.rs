//! Nothing is rewritten on its way: unknown fields, the order of keys and the text of numbers are what was sent, in
//! both directions and for clients of both eras.

use super::{Rig, Talk, elements, faulty, in_order, parsed, raw, without};
use gantry_testkit::faulty::lossless_samples::{HUGE_NUMBER_RESULT, SAMPLE_DEFINITION, SAMPLE_RESULT};
use serde_json::{Value, json};

/// A server of each era.
fn rig() -> Rig {
    Rig::of(&json!({ "old": faulty(&[]), "new": faulty(&["--era", "modern"]) }))
}

#[test]
fn ups_2_an_unusual_definition_is_listed_member_for_member_but_for_its_name() {
    let rig = rig();
    for (era, mut client) in [("legacy", rig.legacy()), ("modern", rig.modern())] {
        let answer = client.ask_raw("tools/list", "{}");
        let tools = elements(raw(&answer, &["result", "tools"]));
        for server in ["old", "new"] {
            let name = format!("\"{server}__odd\"");
            let listed = tools.iter().find(|tool| raw(tool, &["name"]) == name).expect("it is listed");
            // Blanks between members are the one thing that may go.
            let expected = in_order(&SAMPLE_DEFINITION.replace("\"odd\"", &name));
            assert_eq!(in_order(listed), expected, "{era} {server}");
        }
    }
}

#[test]
fn srv_1_an_unusual_result_reaches_a_client_of_the_same_era_byte_for_byte() {
    let rig = rig();
    let mut client = rig.legacy();
    for (tool, expected) in [("odd", SAMPLE_RESULT), ("odd-huge", HUGE_NUMBER_RESULT)] {
        let answer = client.ask_raw("tools/call", &format!(r#"{{"name":"old__{tool}","arguments":{{}}}}"#));
        assert_eq!(raw(&answer, &["result"]), expected);
    }
}

#[test]
fn srv_1_an_unusual_result_keeps_every_member_in_the_other_era() {
    let rig = rig();
    // What an era adds or takes away; every other member keeps its text and its place.
    let own = ["resultType", "_meta"];
    for (era, mut client) in [("legacy", rig.legacy()), ("modern", rig.modern())] {
        for server in ["old", "new"] {
            for (tool, sent) in [("odd", SAMPLE_RESULT), ("odd-huge", HUGE_NUMBER_RESULT)] {
                let call = format!(r#"{{"name":"{server}__{tool}","arguments":{{}}}}"#);
                let answer = client.ask_raw("tools/call", &call);
                let result = raw(&answer, &["result"]);
                let what = format!("{tool} of {server} for a {era} client: {result}");
                assert_eq!(without(&in_order(result), &own), without(&in_order(sent), &own), "{what}");
                let value = parsed(result);
                let kind = (era == "modern").then(|| json!("complete"));
                assert_eq!(value.get("resultType"), kind.as_ref(), "{what}");
                if tool == "odd" {
                    // The vendor's own key is the first of `_meta`, and keeps the text of its number.
                    let vendor = ("vendor.example/trace".to_owned(), r#"{"n":0.10}"#.to_owned());
                    assert_eq!(in_order(raw(result, &["_meta"])).first(), Some(&vendor), "{what}");
                }
                let who = &value["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
                let gantry = if era == "modern" { json!("gantry") } else { Value::Null };
                assert_eq!(*who, gantry, "{what}");
            }
        }
    }
}

/// Arguments that any reader but a raw one would rewrite.
const SAMPLE_ARGUMENTS: &str = r#"{ "zeta":1.10 ,"any":{"z":[1E5, -0.0,1e-7,18446744073709551615],"\u0041":"caf\u00e9 \/","a":null},"alpha":2.50,"empty":{ } }"#;

/// Members of `_meta` that are not Gantry's.
const SAMPLE_META: &str = r#""vendor.example/z":{"n":0.10,"b":[1.0e+2],"a":"\u00e9"},"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","vendor.example/a":1.50"#;

#[test]
fn ups_10_arguments_and_foreign_meta_reach_the_server_as_they_were_written() {
    let rig = rig();
    for (era, mut client) in [("legacy", rig.legacy()), ("modern", rig.modern())] {
        client.meta = SAMPLE_META.to_owned();
        for server in ["old", "new"] {
            let call = format!(r#"{{"name":"{server}__params","arguments":{SAMPLE_ARGUMENTS}}}"#);
            let answer = client.ask_raw("tools/call", &call);
            let params = super::text(&parsed(raw(&answer, &["result"])));
            let what = format!("{era} client, {server} server: {params}");
            assert_eq!(raw(&params, &["arguments"]), SAMPLE_ARGUMENTS, "{what}");
            assert_eq!(raw(&params, &["name"]), "\"params\"", "{what}");
            let meta = in_order(raw(&params, &["_meta"]));
            let foreign: Vec<_> = meta
                .iter()
                .filter(|(key, _)| !key.starts_with("io.modelcontextprotocol/"))
                .cloned()
                .collect();
            assert_eq!(foreign, in_order(&format!("{{{SAMPLE_META}}}")), "{what}");
            // What belongs to the protocol is Gantry's own, and only where the server's era has it.
            assert_eq!(meta.len() > foreign.len(), server == "new", "{what}");
        }
    }
}

#[test]
fn ups_10_a_call_without_arguments_is_passed_on_as_one_with_none() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    for call in [r#"{"name":"one__params"}"#, r#"{"name":"one__params","arguments":{}}"#] {
        let answer = client.ask_raw("tools/call", call);
        let params: Value =
            serde_json::from_str(&super::text(&parsed(raw(&answer, &["result"])))).expect("JSON");
        assert_eq!((&params["name"], &params["arguments"]), (&json!("params"), &json!({})), "{params}");
    }
}

#[test]
fn ups_10_what_a_server_refuses_is_refused_in_its_own_words() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    // A tool that fails, and a prompt that is not asked for rightly: neither is Gantry's to say.
    let failed = client.ask_raw("tools/call", r#"{"name":"one__fail","arguments":{"text":"no \"luck\""}}"#);
    assert_eq!(
        raw(&failed, &["result"]),
        r#"{"content":[{"type":"text","text":"no \"luck\""}],"isError":true}"#
    );
    let refused = client.error("prompts/get", &json!({ "name": "one__greet" }), -32602);
    assert_eq!(refused["message"], "`name` is missing", "{refused}");
}

#[test]
fn srv_1_resources_and_prompts_are_passed_byte_for_byte_too() {
    let home = gantry_testkit::TestDir::new();
    let entry = faulty(&[]);
    let rig = Rig::of(&json!({ "one": entry }));
    let (mut direct, mut through) = (Talk::legacy(super::Door::Direct(&home, &entry)), rig.legacy());
    for (method, own, shown) in [
        ("resources/read", r#"{"uri":"faulty://data/json"}"#, r#"{"uri":"gantry:one/faulty://data/json"}"#),
        ("resources/read", r#"{"uri":"faulty://data/bytes"}"#, r#"{"uri":"gantry:one/faulty://data/bytes"}"#),
        ("resources/list", "{}", "{}"),
        ("resources/templates/list", "{}", "{}"),
        (
            "prompts/get",
            r#"{"name":"greet","arguments":{"name":"Ada","style":"caf\u00e9"}}"#,
            r#"{"name":"one__greet","arguments":{"name":"Ada","style":"caf\u00e9"}}"#,
        ),
        ("prompts/get", r#"{"name":"attach"}"#, r#"{"name":"one__attach"}"#),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"a"}}"#,
            r#"{"ref":{"type":"ref/prompt","name":"one__greet"},"argument":{"name":"name","value":"a"}}"#,
        ),
    ] {
        let expected = direct.ask_raw(method, own);
        let answer = through.ask_raw(method, shown);
        let unmapped = raw(&answer, &["result"]).replace("gantry:one/", "");
        assert_eq!(unmapped, raw(&expected, &["result"]), "{method} {shown}");
    }
    let expected = direct.ask_raw("prompts/list", "{}");
    let answer = through.ask_raw("prompts/list", "{}");
    assert_eq!(
        raw(&answer, &["result"]).replace("\"name\":\"one__", "\"name\":\""),
        raw(&expected, &["result"])
    );
}
