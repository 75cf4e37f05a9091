//! Where a push goes: the addresses that are taken, what they show, and the credential that the proxy adds on the way.

use super::fault;
use crate::own::shown;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gantry_core::Fault;
use gantry_egress::{Url, display_url};
use gantry_provider::redact::Redactor;
use std::fmt;

/// The user that stands before a token, where only a token is given.
const TOKEN_USER: &str = "x-access-token";

/// What servers want to see, by their origin.
pub(super) struct Credentials(Vec<(String, String)>);

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(origin, _secret)| origin)).finish()
    }
}

impl Credentials {
    pub(super) fn new(credentials: Vec<(String, String)>) -> Self {
        Self(credentials)
    }

    /// The value of the header Authorization for an address, if there is one.
    fn of(&self, url: &Url) -> Option<String> {
        let is_for = |origin: &str| Url::parse(origin).is_ok_and(|origin| origin.origin() == url.origin());
        let (_origin, secret) = self.0.iter().find(|(origin, _secret)| is_for(origin))?;
        let pair = if secret.contains(':') { secret.clone() } else { format!("{TOKEN_USER}:{secret}") };
        Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
    }
}

/// The address of a remote that can be pushed to.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    url: Url,
    /// As the repository has it, including secrets.
    text: String,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

/// How git is to reach an address.
#[derive(Debug)]
pub(super) struct Route {
    /// What git is given.
    pub(super) url: String,
    /// The only place that it may reach: a host and a port.
    pub(super) host: String,
    /// What the proxy adds: the address of the repository, and the value of the header.
    pub(super) credential: Option<(String, String)>,
}

impl Address {
    /// Reads what a repository says. Only what goes through the proxy is taken.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let refuse = |what: &str| {
            Err(fault::denied(format!(
                "the remote is {what}, which the sandbox cannot reach; let a person give it an https address, with \
                 `git remote set-url --push`"
            )))
        };
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return refuse("more than one address, or none that can be read");
        }
        let scheme = text.split_once("://").map(|(scheme, _rest)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") => {}
            Some("ssh" | "git+ssh" | "ssh+git") => return refuse("reached by ssh"),
            Some("git") => return refuse("reached by the protocol git"),
            Some("file") => return refuse("a folder of this machine"),
            Some(other) => return refuse(&format!("reached by {}", shown(other))),
            None if text.contains("::") => return refuse("reached by a program"),
            None if text.contains(':') && !text.starts_with(['/', '.']) => return refuse("reached by ssh"),
            None => return refuse("a folder of this machine"),
        }
        match Url::parse(text) {
            Ok(url) if url.has_host() => Ok(Self { url, text: text.to_owned() }),
            Ok(_) | Err(_) => refuse("at an address that cannot be read"),
        }
    }

    /// The address without secrets.
    pub(super) fn shown(&self) -> String {
        shown(&display_url(self.url.as_str()))
    }

    /// What git said, without the secrets that it may repeat from the address.
    pub(super) fn hide(&self, said: &str) -> String {
        let mut redactor = Redactor::default();
        redactor.add_user(&self.url);
        redactor.mask(said.replace(&self.text, &self.shown()))
    }

    /// All of it, to compare.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The way there. With a credential git speaks to the proxy in the clear, which speaks TLS to the server and adds the
    /// credential; without, git speaks TLS itself.
    pub(super) fn route(&self, credentials: &Credentials) -> Route {
        let (origin, path) = (self.url.origin().ascii_serialization(), self.url.path());
        let plain = || {
            let mut url = self.url.clone();
            url.set_username("").ok()?;
            url.set_password(None).ok()?;
            url.set_scheme("http").ok()?;
            Some(url.to_string())
        };
        let port = self.url.port_or_known_default().unwrap_or_default();
        let host = format!("{}:{port}", self.url.host_str().unwrap_or_default());
        match credentials.of(&self.url).zip(plain()) {
            Some((value, url)) if self.url.scheme() == "https" => {
                // For this repository, and nothing else of the server.
                Route { url, host, credential: Some((format!("{origin}{path}"), value)) }
            }
            Some(_) | None => Route { url: self.text.clone(), host, credential: None },
        }
    }
}

