//! Servers behind TLS: `https://` in both forms and `wss://`, with certificates that are trusted and with others.

use super::{Rig, remote, stdio, with};
use gantry_testkit::TestDir;
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::tls::{Authority, HERE, Relay};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;

/// An entry for a server of this kind whose TLS is at this address.
fn secure(kind: Kind, host: &str, address: SocketAddr) -> Value {
    let (word, scheme, path) = match kind {
        Kind::Http => ("http", "https", "/mcp"),
        Kind::Sse => ("sse", "https", "/sse"),
        Kind::Ws => ("websocket", "wss", "/"),
        Kind::Stdio | Kind::Tcp => panic!("there is no TLS for {kind:?}"),
    };
    remote(word, &format!("{scheme}://{host}:{}{path}", address.port()))
}

/// A server of this kind behind TLS, and how it is reached at 127.0.0.1.
fn behind_tls(kind: Kind, authority: &Authority, names: &[&str]) -> (Faulty, Relay, Value) {
    let server = Faulty::start(kind, &[]);
    let relay = authority.relay(server.address, names);
    let entry = secure(kind, "127.0.0.1", relay.address);
    (server, relay, entry)
}

/// Serves with these servers and `good`, trusting what is in the file and nothing else.
#[track_caller]
fn trusting(home: TestDir, pem: &Path, mut servers: Value) -> Rig {
    servers["good"] = stdio(&[]);
    let config = json!({ "mcpServers": servers }).to_string();
    let rig = Rig::at(home.env("SSL_CERT_FILE", pem.to_str().expect("UTF-8")).config(&config));
    rig.ready("good");
    rig
}

/// Why a server is down.
#[track_caller]
fn reason(rig: &Rig, id: &str) -> String {
    let status = rig.while_good_works(|| rig.down(id));
    assert_eq!((&status["status"], &status["tools"]), (&json!("down"), &json!(0)), "{status}");
    status["lastError"].as_str().unwrap_or_else(|| panic!("no reason: {status}")).to_owned()
}

/// By name and by address, in each era: it is listed and called, secrets arrive, and a broken connection is replaced.
#[track_caller]
fn works_behind_tls(kind: Kind) {
    let (home, authority) = (TestDir::new(), Authority::new("ours"));
    let pem = authority.write(home.path());
    // The older HTTP+SSE has no newer era.
    let era = if kind == Kind::Sse { "legacy" } else { "modern" };
    let (older, newer) = (Faulty::start(kind, &[]), Faulty::start(kind, &["--era", era]));
    let relays = [&older, &newer].map(|server| authority.relay(server.address, &HERE));
    let secret = json!({ "headers": { "Authorization": "Bearer s3cret" } });
    let rig = trusting(
        home,
        &pem,
        json!({
            "bad": with(secure(kind, "127.0.0.1", relays[0].address), &secret),
            "named": secure(kind, "localhost", relays[1].address),
        }),
    );
    for (id, server) in [("bad", &older), ("named", &newer)] {
        rig.ready(id);
        assert_eq!(rig.result(&format!("{id}__pid"), &json!({})), server.pid().to_string());
        // More than fits into one record of TLS.
        let text = "x".repeat(50_000);
        assert_eq!(rig.result(&format!("{id}__echo"), &json!({ "text": text })), text);
    }
    assert!(rig.headers("bad").contains("Bearer s3cret"));
    rig.while_good_works(|| {
        rig.error("bad__hang_up", &json!({}), "EXECUTION_ERROR");
        rig.server.eventually("it answers again", || {
            rig.call("bad__echo", &json!({ "text": "back" }))["result"] == "back"
        });
    });
    assert!(relays.iter().all(|relay| relay.n_trusted() > 0), "what was called was behind TLS");
}

#[test]
fn ups_1_an_https_server_is_listed_and_called() {
    works_behind_tls(Kind::Http);
}

#[test]
fn ups_1_an_https_sse_server_is_listed_and_called() {
    works_behind_tls(Kind::Sse);
}

#[test]
fn ups_1_a_wss_server_is_listed_and_called() {
    works_behind_tls(Kind::Ws);
}

