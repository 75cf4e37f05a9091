//! The page on which a person decides, in a real browser, against a running Gantry.

pub(crate) mod browser;

use super::api::{code, count, counted, decide, get, held, home, ids, over, post, remembering_home};
use super::keys::text;
use browser::Browser;
use gantry_testkit::TestDir;
use http::Method;
use serde_json::{Value, json};

/// A text that the page shows.
#[track_caller]
fn shown<'a>(seen: &'a Value, id: &str) -> &'a str {
    seen["texts"][id].as_str().unwrap_or_else(|| panic!("{id} is not to be seen: {seen}"))
}

#[test]
fn apr_6_the_page_holds_nothing_and_obeys_no_other_page() {
    let home = home("test__count");
    let server = home.serve();
    let (_, approval) = held(&server, "test__count", &count("secret-text"));
    for path in ["/approvals".to_owned(), format!("/approvals/{approval}")] {
        for page in [server.get(&path), server.get_as_admin(&path)] {
            assert_eq!(
                (page.status, page.headers["content-type"].as_bytes()),
                (200, b"text/html; charset=utf-8".as_slice())
            );
            let policy = page.headers["content-security-policy"].to_str().expect("text");
            let nonce =
                policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce");
            assert!(
                policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
                "{policy}"
            );
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(page.text.matches(&format!("nonce=\"{nonce}\"")).count(), 2, "a style and a script");
            assert_eq!(page.headers["cache-control"], "no-store");
            for hidden in
                ["secret-text", "test__count", &server.key, &approval, "{{", "src=", "http://", "https://"]
            {
                assert!(!page.text.contains(hidden), "{hidden}");
            }
        }
    }
    let (one, two) = (server.get("/approvals"), server.get("/approvals"));
    assert_ne!(one.headers["content-security-policy"], two.headers["content-security-policy"]);
    // The gates are those of every other address.
    let path = format!("/approvals/{approval}");
    let mut connection = server.connect();
    connection.send(format!("GET {path} HTTP/1.1\r\nHost: evil.test\r\n\r\n").as_bytes()).expect("a request");
    assert_eq!(connection.answer().expect("an answer").status, 403);
    let foreign = server.request(Method::GET, &path, &[("origin", "https://evil.test")], "");
    assert_eq!(code(&foreign).0, 403, "{foreign:?}");
    let wrong = server.request(Method::GET, &path, &[("authorization", "Bearer x")], "");
    assert_eq!(code(&wrong).0, 401, "{wrong:?}");
    assert_eq!(server.post(&path, "").status, 405);
    assert!(server.get("/").text.contains("<a href=\"/approvals\">"));
}

