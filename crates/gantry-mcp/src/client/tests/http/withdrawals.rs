//! Messages that no request waits for.

use super::{anyone, empty, legacy, play, reached, until};
use crate::client::limits::POSTS;
use crate::client::tests::fake::call;
use futures_util::future::join_all;

#[tokio::test]
async fn every_request_withdrawn_at_once_is_cancelled_at_the_server() {
    let many = 2 * POSTS;
    let (url, seen) = play(legacy(|got| match (&*got.verb, got.method()) {
        ("GET", _) => empty(405),
        ("POST", "notifications/cancelled") => empty(202),
        _ => super::Said { ends: false, ..super::events(&[]) },
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    let calls = join_all((0..many).map(|_| call("a", anyone()).by(&connection)));
    tokio::select! {
        outcomes = calls => panic!("{outcomes:?}"),
        () = until(&seen, many, |got| got.method() == "tools/call") => {}
    }
    until(&seen, many, |got| got.method() == "notifications/cancelled").await;
}
