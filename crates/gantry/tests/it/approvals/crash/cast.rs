//! Those who work while the server is killed: they go on until their connection breaks.

use super::super::held::{Held, is_over, line, text};
use super::book::{self, Book};
use gantry_testkit::Connection;
use gantry_testkit::Random;
use gantry_testkit::server::Answer;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls that one caller makes in one life of the server.
const CALLS: u64 = 6;

/// One life of the server, as those see it who work with it.
pub(super) struct Life<'a> {
    pub(super) address: SocketAddr,
    pub(super) book: &'a Book,
    asked: AtomicUsize,
    decided: AtomicUsize,
}

impl<'a> Life<'a> {
    pub(super) fn new(address: SocketAddr, book: &'a Book) -> Self {
        Self { address, book, asked: AtomicUsize::new(0), decided: AtomicUsize::new(0) }
    }

    /// How many requests were acknowledged.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// How many decisions were acknowledged.
    pub(super) fn decided(&self) -> usize {
        self.decided.load(Ordering::Relaxed)
    }
}

/// Makes calls, withdraws some, and comes back for the outcome of others.
pub(super) fn caller(life: &Life<'_>, name: &str, mut dice: Random) {
    let Ok(mut connection) = Connection::open(life.address) else { return };
    let mut mine = Vec::new();
    for n in 0..CALLS {
        let text = format!("{name}-{n}");
        life.book.begin(&text);
        let Some(held) = request(&mut connection, &text, &mut dice) else { return };
        life.book.held(&text, &held);
        life.asked.fetch_add(1, Ordering::Relaxed);
        mine.push((text, held));
        let step = match (dice.below(6), mine.last()) {
            (0, Some((text, held))) => withdraw(life, &mut connection, text, held),
            (1, _) => look(life, &mut connection, &mine[0]),
            _ => Ok(()),
        };
        if step.is_err() {
            return;
        }
    }
    for one in &mine {
        if look(life, &mut connection, one).is_err() {
            return;
        }
    }
}

/// Makes a call that has to wait for one thing or another; nothing if the server is gone or going.
fn request(connection: &mut Connection, text: &str, dice: &mut Random) -> Option<Held> {
    let project = ["default", "default", "later", "brief", "timed"][dice.below(5) as usize];
    let body = json!({ "project": project, "tool": "test__count", "arguments": line(text) });
    let answer = post(connection, "/api/v1/calls", None, &body).ok()?;
    (answer.status != 503).then(|| Held::of(&answer))
}

fn withdraw(life: &Life<'_>, connection: &mut Connection, text: &str, held: &Held) -> io::Result<()> {
    life.book.withdrawing(text);
    let answer = post(connection, &held.path("cancel"), None, &Value::Null)?;
    match answer.status {
        200 => life.book.withdrawn(text),
        status => assert!(matches!(status, 409 | 503), "{answer:?}"),
    }
    Ok(())
}

/// Waits a moment for the outcome of a call.
fn look(life: &Life<'_>, connection: &mut Connection, (text, held): &(String, Held)) -> io::Result<()> {
    let answer = connection.request("GET", &format!("/api/v1/calls/{}?wait=1", held.call), &[], b"")?;
    let shown = answer.json();
    if answer.status == 200 && is_over(&shown) {
        life.book.answered(text, super::super::held::text(&shown["state"]));
    }
    Ok(())
}

/// Says yes and no to what waits, also to what was left from earlier lives.
pub(super) fn approver(life: &Life<'_>, key: &str, mut dice: Random) {
    let Ok(mut connection) = Connection::open(life.address) else { return };
    while decide_one(life, &mut connection, key, &mut dice).is_ok() {}
}

fn decide_one(life: &Life<'_>, connection: &mut Connection, key: &str, dice: &mut Random) -> io::Result<()> {
    // What waits for its time alone can only be stopped.
    let stops = dice.below(8) == 0;
    let path = if stops {
        "/api/v1/approvals?state=SCHEDULED_FOR_EXECUTION&project=timed&limit=50"
    } else {
        "/api/v1/approvals?state=PENDING_APPROVAL&limit=50&wait=1"
    };
    let authorization = format!("Bearer {key}");
    let headers = [("authorization", &*authorization)];
    let listed = connection.request("GET", path, &headers, b"")?;
    if listed.status == 503 {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    let listed = listed.json();
    let items = listed["items"].as_array().expect("items");
    if items.is_empty() {
        return Ok(());
    }
    let item = &items[dice.below(items.len() as u64) as usize];
    let (held, name) = (Held { id: text(&item["id"]), call: text(&item["callId"]) }, book::name(item));
    // Some calls have to stay undecided, however often an approver lists them: every other one of those.
    let is_left = item["caller"]["project"] == "brief" && name.ends_with(['1', '3', '5']);
    let approved = match dice.below(10) {
        _ if is_left => return Ok(()),
        0..=5 if !stops => true,
        6..=8 => false,
        _ => return Ok(()),
    };
    life.book.deciding(&name, approved);
    let answer = post(connection, &held.path("decision"), Some(key), &json!({ "approved": approved }))?;
    match answer.status {
        200 => {
            life.book.decided(&name, approved);
            life.decided.fetch_add(1, Ordering::Relaxed);
        }
        // Another approver was first, or the call expired, or the server stops.
        status => assert!(matches!(status, 409 | 410 | 503), "{answer:?}"),
    }
    Ok(())
}

fn post(connection: &mut Connection, path: &str, key: Option<&str>, body: &Value) -> io::Result<Answer> {
    let authorization = key.map(|key| format!("Bearer {key}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    connection.request("POST", path, &headers, &body)
}
