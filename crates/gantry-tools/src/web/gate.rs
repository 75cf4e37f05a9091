//! Which addresses may be asked for at all, by their text alone. Names are checked again where they are looked up.

use super::fault;
use super::pattern::UrlPattern;
use gantry_core::ToolError;
use gantry_egress::Url;
use gantry_egress::address_guard::{self, IpNet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of an address.
pub(super) const URL_BYTES: usize = 8 * 1024;

/// Ports below this are for services that are not the web.
const FREE_PORTS: u16 = 1024;

/// The gate before an address.
#[derive(Debug)]
pub(super) struct Gate {
    allow: Vec<UrlPattern>,
    private: Vec<IpNet>,
}

impl Gate {
    pub(super) fn new(allow: Vec<UrlPattern>, private: Vec<IpNet>) -> Self {
        Self { allow, private }
    }

    /// Whether the allow-list has the address.
    pub(super) fn lists(&self, url: &Url) -> bool {
        self.allow.iter().any(|pattern| pattern.has(url))
    }

    /// The address that a text means, if it may be asked for.
    pub(super) fn read(&self, text: &str) -> Result<Url, ToolError> {
        if text.len() > URL_BYTES {
            return Err(fault::invalid(format!("the url is longer than {URL_BYTES} bytes")));
        }
        if text.contains(char::is_control) {
            return Err(fault::invalid("the url has control characters"));
        }
        let url =
            Url::parse(text).map_err(|error| fault::invalid(format!("the url cannot be read: {error}")))?;
        self.check(url)
    }

    /// The same for an address that is read already. It comes back in the form in which it is judged and asked for.
    pub(super) fn check(&self, mut url: Url) -> Result<Url, ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(fault::invalid(format!("{scheme}: cannot be fetched; use an https or http address")));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(fault::invalid(
                "the url has a user or a password in it; send an authorization header instead",
            ));
        }
        url.set_fragment(None);
        let host = gantry_egress::host_pattern::host_name(&url).map(str::to_owned);
        let named = host.is_some_and(|host| url.set_host(Some(&host)).is_ok());
        if !named {
            return Err(fault::invalid("the url has no host"));
        }
        let literal = places(&url);
        if !literal.is_empty()
            && literal.iter().all(|address| address_guard::allowed([*address], &self.private).is_err())
        {
            return Err(fault::denied(format!(
                "{} is not a public address, and web.allowPrivate does not open it",
                url.host_str().unwrap_or_default()
            )));
        }
        self.check_port(&url, !literal.is_empty())?;
        Ok(url)
    }

    fn check_port(&self, url: &Url, literal: bool) -> Result<(), ToolError> {
        let Some(port) = url.port() else { return Ok(()) };
        let opened = || {
            let mut places = places(url).into_iter();
            literal && places.any(|address| !address_guard::is_public(address))
        };
        let named = || self.allow.iter().any(|pattern| pattern.names_port(url));
        if matches!(port, 80 | 443) || port >= FREE_PORTS || opened() || named() {
            return Ok(());
        }
        Err(fault::denied(format!(
            "port {port} is not for the web; only web.allow can open it, by naming it"
        )))
    }
}

/// The addresses that the text alone tells.
fn places(url: &Url) -> Vec<IpAddr> {
    if let Some(address) = address_guard::literal_address(url) {
        return vec![address];
    }
    let host = url.host_str().unwrap_or_default();
    if host == "localhost" || host.ends_with(".localhost") {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    Vec::new()
}
