//! How tools are run after a change: by the settings of now, also in sessions that began before, and by no session that is gone.

use crate::projects::{Site, faulty, with};
use serde_json::{Value, json};

#[test]
fn pol_2_an_answer_of_a_server_that_is_another_one_now_is_not_given_again() {
    let config = |who: &str| {
        let server = with(faulty(&[]), &json!({ "env": { "WHO": who }, "toolsCache": { "pid": 3_600_000 } }));
        json!({ "mcpServers": { "s": server } })
    };
    let site = Site::of(&config("one"));
    let first = site.result("default", "s__pid", &json!({}));
    assert_eq!(site.result("default", "s__pid", &json!({})), first, "it is kept");
    site.edit(&config("two"));
    site.ready("default", "s");
    assert_ne!(site.result("default", "s__pid", &json!({})), first, "another process answers");
}

#[test]
fn pol_2_other_limits_of_a_server_hold_without_starting_it_anew() {
    let config = |more: &Value| json!({ "mcpServers": { "s": with(faulty(&[]), more) } });
    let site = Site::of(&config(&json!({})));
    let pid = site.pid("default", "s");
    site.edit(&config(&json!({ "requestTimeoutMs": 50, "toolsDenied": ["env"] })));
    assert_eq!(site.pid("default", "s"), pid, "it is the same process");
    site.error("default", "s__sleep", &json!({ "ms": 5000 }), "TIMEOUT");
    site.error("default", "s__env", &json!({}), "TOOL_NOT_FOUND");
}

#[test]
fn pol_2_a_client_that_listed_before_a_queue_got_another_name_goes_on() {
    let config = |queue: &str| {
        json!({
            "queues": { queue: { "concurrent": 1 } },
            "tools": { "workspace": { "queue": queue } },
        })
    };
    let site = Site::of(&config("fs"));
    let mut client = site.client("default");
    let listed = client.ask("tools/list", &json!({}));
    assert!(listed.to_string().contains("list_directory"), "{listed}");
    site.edit(&config("files"));
    let called = client.ask("tools/call", &json!({ "name": "list_directory", "arguments": { "path": "." } }));
    assert_ne!(called["result"]["isError"], json!(true), "{called}");
    assert!(called["result"].is_object(), "{called}");
    let queues = site.server.get("/api/v1/queues").json();
    assert_eq!(queues["items"][0]["name"], "files");
    assert_eq!(queues["items"][0]["admitted"], 1, "it went by the queue of now");
}