#[test]
fn apr_6_beyond_loopback_the_page_asks_for_a_key_and_opens_nothing_by_itself() {
    let home = home("test__count");
    let mut server = home.serve_with(&["--bind", "0.0.0.0:0"]);
    server.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    assert_eq!(server.get("/approvals/x").status, 200);
    assert_eq!(server.get("/approvals").status, 200);
    for path in ["/api/v1/approvals", "/approvals/x/y", "/approvalsx", "/approvals/../api/v1/keys"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    let mut browser = Browser::new(&server);
    browser.enter("/approvals/x", "gk_wrong");
    let seen = browser.see("#refused", "key");
    for hidden in ["one", "list", "leave", "lost"] {
        assert_eq!(seen["texts"][hidden], Value::Null, "{seen}");
    }
    assert_eq!(seen["kept"], json!({ "tab": [], "beyond": "" }), "a wrong key is forgotten");
}

#[test]
fn apr_6_a_person_approves_on_the_page() {
    let home = home("test__count");
    let server = home.serve();
    let key = text(&server, &json!({ "name": "anna", "role": "approver" }));
    let arguments = json!({ "file": "counted", "text": "<b>bold</b> \u{202e}txt.exe \u{200b}" });
    let (call, approval) = held(&server, "test__count", &arguments);
    let mut browser = Browser::new(&server);
    browser.enter(&format!("/approvals/{approval}"), &key);
    let seen = browser.see("#state", "Waiting for a decision");
    assert_eq!(shown(&seen, "tool"), "test__count");
    let text = shown(&seen, "arguments");
    assert!(
        text.contains("<b>bold</b> U+202Etxt.exe U+200B") && text.starts_with("{\n  \"file\": "),
        "{text}"
    );
    assert_eq!(seen["marks"], json!(["U+202E", "U+200B"]));
    assert!(shown(&seen, "marked").starts_with("2 characters"), "{seen}");
    assert!(shown(&seen, "reason").contains("requiresApprovalTools"), "{seen}");
    assert!(shown(&seen, "count").starts_with("expires in "), "{seen}");
    assert_eq!(shown(&seen, "size"), format!("{} bytes", arguments.to_string().len()));
    assert!(counted(&home).is_empty(), "looking is not deciding");

    browser.write("#why", "fine");
    browser.click("#yes");
    let seen = browser.see("#state", "Approved and done");
    assert!(shown(&seen, "outcome").contains("Approved by anna (page)"), "{seen}");
    assert!(shown(&seen, "outcome").contains("Reason: fine"), "{seen}");
    assert_eq!(seen["texts"]["actions"], Value::Null, "{seen}");
    let reply = over(&server.client(), &call);
    assert_eq!((&reply["ok"], &reply["extras"]["approvedBy"]), (&json!(true), &json!("anna")), "{reply}");
    assert_eq!(counted(&home).len(), 1);
    let kept = json!({ "tab": [["gantry-key", key]], "beyond": "" });
    assert_eq!(seen["kept"], kept, "in the tab, and nowhere else");
}

#[test]
fn apr_3_a_person_edits_the_arguments_on_the_page() {
    let home = home("test__nested");
    let server = home.serve();
    let body = r#"{"tool":"test__nested","arguments":{"tool":"test__noop","arguments":{"n":1.50,"big":9007199254740993}}}"#;
    let (call, approval) = ids(&server.post("/api/v1/calls", body));
    let mut browser = Browser::new(&server);
    browser.enter(&format!("/approvals/{approval}"), &server.key);
    browser.click("#edit");
    let seen = browser.see("#edited", "");
    let draft = seen["values"]["edited"].as_str().expect("a draft").to_owned();
    assert!(draft.contains("\"n\": 1.50") && draft.contains("\"big\": 9007199254740993"), "{draft}");
    // What does not fit is refused, and said.
    browser.write("#edited", "{\"tool\": 7}");
    browser.click("#yes");
    let seen = browser.see("#fault", "tool the value is not of type");
    assert_eq!(shown(&seen, "state"), "Waiting for a decision");
    browser.write("#edited", "{\"tool\": ");
    browser.click("#yes");
    browser.see("#fault", "not JSON");

    browser.write("#edited", &draft.replace("1.50", "2.50"));
    browser.click("#yes");
    let seen = browser.see("#state", "Approved and done");
    assert!(shown(&seen, "modified").contains("\"n\": 2.50"), "{seen}");
    assert_eq!(over(&server.client(), &call)["ok"], true);
    let item = server.get_as_admin(&format!("/api/v1/approvals/{approval}")).text;
    assert!(item.contains("2.50") && item.matches("9007199254740993").count() == 2, "{item}");
}

#[test]
fn apr_6_the_page_shows_what_another_approver_decided_meanwhile() {
    let home = home("test__count");
    let server = home.serve();
    let key = text(&server, &json!({ "name": "anna", "role": "approver" }));
    let (_, approval) = held(&server, "test__count", &count("a"));
    let mut browser = Browser::new(&server);
    browser.enter(&format!("/approvals/{approval}"), &key);
    browser.see("#state", "Waiting for a decision");
    let no = json!({ "approved": false, "reason": "too risky" });
    assert_eq!(decide(&server.admin(), &approval, &no).status, 200);
    let seen = browser.see("#state", "Denied");
    assert!(shown(&seen, "outcome").contains("Denied by person (http)"), "{seen}");
    assert!(shown(&seen, "outcome").contains("too risky"), "{seen}");
    // A decision that comes too late is answered so.
    let (_, approval) = held(&server, "test__count", &count("b"));
    browser.enter_deaf(&format!("/approvals/{approval}"), &key);
    browser.see("#state", "Waiting for a decision");
    assert_eq!(decide(&server.admin(), &approval, &json!({ "approved": false })).status, 200);
    browser.click("#yes");
    let seen = browser.see("#fault", "Somebody else was first");
    assert_eq!(shown(&seen, "state"), "Denied");
    assert!(counted(&home).is_empty());
}

#[test]
fn apr_6_the_page_shows_no_more_than_the_key_may_see() {
    let home = home("test__count, test__echo");
    let server = home.serve();
    let key = text(&server, &json!({ "name": "anna", "role": "approver", "tools": ["test__echo"] }));
    let (_, other) = held(&server, "test__count", &count("a"));
    let (_, own) = held(&server, "test__echo", &json!({ "text": "x" }));
    let mut browser = Browser::new(&server);
    browser.enter(&format!("/approvals/{other}"), &key);
    let seen = browser.see("#missing", "shows no such request");
    assert_eq!(seen["texts"]["one"], Value::Null, "{seen}");
    assert_eq!(seen["kept"]["tab"], json!([["gantry-key", key]]), "the key may show others");
    browser.enter("/approvals", &key);
    let seen = browser.see("#list", "test__echo");
    assert_eq!(seen["links"], json!([format!("/approvals/{own}")]), "{seen}");
    browser.click("#list a");
    browser.see("#state", "Waiting for a decision");
    browser.write("#why", "no");
    browser.click("#no");
    browser.see("#state", "Denied");
    let item = get(&server.admin(), &format!("/api/v1/approvals/{own}")).json();
    assert_eq!((&item["decidedVia"], &item["decision"]["reason"]), (&json!("page"), &json!("no")), "{item}");
    assert_eq!(code(&decide(&server.client(), &other, &json!({ "approved": true }))).0, 403);
}

#[test]
fn apr_8_the_page_lists_what_waits_for_its_time_and_lets_it_be_stopped() {
    let home = TestDir::with_test_tools().config(
        "approvals: { requiresApprovalTools: [test__echo], toolSpecificDelays: { test__count: 3600000 } }\n",
    );
    let server = home.serve();
    let later = server.call("test__count", &count("a")).json()["approvalId"].clone();
    let later = format!("/approvals/{}", later.as_str().expect("it waits"));
    let mut browser = Browser::new(&server);
    // An address that cannot be read is that of the list.
    browser.enter("/approvals/%zz", &server.key);
    let seen = browser.see("#scheduled", "test__count");
    assert!(shown(&seen, "scheduled").contains("runs "), "{seen}");
    assert!(shown(&seen, "none").starts_with("Nothing waits for you"), "{seen}");
    assert_eq!(seen["texts"]["more"], Value::Null, "{seen}");
    assert_eq!(seen["links"], json!([later]), "{seen}");
    browser.click("#scheduled a");
    let seen = browser.see("#state", "Waiting for its time");
    assert!(shown(&seen, "facts").contains("Runs at") && !shown(&seen, "facts").contains("yes"), "{seen}");
    browser.click("#no");
    browser.see("#state", "Denied");
    // More than a list shows.
    for n in 0..=100 {
        ids(&server.call("test__echo", &json!({ "text": n.to_string() })));
    }
    browser.enter("/approvals", &server.key);
    let seen = browser.see("#more", "There are more");
    assert_eq!(seen["links"].as_array().map(Vec::len), Some(100), "{seen}");
    assert!(counted(&home).is_empty());
}

#[test]
fn apr_6_the_page_says_why_a_decision_came_to_nothing() {
    let home = TestDir::with_test_tools().config(
        r"
policies: [{ name: mine, tools: [test__count], decide: ask, approvers: [ann] }]
approvals: { requiresApprovalTools: [test__count], approvers: { test__count: [ben] } }
",
    );
    let server = home.serve();
    let (_, approval) = held(&server, "test__count", &count("a"));
    let mut browser = Browser::new(&server);
    browser.enter_deaf(&format!("/approvals/{approval}"), &server.key);
    let seen = browser.see("#state", "Waiting for a decision");
    assert!(shown(&seen, "facts").contains("Nobody is in every list (ann; ben)"), "{seen}");
    assert_eq!((&seen["texts"]["yes"], shown(&seen, "no")), (&Value::Null, "Deny"), "{seen}");
    let withdrawn = post(&server.client(), &format!("/api/v1/approvals/{approval}/cancel"), &Value::Null);
    assert_eq!(withdrawn.status, 200, "{withdrawn:?}");
    browser.click("#no");
    let seen = browser.see("#fault", "It was cancelled before");
    assert_eq!(shown(&seen, "state"), "Cancelled");
}

#[test]
fn apr_6_a_standing_yes_is_given_on_the_page() {
    let home = remembering_home("test__count");
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    let mut browser = Browser::new(&server);
    browser.enter(&format!("/approvals/{approval}"), &server.key);
    let seen = browser.see("#longer", "always");
    assert_eq!(seen["texts"]["session"], Value::Null, "the caller has none of its own: {seen}");
    assert!(shown(&seen, "facts").contains("A grant would answer\nrequiresApprovalTools"), "{seen}");
    browser.click("#always");
    let seen = browser.see("#state", "Approved and done");
    assert!(shown(&seen, "outcome").contains(", always"), "{seen}");
    assert_eq!(over(&server.client(), &call)["ok"], true);
    assert_eq!(server.call("test__count", &count("b")).json()["ok"], true, "it holds");
    assert_eq!(server.get_as_admin("/api/v1/grants").json()["items"][0]["grantedBy"], "person");
}

#[test]
fn apr_10_the_page_offers_only_what_every_rule_allows() {
    let home = TestDir::with_test_tools().config(
        r"
policies: [{ name: mine, tools: [test__count], decide: ask }]
approvals: { requiresApprovalTools: [test__count], remember: always }
",
    );
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    let mut browser = Browser::new(&server);
    browser.enter(&format!("/approvals/{approval}"), &server.key);
    let seen = browser.see("#state", "Waiting for a decision");
    assert_eq!((&seen["texts"]["longer"], shown(&seen, "yes")), (&Value::Null, "Approve once"), "{seen}");
    let facts = shown(&seen, "facts");
    assert!(facts.contains("A grant would answer\nrequiresApprovalTools"), "{facts}");
    assert!(facts.contains("A grant would not answer\npolicy mine"), "{facts}");
    browser.click("#yes");
    browser.see("#state", "Approved and done");
    assert_eq!(over(&server.client(), &call)["ok"], true);
    held(&server, "test__count", &count("b"));
}
