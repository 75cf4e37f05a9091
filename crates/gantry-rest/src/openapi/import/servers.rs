//! The servers that operations are sent to.
//!
//! Credentials go with every request, so a document may not send them anywhere: only `http` and `https`, no user in the
//! address, and no other origin than that of the API, unless the options allow it.

use crate::openapi::document::NodeRef;
use crate::openapi::document::{Bundle, Version};
use crate::openapi::import::ImportOptions;
use crate::openapi::import::swagger2;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use url::Url;

/// The reason where a document has no address and did not come from one either.
const NOWHERE: &str = "the specification does not say where the API is; set baseUrl";

/// Only for the configuration: documents have a query in their addresses by mistake, and it is left out.
const QUERY: &str = "baseUrl has a query, which is not sent; leave out everything from the ? on";

// Limit: bytes of the address of a server, before and after its variables are filled in.
const URL_BYTES: usize = 2000;
// Limit: values of a variable that are read.
const VALUES: usize = 1000;

#[derive(Debug)]
pub(crate) struct Servers<'a> {
    options: &'a ImportOptions,
    /// The server of operations without one of their own.
    pub(crate) root: Result<Url, String>,
    /// The server whose origin is that of the API.
    api_origin: Option<Url>,
    /// The variables of the options that were used.
    variables: BTreeSet<String>,
}

impl<'a> Servers<'a> {
    pub(crate) fn new(root: NodeRef<'a>, options: &'a ImportOptions) -> Self {
        let mut variables = BTreeSet::new();
        let server = match &options.base_url {
            Some(url) if url.query().is_some() => Err(QUERY.to_owned()),
            Some(url) => usable(url.clone()),
            None if root.bundle.version == Version::V2 => swagger2::server(root).and_then(usable),
            None => match declared(root) {
                Some(server) => address(server, None, options, &mut variables),
                None => located(root, "/").and_then(usable),
            },
        };
        Self { options, api_origin: server.as_ref().ok().cloned(), root: server, variables }
    }

    /// The server of an operation.
    pub(crate) fn of(&mut self, item: NodeRef<'a>, operation: NodeRef<'a>) -> Result<Url, String> {
        if self.options.base_url.is_some() {
            return self.root.clone();
        }
        let own = declared(operation).or_else(|| declared(item));
        let own =
            own.map(|server| address(server, self.api_origin.as_ref(), self.options, &mut self.variables));
        // Where a document names no server of its own, the first one of an operation is where the API is.
        let server = own.unwrap_or_else(|| self.root.clone())?;
        let api_origin = self.api_origin.get_or_insert_with(|| server.clone());
        if self.options.other_origins || api_origin.origin() == server.origin() {
            return Ok(server);
        }
        let (there, here) =
            (server.origin().ascii_serialization(), api_origin.origin().ascii_serialization());
        Err(format!("it is at {there} and not at {here}, where the API is, and credentials stay there"))
    }

    /// The variables of the options that no address has.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &'a str> + use<'a, '_> {
        self.options.variables.keys().map(String::as_str).filter(|name| !self.variables.contains(*name))
    }
}

/// The first server that is declared here.
fn declared(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    if node.bundle.version == Version::V2 {
        return None;
    }
    node.get("servers")?.elements().next()
}

