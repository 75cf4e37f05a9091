//! Host patterns in rules: `example.com`, `*.example.com`, `*`, each with an optional port.
//!
//! Patterns and the URLs they are compared with pass the same URL parser, so that both are spelled alike.

use crate::Url;

/// A text that is no host pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no host; write example.com, *.example.com for all below it, or * for any, perhaps with :port"
)]
pub struct InvalidHostPattern(String);

/// A host, or several by a wildcard, with an optional port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// The whole name, or what longer names end with: nothing, or a suffix that begins with a dot.
    name: String,
    is_exact: bool,
    port: Option<u16>,
}

impl HostPattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, InvalidHostPattern> {
        let invalid = || InvalidHostPattern(text.to_owned());
        // A plain label stands in for the wildcard while the URL parser reads the rest.
        let (sample, below) = match text.strip_prefix("*.") {
            Some(rest) => (format!("x.{rest}"), true),
            None => (text.to_owned(), false),
        };
        let any = sample == "*" || sample.starts_with("*:");
        let sample = if any { sample.replacen('*', "x", 1) } else { sample };
        if sample.contains(['*', '/', '\\', '?', '#', '@']) || sample.contains(char::is_whitespace) {
            return Err(invalid());
        }
        // The parser drops the default port of a scheme, so the other scheme shows it.
        let read = |scheme: &str| Url::parse(&format!("{scheme}://{sample}/")).map_err(|_unread| invalid());
        let (plain, secure) = (read("http")?, read("https")?);
        let port = plain.port().or(secure.port());
        let host = host_name(&plain).ok_or_else(invalid)?;
        let name = match (any, below) {
            (true, _) => "",
            (_, true) => host.strip_prefix('x').filter(|rest| rest.len() > 1).ok_or_else(invalid)?,
            (false, false) => host,
        };
        Ok(Self { name: name.to_owned(), is_exact: !any && !below, port })
    }

    /// Whether the pattern matches this host, spelled as by [`host_name`].
    #[must_use]
    pub fn has_host(&self, host: &str) -> bool {
        host.ends_with(&self.name) && (host.len() == self.name.len()) == self.is_exact
    }

    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

/// The host of a URL without a final dot: `example.com.` is `example.com`.
#[must_use]
pub fn host_name(url: &Url) -> Option<&str> {
    let host = url.host_str()?;
    Some(host.strip_suffix('.').unwrap_or(host)).filter(|host| !host.is_empty())
}

/// Whether a path has percent-encoded dots or separators. Servers differ in how they read those, so a rule about a path
/// prefix cannot tell where such a path leads.
#[must_use]
pub fn hides_separators(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ["%2e", "%2f", "%5c"].iter().any(|hidden| path.contains(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let parsed = HostPattern::parse(pattern).unwrap();
        let host =
            |text: &str| host_name(&Url::parse(&format!("https://{text}/")).unwrap()).unwrap().to_owned();
        for text in yes {
            assert!(parsed.has_host(&host(text)), "{text} is in {pattern}");
        }
        for text in no {
            assert!(!parsed.has_host(&host(text)), "{text} is not in {pattern}");
        }
    }

    #[test]
    fn a_pattern_matches_its_host_and_no_look_alike() {
        let look_alikes = ["example.com.evil.tld", "evilexample.com", "example.com@evil.tld", "exаmple.com"];
        check("example.com", &["example.com", "EXAMPLE.com.", "example.com:8443"], &look_alikes);
        check("Example.COM.", &["example.com"], &["www.example.com"]);
        check("*.example.com", &["a.example.com", "a.b.example.com."], &look_alikes);
        check("*.example.com", &[], &["example.com", "aexample.com", "x.example.org"]);
        check("bücher.example", &["xn--bcher-kva.example", "BÜCHER.example"], &["bucher.example"]);
        check("*", &["example.com", "8.8.8.8", "[2606:4700::1]"], &[]);
        check("127.0.0.1", &["127.1", "0x7f000001", "①②⑦.⓪.⓪.①"], &["127.0.0.2", "127.0.0.1.example"]);
        check("[::1]", &["[0:0:0:0:0:0:0:1]"], &["[::2]", "127.0.0.1"]);
    }

    #[test]
    fn ports_are_read_also_where_they_are_usual() {
        let port = |text: &str| HostPattern::parse(text).unwrap().port();
        assert_eq!(port("example.com"), None);
        assert_eq!(port("example.com:80"), Some(80));
        assert_eq!(port("*.example.com:443"), Some(443));
        assert_eq!(port("*:8080"), Some(8080));
        assert_eq!(port("[::1]:9"), Some(9));
    }

    #[test]
    fn a_text_that_is_no_host_pattern_is_refused() {
        for bad in [
            "",
            ".",
            "*.",
            "a*.example.com",
            "*.*.com",
            "**",
            "example.com/x",
            "u@example.com",
            "a b",
            "example.com:99999",
            "*.0.0.1",
            "[::1",
            "http://example.com",
            "example.com?x",
            "300.1.1.1",
        ] {
            assert!(HostPattern::parse(bad).is_err(), "{bad}");
        }
    }
}