#[test]
fn ups_3_a_certificate_that_is_not_trusted_turns_its_server_red_until_it_is() {
    let (home, authority) = (TestDir::new(), Authority::new("ours"));
    let pem = Authority::new("somebody else").write(home.path());
    let [http, sse, ws] = [Kind::Http, Kind::Sse, Kind::Ws].map(|kind| behind_tls(kind, &authority, &HERE));
    let rig = trusting(home, &pem, json!({ "http": http.2, "sse": sse.2, "ws": ws.2 }));
    for (id, relay) in [("http", &http.1), ("sse", &sse.1), ("ws", &ws.1)] {
        let why = reason(&rig, id);
        for word in ["https://127.0.0.1:", "its certificate", "UnknownIssuer", "SSL_CERT_FILE", "store"] {
            assert!(why.contains(word), "{id}: {why}");
        }
        rig.error(&format!("{id}__echo"), &json!({ "text": "x" }), "TOOL_NOT_FOUND");
        assert_eq!(relay.n_trusted(), 0, "{id}: nothing is sent to whom nobody trusts");
    }
    // Doing what the reason says is enough: the next try reads the file anew.
    authority.write(rig.home.path());
    for id in ["http", "sse", "ws"] {
        rig.while_good_works(|| rig.ready(id));
        assert_eq!(rig.result(&format!("{id}__echo"), &json!({ "text": "in" })), "in");
    }
}

#[test]
fn ups_3_a_certificate_that_is_not_in_the_systems_store_says_how_to_trust_it() {
    let (_server, relay, entry) = behind_tls(Kind::Ws, &Authority::new("ours"), &HERE);
    let rig = Rig::beside_good(&entry);
    let why = reason(&rig, "bad");
    assert!(
        ["UnknownIssuer", "to the system's store", "SSL_CERT_FILE"].iter().all(|word| why.contains(word)),
        "{why}"
    );
    assert_eq!(relay.n_trusted(), 0);
}

#[test]
fn ups_3_a_certificate_for_another_name_turns_its_server_red_and_both_names_are_shown() {
    let (home, authority) = (TestDir::new(), Authority::new("ours"));
    let pem = authority.write(home.path());
    let (_server, relay, entry) = behind_tls(Kind::Http, &authority, &["mcp.example.com"]);
    let rig = trusting(home, &pem, json!({ "bad": entry }));
    let why = reason(&rig, "bad");
    assert!(["127.0.0.1", "mcp.example.com", "other name"].iter().all(|word| why.contains(word)), "{why}");
    assert_eq!(relay.n_trusted(), 0, "nothing is sent to somebody else");
}

#[test]
fn ups_3_a_certificate_that_signs_itself_turns_its_server_red_and_says_what_is_needed() {
    let (home, authority) = (TestDir::new(), Authority::new("ours"));
    let pem = authority.write(home.path());
    let server = Faulty::start(Kind::Http, &[]);
    let relay = authority.relay_as_itself(server.address);
    let rig = trusting(home, &pem, json!({ "bad": secure(Kind::Http, "localhost", relay.address) }));
    let why = reason(&rig, "bad");
    assert!(why.contains("CA:FALSE"), "{why}");
    assert_eq!(relay.n_trusted(), 0);
}

#[test]
fn ups_3_a_plain_port_addressed_as_https_or_wss_turns_its_server_red_and_names_the_scheme() {
    let (http, ws) = (Faulty::start(Kind::Http, &[]), Faulty::start(Kind::Ws, &[]));
    let rig = Rig::of(&json!({
        "http": secure(Kind::Http, "127.0.0.1", http.address),
        "ws": secure(Kind::Ws, "127.0.0.1", ws.address),
        "good": stdio(&[]),
    }));
    rig.ready("good");
    for id in ["http", "ws"] {
        let why = reason(&rig, id);
        assert!(["TLS", "http://", "ws://"].iter().all(|word| why.contains(word)), "{id}: {why}");
    }
}

#[test]
fn ups_3_without_any_certificate_plain_servers_work_and_the_others_say_what_is_missing() {
    let (home, authority) = (TestDir::new(), Authority::new("ours"));
    let (_secure, relay, entry) = behind_tls(Kind::Http, &authority, &HERE);
    let plain = Faulty::start(Kind::Http, &[]);
    let missing = home.path().join("missing.pem");
    let rig = trusting(home, &missing, json!({ "bad": entry, "plain": remote("http", &plain.url) }));
    rig.ready("plain");
    let why = reason(&rig, "bad");
    assert!(["SSL_CERT_FILE", "missing.pem"].iter().all(|word| why.contains(word)), "{why}");
    assert_eq!(relay.n_trusted(), 0);
}
