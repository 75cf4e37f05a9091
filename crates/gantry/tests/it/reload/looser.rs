//! While one configuration takes the place of another, nothing can be called that neither of them allows.

use super::{count, ran};
use crate::passthrough::{Door, Talk};
use crate::projects::{Site, faulty, named, with};
use gantry_testkit::TestDir;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// How often each configuration takes the place of the other.
const ROUNDS: usize = 40;

/// How many call at once.
const CALLERS: usize = 4;

/// Goes back and forth between two configurations while this is done again and again, in several threads.
#[track_caller]
fn during(site: &Site, configs: [&Value; 2], act: impl Fn(usize) + Sync) {
    let (done, acted) = (AtomicBool::new(false), AtomicUsize::new(0));
    let act_until_done = |n: usize| {
        while !done.load(Ordering::Acquire) {
            act(n);
            acted.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let acting: Vec<_> = (0..CALLERS).map(|n| scope.spawn(move || act_until_done(n))).collect();
        let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            configs.iter().rev().cycle().take(2 * ROUNDS).for_each(|config| change(site, config, &acted));
        }));
        done.store(true, Ordering::Release);
        acting.into_iter().for_each(|thread| thread.join().expect("the caller goes on"));
        changed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Applies a configuration, and lets every caller act under it.
#[track_caller]
fn change(site: &Site, config: &Value, acted: &AtomicUsize) {
    let before = acted.load(Ordering::Relaxed);
    site.home.write("gantry.yaml", &config.to_string());
    let answer = site.server.apply_configuration();
    assert_eq!(answer.status, 200, "{answer:?}");
    site.server.eventually("all have called since", || acted.load(Ordering::Relaxed) > before + CALLERS);
}

#[test]
fn pol_2_a_rule_and_a_right_that_go_together_leave_no_moment_in_between() {
    let deny = json!([{ "name": "no-count", "tools": ["test__count"], "decide": "deny" }]);
    let denied = json!({ "agents": { "a": { "tools": ["test__count", "test__echo"] } }, "policies": deny });
    let narrowed = json!({ "agents": { "a": { "tools": ["test__echo"] } } });
    let site = Site::with_test_tools(&denied);
    let arguments = count(&site);
    let call = |tool: &str, arguments: &Value| {
        site.post(&json!({ "agent": "a", "tool": tool, "arguments": arguments })).json()
    };
    let path = "/mcp/default/agents/a";
    let clients: Vec<_> =
        (0..CALLERS).map(|_| std::sync::Mutex::new(Talk::legacy(Door::Http(&site.server, path)))).collect();
    during(&site, [&denied, &narrowed], |n| {
        let mut client = clients[n].lock().expect("the only one");
        let answer = client.ask("tools/call", &json!({ "name": "test__count", "arguments": arguments }));
        assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer}");
        let reply = call("test__count", &arguments);
        assert!(
            reply["error"]["code"] == "PERMISSION_DENIED" || reply["error"]["code"] == "TOOL_NOT_FOUND",
            "{reply}"
        );
        // What both allow works all the time.
        assert_eq!(client.call("test__echo", &json!({ "text": "x" })), "x");
        assert_eq!(call("test__echo", &json!({ "text": "x" }))["result"], "x");
    });
    assert_eq!(ran(&site), 0, "it never ran");
    let rows = site.server.get_as_admin("/api/v1/audit?tool=test__count&limit=1000").json();
    assert!(rows["items"].as_array().unwrap().iter().all(|row| row["state"] == "REFUSED"), "{rows}");
}

