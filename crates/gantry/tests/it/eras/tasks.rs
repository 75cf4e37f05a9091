//! A server that others wrote, of the older era, with what only such servers have: tools that can only be called as tasks,
//! and addresses to open by way of an error.

use super::{Client, Era, shaken};
use crate::passthrough::{Door, text};
use gantry_testkit::faulty::Kind;
use gantry_testkit::real_servers::Everything;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};

const RESEARCH: &str = "everything__simulate_research_query";

/// A Gantry in front of server-everything.
struct Rig {
    server: Server,
    home: TestDir,
    _everything: Everything,
}

impl Rig {
    #[track_caller]
    fn new() -> Self {
        let everything = Everything::start(Kind::Http);
        let entry = json!({ "url": everything.url, "traceMCP": true });
        let home = TestDir::new().config(&json!({ "mcpServers": { "everything": entry } }).to_string());
        let server = home.serve();
        let listed = || server.get("/api/v1/tools").text.contains("simulate");
        server.eventually("its tools are there", listed);
        Self { server, home, _everything: everything }
    }

    fn door(&self) -> Door<'_> {
        Door::Http(&self.server, "/mcp")
    }

    /// Whether Gantry has sent this method to the server.
    fn has_sent(&self, method: &str) -> bool {
        let method = format!(r#""method":"{method}""#);
        let said = self.server.stderr();
        said.lines().any(|line| line.starts_with("[INF] everything → ") && line.contains(&method))
    }
}

fn research(topic: &str, ambiguous: bool) -> Value {
    json!({ "name": RESEARCH, "arguments": { "topic": topic, "ambiguous": ambiguous } })
}

#[test]
fn ups_11_a_tool_that_can_only_be_called_as_a_task_is_a_tool_like_any_other() {
    let rig = Rig::new();
    let ways = [Era::Legacy, Era::Modern].into_iter().flat_map(|era| [(era, false), (era, true)]);
    std::thread::scope(|scope| {
        for (era, ambiguous) in ways {
            let rig = &rig;
            scope.spawn(move || investigate(rig, era, ambiguous));
        }
    });
    let rows = rig.home.run(["audit", "--json"]).json();
    let states: Vec<&Value> = rows.as_array().expect("rows").iter().map(|row| &row["state"]).collect();
    assert_eq!(states, ["COMPLETED_SUCCESS"; 4], "{rows}");
}

/// Has something investigated, and asks back if it is ambiguous.
fn investigate(rig: &Rig, era: Era, ambiguous: bool) {
    let mut client = Client::connect(rig.door(), era);
    let picked = json!({ "action": "accept", "content": { "interpretation": "snake" } });
    let answers = if ambiguous { vec![("elicitation/create", picked)] } else { Vec::new() };
    let (asked, answer) = client.converse("tools/call", &research("python", ambiguous), &answers);
    let report = text(&answer["result"]);
    let title = if ambiguous { "# Research Report: python (snake)" } else { "# Research Report: python\n" };
    assert!(report.starts_with(title), "{era:?}: {report}");
    if let Some(question) = asked.first() {
        let choices = &question["requestedSchema"]["properties"]["interpretation"]["oneOf"];
        assert_eq!(choices[1]["const"], "snake", "{era:?}: {question}");
        // The task is between Gantry and the server.
        assert_eq!(question.get("_meta"), None, "{era:?}: {question}");
    }
    assert!(!answer.to_string().contains("taskId"), "{era:?}: {answer}");
}

#[test]
fn ups_11_a_call_that_runs_as_a_task_is_withdrawn_as_a_task() {
    let rig = Rig::new();
    let Client { mut talk, .. } = Client::connect(rig.door(), Era::Legacy);
    let id = talk.begin("tools/call", &research("python", false).to_string());
    rig.server.eventually("the task runs", || rig.has_sent("tasks/get"));
    talk.tell("notifications/cancelled", &json!({ "requestId": id }));
    rig.server.eventually("the task is cancelled", || rig.has_sent("tasks/cancel"));
}

#[test]
fn ups_11_a_client_of_either_era_is_sent_to_an_address_in_its_own_words() {
    let rig = Rig::new();
    for era in [Era::Legacy, Era::Modern] {
        let mut client = Client::connect(rig.door(), era);
        let url = format!("https://example.com/{era:?}");
        let params = |more: &Value| {
            let mut params =
                json!({ "name": "everything__trigger_url_elicitation", "arguments": { "url": url } });
            params["arguments"]["elicitationId"] = json!("seven");
            params["arguments"]["errorPath"] = more.clone();
            params
        };
        let accepted = [("elicitation/create", json!({ "action": "accept" }))];
        let (asked, answer) = client.converse("tools/call", &params(&json!(false)), &accepted);
        assert_eq!((&asked[0]["mode"], &asked[0]["url"]), (&json!("url"), &json!(url)), "{asked:?}");
        // Only the older era has ids for this.
        let id = if era == Era::Legacy { json!("seven") } else { Value::Null };
        assert_eq!(asked[0]["elicitationId"], id, "{asked:?}");
        let outcome = answer["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(outcome.contains("User completed the URL elicitation flow"), "{era:?}: {answer}");
        // The error that says the same is one of the older era's; the newer one has no such code.
        let code = if era == Era::Legacy { -32042 } else { -32602 };
        let error = client.talk.error("tools/call", &params(&json!(true)), code);
        let address = &error["data"]["elicitations"][0]["url"];
        assert_eq!(address, "https://modelcontextprotocol.io", "{era:?}: {error}");
    }
}

#[test]
fn ups_11_an_old_client_reads_what_a_link_says() {
    let rig = Rig::new();
    let call = json!({ "name": "everything__get_resource_links", "arguments": { "count": 1 } });
    let mut old = shaken(rig.door(), "2025-03-26", &json!({}));
    let outcome = &old.result("tools/call", &call)["content"][1];
    let words = outcome["text"].as_str().unwrap_or_else(|| panic!("no text: {outcome}"));
    assert!(words.starts_with("Blob Resource 1: gantry:everything/demo://resource"), "{words}");
    let mut new = shaken(rig.door(), "2025-06-18", &json!({}));
    assert_eq!(new.result("tools/call", &call)["content"][1]["type"], "resource_link");
}
