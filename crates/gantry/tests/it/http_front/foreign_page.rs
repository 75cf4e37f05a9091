//! A page of another program of this machine, in a real browser, tries to use Gantry.

use super::CALL;
use crate::approvals::page::browser::Browser;
use gantry_testkit::{TestDir, TestServer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// What that page runs, and what Gantry's own page runs afterwards.
const ATTACK: &str = include_str!("foreign_page.js");
const OWN: &str = include_str!("own_page.js");

/// What the other program answers to every request.
const PAGE: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 21\r\nconnection: close\r\n\r\n<!doctype html><body>";

#[test]
fn srv_2_a_page_of_another_port_does_nothing_and_gantrys_own_page_works() {
    let home =
        TestDir::new().config("policies: [{ name: p, tools: [delete_file], decide: ask, reason: x }]\n");
    home.write("kept.txt", "x");
    let server = home.serve();
    let held = server.call("delete_file", &json!({ "path": "kept.txt" })).json();
    let held = held["id"].as_str().unwrap_or_else(|| panic!("not held: {held}"));
    let other = TestServer::listen(async |listener| {
        while let Ok((mut stream, _)) = listener.accept().await {
            // The browser also opens connections that it does not use.
            tokio::spawn(async move {
                if stream.read(&mut [0; 4096]).await.is_ok_and(|bytes| bytes > 0) {
                    stream.write_all(PAGE).await.ok();
                }
            });
        }
    });
    let call = CALL.replace("\"x\"", "\"a=b\"");
    let attack =
        json!({ "host": server.address, "call": call, "held": format!("/api/v1/calls/{held}/cancel") });
    let mut browser = Browser::new(&server);
    for origin in ["127.0.0.1", "localhost"] {
        let page = format!("http://{origin}:{}/", other.address.port());
        let seen = browser.run(&page, ATTACK, &attack);
        let tries = seen.as_object().expect("an object");
        assert_eq!(tries.len(), 28, "{seen}");
        for (name, seen) in tries {
            let seen = seen.as_str().expect("a text");
            assert!(["TypeError", "opaque 0", "closed"].contains(&seen), "{name}: {seen}");
        }
        assert!(!home.path().join("got-in.txt").exists(), "{origin}: a file was written");
        let calls = server.get("/api/v1/audit").json();
        assert_eq!(calls["items"].as_array().expect("a list").len(), 1, "{origin}: {calls}");
        assert_eq!(calls["items"][0]["state"], "PENDING_APPROVAL", "{origin}: {calls}");
    }
    let own = format!("http://localhost:{}/approvals", server.address.port());
    let host = format!("localhost:{}", server.address.port());
    let seen = browser.run(&own, OWN, &json!({ "host": host, "call": call }));
    assert_eq!(seen, json!({ "json": 200, "text": 415, "socket": "open", "events": "open" }));
    assert_eq!(home.read("got-in.txt"), "a=b");
}
