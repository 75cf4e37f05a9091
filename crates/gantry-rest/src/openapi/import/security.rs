//! Security schemes: the credentials that operations need, and where they go.

use crate::openapi::document::NodeRef;
use crate::openapi::document::Version;
use crate::openapi::import::WARNINGS;
use crate::openapi::import::servers::{Servers, folder, location};
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

// Limit: requirements of one operation, schemes of one requirement, scopes of one scheme.
const ALTERNATIVES: usize = 32;
const TOGETHER: usize = 16;
const SCOPES: usize = 200;
// Limit: bytes of the name of a scheme or a scope.
const WORD_BYTES: usize = 1000;

/// Where an API key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyPlace {
    Query,
    Header,
    Cookie,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Scheme {
    /// A key under a name.
    ApiKey {
        #[serde(rename = "in")]
        place: KeyPlace,
        name: String,
    },
    /// A user and a password.
    Basic,
    /// A token (`http` bearer, OpenID Connect, OAuth 2 flows that need a person).
    Bearer,
    /// OAuth 2 with client credentials; the address is absolute.
    ClientCredentials { token_url: Url, scopes: Vec<String> },
    /// Gantry cannot send it.
    Unsupported { reason: String },
}

/// Schemes that are needed together, each with its scopes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecurityRequirement(pub Vec<(String, Vec<String>)>);

/// The schemes of a document, by name.
pub(crate) fn schemes(root: NodeRef<'_>, servers: &Servers<'_>) -> BTreeMap<String, Scheme> {
    let all = match root.bundle.version {
        Version::V2 => root.get("securityDefinitions"),
        Version::V3 | Version::V31 => root.get("components").and_then(|parts| parts.get("securitySchemes")),
    };
    let named = all.into_iter().flat_map(NodeRef::members).filter(|(name, _)| !name.starts_with("x-"));
    named
        .map(|(name, node)| {
            let scheme = node.resolved().map_or_else(unsupported, |node| scheme(node, root, servers));
            (name.to_owned(), scheme)
        })
        .collect()
}

fn unsupported(reason: impl Into<String>) -> Scheme {
    Scheme::Unsupported { reason: reason.into() }
}

fn scheme(node: NodeRef<'_>, root: NodeRef<'_>, servers: &Servers<'_>) -> Scheme {
    match node.text("type").unwrap_or_default() {
        "apiKey" => api_key(node),
        "basic" => Scheme::Basic,
        "http" => match node.text("scheme").unwrap_or_default().to_ascii_lowercase().as_str() {
            "basic" => Scheme::Basic,
            "bearer" => Scheme::Bearer,
            other => unsupported(format!("the http scheme {other:?} is not supported")),
        },
        "oauth2" => client_credentials(node, root, servers).unwrap_or(Scheme::Bearer),
        "openIdConnect" => Scheme::Bearer,
        "mutualTLS" => unsupported("certificates of clients are not supported"),
        other => unsupported(format!("the type {other:?} is not supported")),
    }
}

fn api_key(node: NodeRef<'_>) -> Scheme {
    // As the documents of AWS have it.
    if node.text("x-amazon-apigateway-authtype") == Some("awsSigv4") {
        return unsupported("requests have to be signed (AWS Signature Version 4)");
    }
    let Some(name) = node.text("name").filter(|name| !name.is_empty()) else {
        return unsupported("the API key has no name");
    };
    let place = match node.text("in").unwrap_or_default() {
        "query" => KeyPlace::Query,
        "header" => KeyPlace::Header,
        "cookie" => KeyPlace::Cookie,
        other => return unsupported(format!("an API key in {other:?} is not supported")),
    };
    if place == KeyPlace::Header && http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return unsupported(format!("the API key goes into {name:?}, which is no name of a header"));
    }
    Scheme::ApiKey { place, name: name.to_owned() }
}

