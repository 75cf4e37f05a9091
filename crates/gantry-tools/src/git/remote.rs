//! Where a push goes: the addresses that are taken, what they show, and the credential that the proxy adds on the way.

use crate::command::runner::NetworkAccess;
use crate::failure::{self, Result};
use crate::text::display_text;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gantry_egress::{Url, display_url};
use gantry_provider::options::Secret;
use gantry_provider::redact::Redactor;
use std::collections::BTreeMap;

/// The user that stands before a token, where only a token is given.
const TOKEN_USER: &str = "x-access-token";

/// Reads the address that a repository gives a remote. Only one address, which goes through the proxy, is taken.
pub(super) fn parse_address(text: &str) -> Result<Url> {
    let is_http = text.starts_with("http://") || text.starts_with("https://");
    let is_one = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    match Url::parse(text) {
        Ok(url) if is_http && is_one && url.has_host() => Ok(url),
        Ok(_) | Err(_) => Err(failure::denied(
            "the sandbox reaches remotes at one https or http address, and none by ssh, by the protocol git, by a \
             program or in a folder of this machine; let a person give the remote an https address, with \
             `git remote set-url --push`",
        )),
    }
}

/// An address without secrets.
pub(super) fn display(url: &Url) -> String {
    display_text(&display_url(url.as_str()))
}

/// What git said, without the secrets that it may repeat from the address.
pub(super) fn redact(url: &Url, said: &str) -> String {
    let mut redactor = Redactor::default();
    redactor.add_user(url);
    redactor.mask(said.replace(url.as_str(), &display(url)))
}

/// The URL that git is given, and what it may reach: this host, and nothing else. With a credential git speaks to the
/// proxy in the clear, which speaks TLS to the server and adds the credential; without, git speaks TLS itself.
pub(super) fn route(url: &Url, credentials: &BTreeMap<String, Secret>) -> (String, NetworkAccess) {
    let plain = || {
        let mut url = url.clone();
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
        url.set_scheme("http").ok()?;
        Some(url.to_string())
    };
    let port = url.port_or_known_default().unwrap_or_default();
    let hosts = Some(vec![format!("{}:{port}", url.host_str().unwrap_or_default())]);
    match authorization(url, credentials).zip(plain()) {
        Some((value, plain)) if url.scheme() == "https" => {
            // For this repository, and nothing else of the server.
            let scope = format!("{}{}", url.origin().ascii_serialization(), url.path());
            (plain, NetworkAccess { hosts, credentials: vec![(scope, value.into())] })
        }
        Some(_) | None => (url.to_string(), NetworkAccess { hosts, credentials: Vec::new() }),
    }
}

/// The value of the header Authorization that the origin of the address wants to see, if that is known.
fn authorization(url: &Url, credentials: &BTreeMap<String, Secret>) -> Option<String> {
    let is_own = |origin: &str| Url::parse(origin).is_ok_and(|it| it.origin() == url.origin());
    let (_origin, secret) = credentials.iter().find(|(origin, _secret)| is_own(origin))?;
    let secret = secret.expose();
    let pair = if secret.contains(':') { secret.to_owned() } else { format!("{TOKEN_USER}:{secret}") };
    Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
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
            let fault = parse_address(text).unwrap_err();
            assert_eq!(fault.error.code.as_str(), "PERMISSION_DENIED", "{text}");
            assert!(fault.error.message.contains("https"), "{text}: {fault:?}");
        }
    }

    #[test]
    fn secrets_in_an_address_are_used_and_not_shown() {
        let address = parse_address("https://me:secret@example.com:8443/a/b.git?token=x").unwrap();
        assert_eq!(display(&address), "https://example.com:8443/a/b.git");
        let (url, access) = route(&address, &[("https://example.com".to_owned(), "t".into())].into());
        assert_eq!(url, "https://me:secret@example.com:8443/a/b.git?token=x");
        assert_eq!(
            (access.hosts.unwrap(), access.credentials.len()),
            (vec!["example.com:8443".to_owned()], 0)
        );
    }

    #[test]
    fn secrets_of_an_address_are_masked_in_what_git_says() {
        let address = parse_address("https://me:s%2Fecret@example.com/a.git?token=x").unwrap();
        let said = "fatal: 'https://me:s%2Fecret@example.com/a.git?token=x' me:s%2Fecret@ s/ecret";
        assert_eq!(redact(&address, said), "fatal: 'https://example.com/a.git' [redacted]@ [redacted]");
    }

    #[test]
    fn a_credential_goes_to_its_origin_alone_and_never_into_the_address() {
        let credentials = [
            ("https://example.com".to_owned(), "tok".into()),
            ("https://other.org:444/".to_owned(), "me:pw".into()),
        ]
        .into();
        let of = |text: &str| {
            let (url, access) = route(&parse_address(text).unwrap(), &credentials);
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
}
