//! Many at once: one decision stands, pages lose nothing.

use super::{count, counted, decide, get, held, home, over};
use crate::approvals::keys::make;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::thread;

#[test]
fn apr_6_of_many_who_decide_at_once_one_decides() {
    let home = home("test__count");
    let server = home.serve();
    let approvers: Vec<_> = (0..10)
        .map(|n| make(&server, &json!({ "name": format!("approver-{n}"), "role": "approver" })))
        .collect();
    let (call, approval) = held(&server, "test__count", &count("once"));
    let answers: Vec<_> = thread::scope(|scope| {
        let deciding: Vec<_> = (0..40)
            .map(|n| {
                let (who, approval) = (&approvers[n % 10], approval.as_str());
                scope.spawn(move || decide(who, approval, &json!({ "approved": n % 3 != 0 })))
            })
            .collect();
        deciding.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    let [won] = won.as_slice() else { panic!("{} decided", won.len()) };
    let (by, approved) = (won.json()["decidedBy"].clone(), won.json()["decision"]["approved"] == true);
    for answer in lost {
        assert_eq!(answer.status, 409, "{answer:?}");
        assert_eq!(answer.json()["error"]["details"]["approval"]["decidedBy"], by, "{answer:?}");
    }
    assert_eq!(over(&server.client(), &call)["ok"], approved);
    assert_eq!(counted(&home).len(), usize::from(approved));
}

#[test]
fn apr_6_an_approver_of_some_tools_is_given_whole_pages_of_them() {
    let home = home("test__count, test__echo");
    let server = home.serve();
    let approver = make(&server, &json!({ "name": "anna", "role": "approver", "tools": ["*__count"] }));
    let mut expected = BTreeSet::new();
    for n in 0..20 {
        held(&server, "test__echo", &json!({ "text": n.to_string() }));
        if n % 4 == 0 {
            expected.insert(held(&server, "test__count", &count(&n.to_string())).1);
        }
    }
    let (mut seen, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = get(&approver, &format!("/api/v1/approvals?limit=2{cursor}")).json();
        let items = page["items"].as_array().expect("items");
        assert!(items.len() <= 2 && items.iter().all(|item| item["tool"] == "test__count"), "{page}");
        let id = |item: &Value| item["id"].as_str().expect("an id").to_owned();
        assert!(items.iter().all(|item| seen.insert(id(item))), "one was given twice: {page}");
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, expected);
    let session = get(&approver, "/api/v1/approvals?tool=test__echo").json();
    assert_eq!(session["items"], json!([]), "they are not hers");
}
