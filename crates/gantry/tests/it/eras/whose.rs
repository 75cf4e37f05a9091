//! A question is for the client whose call made the server ask. Where it is unknown which client that is, none is
//! asked: rather a call without an answer than an answer from a stranger.

use super::{Client, Era, Rig, accept};
use crate::passthrough::{parsed, text};
use serde_json::{Value, json};

const SERVER: &str = "faulty_legacy_stdio";
const ASK: &str = "faulty_legacy_stdio__ask";

const BOTH: [Era; 2] = [Era::Legacy, Era::Modern];

/// A client that has a call under way at a server, and what it takes to end that.
struct Busy {
    client: Client,
    call: u64,
}

impl Busy {
    #[track_caller]
    fn at(rig: &Rig, server: &str, era: Era) -> Self {
        let mut client = Client::connect(rig.door(), era);
        let comma = if client.talk.meta.is_empty() { "" } else { "," };
        client.talk.meta.push_str(&format!(r#"{comma}"progressToken":1"#));
        let arguments = json!({ "steps": 1, "ms": 60_000 });
        let call = client.talk.begin_call(&format!("{server}__progress"), &arguments);
        client.talk.hear("notifications/progress");
        Self { client, call }
    }

    /// Ends the call, and says that nothing was asked meanwhile.
    #[track_caller]
    fn end(self, rig: &Rig, server: &str) {
        let Self { client: Client { mut talk, era }, call } = self;
        assert!(talk.heard("elicitation/create").is_empty(), "{era:?} saw what was not for it");
        let before = rig.journal(server).iter().filter(|line| *line == "cancelled").count();
        match era {
            Era::Legacy => talk.tell("notifications/cancelled", &json!({ "requestId": call })),
            Era::Modern => drop(talk),
        }
        rig.server.eventually("the other call has ended", || {
            rig.journal(server).iter().filter(|line| *line == "cancelled").count() > before
        });
    }
}

#[test]
fn ups_11_a_question_that_could_be_for_two_clients_is_for_none() {
    let rig = Rig::of(&[SERVER]);
    for (busy, asking) in BOTH.into_iter().flat_map(|busy| BOTH.map(|asking| (busy, asking))) {
        let what = format!("{busy:?} is busy, {asking:?} asks");
        let busy = Busy::at(&rig, SERVER, busy);
        let mut client = Client::connect(rig.door(), asking);
        let params = json!({ "name": ASK, "arguments": { "text": "Whose?" } });
        let (_, answer) = client.converse("tools/call", &params, &[]);
        // The server was sent them, and its tool shows what it was sent.
        let refusal = parsed(&text(&answer["result"]));
        assert_eq!(refusal["code"], -32600, "{what}: {answer}");
        assert!(
            refusal["message"].as_str().unwrap().contains("requests of several clients"),
            "{what}: {answer}"
        );
        busy.end(&rig, SERVER);
    }
    // The other calls were withdrawn, and their tools may ask all the same, so it takes a while until a question can
    // only be for the one who calls now.
    let mut modern = Client::connect(rig.door(), Era::Modern);
    let (mut params, mut asked) = (json!({ "name": ASK, "arguments": { "text": "Whose?" } }), Value::Null);
    rig.server.eventually("it is clear whose the question is", || {
        asked = modern.talk.ask("tools/call", &params)["result"].take();
        asked["resultType"] == "input_required"
    });
    let key = asked["inputRequests"].as_object().and_then(|asked| asked.keys().next()).expect("a question");
    params["inputResponses"] = json!({ key: accept("mine") });
    params["requestState"] = asked["requestState"].clone();
    let outcome = modern.talk.ask("tools/call", &params);
    assert_eq!(parsed(&text(&outcome["result"])), accept("mine"), "{outcome}");
    let mut legacy = Client::connect(rig.door(), Era::Legacy);
    let (asked, outcome) = legacy.fill_in(ASK, &json!({ "text": "Whose?" }), &[accept("mine")]);
    assert_eq!((asked.len(), parsed(&outcome)), (1, accept("mine")));
}

#[test]
fn ups_11_a_question_on_the_stream_of_a_call_is_for_its_client_while_others_are_busy() {
    let servers = ["faulty_legacy_http", "faulty_modern_stdio", "faulty_modern_http"];
    let rig = Rig::of(&servers);
    for server in servers {
        let ask = format!("{server}__ask");
        let mut clients = BOTH.map(|era| Client::connect(rig.door(), era));
        let busy = Busy::at(&rig, server, Era::Legacy);
        std::thread::scope(|scope| {
            for (n, client) in clients.iter_mut().enumerate() {
                let ask = &ask;
                scope.spawn(move || {
                    (0..5).for_each(|round| asks_itself(client, ask, &format!("{n}, {round}")))
                });
            }
        });
        busy.end(&rig, server);
        let journal = rig.journal(server);
        assert_eq!(journal.iter().filter(|line| *line == "ask begun").count(), 10, "{server}");
        assert_eq!(journal.iter().filter(|line| *line == "ask ended").count(), 10, "{server}");
    }
}

/// Has a tool ask twice, and sees to it that the questions are the client's own.
#[track_caller]
fn asks_itself(client: &mut Client, ask: &str, text: &str) {
    let answers = [accept("no"), accept(text)];
    let (asked, outcome) = client.fill_in(ask, &json!({ "text": text, "rounds": 2 }), &answers);
    let asked: Vec<&Value> = asked.iter().map(|question| &question["message"]).collect();
    assert_eq!((asked, parsed(&outcome)), (vec![&json!(text); 2], accept(text)));
}

#[test]
fn ups_11_two_calls_of_one_client_are_no_reason_not_to_ask_it() {
    let rig = Rig::of(&[SERVER]);
    let mut busy = Busy::at(&rig, SERVER, Era::Legacy);
    let (asked, outcome) = busy.client.fill_in(ASK, &json!({ "text": "Mine?" }), &[accept("mine")]);
    assert_eq!((asked.len(), parsed(&outcome)), (1, accept("mine")));
    busy.end(&rig, SERVER);
}

/// A parked call is under way, too: its client may be away, but it is the one that would be asked.
#[test]
fn ups_11_a_question_is_not_given_to_a_client_while_another_ones_call_is_parked() {
    let rig = Rig::of(&[SERVER]);
    let parked = super::parking::Round::of(&rig.call(ASK, &json!({ "text": "Parked?" }), &json!({})));
    let mut other = Client::connect(rig.door(), Era::Legacy);
    let params = json!({ "name": ASK, "arguments": { "text": "Whose?" } });
    let (_, answer) = other.converse("tools/call", &params, &[]);
    assert_eq!(parsed(&text(&answer["result"]))["code"], -32600, "{answer}");
    let end = rig.call(ASK, &json!({ "text": "Parked?" }), &parked.with(&accept("mine")));
    assert_eq!(super::parking::outcome(&end), accept("mine").to_string());
    let (_, outcome) = other.fill_in(ASK, &json!({ "text": "Whose?" }), &[accept("now mine")]);
    assert_eq!(parsed(&outcome), accept("now mine"));
}
