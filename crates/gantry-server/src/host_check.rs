//! The first check: requests whose Host or Origin no honest client sends.
//!
//! A page in a browser can make the browser send requests to loopback; what it cannot forge is the Host and Origin
//! that the browser adds. A request with two hosts is refused; one with two lengths is hyper's to read: it takes the
//! chunks, ignores the other length and closes the connection behind it, so nothing can hide there.

use crate::error::ApiError;
use http::uri::Authority;
use http::{HeaderMap, Request, header};
use std::net::SocketAddr;

#[derive(Debug, Clone)]
pub(crate) struct HostCheck {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl HostCheck {
    /// Loopback names and the bound address, and what the configuration adds.
    pub(crate) fn new(bind: SocketAddr, extra_hosts: &[String], extra_origins: &[String]) -> Self {
        let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into();
        hosts.push(bind_host(bind));
        hosts.extend_from_slice(extra_hosts);
        Self { hosts, origins: extra_origins.to_vec() }
    }

    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), ApiError> {
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
        Ok(())
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

    fn is_allowed_origin(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
            || host.is_some_and(|host| self.is_allowed_host(host))
    }
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
            &["https://app.test".into()],
        );
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let error = check.check(&request.body(()).unwrap()).err()?;
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
        for origin in ["http://localhost:5173", "http://127.0.0.1", "https://app.test"] {
            assert_eq!(check(origin), None, "{origin}");
        }
        for origin in
            ["https://evil.test", "null", "file://", "https://app.test.evil", "http://localhost.evil:80"]
        {
            assert_eq!(check(origin), Some(403), "{origin}");
        }
    }
}
