//! Once and no more: retries, queues, caches, time limits and cancelling.

use super::{Rig, document, failed, home, operation, with};
use gantry_testkit::Echo;
use serde_json::{Value, json};

#[test]
fn rst_1_a_missing_service_fails_at_once_for_what_is_not_repeated() {
    // A port that was free a moment ago.
    let closed =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let tool =
        |method: &str| json!({ "description": "x", "method": method, "url": format!("http://{closed}/") });
    let home = home(&json!({ "restTools": { "get": tool("GET"), "post": tool("POST") } }));
    for name in ["rest__get", "rest__post"] {
        let (code, message) = failed(&home.call(name, &json!({})));
        assert!(code == "UPSTREAM_UNAVAILABLE" && message.contains("Nothing was sent"), "{code}: {message}");
    }
}

#[test]
fn rst_1_a_queue_limits_what_runs_at_once() {
    let slow = document(&json!({ "/slow": { "get": operation("slow") } }));
    let echo = Echo::start();
    let home = home(&json!({
        "queues": { "one": { "concurrent": 1 } },
        "restTools": { "slow": { "description": "x", "url": echo.url("/slow"), "queue": "one" } },
        "openapiSpecs": { "api": { "spec": "api.json", "queue": "one" } },
    }));
    home.write("api.json", &with(slow, &json!({ "servers": [{ "url": echo.url("") }] })).to_string());
    let rig = Rig::at(echo, home);
    std::thread::scope(|scope| {
        for n in 0..6 {
            let tool = if n % 2 == 0 { "rest__slow" } else { "rest__api_slow" };
            let rig = &rig;
            scope.spawn(move || rig.result(tool, &json!({})));
        }
    });
    assert_eq!((rig.echo.hits("/slow"), rig.echo.most_at_once()), (6, 1));
}

#[test]
fn rst_1_without_a_queue_calls_run_side_by_side() {
    let rig = Rig::inline(|echo| json!({ "slow": { "description": "x", "url": echo.url("/slow?ms=500") } }));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| rig.result("rest__slow", &json!({})));
        }
    });
    assert!(rig.echo.most_at_once() > 1);
}

#[test]
fn rst_1_an_equal_call_is_answered_from_the_cache() {
    let rig = Rig::of(|echo| {
        let url = |path: &str| json!({ "description": "x", "url": echo.url(path), "cache": 600_000, "parametersSchema": { "type": "object", "properties": { "p": {} } } });
        json!({ "restTools": { "get": url("/cached/${parameters.p}"), "fails": url("/status/500") } })
    });
    let first = rig.result("rest__get", &json!({ "p": 1 }));
    assert_eq!(rig.result("rest__get", &json!({ "p": 1 })), first);
    assert_eq!(rig.echo.hits("/cached/1"), 1);
    rig.result("rest__get", &json!({ "p": 2 }));
    assert_eq!(rig.echo.hits("/cached/2"), 1);
    for _ in 0..2 {
        rig.failed("rest__fails", &json!({}));
    }
    assert_eq!(rig.echo.hits("/status/500"), 2, "errors are not kept");
}

#[test]
fn rst_2_reads_of_an_api_are_cached_and_nothing_else() {
    let paths = json!({ "/a": { "get": operation("get"), "post": operation("post") }, "/b": { "get": operation("other") } });
    let rig = Rig::api_with(&document(&paths), &json!({ "cache": 600_000, "toolsCache": { "other": 0 } }));
    for tool in ["get", "get", "post", "post", "other", "other"] {
        rig.result(&format!("rest__api_{tool}"), &json!({}));
    }
    let count = |method: &str, path: &str| {
        let requests = rig.echo.requests();
        requests.iter().filter(|request| request["method"] == method && request["path"] == path).count()
    };
    assert_eq!((count("GET", "/a"), count("POST", "/a"), count("GET", "/b")), (1, 2, 2));
}

#[test]
fn rst_1_a_slow_service_is_given_up_on() {
    let rig = Rig::inline(|echo| {
        let tool = |method: &str| json!({ "description": "x", "method": method, "url": echo.url("/slow?ms=60000"), "requestTimeoutMs": 300 });
        json!({ "get": tool("GET"), "post": tool("POST") })
    });
    let code = |tool: &str| rig.failed(tool, &json!({})).0;
    assert_eq!(code("rest__get"), "TIMEOUT");
    let reply = rig.call("rest__post", &json!({}));
    let words = reply["error"].to_string();
    assert!(words.contains("OUTCOME_UNKNOWN") || words.contains("TIMEOUT"), "{reply}");
    assert_eq!(rig.echo.hits("/slow"), 2, "each was sent once");
}

#[test]
fn rst_1_what_can_change_something_is_on_record() {
    let rig = Rig::inline(
        |echo| json!({ "post": { "description": "x", "method": "POST", "url": echo.url("/a"), "bodyTemplate": { "n": 1 } } }),
    );
    rig.result("rest__post", &json!({}));
    let rows = rig.home.run(["audit", "--tool", "rest__post", "--json"]).json();
    let rows: &Vec<Value> = rows.as_array().expect("rows");
    assert!(!rows.is_empty() && rows.iter().any(|row| row.to_string().contains("COMPLETED")), "{rows:?}");
}
