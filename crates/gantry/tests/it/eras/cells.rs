//! Every era of client with every era of server, by pipe and by HTTP on both sides: the whole of the protocol.

use super::{Client, Era, LOG_LEVEL, Rig, accept, modern_meta, shaken};
use crate::passthrough::{Door, Talk, names, parsed, text};
use serde_json::{Value, json};

const SERVERS: [&str; 6] = [
    "faulty_legacy_stdio",
    "faulty_modern_stdio",
    "faulty_dual_stdio",
    "faulty_legacy_http",
    "faulty_modern_http",
    "faulty_dual_http",
];

/// Has a client of this era, by this door, do everything with every server.
fn tour(era: Era, door: fn(&Rig) -> Door<'_>) {
    let rig = Rig::of(&SERVERS);
    let mut client = Client::connect(door(&rig), era);
    for server in SERVERS {
        lists_and_calls(&mut client, server);
        reads_and_prompts(&mut client, server);
        reports(&mut client, server);
        questions(&mut client, server);
        let journal = rig.journal(server);
        let count = |line: &str| journal.iter().filter(|found| *found == line).count();
        assert_eq!((count("ask begun"), count("ask ended")), (3, 3), "{server}: {journal:?}");
        assert_eq!((count("sample begun"), count("sample ended")), (1, 1), "{server}: {journal:?}");
    }
}

/// What only the newer era says of a result.
#[track_caller]
fn is_marked(era: Era, result: &Value, cacheable: bool) {
    let modern = era == Era::Modern;
    let hints = (result["ttlMs"].is_u64(), result["cacheScope"].is_string());
    assert_eq!(result.get("resultType").is_some(), modern, "{result}");
    assert_eq!(hints, (modern && cacheable, modern && cacheable), "{result}");
    let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
    assert_eq!(server, &if modern { json!("gantry") } else { Value::Null }, "{result}");
}

fn lists_and_calls(client: &mut Client, server: &str) {
    let (era, talk) = (client.era, &mut client.talk);
    let listed = talk.result("tools/list", &json!({}));
    is_marked(era, &listed, true);
    let tools = names(&listed["tools"]);
    for tool in ["echo", "ask", "odd"] {
        assert!(tools.contains(&format!("{server}__{tool}")), "{server}: {tools:?}");
    }
    let call =
        |tool: &str, arguments: Value| json!({ "name": format!("{server}__{tool}"), "arguments": arguments });
    let echoed = talk.result("tools/call", &call("echo", json!({ "text": "grüße" })));
    is_marked(era, &echoed, false);
    assert_eq!(text(&echoed), "grüße", "{server}");
    let sum = talk.result("tools/call", &call("add", json!({ "a": 19, "b": 23 })));
    assert_eq!(sum["structuredContent"], json!({ "sum": 42 }), "{server}: {sum}");
    let failed = talk.result("tools/call", &call("fail", json!({ "text": "on purpose" })));
    is_marked(era, &failed, false);
    assert_eq!(failed["isError"], true, "{server}: {failed}");
    assert!(text(&failed).contains("on purpose"), "{server}: {failed}");
}