/// OAuth 2 with client credentials, if the document has it with a usable address.
fn client_credentials(node: NodeRef<'_>, root: NodeRef<'_>, servers: &Servers<'_>) -> Option<Scheme> {
    let flow = match node.bundle.version {
        Version::V2 => Some(node).filter(|node| node.text("flow") == Some("application")),
        Version::V3 | Version::V31 => node.get("flows").and_then(|flows| flows.get("clientCredentials")),
    }?;
    let written = flow.text("tokenUrl")?.trim();
    let url = match Url::parse(written) {
        Ok(url) => url,
        Err(_) if written.is_empty() => return None,
        Err(_) => base(root, servers)?.join(written).ok()?,
    };
    let plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none();
    let scopes = flow.get("scopes").into_iter().flat_map(NodeRef::members).take(SCOPES);
    let scopes = scopes.map(|(scope, _)| scope).filter(|scope| !scope.starts_with("x-")).map(str::to_owned);
    plain.then(|| Scheme::ClientCredentials { token_url: url, scopes: scopes.collect() })
}

/// The address that a relative token address is relative to.
fn base(root: NodeRef<'_>, servers: &Servers<'_>) -> Option<Url> {
    match servers.root.clone() {
        Ok(server) => Some(folder(server)),
        Err(_) => location(root.bundle, root.document).cloned(),
    }
}

/// The requirements of an operation, any one of which is enough. A scheme that is not defined is a token if its name looks like one, and left
/// out otherwise; a warning says so once.
pub(crate) fn requirements(
    operation: NodeRef<'_>,
    schemes: &mut BTreeMap<String, Scheme>,
    warnings: &mut Vec<String>,
) -> Vec<SecurityRequirement> {
    // `security:` without a value is null in YAML, which does not mean that nothing is needed.
    let own = operation.get("security").filter(|wanted| !wanted.value.is_null());
    let of_document = || operation.bundle.root().and_then(|root| root.get("security"));
    let Some(wanted) = own.or_else(of_document) else { return Vec::new() };
    let alternatives = wanted.elements().filter(|wanted| wanted.value.is_object()).take(ALTERNATIVES);
    alternatives
        .filter_map(|wanted| {
            let all = wanted.value.as_object().is_some_and(|all| all.is_empty());
            let named = wanted.members().take(TOGETHER).filter(|(name, _)| name.len() <= WORD_BYTES);
            let known = named.filter(|(name, _)| is_known(name, schemes, warnings));
            let known: Vec<_> = known.map(|(name, scopes)| (name.to_owned(), words(scopes))).collect();
            // `{}` means that nothing is needed; a requirement of unknown schemes only does not.
            (all || !known.is_empty()).then_some(SecurityRequirement(known))
        })
        .collect()
}

/// The API keys that may go with an operation.
pub(crate) fn api_keys<'s>(
    requirements: &[SecurityRequirement],
    schemes: &'s BTreeMap<String, Scheme>,
) -> BTreeSet<(KeyPlace, &'s str)> {
    let needed = requirements.iter().flat_map(|SecurityRequirement(all)| all);
    needed
        .filter_map(|(scheme, _)| match schemes.get(scheme)? {
            Scheme::ApiKey { place, name } => Some((*place, name.as_str())),
            Scheme::Basic
            | Scheme::Bearer
            | Scheme::ClientCredentials { .. }
            | Scheme::Unsupported { .. } => None,
        })
        .collect()
}

fn words(list: NodeRef<'_>) -> Vec<String> {
    let words = list.elements().take(SCOPES).filter_map(|word| word.value.as_str());
    words.filter(|word| word.len() <= WORD_BYTES).map(str::to_owned).collect()
}

fn is_known(name: &str, schemes: &mut BTreeMap<String, Scheme>, warnings: &mut Vec<String>) -> bool {
    if schemes.contains_key(name) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    let token = ["bearer", "token", "jwt", "oauth", "oidc"].iter().any(|word| lower.contains(word));
    let outcome = if token { "it is taken for a bearer token" } else { "it is left out" };
    let warning = format!("the security scheme {name:?} is needed but not defined; {outcome}");
    if warnings.len() < WARNINGS && !warnings.contains(&warning) {
        warnings.push(warning);
    }
    if token {
        schemes.insert(name.to_owned(), Scheme::Bearer);
    }
    token
}

#[cfg(test)]
mod tests;
