//! What is sent again, and what is not: only what may be done twice, and only if nothing of it was sent.

use super::{Rig, document, failed, home, operation, with};
use gantry_testkit::Echo;
use gantry_testkit::echo::HangUp;
use gantry_testkit::tls::{Authority, HERE, Relay};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The methods that may be sent twice, and those that may not.
const TWICE: [&str; 3] = ["GET", "PUT", "DELETE"];
const ONCE: [&str; 2] = ["POST", "PATCH"];

/// A service behind TLS, one door per method. A door that hangs up before TLS stands has been sent nothing: whether a
/// connection comes to anything is counted, not timed.
struct Doors {
    rig: Rig,
    doors: Vec<(&'static str, Relay)>,
}

impl Doors {
    fn new() -> Self {
        let echo = Echo::start();
        let authority = Authority::new("rest test");
        let methods = TWICE.into_iter().chain(ONCE);
        let doors: Vec<(&str, Relay)> =
            methods.map(|method| (method, authority.relay(echo.address, &HERE))).collect();
        let mut config = json!({});
        let mut files = Vec::new();
        for (method, relay) in &doors {
            let name = method.to_lowercase();
            let at = format!("https://{}", relay.address);
            config["restTools"][&name] =
                json!({ "description": "x", "method": method, "url": format!("{at}/x"), "effect": "write" });
            let spec = document(&json!({ "/x": { &name: operation("x") } }));
            files.push((format!("{name}.json"), with(spec, &json!({ "servers": [{ "url": at }] }))));
            config["openapiSpecs"][&name] =
                json!({ "spec": format!("{name}.json"), "effects": { "*": "write" } });
        }
        let home = home(&config);
        files.iter().for_each(|(name, spec)| home.write(name, &spec.to_string()));
        let pem = authority.write(home.path()).display().to_string();
        let rig = Rig::at(echo, home.env("SSL_CERT_FILE", &pem));
        Self { rig, doors }
    }

    /// Calls the tool of each method while its door hangs up on so many; gives method, reply, and connections.
    fn call(&self, api: bool, hung_up: usize, methods: &[&str]) -> Vec<(&'static str, Value, usize)> {
        let chosen = self.doors.iter().filter(|(method, _)| methods.contains(method));
        std::thread::scope(|scope| {
            let calls: Vec<_> = chosen
                .map(|(method, relay)| scope.spawn(move || self.knock(api, hung_up, (method, relay))))
                .collect();
            calls.into_iter().map(|call| call.join().expect("a reply")).collect()
        })
    }

