//! The request of an operation, without and with what is shown to the API.

use crate::client::Request;
use crate::encode;
use crate::options::{ApiOptions, SpecPlace};
use crate::security::{Badge, Shown};
use crate::show;
use gantry_egress::Url;
use gantry_openapi::{Operation, Prepared};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Headers that no argument sets.
const NOT_BY_ARGUMENT: [HeaderName; 3] = [header::HOST, header::COOKIE, header::CONTENT_LENGTH];

/// Whether the headers that go with every request can be sent.
///
/// # Errors
/// Names the one that cannot.
pub(super) fn check(options: &ApiOptions) -> Result<(), String> {
    for (name, value) in &options.headers {
        named(name)?;
        valued(name, value)?;
    }
    Ok(())
}

/// The request, without credentials.
///
/// # Errors
/// An argument cannot be sent.
pub(super) fn build(
    operation: &Operation,
    prepared: Prepared,
    options: &ApiOptions,
) -> Result<Request, String> {
    let Prepared { path, query, headers: own, cookies, body } = prepared;
    let url = address(&operation.server, &path, &query)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(show::ACCEPT));
    for (name, value) in &own {
        let parsed = HeaderName::try_from(name).map_err(|_bad| format!("{name:?} is no name of a header"))?;
        if NOT_BY_ARGUMENT.contains(&parsed) {
            continue;
        }
        headers.insert(named(name)?, valued(name, value)?);
    }
    if !cookies.is_empty() {
        headers.insert(header::COOKIE, valued("Cookie", &cookies)?);
    }
    for (name, value) in &options.headers {
        let (parsed, value) = (named(name)?, valued(name, value)?);
        let value = if parsed == header::COOKIE { cookies_with(&headers, &value)? } else { value };
        headers.insert(parsed, value);
    }
    let mut bytes = Vec::new();
    if let Some((media, body)) = body {
        // It may hold what tells the parts of the body apart, so it is not for others to say.
        headers.insert(header::CONTENT_TYPE, valued("Content-Type", &media)?);
        bytes = body;
    }
    let public_only = is_led_elsewhere(&url, options);
    Ok(Request { method: operation.method, url, headers, body: bytes, public_only })
}

/// Whether a document from the web says where the request goes, and that is not where the document is. What such a
/// document says must not reach what was opened for others.
fn is_led_elsewhere(url: &Url, options: &ApiOptions) -> bool {
    match &options.spec {
        SpecPlace::Url(document) => options.base_url.is_none() && document.origin() != url.origin(),
        SpecPlace::File(_) => false,
    }
}

/// Adds what is shown to the API. No argument can stand in for it.
///
/// # Errors
/// It cannot be sent.
pub(super) fn signed(mut request: Request, badge: &Badge) -> Result<Request, String> {
    for shown in &badge.shown {
        match shown {
            Shown::Header(name, value) => {
                let mut secret = valued(name, value)?;
                secret.set_sensitive(true);
                request.headers.insert(named(name)?, secret);
            }
            Shown::Query(pair) => {
                let name = name_of(pair);
                let mut pairs: Vec<&str> = request.url.query().unwrap_or_default().split('&').collect();
                pairs.retain(|other| !other.is_empty() && !name_of(other).eq_ignore_ascii_case(&name));
                pairs.push(pair);
                let query = pairs.join("&");
                request.url.set_query(Some(&query));
            }
            Shown::Cookie(pair) => {
                let cookies = cookies_with(&request.headers, &valued("Cookie", pair)?)?;
                request.headers.insert(header::COOKIE, cookies);
            }
        }
    }
    Ok(request)
}

