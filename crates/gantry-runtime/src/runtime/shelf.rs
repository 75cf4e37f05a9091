//! What servers offer besides tools, under the names and URIs that clients see.

use super::sources::Sources;
use crate::provider::mcp::McpServer;
use crate::provider::mcp::mapping::{SCHEME, Shape, renamed};
use gantry_core::names::{Style, Unnamed, assign};
use gantry_core::raw;
use gantry_mcp::client::ListKind;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The lists that are put on the shelf.
pub(super) const KINDS: [ListKind; 3] = [ListKind::Resources, ListKind::Templates, ListKind::Prompts];

/// Everything that the servers offer besides tools.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    items: HashMap<ListKind, Vec<Item>>,
    /// Prompts by the name that clients see.
    prompts: HashMap<String, usize>,
    /// Resources by their servers' own URIs, as far as one server only has them.
    own: HashMap<String, Option<usize>>,
}

/// A resource, a template or a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    /// The server that has it.
    pub(super) server: Arc<str>,
    /// Its URI or name in the server's words.
    pub(super) own: String,
    /// Its definition as clients see it.
    text: Box<str>,
}

impl Shelf {
    /// What the servers offer now, in the order of their ids; nothing of those that are left out.
    pub(super) fn of(sources: &Sources, left_out: &BTreeMap<Arc<str>, String>) -> Self {
        let servers: Vec<&Arc<McpServer>> =
            sources.servers().filter(|server| !left_out.contains_key(server.id())).collect();
        let mut shelf = Self::default();
        for kind in [ListKind::Resources, ListKind::Templates] {
            let items = servers.iter().flat_map(|server| resources(server, kind)).collect();
            shelf.items.insert(kind, items);
        }
        for (n, item) in shelf.list(ListKind::Resources).iter().enumerate() {
            shelf.own.entry(item.own.clone()).and_modify(|only| *only = None).or_insert(Some(n));
        }
        let (prompts, names) = prompts(&servers);
        shelf.prompts = names.into_iter().enumerate().map(|(n, name)| (name, n)).collect();
        shelf.items.insert(ListKind::Prompts, prompts);
        shelf
    }

    fn list(&self, kind: ListKind) -> Vec<Item> {
        self.items.get(&kind).cloned().unwrap_or_default()
    }

    /// The items of a kind that those servers have, as one JSON array.
    pub(super) fn text(&self, kind: ListKind, visible: impl Fn(&str) -> bool) -> String {
        let items = self.items.get(&kind).map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<&str> =
            items.iter().filter(|item| visible(&item.server)).map(|item| &*item.text).collect();
        format!("[{}]", texts.join(","))
    }

    /// The prompt that clients know by this name.
    pub(super) fn prompt(&self, name: &str) -> Option<&Item> {
        self.items.get(&ListKind::Prompts)?.get(*self.prompts.get(name)?)
    }

    /// The server that has a resource of this URI, given as the server itself spells it: listed there and nowhere else,
    /// or covered by a template of it.
    pub(super) fn owner(&self, uri: &str, visible: impl Fn(&str) -> bool) -> Option<&Arc<str>> {
        let listed = self.own.get(uri).copied().flatten();
        let listed = listed.and_then(|n| self.items.get(&ListKind::Resources)?.get(n));
        if let Some(item) = listed.filter(|item| visible(&item.server)) {
            return Some(&item.server);
        }
        let templates = self.items.get(&ListKind::Templates).map(Vec::as_slice).unwrap_or_default();
        let covers = templates.iter().filter(|item| visible(&item.server) && covers(&item.own, uri));
        covers.max_by_key(|item| literal(&item.own).len()).map(|item| &item.server)
    }

    /// The servers whose items of a kind are others than before.
    pub(super) fn changed(&self, before: &Self, kind: ListKind) -> Vec<Arc<str>> {
        let of = |shelf: &Self| {
            let mut by_server: HashMap<Arc<str>, Vec<Box<str>>> = HashMap::new();
            for item in shelf.list(kind) {
                by_server.entry(item.server).or_default().push(item.text);
            }
            by_server
        };
        let (new, old) = (of(self), of(before));
        let differs = |server: &&Arc<str>| new.get(*server) != old.get(*server);
        let mut servers: Vec<Arc<str>> = new.keys().chain(old.keys()).filter(differs).cloned().collect();
        servers.sort();
        servers.dedup();
        servers
    }
}

/// The part of a template before its first variable.
fn literal(template: &str) -> &str {
    template.split('{').next().unwrap_or_default()
}

/// Whether a template can make this URI, as far as its fixed beginning and end tell.
fn covers(template: &str, uri: &str) -> bool {
    let end = template.rsplit('}').next().unwrap_or_default();
    let start = literal(template);
    uri.len() >= start.len() && uri.starts_with(start) && (!template.contains('{') || uri.ends_with(end))
}

fn resources(server: &Arc<McpServer>, kind: ListKind) -> Vec<Item> {
    let member = if kind == ListKind::Templates { "uriTemplate" } else { "uri" };
    let Some(listing) = server.listing() else { return Vec::new() };
    let item = |text: &str| {
        let own = raw::string_member(text, member)?.into_owned();
        let shown = server.mapping().show(Shape::Item(kind), text);
        Some(Item { server: Arc::clone(server.id()), own, text: shown.into() })
    };
    listing.items(kind).iter().filter_map(|text| item(text)).collect()
}

/// The prompts and the names that clients see; of several with one bare name, only the first is shown.
fn prompts(servers: &[&Arc<McpServer>]) -> (Vec<Item>, Vec<String>) {
    let mut found: Vec<(Arc<McpServer>, String, Box<str>)> = Vec::new();
    let mut bare: HashMap<String, ()> = HashMap::new();
    for server in servers {
        let listing = server.listing();
        for text in listing.iter().flat_map(|listing| listing.items(ListKind::Prompts)) {
            let Some(name) = raw::string_member(text, "name").map(std::borrow::Cow::into_owned) else {
                continue;
            };
            if !server.settings().prefix && bare.insert(name.clone(), ()).is_some() {
                tracing::warn!(
                    "server {}: another server has a prompt {name} too, so it is left out",
                    server.id()
                );
                continue;
            }
            found.push((Arc::clone(server), name, text.clone()));
        }
    }
    let unnamed: Vec<Unnamed<'_>> = found
        .iter()
        .map(|(server, name, _)| Unnamed {
            namespace: server.id(),
            tool: name,
            style: if server.settings().prefix { Style::Prefixed } else { Style::Bare },
        })
        .collect();
    let (names, _) = assign(&unnamed);
    let items = found.iter().zip(&names).map(|((server, own, text), name)| Item {
        server: Arc::clone(server.id()),
        own: own.clone(),
        text: if own == name { text.clone() } else { renamed(text, "name", name).into() },
    });
    (items.collect(), names)
}

/// Whether a URI is one that Gantry has mapped.
pub(super) fn is_mapped(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_covers_what_it_can_make() {
        for (template, uri, expected) in [
            ("db://{table}/rows", "db://users/rows", true),
            ("db://{table}/rows", "db://users/columns", false),
            ("db://{table}", "file:///a", false),
            ("db://fixed", "db://fixed", true),
            ("{+any}", "x:y", true),
        ] {
            assert_eq!(covers(template, uri), expected, "{template} {uri}");
        }
    }
}
