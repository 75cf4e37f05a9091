//! Where a push goes: the addresses that are taken, what they show, and the credential that the proxy adds on the way.

use crate::command::runner::NetworkAccess;
use crate::failure;
use crate::text::display_text;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gantry_core::Fault;
use gantry_egress::{Url, display_url};
use gantry_provider::options::Secret;
use gantry_provider::redact::Redactor;
use std::collections::BTreeMap;
use std::fmt;

/// The user that stands before a token, where only a token is given.
const TOKEN_USER: &str = "x-access-token";

/// The address of a remote that can be pushed to.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    url: Url,
    /// As the repository has it, including secrets.
    pub(super) text: String,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display())
    }
}

impl Address {
    /// Reads what a repository says. Only one address, which goes through the proxy, is taken.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let is_http = text.starts_with("http://") || text.starts_with("https://");
        let is_one = !text.contains(|c: char| c.is_whitespace() || c.is_control());
        match Url::parse(text) {
            Ok(url) if is_http && is_one && url.has_host() => Ok(Self { url, text: text.to_owned() }),
            Ok(_) | Err(_) => Err(failure::denied(
                "the sandbox reaches remotes at one https or http address, and none by ssh, by the protocol git, by a \
                 program or in a folder of this machine; let a person give the remote an https address, with \
                 `git remote set-url --push`",
            )),
        }
    }

    /// The address without secrets.
    pub(super) fn display(&self) -> String {
        display_text(&display_url(self.url.as_str()))
    }

    /// What git said, without the secrets that it may repeat from the address.
    pub(super) fn redact(&self, said: &str) -> String {
        let mut redactor = Redactor::default();
        redactor.add_user(&self.url);
        redactor.mask(said.replace(&self.text, &self.display()))
    }

    /// The URL that git is given, and what it may reach: this host, and nothing else. With a credential git speaks to the
    /// proxy in the clear, which speaks TLS to the server and adds the credential; without, git speaks TLS itself.
    pub(super) fn route(&self, credentials: &BTreeMap<String, Secret>) -> (String, NetworkAccess) {
        let plain = || {
            let mut url = self.url.clone();
            url.set_username("").ok()?;
            url.set_password(None).ok()?;
            url.set_scheme("http").ok()?;
            Some(url.to_string())
        };
        let port = self.url.port_or_known_default().unwrap_or_default();
        let hosts = Some(vec![format!("{}:{port}", self.url.host_str().unwrap_or_default())]);
        match self.authorization(credentials).zip(plain()) {
            Some((value, url)) if self.url.scheme() == "https" => {
                // For this repository, and nothing else of the server.
                let scope = format!("{}{}", self.url.origin().ascii_serialization(), self.url.path());
                (url, NetworkAccess { hosts, credentials: vec![(scope, value.into())] })
            }
            Some(_) | None => (self.text.clone(), NetworkAccess { hosts, credentials: Vec::new() }),
        }
    }

    /// The value of the header Authorization that the origin of the address wants to see, if that is known.
    fn authorization(&self, credentials: &BTreeMap<String, Secret>) -> Option<String> {
        let is_own = |origin: &str| Url::parse(origin).is_ok_and(|it| it.origin() == self.url.origin());
        let (_origin, secret) = credentials.iter().find(|(origin, _secret)| is_own(origin))?;
        let secret = secret.expose();
        let pair = if secret.contains(':') { secret.to_owned() } else { format!("{TOKEN_USER}:{secret}") };
        Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
    }
}