/// The cookies of a request and these, which no other of the same name can stand in for.
fn cookies_with(headers: &HeaderMap, ours: &HeaderValue) -> Result<HeaderValue, String> {
    fn pairs(cookies: &[u8]) -> impl Iterator<Item = &[u8]> {
        cookies.split(|byte| *byte == b';').map(<[u8]>::trim_ascii).filter(|cookie| !cookie.is_empty())
    }
    let name = |cookie: &[u8]| {
        let name = cookie.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.trim_ascii().to_ascii_lowercase()
    };
    let before = headers.get(header::COOKIE).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_other = |cookie: &&[u8]| !pairs(ours.as_bytes()).any(|own| name(own) == name(cookie));
    let cookies: Vec<&[u8]> = pairs(before).filter(is_other).chain(pairs(ours.as_bytes())).collect();
    HeaderValue::from_bytes(&cookies.join(&b"; "[..]))
        .map_err(|_bad| "the cookies have characters that cannot be sent".to_owned())
}

/// The name that a pair of a query has.
fn name_of(pair: &str) -> String {
    encode::query_decoded(pair.split('=').next().unwrap_or_default())
}

/// The address, which has to be below that of the server.
fn address(server: &Url, path: &str, query: &str) -> Result<Url, String> {
    let base = server.path().trim_end_matches('/');
    let mut url = server.clone();
    let whole = format!("{base}{path}");
    url.set_path(&whole);
    if !query.is_empty() {
        url.set_query(Some(query));
    }
    url.set_fragment(None);
    let slashes = |path: &str| path.bytes().filter(|byte| *byte == b'/').count();
    // What leads up and away is taken out when an address is read, and leaves fewer parts behind.
    let stays = url.path().starts_with(&format!("{base}/")) && slashes(url.path()) == slashes(&whole);
    // A `\` counts as a `/` to some.
    if !stays || path.contains('\\') || url.origin() != server.origin() {
        return Err("the arguments lead to another place than the operation's".to_owned());
    }
    Ok(url)
}

fn named(name: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::try_from(name).map_err(|_bad| format!("{name:?} is no name of a header"))?;
    if show::is_of_connection(&parsed) {
        return Err(format!("the header {name} is not set by hand"));
    }
    Ok(parsed)
}

fn valued(name: &str, value: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::from_bytes(value.as_bytes());
    value.map_err(|_bad| format!("the header {name} cannot have line breaks or control characters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stays_below_that_of_its_server() {
        let at = |server: &str, path: &str, query: &str| {
            address(&Url::parse(server).unwrap(), path, query).map(String::from)
        };
        for (server, path, query, expected) in [
            ("https://h.test", "/x", "", "https://h.test/x"),
            ("https://h.test/v1", "/a%2Fb/", "q=1", "https://h.test/v1/a%2Fb/?q=1"),
            ("https://h.test/v1", "//evil.test/x", "", "https://h.test/v1//evil.test/x"),
            ("https://h.test", "//evil.test/x", "", "https://h.test//evil.test/x"),
            ("https://h.test/v1", "/%252e%252e/x", "", "https://h.test/v1/%252e%252e/x"),
            ("https://h.test/v1", "/x?y#z", "", "https://h.test/v1/x%3Fy%23z"),
        ] {
            assert_eq!(at(server, path, query).as_deref(), Ok(expected), "{server} {path}");
        }
        for path in ["/../x", "/a/../../x", "/%2e%2e/x", "/.%2E/x", "/a/./b", "/a\\..\\b", "x", "@evil.test/"]
        {
            assert!(at("https://h.test/v1", path, "").is_err(), "{path}");
        }
    }

    #[test]
    fn no_cookie_stands_in_for_one_of_the_configuration() {
        let with = |before: &'static str, ours: &'static str| {
            let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static(before))]);
            cookies_with(&headers, &HeaderValue::from_static(ours)).unwrap()
        };
        assert_eq!(with("a=1; Session=mine; b=2", "session=s3cret; c=3"), "a=1; b=2; session=s3cret; c=3");
        assert_eq!(with("session=1;session=2; ", "session=s3cret"), "session=s3cret");
        assert_eq!(with("", "session=s3cret"), "session=s3cret");
    }
}