fn reads_and_prompts(client: &mut Client, server: &str) {
    let (era, talk) = (client.era, &mut client.talk);
    let uri = |uri: &str| json!({ "uri": format!("gantry:{server}/{uri}") });
    let read = talk.result("resources/read", &uri("faulty://text/one"));
    is_marked(era, &read, true);
    assert_eq!(read["contents"][0]["text"], "the first resource", "{server}: {read}");
    let item = talk.result("resources/read", &uri("faulty://item/7"));
    assert_eq!(item["contents"][0]["text"], "7", "{server}: {item}");
    // The code that the older era has for this is forbidden in the newer one.
    let missing = if era == Era::Legacy { -32002 } else { -32602 };
    talk.error("resources/read", &uri("faulty://nowhere"), missing);
    for (method, member) in
        [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")]
    {
        let listed = talk.result(method, &json!({}));
        is_marked(era, &listed, true);
        let own = format!("gantry:{server}/faulty://");
        let items = listed[member].as_array().expect("a list");
        assert!(items.iter().any(|item| item.to_string().contains(&own)), "{server}: {listed}");
    }
    let prompt = format!("{server}__greet");
    assert!(names(&talk.result("prompts/list", &json!({}))["prompts"]).contains(&prompt), "{server}");
    let got = talk.result("prompts/get", &json!({ "name": prompt, "arguments": { "name": "ada" } }));
    is_marked(era, &got, false);
    assert_eq!(got["messages"][0]["content"]["text"], r#"greet {"name":"ada"}"#, "{server}: {got}");
    talk.error("prompts/get", &json!({ "name": prompt }), -32602);
    let reference = json!({ "type": "ref/prompt", "name": prompt });
    let wanted = json!({ "ref": reference, "argument": { "name": "name", "value": "a" } });
    let completed = talk.result("completion/complete", &wanted);
    assert_eq!(completed["completion"]["values"], json!(["ada", "alan"]), "{server}: {completed}");
}

fn reports(client: &mut Client, server: &str) {
    let plain = client.talk.meta.clone();
    let with = |member: &str| if plain.is_empty() { member.to_owned() } else { format!("{plain},{member}") };
    let talk = &mut client.talk;
    talk.meta = with(r#""progressToken":"mine""#);
    assert_eq!(talk.call(&format!("{server}__progress"), &json!({ "steps": 3 })), "3 steps");
    let reports: Vec<Value> =
        talk.heard("notifications/progress").iter().map(|report| report["params"].clone()).collect();
    let report = |n: u64| json!({ "progressToken": "mine", "progress": n, "total": 3, "message": format!("step {n}") });
    assert_eq!(reports, [report(1), report(2), report(3)], "{server}");

    match client.era {
        Era::Legacy => {
            talk.meta = plain.clone();
            talk.result("logging/setLevel", &json!({ "level": "warning" }));
        }
        Era::Modern => talk.meta = with(&format!(r#""{LOG_LEVEL}":"warning""#)),
    }
    for level in ["info", "error"] {
        talk.call(&format!("{server}__log"), &json!({ "text": level, "level": level }));
    }
    let logged: Vec<Value> =
        talk.heard("notifications/message").iter().map(|message| message["params"]["data"].clone()).collect();
    assert_eq!(logged, ["error"], "{server}");
    talk.meta = plain;
}

fn questions(client: &mut Client, server: &str) {
    let ask = format!("{server}__ask");
    let schema =
        json!({ "type": "object", "properties": { "answer": { "type": "string" } }, "required": ["answer"] });
    let (asked, outcome) = client.fill_in(&ask, &json!({ "text": "Whose?" }), &[accept("mine")]);
    assert_eq!(asked, [json!({ "message": "Whose?", "requestedSchema": schema })], "{server}");
    assert_eq!(parsed(&outcome), accept("mine"), "{server}");
    let declined = json!({ "action": "decline" });
    let (_, outcome) = client.fill_in(&ask, &json!({ "text": "Whose?" }), std::slice::from_ref(&declined));
    assert_eq!(parsed(&outcome), declined, "{server}");
    let answers = ["one", "two", "three"].map(accept);
    let (asked, outcome) = client.fill_in(&ask, &json!({ "text": "Again?", "rounds": 3 }), &answers);
    assert_eq!((asked.len(), parsed(&outcome)), (3, accept("three")), "{server}");

    let params = json!({ "name": format!("{server}__sample"), "arguments": { "text": "Say hi" } });
    let content = json!({ "type": "text", "text": "hi" });
    let sampled = json!({ "role": "assistant", "content": content, "model": "m", "stopReason": "endTurn" });
    let answers = [("sampling/createMessage", sampled.clone())];
    let (asked, answer) = client.converse("tools/call", &params, &answers);
    assert_eq!(asked[0]["messages"][0]["content"]["text"], "Say hi", "{server}: {asked:?}");
    assert_eq!(parsed(&text(&answer["result"])), sampled, "{server}");
}

#[test]
fn ups_11_a_legacy_client_on_http_does_everything_with_servers_of_every_era() {
    tour(Era::Legacy, Rig::door);
}

#[test]
fn ups_11_a_legacy_client_on_a_pipe_does_everything_with_servers_of_every_era() {
    tour(Era::Legacy, Rig::pipe);
}

#[test]
fn ups_11_a_modern_client_on_http_does_everything_with_servers_of_every_era() {
    tour(Era::Modern, Rig::door);
}

#[test]
fn ups_11_a_modern_client_on_a_pipe_does_everything_with_servers_of_every_era() {
    tour(Era::Modern, Rig::pipe);
}

#[test]
fn ups_11_a_client_that_withdraws_a_call_ends_it_at_the_server_in_every_cell() {
    const CELLS: [&str; 4] =
        ["faulty_legacy_stdio", "faulty_modern_stdio", "faulty_legacy_http", "faulty_modern_http"];
    for era in [Era::Legacy, Era::Modern] {
        let rig = Rig::of(&CELLS);
        for (n, door) in [Rig::door(&rig), Rig::pipe(&rig)].into_iter().enumerate() {
            for server in CELLS {
                let Client { mut talk, .. } = Client::connect(door, era);
                let comma = if talk.meta.is_empty() { "" } else { "," };
                talk.meta.push_str(&format!(r#"{comma}"progressToken":1"#));
                let id =
                    talk.begin_call(&format!("{server}__progress"), &json!({ "steps": 1, "ms": 60_000 }));
                talk.hear("notifications/progress");
                match (era, n) {
                    // Over HTTP, a modern client withdraws its request by closing the stream.
                    (Era::Modern, 0) => drop(talk),
                    _ => talk.tell("notifications/cancelled", &json!({ "requestId": id })),
                }
                rig.server.eventually(&format!("{era:?} {n} {server} is told"), || {
                    rig.journal(server) == vec!["cancelled"; n + 1]
                });
            }
        }
    }
}

#[test]
fn ups_11_a_client_that_cannot_be_asked_gets_an_error_with_what_it_lacks() {
    let rig = Rig::of(&["faulty_legacy_stdio", "faulty_modern_http"]);
    let nothing = json!({});
    let mut legacy = shaken(rig.door(), super::LEGACY, &nothing);
    let mut modern = Talk::silent(rig.door());
    modern.meta = modern_meta(&nothing);
    let call = |server: &str| json!({ "name": format!("{server}__ask"), "arguments": { "text": "?" } });
    // A server with sessions was sent what clients in general can; this one cannot, and the server hears that.
    for talk in [&mut legacy, &mut modern] {
        let outcome = talk.result("tools/call", &call("faulty_legacy_stdio"));
        let error = parsed(&text(&outcome));
        assert_eq!(error["code"], -32601, "{outcome}");
        assert!(error["message"].as_str().unwrap().contains("not supported by the client"), "{outcome}");
    }
    // A server without sessions gets the capabilities of each client.
    let refused = legacy.result("tools/call", &call("faulty_modern_http"));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains("the client must declare the capability elicitation"), "{refused}");
    let refused = modern.error("tools/call", &call("faulty_modern_http"), -32021);
    assert_eq!(refused["data"]["requiredCapabilities"], json!({ "elicitation": {} }), "{refused}");
    assert_eq!(rig.journal("faulty_legacy_stdio"), ["ask begun", "ask ended", "ask begun", "ask ended"]);
    assert_eq!(rig.journal("faulty_modern_http"), Vec::<String>::new(), "it never began");
}

#[test]
fn ups_11_no_client_is_asked_for_roots_unless_that_is_configured() {
    let config = json!({ "mcpServers": { "faulty_legacy_stdio_open": { "roots": true }, "faulty_modern_http_open": { "roots": true } } });
    let servers =
        ["faulty_legacy_stdio", "faulty_modern_http", "faulty_legacy_stdio_open", "faulty_modern_http_open"];
    let rig = Rig::with(&config, &servers.map(|server| (server, &[][..])));
    let roots = json!({ "roots": [{ "uri": "file:///work", "name": "work" }] });
    for era in [Era::Legacy, Era::Modern] {
        let mut client = Client::connect(rig.door(), era);
        for server in servers {
            let params = json!({ "name": format!("{server}__roots"), "arguments": {} });
            let open = server.ends_with("open");
            let answers = [("roots/list", roots.clone())];
            let (_, answer) = client.converse("tools/call", &params, if open { &answers } else { &[] });
            match (open, server, era) {
                (true, ..) => assert_eq!(parsed(&text(&answer["result"])), roots, "{server}: {answer}"),
                (false, "faulty_modern_http", Era::Modern) => {
                    assert_eq!(answer["error"]["code"], -32021, "{server}: {answer}");
                }
                (false, ..) => {
                    assert_eq!(answer["result"]["isError"], true, "{server}: {answer}");
                    assert!(text(&answer["result"]).contains("roots"), "{server}: {answer}");
                }
            }
        }
    }
}
