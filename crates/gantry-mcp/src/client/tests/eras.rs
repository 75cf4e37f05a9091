//! Finding out the era: every way in which a server may react to the question.

use super::fake::{Peer, Stage, discovered, stage, target};
use crate::Version;
use crate::client::{Connection, Protocol, Transport, UpstreamError, connect};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn reached(stage: &Arc<Stage>, mut known: Protocol) -> Result<Connection, UpstreamError> {
    reached_or_learnt(stage, &mut known).await
}

async fn reached_or_learnt(stage: &Arc<Stage>, known: &mut Protocol) -> Result<Connection, UpstreamError> {
    let (target, _events) = target(Transport::Stdio(stage.clone()), Protocol::Auto);
    connect(&target, known).await
}

/// What a server does with a discovery.
#[derive(Clone, Copy, Debug)]
enum Discovery {
    Answers,
    Refuses(i32),
    Exits,
    IsSilent,
}

/// What a server does with a handshake.
#[derive(Clone, Copy, Debug)]
enum Handshake {
    Answers,
    Refuses(i32),
    Exits,
    IsSilent,
}

fn server(discovery: Discovery, handshake: Handshake) -> Arc<Stage> {
    slow_server(Duration::ZERO, discovery, handshake)
}

/// The same with a server that reads nothing for a while after it was started.
fn slow_server(start: Duration, discovery: Discovery, handshake: Handshake) -> Arc<Stage> {
    stage(move |mut peer: Peer| async move {
        tokio::time::sleep(start).await;
        while let Some(message) = peer.next().await {
            match (message["method"].as_str(), discovery, handshake) {
                (Some("server/discover"), Discovery::Answers, _) => {
                    peer.answer(&message, discovered(&json!({}))).await;
                }
                (Some("server/discover"), Discovery::Refuses(code), _)
                | (Some("initialize"), _, Handshake::Refuses(code)) => peer.refuse(&message, code).await,
                (Some("server/discover"), Discovery::Exits, _)
                | (Some("initialize"), _, Handshake::Exits) => return,
                (Some("initialize"), _, Handshake::Answers) => peer.greet(&message, json!({})).await,
                _ => {}
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn every_reaction_leads_to_the_era_that_fits() {
    use Discovery as D;
    use Handshake as H;
    let modern = Some(Version::V2026_07_28);
    let legacy = Some(Version::V2025_06_18);
    for (discovery, handshake, expected) in [
        (D::Answers, H::Answers, modern),
        (D::Answers, H::Refuses(-32022), modern),
        (D::Answers, H::Refuses(-32601), modern),
        (D::Answers, H::Exits, modern),
        (D::Refuses(-32601), H::Answers, legacy),
        (D::Refuses(-32602), H::Answers, legacy),
        (D::Refuses(-32022), H::Answers, legacy),
        (D::Exits, H::Answers, legacy),
        (D::IsSilent, H::Answers, legacy),
        (D::Refuses(-32601), H::Refuses(-32603), None),
        (D::Exits, H::Exits, None),
        (D::IsSilent, H::Exits, None),
    ] {
        for known in [Protocol::Auto, Protocol::Legacy, Protocol::Modern] {
            let outcome = reached(&server(discovery, handshake), known).await;
            let version = outcome.as_ref().ok().map(|connection| connection.info().version);
            // An era that was known and still is fine is not questioned.
            let expected = match (known, handshake) {
                (Protocol::Legacy, H::Answers) => legacy,
                (Protocol::Legacy, H::Exits) => None,
                _ => expected,
            };
            assert_eq!(version, expected, "{discovery:?} {handshake:?} {known:?}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_slow_server_that_binds_itself_to_the_first_era_is_met_in_it() {
    let slow = stage(async |mut peer: Peer| {
        let first = peer.next().await.unwrap();
        if first["method"] == "server/discover" {
            peer.answer(&first, discovered(&json!({}))).await;
        } else {
            peer.refuse(&first, -32022).await;
        }
        peer.next().await;
    });
    let connection = reached(&slow, Protocol::Auto).await.unwrap();
    assert!(connection.info().version.is_modern());
    assert_eq!(connection.info().server_info.as_deref(), Some(r#"{"name":"new"}"#));
    assert_eq!(slow.started.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_known_era_is_tried_alone() {
    let old = server(Discovery::Exits, Handshake::Answers);
    reached(&old, Protocol::Legacy).await.unwrap();
    assert_eq!(old.started.load(Ordering::Relaxed), 1);
}

/// A legacy server of which there can be only one at a time.
fn exclusive(discovery: Discovery) -> Arc<Stage> {
    let alone = Arc::new(tokio::sync::Semaphore::new(1));
    stage(move |peer: Peer| alone_on_stage(peer, discovery, alone.clone()))
}

async fn alone_on_stage(mut peer: Peer, discovery: Discovery, alone: Arc<tokio::sync::Semaphore>) {
    let Ok(_claim) = alone.try_acquire_owned() else { return };
    while let Some(message) = peer.next().await {
        match (message["method"].as_str(), discovery) {
            (Some("server/discover"), Discovery::Refuses(code)) => peer.refuse(&message, code).await,
            (Some("server/discover"), Discovery::Exits) => return,
            (Some("initialize"), _) => peer.greet(&message, json!({})).await,
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_era_is_found_out_in_one_process_unless_that_ends_of_the_question() {
    use Discovery as D;
    for (discovery, starts) in [(D::Refuses(-32601), 1), (D::IsSilent, 1), (D::Exits, 2)] {
        let server = exclusive(discovery);
        let connection = reached(&server, Protocol::Auto).await.unwrap();
        assert!(!connection.info().version.is_modern(), "{discovery:?}");
        assert_eq!(server.started.load(Ordering::Relaxed), starts, "{discovery:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up_in_time() {
    let silent = stage(async |mut peer: Peer| while peer.next().await.is_some() {});
    for known in [Protocol::Auto, Protocol::Legacy] {
        let outcome = reached(&silent, known).await;
        assert!(
            matches!(&outcome, Err(UpstreamError::NotSent(reason)) if reason.contains("30000 ms")),
            "{outcome:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_needs_most_of_its_time_is_met_whether_its_era_is_known_or_not() {
    use Discovery as D;
    use Handshake as H;
    // Of 30 seconds.
    let start = Duration::from_secs(18);
    for (discovery, handshake, known, modern) in [
        (D::Answers, H::Answers, Protocol::Auto, true),
        (D::Answers, H::Answers, Protocol::Modern, true),
        (D::Answers, H::Answers, Protocol::Legacy, false),
        (D::Refuses(-32601), H::Answers, Protocol::Legacy, false),
        (D::Exits, H::Answers, Protocol::Legacy, false),
        (D::IsSilent, H::Answers, Protocol::Auto, false),
        (D::IsSilent, H::Answers, Protocol::Legacy, false),
        (D::Answers, H::Refuses(-32022), Protocol::Modern, true),
    ] {
        let slow = slow_server(start, discovery, handshake);
        let outcome = reached(&slow, known).await;
        let version = outcome.as_ref().ok().map(|connection| connection.info().version.is_modern());
        assert_eq!(version, Some(modern), "{discovery:?} {handshake:?} {known:?}: {outcome:?}");
        assert_eq!(slow.started.load(Ordering::Relaxed), 1, "{discovery:?} {handshake:?} {known:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_era_that_took_all_the_time_is_not_asked_for_first_again() {
    use Discovery as D;
    use Handshake as H;
    for (start, discovery, handshake, known, next, modern) in [
        // It ended of the question, and half of the time is too little for its second start.
        (18, D::Exits, H::Answers, Protocol::Auto, Protocol::Legacy, false),
        (18, D::Exits, H::Answers, Protocol::Modern, Protocol::Legacy, false),
        (0, D::Answers, H::IsSilent, Protocol::Legacy, Protocol::Auto, true),
    ] {
        let server = slow_server(Duration::from_secs(start), discovery, handshake);
        let mut learnt = known;
        let outcome = reached_or_learnt(&server, &mut learnt).await;
        assert!(outcome.is_err() && learnt == next, "{discovery:?} {known:?}: {learnt:?} {outcome:?}");
        let connection = reached_or_learnt(&server, &mut learnt).await.unwrap();
        assert_eq!(connection.info().version.is_modern(), modern, "{discovery:?} {known:?}");
        assert_eq!(learnt == Protocol::Modern, modern, "{discovery:?} {known:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_era_stays_known_while_the_server_cannot_be_started() {
    let broken = stage(async |_peer: Peer| {});
    for known in [Protocol::Auto, Protocol::Legacy, Protocol::Modern] {
        let mut learnt = known;
        reached_or_learnt(&broken, &mut learnt).await.unwrap_err();
        assert_eq!(learnt, known);
    }
}

#[tokio::test(start_paused = true)]
async fn no_cancellation_of_the_question_comes_before_the_end_of_the_handshake() {
    let (reported, mut seen) = tokio::sync::mpsc::channel(1);
    let silent = stage(move |mut peer: Peer| {
        let reported = reported.clone();
        async move {
            peer.expect("server/discover").await;
            peer.handshake(json!({})).await;
            reported.send(()).await.unwrap();
            peer.next().await;
        }
    });
    let _connection = reached(&silent, Protocol::Auto).await.unwrap();
    seen.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_of_another_era_than_the_known_one_is_met_in_the_second_half_of_the_time() {
    let replaced = slow_server(Duration::from_secs(5), Discovery::IsSilent, Handshake::Answers);
    let connection = reached(&replaced, Protocol::Modern).await.unwrap();
    assert!(!connection.info().version.is_modern());
}