#[test]
fn pol_2_a_server_and_the_rule_about_it_that_go_together_leave_no_moment_in_between() {
    let deny = json!([{ "name": "no-journal", "tools": ["s__journal"], "decide": "deny" }]);
    let journal = faulty(&["--journal", "./journal.txt"]);
    let with_both = json!({ "mcpServers": { "s": journal, "keep": faulty(&[]) }, "policies": deny });
    let with_neither = json!({ "mcpServers": { "keep": faulty(&[]) } });
    let site = Site::of(&with_both);
    let clients: Vec<_> = (0..CALLERS).map(|_| std::sync::Mutex::new(site.client("default"))).collect();
    during(&site, [&with_both, &with_neither], |n| {
        let mut client = clients[n].lock().expect("the only one");
        let arguments = json!({ "text": "written" });
        let answer = client.ask("tools/call", &json!({ "name": "s__journal", "arguments": arguments }));
        assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer}");
        let reply = site.call("default", "s__journal", &arguments).json();
        assert_eq!(reply["ok"], false, "{reply}");
        assert_eq!(client.call("keep__echo", &json!({ "text": "x" })), "x");
        client.tools();
    });
    assert!(!site.home.path().join("journal.txt").exists(), "it never ran");
}

#[test]
fn pol_2_a_call_that_waits_for_its_turn_never_reaches_a_server_that_it_was_not_permitted_for() {
    let server = |who: &str| with(named(who), &json!({ "queue": "one" }));
    let before =
        json!({ "queues": { "one": { "concurrent": 1 } }, "mcpServers": { "s": server("harmless") } });
    let deny = json!([{ "name": "not-there", "tools": ["s__env"], "decide": "deny" }]);
    let after = json!({
        "queues": { "one": { "concurrent": 1 } }, "mcpServers": { "s": server("precious") }, "policies": deny,
    });
    let site = Site::of(&before);
    let running =
        crate::queues::defer(&site.server, &json!({ "tool": "s__sleep", "arguments": { "ms": 600_000 } }));
    site.server.eventually("the slot is taken", || crate::queues::queue(&site.server, "one")["inUse"] == 1);
    let waiting = crate::queues::defer(&site.server, &json!({ "tool": "s__env", "arguments": {} }));
    site.server.eventually("it waits", || crate::queues::queue(&site.server, "one")["depth"] == 1);
    site.home.write("gantry.yaml", &after.to_string());
    let try_it = json!({ "tool": "s__env", "arguments": {}, "timeoutMs": 50 });
    site.server.eventually("the new rule holds", || site.post(&try_it).status == 403);
    crate::queues::cancel(&site.server, &running);
    let outcome = crate::queues::outcome(&site.server, &waiting).json();
    assert!(!outcome.to_string().contains("precious"), "{outcome}");
    // Whether it was let go where it was permitted, or was refused: what came of it is on record.
    let reached = outcome["result"].as_str().is_some_and(|env| env.contains("harmless"));
    assert!(reached || outcome["ok"] == false, "{outcome}");
    let refused = site.error("default", "s__env", &json!({}), "PERMISSION_DENIED");
    assert!(refused.contains("not-there"), "{refused}");
}

#[test]
fn pol_2_a_workspace_and_the_rule_about_it_that_change_together_are_never_mixed() {
    let config = |workspace: &str, denied: &str| json!({ "workspace": workspace, "policies": [{ "name": "p", "tools": [denied], "decide": "deny" }] });
    // In `one` nothing may be written, in `two` nothing may be read.
    let (one, two) = (config("one", "write_file"), config("two", "read_file"));
    let site = Site::at(crate::projects::furnished(TestDir::new(), &one));
    for n in 0..50 {
        site.home.write(&format!("two/secret-{n}.txt"), "of two");
    }
    during(&site, [&one, &two], |n| {
        let name = format!("secret-{n}.txt");
        let read = site.call("default", "read_file", &json!({ "path": name })).json();
        assert_eq!(read["ok"], false, "{read}");
        let written =
            site.call("default", "write_file", &json!({ "path": format!("new-{n}.txt"), "content": "x" }));
        let allowed = written.json()["ok"] == true;
        assert!(allowed || written.json()["error"]["code"] != "INTERNAL_ERROR", "{written:?}");
    });
    for n in 0..CALLERS {
        assert!(!site.home.path().join(format!("one/new-{n}.txt")).exists(), "written where nothing may be");
    }
}