    fn knock(
        &self,
        api: bool,
        hung_up: usize,
        (method, relay): (&'static str, &Relay),
    ) -> (&'static str, Value, usize) {
        let before = relay.n_accepted();
        relay.hang_up_on(hung_up);
        let of_api = if api { "_x" } else { "" };
        let reply = self.rig.call(&format!("rest__{}{of_api}", method.to_lowercase()), &json!({}));
        (method, reply, relay.n_accepted() - before)
    }

    /// How many requests of a method arrived.
    fn arrived(&self, method: &str) -> usize {
        self.rig.echo.requests().iter().filter(|request| request["method"] == method).count()
    }
}

/// That what did not get out is tried again, where that is allowed, and arrives once.
fn tried_again(api: bool) {
    let doors = Doors::new();
    for (method, reply, connections) in doors.call(api, 2, &TWICE) {
        assert_eq!(reply["ok"], true, "{method}: {reply}");
        assert_eq!((connections, doors.arrived(method)), (3, 1), "{method}");
    }
    for (method, reply, connections) in doors.call(api, 1, &ONCE) {
        let (code, message) = failed(&reply);
        assert!(
            code == "UPSTREAM_UNAVAILABLE" && message.contains("Nothing was sent"),
            "{method}: {message}"
        );
        assert_eq!((connections, doors.arrived(method)), (1, 0), "{method}");
    }
}

#[test]
fn rst_1_what_did_not_get_out_is_tried_again_and_arrives_once() {
    tried_again(false);
}

#[test]
fn rst_2_what_did_not_get_out_is_tried_again_and_arrives_once() {
    tried_again(true);
}

#[test]
fn rst_1_a_service_that_is_not_there_is_given_up_on() {
    let doors = Doors::new();
    for (method, reply, connections) in doors.call(false, usize::MAX, &TWICE) {
        let (code, message) = failed(&reply);
        assert!(
            code == "UPSTREAM_UNAVAILABLE" && message.contains("Nothing was sent"),
            "{method}: {message}"
        );
        assert_eq!((connections, doors.arrived(method)), (3, 0), "{method}");
    }
}

#[test]
fn rst_1_what_was_sent_is_never_sent_again_wherever_it_breaks() {
    for words in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"half\""] {
        for (method, code) in [
            ("GET", "EXECUTION_ERROR"),
            ("PUT", "OUTCOME_UNKNOWN"),
            ("DELETE", "OUTCOME_UNKNOWN"),
            ("POST", "OUTCOME_UNKNOWN"),
            ("PATCH", "OUTCOME_UNKNOWN"),
        ] {
            let service = HangUp::after(words);
            let effect = if method == "GET" { "read" } else { "write" };
            let tool =
                json!({ "description": "x", "method": method, "url": service.url("/a"), "effect": effect });
            let reply = home(&json!({ "restTools": { "t": tool } })).call("rest__t", &json!({}));
            let (found, message) = failed(&reply);
            assert_eq!((found.as_str(), service.hits()), (code, 1), "{method} {words:?}: {message}");
        }
    }
}

#[test]
fn rst_1_what_a_person_approved_is_sent_once_too() {
    let service = HangUp::start();
    let tool = json!({ "description": "x", "method": "DELETE", "url": service.url("/a") });
    let rig = Rig::inline(|_| json!({ "t": tool }));
    let held = rig.call("rest__t", &json!({}));
    let id = held["approvalId"].as_str().unwrap_or_else(|| panic!("{held}"));
    assert_eq!(rig.home.run(["approvals", "approve", id]).code, 0);
    let state = || rig.home.run(["approvals", "show", id, "--json"]).json()["state"].clone();
    rig.server.eventually("it has ended", || state() == "OUTCOME_UNKNOWN");
    assert_eq!(service.hits(), 1);
}

/// A service behind TLS whose answer leads to another place of its own, where no service is found for as long as a call looks:
/// three connections are hung up on before TLS stands. A caller that starts over finds it again.
struct LeadsOn {
    relay: Arc<Relay>,
    triggered: Arc<AtomicUsize>,
}

impl LeadsOn {
    fn start(authority: &Authority) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let relay = Arc::new(authority.relay(listener.local_addr().expect("its address"), &HERE));
        let service = Self { relay, triggered: Arc::default() };
        let (relay, triggered) = (Arc::clone(&service.relay), Arc::clone(&service.triggered));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                if lines.next().is_some_and(|first| first.starts_with("GET /trigger "))
                    && lines.any(|line| line.is_empty())
                {
                    triggered.fetch_add(1, Ordering::SeqCst);
                    relay.hang_up_on(3);
                    let answer = "HTTP/1.1 302 Found\r\nlocation: /done\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(answer.as_bytes()).ok();
                }
            }
        });
        service
    }

    /// How often it was triggered, and how many connections there were.
    fn counts(&self) -> (usize, usize) {
        (self.triggered.load(Ordering::SeqCst), self.relay.n_accepted())
    }
}

#[test]
fn rst_1_what_was_answered_is_not_sent_again_because_its_answer_leads_nowhere() {
    let authority = Authority::new("rest test");
    let effects =
        [("read", "EXECUTION_ERROR"), ("write", "OUTCOME_UNKNOWN"), ("destructive", "OUTCOME_UNKNOWN")];
    let services = effects.map(|_| LeadsOn::start(&authority));
    let mut tools = json!({});
    for ((effect, _), service) in effects.iter().zip(&services) {
        let url = format!("https://{}/trigger", service.relay.address);
        tools[effect] = json!({ "description": "x", "url": url, "effect": effect });
    }
    let home = home(&json!({ "restTools": tools }));
    let pem = authority.write(home.path()).display().to_string();
    let rig = Rig::at(Echo::start(), home.env("SSL_CERT_FILE", &pem));
    for ((effect, code), service) in effects.iter().zip(&services) {
        let reply = rig.call(&format!("rest__{effect}"), &json!({}));
        if let Some(id) = reply["approvalId"].as_str() {
            assert_eq!((*effect, service.counts()), ("destructive", (0, 0)));
            assert_eq!(rig.home.run(["approvals", "approve", id]).code, 0);
            let state = || rig.home.run(["approvals", "show", id, "--json"]).json()["state"].clone();
            rig.server.eventually("it has ended", || state() == *code);
        } else {
            let (found, message) = failed(&reply);
            assert!(found == *code && !message.contains("Nothing was sent"), "{effect}: {found}: {message}");
        }
        // The place that it leads to may be tried again, what led there may not.
        assert_eq!(service.counts(), (1, 4), "{effect}");
    }
}
