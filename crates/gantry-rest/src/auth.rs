//! Credentials of an API: which ones an operation needs, and where they go in its request.

use super::api::request::add_credential;
use super::client::Request;
use super::error;
use super::options::{ApiOptions, Credential};
use super::token::{TokenRequest, Tokens};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::Fault;
use gantry_openapi::{Import, KeyPlace, Need, Operation, Scheme};
use std::sync::Arc;

/// The credentials that were added to one request.
#[derive(Default)]
pub(super) struct AppliedAuth {
    /// Whether there are any.
    pub(super) is_applied: bool,
    /// The OAuth token among them, which can be requested anew.
    pub(super) token: Option<(TokenRequest, Arc<str>)>,
}

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

/// The schemes that an operation may need and the configuration has no fitting credential for.
pub(super) fn missing(operation: &Operation, import: &Import, options: &ApiOptions) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in operation.security.iter().flat_map(|need| &need.0) {
        if credential(name, import, options).is_none() && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
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

/// Adds the credentials for the first need of an operation that can be met; none if there is no such need.
pub(super) async fn apply(
    request: &mut Request,
    (operation, import): (&Operation, &Import),
    options: &ApiOptions,
    tokens: &Tokens,
) -> Result<AppliedAuth, Fault> {
    let is_met = |need: &&Need| {
        !need.0.is_empty() && need.0.iter().all(|(name, _)| credential(name, import, options).is_some())
    };
    let needed = operation.security.iter().find(is_met).map(|need| need.0.as_slice()).unwrap_or_default();
    let authorization = |value: String| (KeyPlace::Header, "authorization", value);
    let unsendable = |error: String| error::unavailable(format!("openapiSpecs.{}: {error}", options.id));
    let mut auth = AppliedAuth::default();
    for (name, scopes) in needed {
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
                let declared = match scheme {
                    Scheme::ClientCredentials { token_url, .. } => Some(token_url),
                    Scheme::ApiKey { .. } | Scheme::Basic | Scheme::Bearer | Scheme::Unsupported(_) => None,
                };
                let url = token_url.as_ref().or(declared).ok_or_else(|| {
                    error::unavailable(format!(
                        "no token can be got for the security scheme {name}: its tokenUrl is not known"
                    ))
                })?;
                let wanted = TokenRequest {
                    scheme: name.clone(),
                    url: url.clone(),
                    id: client_id.clone(),
                    secret: client_secret.clone(),
                    scopes: configured.clone().unwrap_or_else(|| scopes.clone()),
                };
                let token = tokens.get(&wanted).await?;
                let value = format!("Bearer {token}");
                auth.token = Some((wanted, token));
                authorization(value)
            }
        };
        add_credential(request, place, name, &value).map_err(unsendable)?;
        auth.is_applied = true;
    }
    Ok(auth)
}
