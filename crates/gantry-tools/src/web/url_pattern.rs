//! URLs as the allow-list names them: `example.com`, `*.example.com`, `https://docs.rs/tokio/*`.

use gantry_egress::Url;
use gantry_egress::host_pattern::{HostPattern, hides_separators, host_name};
use serde::de::{Deserialize, Deserializer, Error, Unexpected};

const HOST: &str = "an address with a host, such as example.com, *.example.com for all below it, or * for any, perhaps with :port";
const PATH: &str =
    "an address whose path has neither ? nor # nor an encoded dot or slash, and * only at its end";

/// The URLs that a line of the allow-list means.
///
/// Without a scheme it means both, without a port the usual one, without a path every path. A path is that very path,
/// unless it ends with `*`. Patterns are compared with what browsers would ask for, so no spelling of another URL
/// matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPattern {
    scheme: Option<String>,
    host: HostPattern,
    /// Empty for any path.
    path: String,
    /// Whether paths that only begin with `path` match too.
    is_prefix: bool,
}

impl UrlPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The text is no pattern; what it must be, in words for the author of the configuration. They do not quote it: it may
    /// come from a variable.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme.to_owned()), rest),
            Some(_) => return Err("an address with http:// or https://, or without a scheme"),
            None => (None, text),
        };
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = HostPattern::parse(host).map_err(|_unread| HOST)?;
        let (path, is_prefix) = path.strip_suffix('*').map_or((path, path.is_empty()), |start| (start, true));
        // Spelled as in a URL, without dots.
        let spelled = Url::parse(&format!("http://x{path}")).ok();
        let is_plain = !path.contains(['*', '?', '#']) && !hides_separators(path);
        let path = match spelled.filter(|_| is_plain) {
            Some(_) if is_prefix && matches!(path, "" | "/") => String::new(),
            Some(url) => url.path().to_owned(),
            None => return Err(PATH),
        };
        Ok(Self { scheme, host, path, is_prefix })
    }

    /// Whether it means this URL.
    pub(super) fn matches(&self, url: &Url) -> bool {
        let scheme = match self.scheme.as_deref() {
            Some(scheme) => scheme == url.scheme(),
            None => matches!(url.scheme(), "http" | "https"),
        };
        let port = match self.host.port() {
            Some(port) => url.port_or_known_default() == Some(port),
            None => url.port().is_none(),
        };
        let host = host_name(url).is_some_and(|name| self.host.has_host(name));
        scheme && port && host && self.matches_path(url.path())
    }

    fn matches_path(&self, path: &str) -> bool {
        if self.path.is_empty() || !self.is_prefix {
            return self.path.is_empty() || path == self.path;
        }
        path.starts_with(&self.path) && !hides_separators(path)
    }

    /// Whether it means this host at this very port.
    pub(super) fn names_port(&self, url: &Url) -> bool {
        self.host.port().is_some() && self.matches(url)
    }
}

impl<'de> Deserialize<'de> for UrlPattern {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        Self::parse(&text).map_err(|expected| D::Error::invalid_value(Unexpected::Str(&text), &expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let parsed = UrlPattern::parse(pattern).unwrap();
        for url in yes {
            assert!(parsed.matches(&Url::parse(url).unwrap()), "{url} is in {pattern}");
        }
        for url in no {
            assert!(!parsed.matches(&Url::parse(url).unwrap()), "{url} is not in {pattern}");
        }
    }

    #[test]
    fn what_is_left_out_is_left_open() {
        check(
            "example.com",
            &[
                "https://example.com/",
                "http://example.com/a?b#c",
                "https://EXAMPLE.com./x",
                "https://example.com:443/",
            ],
            &[
                "https://example.com:8443/",
                "https://www.example.com/",
                "https://example.com.evil.tld/",
                "https://evilexample.com/",
                "https://example.com@evil.tld/",
                "https://evil.tld\\@example.com/",
                "https://evil.tld/example.com",
                "https://evil.tld?example.com",
                "https://exаmple.com/",
                "https://example.com%2eevil.tld/",
                "ftp://example.com/",
            ],
        );
        check(
            "https://example.com:8443",
            &["https://example.com:8443/x"],
            &["https://example.com/", "http://example.com:8443/"],
        );
        check(
            "*.example.com",
            &["https://a.b.example.com/"],
            &["https://example.com/", "https://aexample.com/"],
        );
        check(
            "http://*/*",
            &["http://anywhere.test/x"],
            &["https://anywhere.test/x", "http://anywhere.test:81/"],
        );
    }

    #[test]
    fn a_path_holds_after_its_dots_are_gone() {
        check(
            "https://docs.rs/tokio/*",
            &["https://docs.rs/tokio/", "https://docs.rs/tokio/1/a?b=..", "https://docs.rs/x/../tokio/1"],
            &[
                "https://docs.rs/tokio",
                "https://docs.rs/tokio-util/",
                "https://docs.rs/tokio/../serde/",
                "https://docs.rs/tokio/%2e%2e/serde/",
                "https://docs.rs/tokio/.%2E/serde/",
                "https://docs.rs/tokio/a%2f..%2fserde",
                "https://docs.rs/tokio/a%5c..%5cserde",
                "https://docs.rs/tokio/..\\serde",
                "https://docs.rs/TOKIO/",
            ],
        );
        check("https://a.test/one", &["https://a.test/one?x"], &["https://a.test/one/", "https://a.test/"]);
        check("https://a.test/v*", &["https://a.test/v1/x"], &["https://a.test/x"]);
        check("https://a.test/a b/*", &["https://a.test/a%20b/c"], &[]);
    }

    #[test]
    fn a_line_that_is_no_pattern_says_why() {
        for (bad, words) in [
            ("ftp://example.com", "http:// or https://"),
            ("file:///etc", "http:// or https://"),
            ("", "with a host"),
            ("https://", "with a host"),
            ("https://user@example.com/", "with a host"),
            ("exa*mple.com", "with a host"),
            ("https://a.test/x*y", "* only at its end"),
            ("https://a.test/?q=*", "neither ?"),
            ("https://a.test/%2e%2e/*", "encoded dot"),
        ] {
            let error = UrlPattern::parse(bad).unwrap_err();
            assert!(error.contains(words), "{bad}: {error}");
        }
    }
}
