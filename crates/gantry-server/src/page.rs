//! The page on which a person decides: `/approvals` lists what waits, `/approvals/{id}` shows one call.
//!
//! It is the same text for every reader, without data. It asks for a key and uses the API with that key; the key stays in the
//! tab.

use axum::response::{IntoResponse as _, Response};
use http::{Method, Request, header};
use uuid::Uuid;

/// What the address of an approval's page begins with.
pub(crate) const PREFIX: &str = "/approvals/";

const TEXT: &str = include_str!("page/approval.html");

/// Whether a request is for the page.
pub(crate) fn is_page_request<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    let named = path.strip_prefix(PREFIX).is_some_and(|id| !id.contains('/'));
    matches!(*request.method(), Method::GET | Method::HEAD) && (named || path == "/approvals")
}

pub(crate) fn respond() -> Response {
    // The browser runs only what carries this random number.
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types"
    );
    let headers =
        [("cross-origin-opener-policy", "same-origin"), ("cross-origin-resource-policy", "same-origin")];
    (headers, html(&policy, TEXT.replace("{{nonce}}", &nonce))).into_response()
}

/// A page that the browser shows as far as the policy lets it, and does not keep.
pub(crate) fn html(policy: &str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_page(method: Method, path: &str) -> bool {
        is_page_request(&Request::builder().method(method).uri(path).body(()).unwrap())
    }

    #[test]
    fn the_page_is_at_its_addresses_and_nowhere_else() {
        for path in ["/approvals", "/approvals/appr_0", "/approvals/", "/approvals/x?y=/api"] {
            assert!(is_page(Method::GET, path), "{path}");
        }
        for path in ["/", "/approvalsx", "/approvals/x/y", "/api/v1/approvals", "/approvals/../api/v1/keys"] {
            assert!(!is_page(Method::GET, path), "{path}");
        }
        assert!(!is_page(Method::POST, "/approvals/x"));
    }

    /// The characters that the page marks, as ranges of code points.
    fn marked() -> Vec<std::ops::RangeInclusive<u32>> {
        let (_, rest) = TEXT.split_once("const UNSEEN = /[").expect("the page has a list");
        let (list, _) = rest.split_once("]/gu;").expect("the list ends");
        let point = |text: &str| u32::from_str_radix(text, 16).expect("a code point");
        let mut ranges = Vec::new();
        let mut rest = list;
        while let Some((first, behind)) = rest.strip_prefix("\\u{").and_then(|rest| rest.split_once('}')) {
            let to = behind.strip_prefix("-\\u{").and_then(|rest| rest.split_once('}'));
            let (last, behind) = to.unwrap_or((first, behind));
            ranges.push(point(first)..=point(last));
            rest = behind;
        }
        assert_eq!(rest, "", "the list is of code points and ranges of them");
        ranges
    }

    #[test]
    fn the_page_marks_what_the_command_line_escapes() {
        let marked = marked();
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let is_marked = marked.iter().any(|range| range.contains(&u32::from(c)));
            assert_eq!(is_marked, gantry_core::invisible::is_invisible(c), "U+{:04X}", u32::from(c));
        }
        assert!((0xd800..=0xdfff).all(|half| marked.iter().any(|range| range.contains(&half))));
    }

    #[test]
    fn the_policy_names_what_the_page_carries_and_it_is_new_each_time() {
        let policy = |response: &Response| {
            response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned()
        };
        let (one, other) = (respond(), respond());
        assert_ne!(policy(&one), policy(&other));
        assert!(!TEXT.contains("innerHTML") && !TEXT.contains("localStorage") && !TEXT.contains("http://"));
        assert_eq!(TEXT.matches("{{nonce}}").count(), 2, "a style and a script");
    }
}