/// The name under which a repository keeps what it knows of a branch of a remote, by the remote's fetch specs.
pub(super) fn tracking(specs: &[String], reference: &str) -> Option<String> {
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
        for (text, why) in [
            ("git@github.com:me/x.git", "ssh"),
            ("ssh://git@github.com/me/x.git", "ssh"),
            ("SSH://h/x", "ssh"),
            ("git://h/x", "protocol git"),
            ("file:///srv/x.git", "folder"),
            ("/srv/x.git", "folder"),
            ("../x.git", "folder"),
            ("./a:b", "folder"),
            (".", "folder"),
            ("ext::sh -c id", "more than one"),
            ("ext::id", "program"),
            ("foo::https://h/x", "reached by"),
            ("ftp://h/x", "ftp"),
            ("https://h/x\nhttps://i/x", "more than one"),
            ("https://", "cannot be read"),
            ("", "folder"),
        ] {
            let fault = Address::parse(text).unwrap_err();
            assert_eq!(fault.error.code.as_str(), "PERMISSION_DENIED", "{text}");
            assert!(
                fault.error.message.contains(why) && fault.error.message.contains("https"),
                "{text}: {fault:?}"
            );
        }
    }

    #[test]
    fn secrets_in_an_address_are_used_and_not_shown() {
        let address = Address::parse("https://me:secret@example.com:8443/a/b.git?token=x").unwrap();
        assert_eq!(address.shown(), "https://example.com:8443/a/b.git");
        assert_eq!(format!("{address:?}"), "https://example.com:8443/a/b.git");
        let route = address.route(&Credentials::new(vec![("https://example.com".into(), "t".into())]));
        assert_eq!(route.url, "https://me:secret@example.com:8443/a/b.git?token=x");
        assert!(route.credential.is_none());
    }

    #[test]
    fn secrets_of_an_address_are_masked_in_what_git_says() {
        let address = Address::parse("https://me:s%2Fecret@example.com/a.git?token=x").unwrap();
        let said = "fatal: 'https://me:s%2Fecret@example.com/a.git?token=x' me:s%2Fecret@ s/ecret";
        assert_eq!(address.hide(said), "fatal: 'https://example.com/a.git' [redacted]@ [redacted]");
    }

    #[test]
    fn a_credential_goes_to_its_origin_alone_and_never_into_the_address() {
        let all = vec![
            ("https://example.com".to_owned(), "tok".to_owned()),
            ("https://other.org:444/".to_owned(), "me:pw".to_owned()),
        ];
        let credentials = Credentials::new(all);
        let of = |text: &str| {
            let route = Address::parse(text).unwrap().route(&credentials);
            (route.url, route.credential)
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
        assert!(!format!("{credentials:?}").contains("tok"));
    }

    #[test]
    fn fetch_specs_name_what_is_known_of_a_branch() {
        let of = |specs: &[&str], name: &str| {
            tracking(&specs.iter().map(|spec| (*spec).to_owned()).collect::<Vec<_>>(), name)
        };
        let all = "+refs/heads/*:refs/remotes/origin/*";
        assert_eq!(of(&[all], "refs/heads/a/b").as_deref(), Some("refs/remotes/origin/a/b"));
        let one = "refs/heads/main:refs/remotes/o/main";
        assert_eq!(of(&[one, all], "refs/heads/main").as_deref(), Some("refs/remotes/o/main"));
        assert_eq!(of(&[one], "refs/heads/other"), None);
        assert_eq!(of(&["+refs/*:refs/*", "refs/heads/x", "nonsense"], "refs/heads/x"), None);
    }
}
