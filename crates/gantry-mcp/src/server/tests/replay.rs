//! What is kept so that streams can be taken up again: how much, for how long, and what goes first.

use super::{Events, Fake, answer, handshake, headers};
use crate::{
    limits::{REPLAY_BYTES, SESSION_STREAMS, STREAM_BYTES, STREAM_EVENTS, STREAM_KEPT},
    server::{
        outbox::Care,
        replay::Replay,
        ring::{Found, Place, Reader, Streams},
    },
};
use std::{sync::Arc, time::Duration};

/// Room for three messages of [`message`] and not for four.
const ROOM: usize = 4000;

fn message(name: &str) -> String {
    format!("{name}{}", "x".repeat(1000))
}

fn sessions<const N: usize>(replay: &Arc<Replay>) -> [Arc<Streams>; N] {
    std::array::from_fn(|_| Streams::new(Arc::clone(replay)))
}

/// A stream of one message that has ended.
fn ended(session: &Arc<Streams>, text: &str) -> u64 {
    let stream = session.open(None);
    session.push(stream, text, Care::MustArrive);
    session.end(stream);
    stream
}

fn reader(session: &Arc<Streams>, stream: u64) -> Option<Reader> {
    session.read(Place { stream, event: 0 })
}

/// The data of everything that can be read now.
fn read(reader: &mut Reader) -> Vec<String> {
    let mut all = Vec::new();
    while let Found::Event(bytes) = reader.look() {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        all.push(text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned());
    }
    all
}

#[tokio::test]
async fn one_stream_is_bounded_whether_it_is_read_or_not() {
    let replay = Arc::new(Replay::new(REPLAY_BYTES));
    for care in [Care::MayDrop, Care::MustArrive] {
        let [session] = sessions(&replay);
        let stream = session.open(None);
        for number in 0..STREAM_EVENTS + 5 {
            session.push(stream, &number.to_string(), care);
        }
        session.end(stream);
        let expected: Vec<String> = (5..STREAM_EVENTS + 5).map(|number| number.to_string()).collect();
        assert_eq!(read(&mut reader(&session, stream).unwrap()), expected, "{care:?}");
        for _ in 0..SESSION_STREAMS {
            ended(&session, "x");
        }
        assert!(reader(&session, stream).is_none());
    }
    assert_eq!(replay.bytes(), 0);
}

#[tokio::test]
async fn what_somebody_waits_for_stays_until_it_is_read_whatever_others_keep() {
    let replay = Arc::new(Replay::new(ROOM));
    let [greedy, other] = sessions(&replay);
    let endless = greedy.open(None);
    for _ in 0..9 {
        greedy.push(endless, &message("g"), Care::MustArrive);
    }
    let stream = other.open(None);
    let mut live = reader(&other, stream).unwrap();
    other.push(stream, "read", Care::MustArrive);
    assert_eq!(read(&mut live), ["read"]);
    other.push(stream, "question", Care::MustArrive);
    other.push(stream, "progress", Care::MayDrop);
    other.push(stream, "answer", Care::MustArrive);
    other.end(stream);
    // Only what was not waited for is lost, and what was read already.
    assert_eq!(read(&mut live), ["question", "answer"]);
    assert_eq!(read(&mut reader(&greedy, endless).unwrap()).len(), 9);
}

#[tokio::test]
async fn questions_arrive_when_too_much_is_kept() {
    let server = Fake::full();
    server.inner.replay.add(REPLAY_BYTES + 1);
    let session = handshake(&server, "guest", "2025-11-25").await;
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#;
    let mut events = Events::of(answer(&server, &[("mcp-session-id", &session)], ask).await);
    // Both are there before anything is read.
    while server.inner.sessions.find(&session, &"guest").unwrap().streams.now(1).event < 3 {
        tokio::task::yield_now().await;
    }
    for key in ["name 0", "age 0"] {
        let question = events.message().await;
        assert!(question.contains(key), "{question}");
    }
}

#[tokio::test]
async fn streams_that_have_ended_make_room_the_oldest_first() {
    let replay = Arc::new(Replay::new(ROOM));
    let [one, two] = sessions(&replay);
    let old = [
        (&one, ended(&one, &message("a"))),
        (&two, ended(&two, &message("b"))),
        (&one, ended(&one, &message("c"))),
    ];
    let kept = || old.map(|(session, stream)| reader(session, stream).is_some());
    assert_eq!(kept(), [true, true, true]);
    let live = two.open(None);
    two.push(live, &message("d"), Care::MayDrop);
    assert_eq!(kept(), [false, true, true]);
    two.push(live, &message("e"), Care::MayDrop);
    assert_eq!(kept(), [false, false, true]);
    assert_eq!(read(&mut reader(&two, live).unwrap()).len(), 2);
    drop((one, two));
    assert_eq!(replay.bytes(), 0);
}

#[tokio::test]
async fn what_is_too_large_to_be_kept_is_kept_until_it_was_read() {
    let replay = Arc::new(Replay::new(REPLAY_BYTES));
    let [session] = sessions(&replay);
    let stream = session.open(None);
    session.prime(stream);
    session.push(stream, &"x".repeat(STREAM_BYTES + 1), Care::MustArrive);
    session.end(stream);
    let mut first = reader(&session, stream).unwrap();
    let Found::Event(primer) = first.look() else { panic!("no primer") };
    let id = String::from_utf8(primer.to_vec()).unwrap();
    let id = id.lines().next().unwrap().strip_prefix("id: ").unwrap();
    // Who comes back before it was read gets it.
    let mut second = session.read(session.place(id).unwrap()).unwrap();
    assert_eq!(read(&mut second).len(), 1);
    assert_eq!(replay.bytes(), 0);
    // Who comes back later is not left with a stream that says nothing.
    assert_eq!(session.place(id), None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ended_a_while_ago_is_not_kept() {
    let server = Fake::full();
    server.handler().gate.add_permits(1);
    let session = handshake(&server, "guest", "2025-11-25").await;
    let tell = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tell"}}"#;
    let mut events = Events::of(answer(&server, &[("mcp-session-id", &session)], tell).await);
    let (id, _) = events.next().await.unwrap();
    assert!(events.rest().await.last().unwrap().contains("told"));
    let resumed = || {
        let sent = headers(&[("mcp-session-id", &session), ("last-event-id", &id)]);
        server.get(&sent, &"guest").status().as_u16()
    };
    tokio::time::advance(STREAM_KEPT).await;
    server.expire_idle();
    assert_eq!(resumed(), 200);
    tokio::time::advance(Duration::from_secs(1)).await;
    server.expire_idle();
    assert_eq!((resumed(), server.inner.replay.bytes()), (400, 0));
    assert_eq!(server.sessions(), 1);
}
