//! The first words to a server, in either era, and what its answer says about it.

use super::{
    link::{Call, Link, Trouble},
    message, meta,
    types::{About, Failure},
};
use crate::{ErrorObject, Version, error::code, exchange::NoClient, raw};
use http::{HeaderMap, HeaderValue};
use std::{borrow::Cow, sync::Arc};
use tokio_util::sync::CancellationToken;

/// Why a handshake failed.
#[derive(Debug)]
pub(super) enum Verdict {
    /// This era is not spoken here; another one may be.
    OtherEra(String),
    /// The server cannot be used at the moment, whatever it speaks.
    Down(Failure),
}

impl From<Verdict> for Failure {
    /// A handshake runs nothing, so nothing is lost.
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Down(failure @ Self::Canceled) => failure,
            Verdict::Down(failure) => Self::Unavailable(failure.to_string()),
            Verdict::OtherEra(reason) => Self::Unavailable(reason),
        }
    }
}

/// Asks a server of the newer era what it is.
pub(super) async fn discover(link: &Link) -> Result<About, Verdict> {
    let params = meta::modern("{}", None, None, link.dispatcher().target.declared, None);
    let mut outcome = say(link, "server/discover", &params).await;
    if let Err(Trouble::Status(refusal)) = &outcome
        && refusal.error.as_ref().is_some_and(speaks_modern)
    {
        outcome = say(link, "server/discover", &params).await;
    }
    let result = outcome.map_err(judge_discover)?;
    about_modern(&result).ok_or_else(|| {
        Verdict::OtherEra(format!(
            "the server does not offer {} to server/discover",
            Version::MODERN.as_str()
        ))
    })
}

/// Shakes hands with a server of the older era. [`initialized`] follows when that is the era to speak.
pub(super) async fn initialize(link: &Link) -> Result<About, Verdict> {
    let capabilities = meta::declared_capabilities(link.dispatcher().target.declared);
    let version = raw::quoted(Version::LAST_LEGACY.as_str());
    let members =
        [("protocolVersion", &*version), ("capabilities", &*capabilities), ("clientInfo", meta::CLIENT_INFO)];
    let result = say(link, "initialize", &raw::object(members)).await.map_err(judge_initialize)?;
    let said = raw::string_member(&result, "protocolVersion").unwrap_or_default();
    match Version::parse(&said) {
        Some(version) if version.is_modern() => Err(Verdict::OtherEra(format!("the server wants {said}"))),
        Some(version) => Ok(about(version, &result, raw::member(&result, "serverInfo"))),
        None => {
            let what = format!("the server speaks the protocol version {said:?}, which is not known");
            Err(Verdict::Down(Failure::Unavailable(what)))
        }
    }
}

/// Tells a server of the older era that it can start.
pub(super) async fn initialized(link: &Link) -> Result<(), Failure> {
    Ok(link.notify(message::notification("notifications/initialized", "{}")).await?)
}

async fn say(link: &Link, method: &'static str, params: &str) -> Result<String, Trouble> {
    let mut headers = HeaderMap::new();
    if method != "initialize" {
        headers.insert("mcp-method", HeaderValue::from_static(method));
    }
    let cancel = CancellationToken::new();
    let audience = Arc::new(NoClient::default());
    link.call(&Call { method, params, headers, audience, own: true, cancel: &cancel }).await
}

fn about(version: Version, result: &str, server_info: Option<&str>) -> About {
    let capabilities =
        raw::member(result, "capabilities").filter(|text| text.starts_with('{')).unwrap_or("{}");
    About {
        version,
        capabilities: capabilities.to_owned(),
        server_info: server_info.filter(|text| text.starts_with('{')).map(str::to_owned),
        instructions: raw::string_member(result, "instructions").map(Cow::into_owned),
    }
}

/// What a discovery says; `None` if the version that Gantry speaks is not offered.
fn about_modern(result: &str) -> Option<About> {
    let versions = raw::member(result, "supportedVersions").and_then(raw::elements)?;
    let spoken =
        versions.iter().any(|version| raw::string(version).as_deref() == Some(Version::MODERN.as_str()));
    let in_meta = || raw::member(raw::member(result, "_meta")?, "io.modelcontextprotocol/serverInfo");
    let server_info = in_meta().or_else(|| raw::member(result, "serverInfo"));
    spoken.then(|| about(Version::MODERN, result, server_info))
}

/// Whether an error says that the newer era is spoken here after all.
pub(super) fn speaks_modern(error: &ErrorObject) -> bool {
    let supported = || raw::elements(raw::member(error.data.as_deref()?, "supported")?);
    error.code == code::UNSUPPORTED_VERSION
        && supported().unwrap_or_default().contains(&&*raw::quoted(Version::MODERN.as_str()))
}

fn judge_discover(trouble: Trouble) -> Verdict {
    let (status, error) = match trouble {
        Trouble::Status(refusal) if refusal.error.is_none() || refusal.status.is_server_error() => {
            let other_era = matches!(refusal.status.as_u16(), 400..=499)
                && !matches!(refusal.status.as_u16(), 401 | 403 | 408 | 429);
            let failure = Failure::from(Trouble::Status(refusal));
            return if other_era { Verdict::OtherEra(failure.to_string()) } else { Verdict::Down(failure) };
        }
        Trouble::Status(refusal) => (Some(refusal.status), refusal.error),
        Trouble::Failure(Failure::Answered(error)) => (None, Some(error)),
        // Some servers of the older era hang up on a method that they do not know.
        Trouble::Failure(Failure::Lost(reason)) => return Verdict::OtherEra(reason),
        Trouble::Failure(failure) => return Verdict::Down(failure),
    };
    let access = status.is_some_and(|status| matches!(status.as_u16(), 401 | 403));
    match error {
        Some(error) if access || matches!(error.code, code::HEADER_MISMATCH | code::MISSING_CAPABILITY) => {
            Verdict::Down(Failure::Answered(error))
        }
        Some(error) => Verdict::OtherEra(error.to_string()),
        None => Verdict::OtherEra("the server refused server/discover".into()),
    }
}

fn judge_initialize(trouble: Trouble) -> Verdict {
    match trouble {
        Trouble::Status(refusal) => {
            let other_era = matches!(refusal.status.as_u16(), 400 | 404 | 405 | 406 | 415)
                || refusal.error.as_ref().is_some_and(|error| error.code == code::UNSUPPORTED_VERSION);
            let failure = Failure::from(Trouble::Status(refusal));
            if other_era { Verdict::OtherEra(failure.to_string()) } else { Verdict::Down(failure) }
        }
        // Whoever does not know `initialize` must be of the newer era.
        Trouble::Failure(Failure::Answered(error))
            if matches!(error.code, code::UNSUPPORTED_VERSION | code::METHOD_NOT_FOUND) =>
        {
            Verdict::OtherEra(error.to_string())
        }
        Trouble::Failure(failure) => Verdict::Down(failure),
    }
}
