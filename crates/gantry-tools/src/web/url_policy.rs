//! Which URLs may be asked for at all, by their text alone. Names are checked again where they are looked up.

use super::url_pattern::UrlPattern;
use crate::failure::{self, Result};
use gantry_egress::Url;
use gantry_egress::address_guard::{self, IpNet};
use gantry_egress::host_pattern::host_name;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const URL_BYTES: usize = 8 * 1024;

/// Ports below this are for services that are not the web.
const FREE_PORTS: u16 = 1024;

/// The rules for URLs, from the configuration.
#[derive(Debug)]
pub(super) struct UrlPolicy {
    /// What is fetched without asking.
    pub(super) allow: Vec<UrlPattern>,
    /// Private addresses that may be reached.
    pub(super) allow_private: Vec<IpNet>,
}

impl UrlPolicy {
    pub(super) fn lists(&self, url: &Url) -> bool {
        self.allow.iter().any(|pattern| pattern.matches(url))
    }

    /// The URL that a text means, if it may be asked for.
    pub(super) fn parse(&self, text: &str) -> Result<Url> {
        if text.len() > URL_BYTES {
            return Err(failure::invalid(format!("the url is longer than {URL_BYTES} bytes")));
        }
        if text.contains(char::is_control) {
            return Err(failure::invalid("the url has control characters"));
        }
        let url = Url::parse(text);
        self.check(url.map_err(|error| failure::invalid(format!("the url cannot be read: {error}")))?)
    }

    /// The same for a URL that is read already. It comes back in the form in which it is judged and asked for.
    pub(super) fn check(&self, mut url: Url) -> Result<Url> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(failure::invalid(format!(
                "{scheme}: cannot be fetched; use an https or http address"
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(failure::invalid(
                "the url has a user or a password in it; send an authorization header instead",
            ));
        }
        url.set_fragment(None);
        let host = host_name(&url).map(str::to_owned);
        if host.is_none_or(|host| url.set_host(Some(&host)).is_err()) {
            return Err(failure::invalid("the url has no host"));
        }
        self.check_address(&url)?;
        Ok(url)
    }

    /// Refuses addresses that are private and not opened, and ports that are not for the web.
    fn check_address(&self, url: &Url) -> Result<()> {
        let literal = literal_addresses(url);
        let is_closed = |address: &IpAddr| address_guard::allowed([*address], &self.allow_private).is_err();
        if !literal.is_empty() && literal.iter().all(is_closed) {
            return Err(failure::denied(format!(
                "{} is not a public address, and web.allowPrivate does not open it",
                url.host_str().unwrap_or_default()
            )));
        }
        let Some(port) = url.port() else { return Ok(()) };
        let is_usual = matches!(port, 80 | 443) || port >= FREE_PORTS;
        let is_opened = || literal.iter().any(|address| !address_guard::is_public(*address));
        if is_usual || is_opened() || self.allow.iter().any(|pattern| pattern.names_port(url)) {
            return Ok(());
        }
        Err(failure::denied(format!(
            "port {port} is not for the web; only web.allow can open it, by naming it"
        )))
    }
}

/// The addresses that the text of a URL alone tells.
fn literal_addresses(url: &Url) -> Vec<IpAddr> {
    let host = url.host_str().unwrap_or_default();
    if host == "localhost" || host.ends_with(".localhost") {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    address_guard::literal_address(url).into_iter().collect()
}
