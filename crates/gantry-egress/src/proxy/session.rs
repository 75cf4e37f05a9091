//! One job at the proxy: which targets it may reach, what it has used, and what it was refused.

use super::Report;
use super::meter::Budget;
use super::rules::{Credential, Rules};
use crate::address_guard::{AddressGuard, ResolveError};
use crate::host_pattern::host_name;
use crate::{HttpClient, Url};
use http::{StatusCode, Uri};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Ports that every job may use on public hosts.
const WEB_PORTS: [u16; 2] = [80, 443];

/// Why a request of a job is refused: the status of the answer, and its text.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) reason: String,
}

impl Refused {
    pub(super) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    fn forbidden(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, reason)
    }

    fn unclear(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }
}

/// The host and port that a job requests.
#[derive(Debug)]
pub(super) struct Target {
    host: String,
    port: u16,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Target {
    pub(super) fn from_url(url: &Url) -> Result<Self, Refused> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::unclear("addresses with a user are not taken"));
        }
        let host = host_name(url).ok_or_else(|| Refused::unclear("there is no host in the address"))?;
        let port = url.port_or_known_default().ok_or_else(|| Refused::unclear("there is no port"))?;
        Ok(Self { host: host.to_owned(), port })
    }

    /// The target of `CONNECT host:port`.
    pub(super) fn from_connect(uri: &Uri) -> Result<Self, Refused> {
        let unclear = || Refused::unclear("CONNECT needs host:port");
        let authority =
            uri.authority().filter(|authority| authority.port_u16().is_some()).ok_or_else(unclear)?;
        let url = Url::parse(&format!("http://{authority}/")).map_err(|_unread| unclear())?;
        Self::from_url(&url)
    }
}

#[derive(Debug)]
pub(super) struct ProxySession {
    pub(super) rules: Arc<Rules>,
    pub(super) budget: Arc<Budget>,
    guard: AddressGuard,
    /// The client for requests with a credential, with the guard of the session.
    pub(super) secure: HttpClient,
    report: Mutex<Report>,
}

impl ProxySession {
    pub(super) fn new(rules: Arc<Rules>) -> Self {
        let guard = AddressGuard::new(&rules.private);
        Self::guarded_by(guard, rules)
    }

    pub(super) fn guarded_by(guard: AddressGuard, rules: Arc<Rules>) -> Self {
        let budget = Arc::new(Budget::new(rules.max_bytes));
        let secure = HttpClient::relaying(guard.clone());
        Self { rules, budget, guard, secure, report: Mutex::default() }
    }

    /// The credential for a URL that the job requests in the clear, and the `https` URL to forward it to.
    pub(super) fn credential(&self, url: &Url) -> Option<(&Credential, Url)> {
        let mut secure = url.clone();
        // Neither fails for a URL with a host.
        secure.set_scheme("https").ok()?;
        secure.set_port(url.port().filter(|port| *port != 443)).ok()?;
        let credential = self.rules.credentials.iter().find(|credential| credential.is_for(&secure))?;
        Some((credential, secure))
    }

    pub(super) fn has_bytes(&self) -> Result<(), Refused> {
        if self.budget.is_over() {
            let limit = self.rules.max_bytes;
            return Err(Refused::forbidden(format!("this job has used up its {limit} bytes of network")));
        }
        Ok(())
    }

    /// The addresses of the target, if the job may connect to it. Only these may be connected to.
    pub(super) async fn authorise(&self, target: &Target) -> Result<Vec<SocketAddr>, Refused> {
        self.has_bytes()?;
        let Target { host, port } = target;
        let listed = self.listed(target)?;
        let found = self.guard.addresses(host).await.map_err(|error| match error {
            ResolveError::NotAllowed(_) => Refused::forbidden(format!("{host} is not at a public address")),
            ResolveError::Lookup(_) | ResolveError::Timeout | ResolveError::NoAddress => {
                Refused::new(StatusCode::BAD_GATEWAY, format!("{host}: {error}"))
            }
        })?;
        let opened = found.iter().all(|address| self.guard.is_allow_listed(*address));
        if !listed && !opened && !WEB_PORTS.contains(port) {
            return Err(Refused::forbidden(format!("port {port} of {host} is not open to jobs")));
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, *port)).collect())
    }

    /// Whether a rule names exactly this port; an error if no rule names the host.
    fn listed(&self, Target { host, port }: &Target) -> Result<bool, Refused> {
        let Some(patterns) = &self.rules.hosts else { return Ok(false) };
        let of_host: Vec<_> = patterns.iter().filter(|pattern| pattern.has_host(host)).collect();
        if of_host.iter().any(|pattern| pattern.port() == Some(*port)) {
            return Ok(true);
        }
        if of_host.iter().any(|pattern| pattern.port().is_none()) {
            return Ok(false);
        }
        Err(Refused::forbidden(format!("{host}:{port} is not among the hosts that this job may reach")))
    }

    pub(super) fn note_reached(&self, target: &Target) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        push_new(&mut report.hosts, target, Report::HOSTS);
    }

    pub(super) fn note_refused(&self, target: &Target) {
        tracing::debug!(%target, "a job was not let to a host");
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        push_new(&mut report.refused, target, Report::REFUSED);
    }

    pub(super) fn report(&self) -> Report {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        Report { bytes: self.budget.spent(), ..report.clone() }
    }
}

fn push_new(list: &mut Vec<String>, target: &Target, most: usize) {
    let name = target.to_string();
    if list.len() < most && !list.contains(&name) {
        list.push(name);
    }
}
