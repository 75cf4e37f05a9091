//! The request of an operation, without and with credentials.

use crate::client::{ACCEPT, header_name, header_value, verb};
use crate::encode;
use crate::openapi::{KeyPlace, Operation, Prepared};
use crate::options::ApiOptions;
use gantry_egress::{OutboundRequest, Url};
use http::header::{self, HeaderMap, HeaderValue};

/// The request, without credentials.
pub(super) fn build(
    operation: &Operation,
    prepared: Prepared,
    options: &ApiOptions,
) -> Result<OutboundRequest, String> {
    let Prepared { path, query, headers: own, body } = prepared;
    let url = address(&operation.server, &path, &query)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPT));
    for (name, value) in &own {
        headers.insert(header_name(name)?, header_value(name, value)?);
    }
    for (name, value) in &options.headers {
        headers.insert(header_name(name)?, header_value(name, value)?);
    }
    if let Some((media, _)) = &body {
        // It may hold the boundary of a multipart body, so neither arguments nor options set it.
        headers.insert(header::CONTENT_TYPE, header_value("Content-Type", media)?);
    }
    let body = body.map(|(_, bytes)| bytes).unwrap_or_default();
    Ok(OutboundRequest { method: verb(operation.method)?, url, headers, body: body.into() })
}

/// Adds a credential. It replaces arguments of the same name.
pub(crate) fn add_credential(
    request: &mut OutboundRequest,
    place: KeyPlace,
    name: &str,
    value: &str,
) -> Result<(), String> {
    match place {
        KeyPlace::Header => {
            let mut secret = header_value(name, value)?;
            secret.set_sensitive(true);
            request.headers.insert(header_name(name)?, secret);
        }
        KeyPlace::Query => {
            let is_other = |pair: &&str| {
                let other = encode::query_decoded(pair.split('=').next().unwrap_or_default());
                !pair.is_empty() && !other.eq_ignore_ascii_case(name)
            };
            let own = format!("{}={}", encode::component(name), encode::component(value));
            let others = request.url.query().unwrap_or_default().split('&').filter(is_other);
            let query = others.chain([own.as_str()]).collect::<Vec<_>>().join("&");
            request.url.set_query(Some(&query));
        }
        KeyPlace::Cookie => {
            let own = header_value("Cookie", &format!("{name}={value}"))?;
            let cookies = cookies_with(&request.headers, &own)?;
            request.headers.insert(header::COOKIE, cookies);
        }
    }
    Ok(())
}

/// The cookies of a request and these, which replace others of the same name.
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

/// The URL of a request, which has to be below that of the server.
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
    // The URL parser removes `..` and what it leads out of, which leaves fewer slashes.
    let stays = url.path().starts_with(&format!("{base}/")) && slashes(url.path()) == slashes(&whole);
    // Some parsers read `\` as `/`.
    if !stays || path.contains('\\') || url.origin() != server.origin() {
        return Err("the arguments lead to another place than the operation's".to_owned());
    }
    Ok(url)
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