/// The address of a server object. If its document is not on the web, it is relative to the API.
fn address(
    server: NodeRef<'_>,
    api_origin: Option<&Url>,
    options: &ImportOptions,
    seen: &mut BTreeSet<String>,
) -> Result<Url, String> {
    let server = server.resolved()?;
    let template = server.text("url").ok_or("a server of the specification has no url; set baseUrl")?.trim();
    if template.len() > URL_BYTES {
        return Err(format!("its server address has more than {URL_BYTES} bytes; set baseUrl"));
    }
    seen.extend(options.variables.keys().filter(|name| template.contains(&format!("{{{name}}}"))).cloned());
    let url = filled(template, server.get("variables"), options)?;
    // Parsers of URLs skip an empty host and take the path for it.
    let host = url.split_once("//").filter(|(before, _)| before.is_empty() || before.ends_with(':'));
    let is_missing = |host: &str| host.is_empty() || host.starts_with(['/', '\\', '?', '#', '.']);
    if template.contains('{') && host.is_some_and(|(_, host)| is_missing(host)) {
        return Err(format!(
            "the server address {template:?} has no host, as its variables are; set serverVariables or baseUrl"
        ));
    }
    let invalid = |error| format!("the server address {url:?} is invalid: {error}; set baseUrl");
    if has_scheme(&url) {
        return usable(Url::parse(&url).map_err(invalid)?);
    }
    // Anything else is more likely a host without its scheme than a relative path.
    if !url.is_empty() && !url.starts_with(['/', '.']) {
        return Err(format!("the server address {url:?} has no scheme, such as https://; set baseUrl"));
    }
    match api_origin {
        Some(api_origin) if location(server.bundle, server.document).is_none() => {
            usable(folder(api_origin.clone()).join(&url).map_err(invalid)?)
        }
        Some(_) | None => located(server, &url).and_then(usable),
    }
}

/// The address with a `/` at its end, so that relative ones are below it.
pub(crate) fn folder(mut url: Url) -> Url {
    let folder = format!("{}/", url.path().trim_end_matches('/'));
    url.set_path(&folder);
    url
}

fn filled<'t>(
    template: &'t str,
    variables: Option<NodeRef<'_>>,
    options: &ImportOptions,
) -> Result<Cow<'t, str>, String> {
    if !template.contains('{') {
        return Ok(Cow::Borrowed(template));
    }
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| format!("the server address {template:?} has a {{ without its }}; set baseUrl"))?;
        out.push_str(before);
        out.push_str(&value(name, template, variables.and_then(|all| all.get(name)), options)?);
        rest = after;
        if out.len() > URL_BYTES {
            return Err(format!("its server address has more than {URL_BYTES} bytes; set baseUrl"));
        }
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

fn value(
    name: &str,
    template: &str,
    variable: Option<NodeRef<'_>>,
    options: &ImportOptions,
) -> Result<String, String> {
    if let Some(value) = options.variables.get(name) {
        let allowed: Vec<String> = variable
            .and_then(|v| v.get("enum"))
            .into_iter()
            .flat_map(NodeRef::elements)
            .take(VALUES)
            .filter_map(plain)
            .collect();
        if allowed.is_empty() || allowed.contains(value) {
            return Ok(value.clone());
        }
        let some = allowed.iter().take(10).map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", ");
        return Err(format!("serverVariables.{name} is {value:?}; the specification allows {some}"));
    }
    let default = variable.and_then(|variable| variable.get("default")).and_then(plain);
    default.ok_or_else(|| {
        format!(
            "the server address {template:?} needs a value for {name}; set serverVariables.{name} or baseUrl"
        )
    })
}

/// A text, which YAML may have read as a number.
fn plain(node: NodeRef<'_>) -> Option<String> {
    match node.value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn has_scheme(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']))
}

/// An address relative to the document that it is in.
pub(crate) fn located(node: NodeRef<'_>, relative: &str) -> Result<Url, String> {
    match location(node.bundle, node.document) {
        Some(location) => location
            .join(relative)
            .map_err(|error| format!("the server address {relative:?} is invalid: {error}; set baseUrl")),
        // `//host/path` has all but the scheme.
        None if relative.starts_with("//") => Url::parse(&format!("https:{relative}"))
            .map_err(|error| format!("the server address {relative:?} is invalid: {error}; set baseUrl")),
        None => Err(NOWHERE.to_owned()),
    }
}

/// The address of a document on the web.
pub(crate) fn location(bundle: &Bundle, document: usize) -> Option<&Url> {
    let location = &bundle.documents.get(document)?.location;
    matches!(location.scheme(), "http" | "https").then_some(location)
}

/// An address that requests can be sent below.
fn usable(mut url: Url) -> Result<Url, String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("the server is reached by {}, not by http or https; set baseUrl", url.scheme()));
    }
    if !url.has_host() {
        return Err("the server address has no host; set baseUrl".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "the server address has a user or a password in it, which is refused; set baseUrl".to_owned()
        );
    }
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests;
