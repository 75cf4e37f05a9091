//! What one job may reach, and the credentials that are added for it.

use crate::Url;
use crate::address_guard::IpNet;
use crate::host_pattern::{HostPattern, hides_separators, host_name};
use http::HeaderValue;
use std::time::Duration;

/// What one job may reach.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Private ranges that it may reach, on every port.
    pub private: Vec<IpNet>,
    /// Hosts that it may reach; none means every public one. A pattern without a port means the ports 80 and 443.
    pub hosts: Option<Vec<HostPattern>>,
    /// Credentials that are added to requests that the job makes in the clear. Their hosts may be reached.
    pub credentials: Vec<Credential>,
    /// Connections at once; further ones wait.
    pub max_connections: usize,
    /// Bytes of the whole job, sent and received.
    pub max_bytes: u64,
    /// How long a connection may be idle.
    pub idle: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            private: Vec::new(),
            hosts: None,
            credentials: Vec::new(),
            max_connections: 64,
            max_bytes: 1024 * 1024 * 1024,
            idle: Duration::from_secs(60),
        }
    }
}

/// An `Authorization` header for a server, which the job never sees.
#[derive(Debug, Clone)]
pub struct Credential {
    host: String,
    port: u16,
    /// The path prefix that it is for; empty for the whole server.
    path: String,
    /// Marked as sensitive, so debug output hides it.
    authorization: HeaderValue,
}

/// A credential that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCredential {
    /// The URL is not `https`, or has parts that a credential cannot be for.
    #[error("a credential is for https://host, perhaps with a port and a path, and not for {0:?}")]
    Address(String),
    /// The value is no header value.
    #[error("the credential for {0} has characters that no header may have")]
    Value(String),
}

impl Credential {
    /// `authorization` is sent as that header to `https://host[:port]`, and only at or below its path if it has one.
    pub fn new(address: &str, authorization: &str) -> Result<Self, BadCredential> {
        let bad = || BadCredential::Address(address.to_owned());
        let url = Url::parse(address).map_err(|_unread| bad())?;
        let bare = url.username().is_empty() && url.password().is_none();
        if url.scheme() != "https" || !bare || url.query().is_some() || url.fragment().is_some() {
            return Err(bad());
        }
        if hides_separators(url.path()) {
            return Err(bad());
        }
        let host = host_name(&url).ok_or_else(bad)?.to_owned();
        let port = url.port_or_known_default().ok_or_else(bad)?;
        let mut authorization = HeaderValue::from_str(authorization)
            .map_err(|_illegal| BadCredential::Value(format!("https://{host}:{port}")))?;
        authorization.set_sensitive(true);
        Ok(Self { host, port, path: url.path().trim_end_matches('/').to_owned(), authorization })
    }

    /// Whether it is for this URL, over TLS.
    pub(super) fn is_for(&self, url: &Url) -> bool {
        let below = match url.path().strip_prefix(self.path.as_str()) {
            Some(_) if self.path.is_empty() => true,
            Some(rest) => (rest.is_empty() || rest.starts_with('/')) && !hides_separators(url.path()),
            None => false,
        };
        below
            && self.host == host_name(url).unwrap_or_default()
            && url.port_or_known_default() == Some(self.port)
    }

    pub(super) fn authorization(&self) -> &HeaderValue {
        &self.authorization
    }
}
