//! Credentials of an API: which ones an operation needs, and where they go in its request.

use super::api::request::add_credential;
use super::error;
use super::options::{ApiOptions, Credential};
use super::token::{TokenRequest, Tokens};
use crate::openapi::{Import, KeyPlace, Operation, Scheme, SecurityRequirement};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::CallFailure;
use gantry_egress::OutboundRequest;
use std::sync::Arc;

/// Whether a credential is what a scheme asks for.
#[must_use]
pub fn fits(scheme: &Scheme, credential: &Credential) -> bool {
    match credential {
        Credential::Key { .. } => matches!(scheme, Scheme::ApiKey { .. }),
        Credential::Basic { .. } => matches!(scheme, Scheme::Basic),
        Credential::Token { .. } => matches!(scheme, Scheme::Bearer | Scheme::ClientCredentials { .. }),
        // A bearer scheme does not name a token endpoint.
        Credential::Client { token_url, .. } => {
            matches!(scheme, Scheme::ClientCredentials { .. })
                || (matches!(scheme, Scheme::Bearer) && token_url.is_some())
        }
    }
}

/// What to configure: the credentials that an operation may need and the configuration has not.
pub(super) fn advice(operation: &Operation, import: &Import, options: &ApiOptions) -> Option<String> {
    let mut keys: Vec<String> = Vec::new();
    for (name, _) in operation.security.iter().flat_map(|need| &need.0) {
        let key = format!("openapiSpecs.{}.auth.{name}", options.id);
        if credential(name, import, options).is_none() && !keys.contains(&key) {
            keys.push(key);
        }
    }
    (!keys.is_empty()).then(|| format!("set {}", keys.join(" or ")))
}

/// The schemes that operations need and nothing that fits is configured for. An operation one of whose needs is met needs no
/// other.
pub(super) fn missing(import: &Import, options: &ApiOptions) -> Vec<String> {
    let has = |name: &str| credential(name, import, options).is_some();
    let is_met = |need: &SecurityRequirement| need.0.iter().all(|(name, _)| has(name));
    let is_closed = |it: &&Operation| !it.security.is_empty() && !it.security.iter().any(is_met);
    let needs = import.operations.iter().filter(is_closed).flat_map(|operation| &operation.security);
    let mut missing = Vec::new();
    for (name, _) in needs.flat_map(|need| &need.0).filter(|(name, _)| !has(name)) {
        let is_usable = !matches!(import.schemes.get(name), Some(Scheme::Unsupported { .. }));
        if is_usable && !missing.contains(name) {
            missing.push(name.clone());
        }
    }
    missing
}

/// A scheme and the credential for it, if that fits.
fn credential<'a>(
    name: &str,
    import: &'a Import,
    options: &'a ApiOptions,
) -> Option<(&'a Scheme, &'a Credential)> {
    let both = import.schemes.get(name).zip(options.auth.get(name));
    both.filter(|(scheme, credential)| fits(scheme, credential))
}

/// The first need of an operation that can be met: schemes, each with its scopes. None if there is no such need.
pub(super) fn met<'a>(
    operation: &'a Operation,
    import: &Import,
    options: &ApiOptions,
) -> &'a [(String, Vec<String>)] {
    let is_met = |need: &&SecurityRequirement| {
        !need.0.is_empty() && need.0.iter().all(|(name, _)| credential(name, import, options).is_some())
    };
    operation.security.iter().find(is_met).map(|need| need.0.as_slice()).unwrap_or_default()
}

/// Adds the credentials for these schemes to a request. Returns the OAuth token among them, which can be requested anew.
pub(super) async fn apply(
    request: &mut OutboundRequest,
    schemes: &[(String, Vec<String>)],
    (import, options): (&Import, &ApiOptions),
    tokens: &Tokens,
) -> Result<Option<(TokenRequest, Arc<str>)>, CallFailure> {
    let authorization = |value: String| (KeyPlace::Header, "authorization", value);
    let unsendable = |error: String| error::unavailable(format!("openapiSpecs.{}: {error}", options.id));
    let mut used = None;
    for (name, scopes) in schemes {
        let Some((scheme, credential)) = credential(name, import, options) else { continue };
        let (place, name, value) = match (credential, scheme) {
            (Credential::Key { api_key }, Scheme::ApiKey { place, name }) => {
                (*place, name.as_str(), api_key.expose().to_owned())
            }
            // It does not fit any other scheme.
            (Credential::Key { .. }, _) => continue,
            (Credential::Basic { username, password }, _) => {
                let both = STANDARD.encode(format!("{username}:{}", password.expose()));
                authorization(format!("Basic {both}"))
            }
            (Credential::Token { token }, _) => authorization(format!("Bearer {}", token.expose())),
            (Credential::Client { client_id, client_secret, token_url, scopes: configured }, _) => {
                let url = match (token_url, scheme) {
                    (Some(url), _) | (None, Scheme::ClientCredentials { token_url: url, .. }) => url,
                    // Without an address it does not fit any other scheme.
                    (None, _) => continue,
                };
                let wanted = TokenRequest {
                    url: url.clone(),
                    id: client_id.clone(),
                    secret: client_secret.clone(),
                    scopes: configured.as_ref().unwrap_or(scopes).clone(),
                };
                let token = tokens.get(&wanted).await?;
                let value = format!("Bearer {token}");
                used = Some((wanted, token));
                authorization(value)
            }
        };
        add_credential(request, place, name, &value).map_err(unsendable)?;
    }
    Ok(used)
}