/// The name under which a repository keeps what it knows of a branch of a remote, by the remote's fetch specs.
pub(super) fn tracking_ref(specs: &[String], reference: &str) -> Option<String> {
    specs.iter().find_map(|spec| {
        let (from, to) = spec.strip_prefix('+').unwrap_or(spec).split_once(':')?;
        let to = match from.split_once('*') {
            None => (from == reference).then(|| to.to_owned()),
            Some((begin, end)) => {
                let name = reference.strip_prefix(begin)?.strip_suffix(end)?;
                Some(to.replacen('*', name, 1))
            }
        };
        to.filter(|to| to.starts_with("refs/remotes/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_go_through_the_proxy_are_taken() {
        for text in [
            "git@github.com:me/x.git",
            "ssh://git@github.com/me/x.git",
            "git://h/x",
            "file:///srv/x.git",
            "/srv/x.git",
            "../x.git",
            "./a:b",
            "ext::sh -c id",
            "ext::id",
            "foo::https://h/x",
            "https:h/x",
            "ftp://h/x",
            "https://h/x\nhttps://i/x",
            " https://h/x",
            "https://",
            "",
        ] {
            let fault = Address::parse(text).unwrap_err();
            assert_eq!(fault.error.code.as_str(), "PERMISSION_DENIED", "{text}");
            assert!(fault.error.message.contains("https"), "{text}: {fault:?}");
        }
    }

    #[test]
    fn secrets_in_an_address_are_used_and_not_shown() {
        let address = Address::parse("https://me:secret@example.com:8443/a/b.git?token=x").unwrap();
        assert_eq!(address.display(), "https://example.com:8443/a/b.git");
        assert_eq!(format!("{address:?}"), "https://example.com:8443/a/b.git");
        let (url, access) = address.route(&[("https://example.com".to_owned(), "t".into())].into());
        assert_eq!(url, "https://me:secret@example.com:8443/a/b.git?token=x");
        assert_eq!(
            (access.hosts.unwrap(), access.credentials.len()),
            (vec!["example.com:8443".to_owned()], 0)
        );
    }

    #[test]
    fn secrets_of_an_address_are_masked_in_what_git_says() {
        let address = Address::parse("https://me:s%2Fecret@example.com/a.git?token=x").unwrap();
        let said = "fatal: 'https://me:s%2Fecret@example.com/a.git?token=x' me:s%2Fecret@ s/ecret";
        assert_eq!(address.redact(said), "fatal: 'https://example.com/a.git' [redacted]@ [redacted]");
    }

    #[test]
    fn a_credential_goes_to_its_origin_alone_and_never_into_the_address() {
        let credentials = [
            ("https://example.com".to_owned(), "tok".into()),
            ("https://other.org:444/".to_owned(), "me:pw".into()),
        ]
        .into();
        let of = |text: &str| {
            let (url, access) = Address::parse(text).unwrap().route(&credentials);
            let mut credentials = access.credentials.into_iter();
            (url, credentials.next().map(|(scope, value)| (scope, value.expose().to_owned())))
        };
        let basic = |pair: &str| format!("Basic {}", BASE64_STANDARD.encode(pair));
        let (url, credential) = of("https://old:pw@example.com/x.git");
        assert_eq!(url, "http://example.com/x.git");
        assert_eq!(credential, Some(("https://example.com/x.git".into(), basic("x-access-token:tok"))));
        let (url, credential) = of("https://other.org:444/x");
        assert_eq!(url, "http://other.org:444/x");
        assert_eq!(credential, Some(("https://other.org:444/x".into(), basic("me:pw"))));
        for other in ["http://example.com/x", "https://example.com:444/x", "https://sub.example.com/x"] {
            assert_eq!(of(other), (other.to_owned(), None));
        }
    }

    #[test]
    fn fetch_specs_name_what_is_known_of_a_branch() {
        let of = |specs: &[&str], name: &str| {
            tracking_ref(&specs.iter().map(|spec| (*spec).to_owned()).collect::<Vec<_>>(), name)
        };
        let all = "+refs/heads/*:refs/remotes/origin/*";
        assert_eq!(of(&[all], "refs/heads/a/b").as_deref(), Some("refs/remotes/origin/a/b"));
        let one = "refs/heads/main:refs/remotes/o/main";
        assert_eq!(of(&[one, all], "refs/heads/main").as_deref(), Some("refs/remotes/o/main"));
        assert_eq!(of(&[one], "refs/heads/other"), None);
        assert_eq!(of(&["+refs/*:refs/*", "refs/heads/x", "nonsense"], "refs/heads/x"), None);
    }
}
