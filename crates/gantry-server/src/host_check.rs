//! The first check: requests whose Host, Origin or Content-Type no honest client sends.
//!
//! A page in a browser can make the browser send requests to loopback; what it cannot forge is the Host and Origin
//! that the browser adds. Without asking first, a browser sends bodies as text or as a form only, so no such body is taken,
//! even from a browser that adds no Origin. A request with two hosts is refused; one with two lengths is hyper's to read: it takes the
//! chunks, ignores the other length and closes the connection behind it, so nothing can hide there.

use crate::error::ApiError;
use gantry_core::ErrorCode;
use http::uri::Authority;
use http::{HeaderMap, Request, StatusCode, header};
use hyper::body::Body;
use std::net::SocketAddr;

#[derive(Debug, Clone)]
pub(crate) struct HostCheck {
    hosts: Vec<String>,
    port: u16,
    origins: Vec<Origin>,
}

/// Scheme, host and port, in lower case and with the port that the scheme implies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin(String, String, u16);

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let (scheme, host) = (scheme.to_ascii_lowercase(), without_port(authority).to_ascii_lowercase());
        let port = match authority.get(host.len()..)?.strip_prefix(':') {
            Some(port) => port.parse().ok()?,
            None if scheme == "http" => 80,
            None if scheme == "https" => 443,
            None => 0,
        };
        Some(Self(scheme, host, port))
    }
}

impl HostCheck {
    /// Loopback names and the bound address, and what the configuration adds.
    pub(crate) fn new(bind: SocketAddr, extra_hosts: &[String], extra_origins: &[String]) -> Self {
        let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into();
        hosts.push(bind_host(bind));
        hosts.extend_from_slice(extra_hosts);
        let origins = extra_origins.iter().filter_map(|text| Origin::parse(text)).collect();
        Self { hosts, port: bind.port(), origins }
    }

    pub(crate) fn check<B: Body>(&self, request: &Request<B>) -> Result<(), ApiError> {
        let headers = request.headers();
        self.check_host(request.uri().authority(), headers)?;
        for origin in headers.get_all(header::ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            if !self.is_allowed_origin(origin) {
                return Err(ApiError::forbidden(format!(
                    "the origin {origin:?} may not call this server; see server.allowedOrigins"
                )));
            }
        }
        check_content(headers, !request.body().is_end_stream())
    }

    fn check_host(&self, target: Option<&Authority>, headers: &HeaderMap) -> Result<(), ApiError> {
        let mut sent = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (sent.next(), sent.next()) else {
            return Err(ApiError::invalid("a request has exactly one Host header"));
        };
        let host = host.to_str().unwrap_or_default();
        if target.is_some_and(|target| !target.as_str().eq_ignore_ascii_case(host)) {
            return Err(ApiError::invalid("the address and the Host header of a request name the same host"));
        }
        if self.is_allowed_host(host) {
            return Ok(());
        }
        Err(ApiError::forbidden(format!("this server is not known as {host:?}; see server.allowedHosts")))
    }

    fn is_allowed_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(without_port(host)))
    }

    /// Whether it is the page of this server, or one that the configuration names.
    fn is_allowed_origin(&self, origin: &str) -> bool {
        Origin::parse(origin).is_some_and(|sent| {
            let is_own = sent.0 == "http" && sent.2 == self.port && self.is_allowed_host(&sent.1);
            is_own || self.origins.contains(&sent)
        })
    }
}

/// Every body is JSON, and a request without one says nothing else.
fn check_content(headers: &HeaderMap, has_body: bool) -> Result<(), ApiError> {
    let mut sent = headers.get_all(header::CONTENT_TYPE).iter();
    let is_json = match (sent.next(), sent.next()) {
        (None, _) => !has_body,
        (Some(only), None) => only.to_str().is_ok_and(is_json),
        (Some(_), Some(_)) => false,
    };
    if is_json {
        return Ok(());
    }
    let message =
        "the body of a request is JSON; send it with the one header \"Content-Type: application/json\"";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::InvalidArguments, message))
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = essence.strip_prefix("application/").unwrap_or_default();
    !subtype.contains(',') && (subtype == "json" || subtype.ends_with("+json"))
}

fn bind_host(bind: SocketAddr) -> String {
    match bind {
        SocketAddr::V4(v4) => v4.ip().to_string(),
        SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
    }
}

/// The host without a port; the brackets of an IPv6 address stay.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|b| b.is_ascii_digit())
                && !name.ends_with(':')
                && (!name.contains(':') || name.ends_with(']')) =>
        {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(headers: &[(&str, &str)], uri: &str) -> Option<u16> {
        let check = HostCheck::new(
            "127.0.0.1:7420".parse().unwrap(),
            &["gantry.test".into()],
            &["https://app.test".into(), "http://other.test:80".into()],
        );
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let error = check.check(&request.body(String::new()).unwrap()).err()?;
        Some(axum::response::IntoResponse::into_response(error).status().as_u16())
    }

    #[test]
    fn known_hosts_pass_and_others_do_not() {
        for host in ["localhost", "localhost:7420", "127.0.0.1:1", "[::1]:7420", "[::1]", "GANTRY.test:80"] {
            assert_eq!(status(&[("host", host)], "/"), None, "{host}");
        }
        for host in
            ["evil.test", "127.0.0.1.evil.test", "localhost.evil", "localhost:80:80", "::1", "", "127.0.0.2"]
        {
            assert_eq!(status(&[("host", host)], "/"), Some(403), "{host}");
        }
        assert_eq!(status(&[], "/"), Some(400));
        assert_eq!(status(&[("host", "localhost"), ("host", "localhost")], "/"), Some(400));
        assert_eq!(status(&[("host", "localhost")], "http://evil.test/"), Some(400));
    }

    #[test]
    fn foreign_origins_are_refused() {
        let check = |origin| status(&[("host", "localhost"), ("origin", origin)], "/");
        for origin in [
            "http://localhost:7420",
            "HTTP://127.0.0.1:7420",
            "http://[::1]:7420",
            "http://gantry.test:7420",
            "https://app.test",
            "https://App.test:443",
            "http://other.test",
            "http://other.test:80",
        ] {
            assert_eq!(check(origin), None, "{origin}");
        }
        for origin in [
            "https://evil.test",
            "null",
            "",
            "file://",
            "localhost:7420",
            "http://localhost",
            "http://localhost:3000",
            "https://localhost:7420",
            "http://localhost:7420/",
            "http://localhost:7420:7420",
            "http://a@localhost:7420",
            "http://localhost.evil:7420",
            "http://gantry.test",
            "https://app.test.evil",
            "http://app.test:443",
            "https://app.test:444",
            "https://app.test:65979",
        ] {
            assert_eq!(check(origin), Some(403), "{origin}");
        }
    }

    #[test]
    fn bodies_are_json() {
        let check = |types: &[&str], body| {
            let mut headers = HeaderMap::new();
            for sent in types {
                headers.append(header::CONTENT_TYPE, sent.parse().unwrap());
            }
            check_content(&headers, body).is_ok()
        };
        let json = ["application/json", "Application/JSON; charset=utf-8", "application/scim+json"];
        assert!(json.iter().all(|sent| check(&[sent], true) && check(&[sent], false)));
        for sent in [
            "text/plain",
            "text/plain; application/json",
            "text/plain, application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=application/json",
            "application/jsonp",
            "application/text,+json",
            "json",
            "",
        ] {
            assert!(!check(&[sent], true) && !check(&[sent], false), "{sent}");
        }
        assert!(check(&[], false) && !check(&[], true));
        assert!(!check(&["application/json", "text/plain"], true));
    }
}
