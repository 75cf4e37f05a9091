//! Lists over several pages, and lists that are wrong.

use super::fake::{Peer, legacy};
use crate::client::{ListKind, UpstreamError};
use serde_json::{Value, json};

/// Lists tools from a server that answers with these pages.
async fn listed(pages: Vec<Value>) -> Result<Vec<Box<str>>, UpstreamError> {
    let (connection, _events) = legacy(move |mut peer: Peer| {
        let pages = pages.clone();
        async move {
            peer.handshake(json!({})).await;
            let mut cursor = Value::Null;
            for page in pages {
                let request = peer.expect("tools/list").await;
                assert_eq!(request["params"]["cursor"], cursor);
                cursor = page["nextCursor"].clone();
                peer.answer(&request, page).await;
            }
            peer.next().await;
        }
    })
    .await;
    connection.list(ListKind::Tools).await
}

#[tokio::test]
async fn pages_are_put_together_and_an_empty_cursor_is_one() {
    let pages = vec![
        json!({"tools": [{"name": "a"}], "nextCursor": ""}),
        json!({"tools": [], "nextCursor": "x"}),
        json!({"tools": [{"name": "b"}], "nextCursor": null}),
    ];
    assert_eq!(listed(pages).await.unwrap(), [r#"{"name":"a"}"#.into(), r#"{"name":"b"}"#.into()]);
}

#[tokio::test]
async fn one_bad_item_is_left_out_alone() {
    let pages = vec![json!({"tools": [1, {"name": "a"}, null]})];
    assert_eq!(listed(pages).await.unwrap(), [r#"{"name":"a"}"#.into()]);
}

#[tokio::test]
async fn a_list_that_would_not_end_is_an_error() {
    let page = json!({"tools": [], "nextCursor": "again"});
    let outcome = listed(vec![page.clone(), page]).await;
    assert!(
        matches!(&outcome, Err(UpstreamError::OutcomeUnknown(reason)) if reason.contains("same cursor twice")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn what_is_no_list_is_an_error() {
    for page in [json!({}), json!({"tools": {}}), json!({"tools": [], "nextCursor": 7})] {
        assert!(listed(vec![page.clone()]).await.is_err(), "{page}");
    }
}
