//! What option structs are made of besides the types of [`gantry_core::options`]: secrets and web addresses.

pub use gantry_core::options::{
    Approver, DAY, HOUR, Limit, Millis, Name, NotEmpty, OneOrMore, Pairs, PathText, Positive, Title, ToolKey,
    read_as, read_list, read_map, read_some,
};
use gantry_core::{inline_schema, option_texts};
use std::fmt;
use url::Url;

/// A text that is never shown: not by `Debug`, not in errors, not by `gantry config show`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        gantry_core::options::read_text(input, "text; put it in quotes", true, |_| true).map(Self)
    }
}

// `writeOnly` is the keyword for what must not be shown.
inline_schema!(Secret, |_| schemars::json_schema!({ "type": "string", "writeOnly": true }));

option_texts! {
    /// A key of another service.
    secret Key = "text without spaces", |text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    /// A key that may hold spaces, such as `Token abc`.
    secret CredentialText = "text that is not empty, on one line",
        |text| !text.trim().is_empty() && !text.contains(char::is_control);
    /// A password, which may be empty.
    secret Password = "text on one line", |text| !text.contains(char::is_control);
    /// A secret that messages are signed with; a shorter one can be guessed.
    secret SigningSecret = "text of at least 16 characters", |text| text.chars().count() >= 16;
    /// The value of an environment variable, or of another text that is sent as it is.
    secret PlainValue = "text; put it in quotes", |text| !text.contains('\0');
    secret HeaderValue = "text on one line; put it in quotes",
        |text| text.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 127));
    plain HeaderName = "the name of a header", is_header_name;
    plain EnvName = "the name of a variable", |text| !text.is_empty() && !text.contains(['=', '\0']);
    /// A web address. It may hold a key, so it is not quoted.
    address WebUrl =
        "an http:// or https:// address without user and password, such as https://example.com/path", is_web_url;
    plain Origin = "an origin without path and wildcard, such as https://app.example.com", is_origin;
    plain Host = "a host name without scheme, port and wildcard, such as gantry.example.com", is_host;
}

/// Whether a text is a web address without user and password.
pub fn is_web_url(text: &str) -> bool {
    is_url(text, &["http", "https"])
}

/// Whether a text is an address with one of these schemes, without user and password.
pub fn is_url(text: &str, schemes: &[&str]) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_known = schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
    // The parser also finds a user behind further slashes.
    let has_user = |url: &Url| !url.username().is_empty() || url.password().is_some();
    let has_host = |url: &Url| url.host_str().is_some_and(|host| !host.is_empty());
    is_known
        && is_plain
        && !authority.contains('@')
        && Url::parse(text).is_ok_and(|url| has_host(&url) && !has_user(&url))
}

fn is_header_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn is_host(text: &str) -> bool {
    let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
                && !text.starts_with(['.', '-'])
        }
    }
}

fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let (name, port) = match host.rsplit_once(':') {
        // The colons of an IPv6 address stand before its bracket.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && is_host(name)
        && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Example {
        token: Secret,
        #[serde(default)]
        timeout_ms: Millis<1000, DAY>,
    }

    #[test]
    fn a_secret_is_read_and_not_shown() {
        let read: Example = serde_json::from_str(r#"{"token":"hunter2","timeoutMs":1500}"#).unwrap();
        assert_eq!((read.token.expose(), read.timeout_ms.get().as_millis()), ("hunter2", 1500));
        assert!(!format!("{read:?}").contains("hunter2"));
        let error = serde_json::from_str::<SigningSecret>("\"hunter2\"").unwrap_err().to_string();
        assert!(error.contains("at least 16 characters") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_schema_says_what_files_hold() {
        let schema = schemars::schema_for!(Example);
        assert_eq!(schema.pointer("/properties/token/writeOnly").unwrap(), true);
        assert_eq!(schema.pointer("/properties/timeoutMs/default").unwrap(), 1000);
    }

    #[test]
    fn addresses_have_a_scheme_and_a_host_and_no_user() {
        for good in [
            "http://localhost:1/mcp",
            "https://a.example/mcp?x=1",
            "http://[::1]:8000",
            "HTTPS://server.smithery.ai/@owner/name/mcp",
            "https://unpkg.com/pkg@1.2.3/openapi.json",
        ] {
            assert!(is_web_url(good), "{good}");
        }
        for bad in [
            "",
            "localhost:1",
            "ftp://a/",
            "ws://a/",
            "http://",
            "https://u:p@a/",
            "https://@a/",
            "https:///u:p@a/",
            "https://a\\@b/",
            "/mcp",
            "http://a b/",
        ] {
            assert!(!is_web_url(bad), "{bad}");
        }
        assert!(is_origin("http://[::1]:80") && is_origin("https://a") && is_host("[::1]"));
        for bad in ["*", "null", "https://a/", "https://*.a", "https://a:99999"] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
