//! Credentials of an API: which ones an operation needs, and where they go in its request.

use super::encode;
use super::options::{ApiOptions, Credential};
use super::token::{TokenRequest, Tokens};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::{Fault, ToolError};
use gantry_openapi::{Import, KeyPlace, Need, Operation, Scheme};
use std::sync::Arc;

/// One credential and its place in a request.
pub(super) enum Shown {
    Header(String, String),
    /// Encoded: `name=value`.
    Query(String),
    /// `name=value`.
    Cookie(String),
}

/// Credentials applied to one request: headers, query parameters, cookies.
#[derive(Default)]
pub(super) struct Badge {
    pub(super) shown: Vec<Shown>,
    /// The OAuth token among them, which can be requested anew.
    pub(super) token: Option<(TokenRequest, Arc<str>)>,
}

/// Whether a credential is what a scheme asks for.
#[must_use]
pub fn fits(scheme: &Scheme, credential: &Credential) -> bool {
    match (credential, scheme) {
        (Credential::Key(_), Scheme::ApiKey { .. })
        | (Credential::Basic { .. }, Scheme::Basic)
        | (Credential::Token(_), Scheme::Bearer | Scheme::ClientCredentials { .. })
        | (Credential::Client { .. }, Scheme::ClientCredentials { .. }) => true,
        // A scheme that asks for a token does not say where to get one.
        (Credential::Client { token_url, .. }, Scheme::Bearer) => token_url.is_some(),
        (
            Credential::Key(_) | Credential::Basic { .. } | Credential::Token(_) | Credential::Client { .. },
            Scheme::ApiKey { .. }
            | Scheme::Basic
            | Scheme::Bearer
            | Scheme::ClientCredentials { .. }
            | Scheme::Unsupported(_),
        ) => false,
    }
}

/// The schemes that an operation may need and that nothing fits.
pub(super) fn missing(operation: &Operation, import: &Import, options: &ApiOptions) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in operation.security.iter().flat_map(|need| &need.0) {
        if !is_met(name, import, options) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn is_met(name: &str, import: &Import, options: &ApiOptions) -> bool {
    let scheme = import.schemes.get(name);
    scheme.zip(options.credentials.get(name)).is_some_and(|(scheme, credential)| fits(scheme, credential))
}

/// What an operation needs, as far as it is there: the first of its needs that can be met. Nothing is better than
/// something only where there is nothing.
pub(super) fn chosen<'a>(
    operation: &'a Operation,
    import: &Import,
    options: &ApiOptions,
) -> Option<&'a Need> {
    let can =
        |need: &&Need| !need.0.is_empty() && need.0.iter().all(|(name, _)| is_met(name, import, options));
    operation.security.iter().find(can)
}

/// Makes the badge for a need.
pub(super) async fn badge(
    need: &Need,
    import: &Import,
    options: &ApiOptions,
    tokens: &Tokens,
) -> Result<Badge, Fault> {
    let mut badge = Badge::default();
    for (name, scopes) in &need.0 {
        let Some((scheme, credential)) = import.schemes.get(name).zip(options.credentials.get(name)) else {
            continue;
        };
        match (credential, scheme) {
            (Credential::Key(key), Scheme::ApiKey { place, name }) => {
                badge.shown.push(placed(*place, name, key))
            }
            (Credential::Basic { username, password }, _) => {
                let both = STANDARD.encode(format!("{username}:{password}"));
                badge.shown.push(authorization(&format!("Basic {both}")));
            }
            (Credential::Token(token), _) => badge.shown.push(authorization(&format!("Bearer {token}"))),
            (Credential::Client { .. }, scheme) => {
                let request =
                    token_request(name, scopes, scheme, credential).map_err(Fault::without_effect)?;
                let token = tokens.get(&request).await?;
                badge.shown.push(authorization(&format!("Bearer {token}")));
                badge.token = Some((request, token));
            }
            (Credential::Key(_), _) => {}
        }
    }
    Ok(badge)
}

fn authorization(value: &str) -> Shown {
    Shown::Header("authorization".to_owned(), value.to_owned())
}

fn placed(place: KeyPlace, name: &str, key: &str) -> Shown {
    match place {
        KeyPlace::Header => Shown::Header(name.to_owned(), key.to_owned()),
        KeyPlace::Query => Shown::Query(format!("{}={}", encode::component(name), encode::component(key))),
        KeyPlace::Cookie => Shown::Cookie(format!("{name}={key}")),
    }
}

fn token_request(
    scheme_name: &str,
    needed: &[String],
    scheme: &Scheme,
    credential: &Credential,
) -> Result<TokenRequest, ToolError> {
    let Credential::Client { id, secret, token_url, scopes } = credential else {
        return Err(super::token::unusable(scheme_name));
    };
    let own = match scheme {
        Scheme::ClientCredentials { token_url, .. } => Some(token_url),
        Scheme::ApiKey { .. } | Scheme::Basic | Scheme::Bearer | Scheme::Unsupported(_) => None,
    };
    let url = token_url.as_ref().or(own).ok_or_else(|| super::token::unusable(scheme_name))?;
    Ok(TokenRequest {
        scheme: scheme_name.to_owned(),
        url: url.clone(),
        id: id.clone(),
        secret: secret.clone(),
        scopes: scopes.clone().unwrap_or_else(|| needed.to_vec()),
    })
}
