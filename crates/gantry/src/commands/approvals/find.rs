//! Finding what a person means by a part of an id, and lists page by page.

use super::item::Item;
use crate::client::{ApiClient, query};
use crate::exit::UsageError;
use gantry_core::raw;

/// Digits of an id that are enough to name it.
const ENOUGH: usize = 6;

/// How many of those that may be meant are named.
const NAMED: usize = 5;

/// Requests on one page, and pages that are looked through for an id.
const PAGE: u32 = 1000;
const PAGES: usize = 20;

/// What waits for a person, and what waits for its time.
pub(super) const WAITING: [&str; 2] = ["PENDING_APPROVAL", "SCHEDULED_FOR_EXECUTION"];

/// Which requests to list.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted<'a> {
    pub(super) state: Option<&'a str>,
    pub(super) project: Option<&'a str>,
    pub(super) call: Option<&'a str>,
}

/// One page of requests, and the cursor of the next one.
pub(super) async fn page(
    client: &ApiClient,
    wanted: Wanted<'_>,
    limit: u32,
    cursor: Option<&str>,
) -> anyhow::Result<(Vec<Item>, Option<String>)> {
    let limit = limit.to_string();
    let query = query(&[
        ("state", wanted.state),
        ("project", wanted.project),
        ("call", wanted.call),
        ("cursor", cursor),
        ("limit", Some(&limit)),
    ]);
    let answer = client.send(http::Method::GET, &format!("/api/v1/approvals{query}"), String::new()).await?;
    let text = answer.text.clone();
    let body = answer.into_result::<serde_json::Value>()?;
    let items = raw::member(&text, "items").and_then(raw::elements).unwrap_or_default();
    let items = items.into_iter().map(Item::new).collect::<anyhow::Result<_>>()?;
    let next = body.get("next").filter(|next| !next.is_null());
    Ok((items, next.map(|next| next.as_str().map_or_else(|| next.to_string(), str::to_owned))))
}

/// All of them, as far as anybody looks.
pub(super) async fn all(client: &ApiClient, wanted: Wanted<'_>) -> anyhow::Result<Vec<Item>> {
    let (mut found, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES {
        let (items, next) = page(client, wanted, PAGE, cursor.as_deref()).await?;
        found.extend(items);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}

/// The id of the request that is meant: by what waits first, then by everything.
pub(super) async fn approval(client: &ApiClient, typed: &str) -> anyhow::Result<String> {
    if typed.parse::<gantry_core::id::ApprovalId>().is_ok() {
        return Ok(typed.to_owned());
    }
    let digits = digits(typed, "appr_", "gantry approvals")?;
    let mut waiting = Vec::new();
    for state in WAITING {
        waiting.extend(all(client, Wanted { state: Some(state), ..Wanted::default() }).await?);
    }
    let ids = |items: &[Item]| items.iter().map(|item| item.id().to_owned()).collect::<Vec<_>>();
    if let Some(id) = meant(digits, &ids(&waiting))? {
        return Ok(id);
    }
    let every = all(client, Wanted::default()).await?;
    let id = meant(digits, &ids(&every))?;
    Ok(id.ok_or_else(|| unknown("request", typed, "gantry approvals --all"))?)
}

/// The digits that were typed, if they are enough.
pub(super) fn digits<'a>(typed: &'a str, prefix: &str, list: &str) -> Result<&'a str, UsageError> {
    let digits = typed.strip_prefix(prefix).unwrap_or(typed);
    if digits.len() < ENOUGH || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(UsageError(format!(
            "{typed:?} is no id: write it whole ({prefix}…), or at least {ENOUGH} of the digits that it ends with. \
             {list} lists them"
        )));
    }
    Ok(digits)
}

/// The one id that ends with these digits. Ids begin with the time, so whoever asks soon after another has the same
/// beginning; the end is nobody's to choose.
pub(super) fn meant(digits: &str, ids: &[String]) -> Result<Option<String>, UsageError> {
    let digits = digits.to_ascii_lowercase();
    let fits = |id: &&String| {
        let own = id.split_once('_').map_or(id.as_str(), |(_, own)| own);
        own.ends_with(&digits)
    };
    let found: Vec<&String> = ids.iter().filter(fits).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some((*one).clone())),
        several => {
            let mut named: Vec<&str> = several.iter().take(NAMED).map(|id| id.as_str()).collect();
            if several.len() > NAMED {
                named.push("…");
            }
            Err(UsageError(format!("{digits} may be any of {}; write more of it", named.join(", "))))
        }
    }
}

/// That nothing is meant.
pub(super) fn unknown(what: &str, typed: &str, list: &str) -> UsageError {
    UsageError(format!("there is no {what} {typed}; {list} lists them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apr_6_a_part_of_an_id_is_enough_if_it_means_one() {
        let ids = ["appr_0193aaaaaaaa1111".to_owned(), "appr_0193aaaaaaaa2222".to_owned()];
        assert_eq!(meant("aaaa2222", &ids).unwrap().as_ref(), ids.last());
        assert_eq!(meant("AAAA1111", &ids).unwrap().as_ref(), ids.first());
        assert_eq!(meant("ffffff", &ids).unwrap(), None);
        assert_eq!(meant("0193aa", &ids).unwrap(), None, "the beginning is the time, and anybody's");
        let alike = ["appr_0193aaaaaaaa1111".to_owned(), "appr_0194aaaaaaaa1111".to_owned()];
        let error = meant("aa1111", &alike).unwrap_err().to_string();
        assert!(alike.iter().all(|id| error.contains(id.as_str())), "{error}");
        assert_eq!(digits("appr_0193aa", "appr_", "x").unwrap(), "0193aa");
        for typed in ["appr_", "0193a", "0193ag", "..", ""] {
            assert!(digits(typed, "appr_", "x").is_err(), "{typed}");
        }
    }
}
