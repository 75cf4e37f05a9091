//! Those who decide at once, and what each is answered.

use super::super::held::{Held, text};
use gantry_testkit::{Connection, TestDir};
use serde_json::{Value, json};

/// Who says something, over HTTP.
#[derive(Clone, Copy)]
pub(super) enum Side<'a> {
    /// An approver with this key says yes or no.
    Approver(&'a str, bool),
    /// The caller withdraws the call.
    Caller,
}

/// What one of them was answered.
#[derive(Debug)]
pub(super) enum Word {
    /// It is theirs that stands; this is the name that it is recorded with.
    Mine(String),
    /// They came too late, and it stands like this.
    Late(Value),
    /// The same in words.
    LateInWords(String),
    /// It is none of their business.
    Nothing,
}

impl<'a> Side<'a> {
    /// The side of one of them.
    pub(super) fn of(n: usize, keys: &'a [String]) -> Self {
        if n < super::CALLERS {
            Self::Caller
        } else {
            Self::Approver(&keys[n % keys.len()], n.is_multiple_of(2))
        }
    }

    /// Says it.
    pub(super) fn say(self, connection: &mut Connection, held: &Held) -> Word {
        let json = ("content-type", "application/json");
        let answer = match self {
            Self::Approver(key, approved) => {
                let body = json!({ "approved": approved }).to_string();
                let authorization = format!("Bearer {key}");
                let headers = [json, ("authorization", &*authorization)];
                connection.request("POST", &held.path("decision"), &headers, body.as_bytes())
            }
            Self::Caller => connection.request("POST", &held.path("cancel"), &[json], b""),
        };
        let answer = answer.expect("an answer");
        let shown = answer.json();
        match (answer.status, self) {
            (200, Self::Approver(..)) => Word::Mine(text(&shown["decidedBy"])),
            (200, Self::Caller) => {
                assert_eq!(shown["state"], "CANCELLED_BY_SYSTEM", "{shown}");
                Word::Mine("local".to_owned())
            }
            // It is not their call, and they do not even learn of it.
            (404, Self::Caller) => Word::Nothing,
            (status, _) => {
                assert!(matches!(status, 409 | 410), "{answer:?}");
                Word::Late(shown["error"]["details"]["approval"].clone())
            }
        }
    }
}

/// Decides by the command line, in front of the running server.
pub(super) fn command(home: &TestDir, id: &str, approved: bool) -> Word {
    let verb = if approved { "approve" } else { "deny" };
    let ran = home.run(["approvals", verb, id, "--json"]);
    let shown = ran.json();
    match ran.code {
        0 => Word::Mine(text(&shown["decidedBy"])),
        1 => Word::LateInWords(text(&shown["error"]["message"])),
        _ => panic!("{ran:?}"),
    }
}
