//! What servers offer besides tools, under the names and URIs that clients see.

use super::pool::{beginnings, holders};
use super::sources::Sources;
use crate::provider::mcp::McpServer;
use crate::provider::mcp::mapping::{SCHEME, Shape, renamed};
use gantry_core::names::{Beginnings, Style, Unnamed, assign};
use gantry_core::raw;
use gantry_mcp::client::ListKind;
use std::collections::{BTreeMap, HashMap, HashSet};
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
    /// What the servers offer now, in the order of their ids; nothing of those that are left out. Names and URIs that are
    /// shown unchanged stay with who had them on the shelf before.
    pub(super) fn of(
        sources: &Sources,
        left_out: &BTreeMap<Arc<str>, String>,
        before: Option<&Self>,
    ) -> Self {
        let servers: Vec<&Arc<McpServer>> =
            sources.servers().filter(|server| !left_out.contains_key(server.id())).collect();
        let plain: HashSet<&str> = servers
            .iter()
            .filter(|server| server.mapping().is_plain())
            .map(|server| &**server.id())
            .collect();
        let had =
            |kind| before.and_then(|shelf| shelf.items.get(&kind)).map(Vec::as_slice).unwrap_or_default();
        let mut shelf = Self::default();
        for kind in [ListKind::Resources, ListKind::Templates] {
            let items = servers.iter().flat_map(|server| resources(server, kind)).collect();
            shelf.items.insert(kind, undisputed(items, &plain, had(kind)));
        }
        for (n, item) in shelf.list(ListKind::Resources).iter().enumerate() {
            shelf.own.entry(item.own.clone()).and_modify(|only| *only = None).or_insert(Some(n));
        }
        let beginnings = beginnings(sources.all());
        let prompts = servers.iter().flat_map(|server| prompts(server, &beginnings)).collect();
        let (prompts, names) = named(undisputed(prompts, &plain, had(ListKind::Prompts)), &plain);
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

/// The prompts under the servers' own names, without those that are shown unchanged and would pass for a prompt of another
/// server.
fn prompts(server: &Arc<McpServer>, beginnings: &Beginnings<'_>) -> Vec<Item> {
    let Some(listing) = server.listing() else { return Vec::new() };
    let mut bare = HashSet::new();
    let mut item = |text: &str| {
        let own = raw::string_member(text, "name")?.into_owned();
        if server.mapping().is_plain() {
            if let Some(other) = beginnings.imitated(&own, server.id()) {
                let id = server.id();
                tracing::warn!("prompt {own:?} of {id} is left out: it would pass for one of {other}");
                return None;
            }
            bare.insert(own.clone()).then_some(())?;
        }
        Some(Item { server: Arc::clone(server.id()), own, text: text.into() })
    };
    listing.items(ListKind::Prompts).iter().filter_map(|text| item(text)).collect()
}

/// The prompts under the names that clients see, and these names.
fn named(prompts: Vec<Item>, plain: &HashSet<&str>) -> (Vec<Item>, Vec<String>) {
    let style = |item: &Item| if plain.contains(&*item.server) { Style::Bare } else { Style::Prefixed };
    let unnamed: Vec<Unnamed<'_>> = prompts
        .iter()
        .map(|item| Unnamed { namespace: &item.server, tool: &item.own, style: style(item) })
        .collect();
    let (names, _) = assign(&unnamed);
    let shown = prompts.into_iter().zip(&names).map(|(item, name)| {
        let text = if item.own == *name { item.text } else { renamed(&item.text, "name", name).into() };
        Item { text, ..item }
    });
    (shown.collect(), names)
}

/// Of several servers that show one name or URI unchanged, one has it: who had it before, else the first.
fn undisputed(items: Vec<Item>, plain: &HashSet<&str>, before: &[Item]) -> Vec<Item> {
    let is_plain = |item: &&Item| plain.contains(&*item.server);
    let had: HashMap<&str, &Arc<str>> =
        before.iter().filter(is_plain).map(|item| (item.own.as_str(), &item.server)).collect();
    let wanted = items.iter().filter(is_plain).map(|item| (item.own.as_str(), &item.server));
    let holders = holders(wanted, |own| had.get(own).copied());
    let loses = |item: &Item| is_plain(&item) && holders.get(item.own.as_str()) != Some(&&item.server);
    let lost: Vec<bool> = items.iter().map(loses).collect();
    let mut told: HashSet<Arc<str>> = HashSet::new();
    let left = items.into_iter().zip(lost).filter_map(|(item, lost)| {
        let Item { server, own, text: _ } = &item;
        // One example a server will do: there can be thousands.
        if lost && told.insert(Arc::clone(server)) {
            tracing::warn!("{own:?} of {server} is left out: another server without a prefix has it too");
        }
        (!lost).then_some(item)
    });
    left.collect()
}

/// Whether a URI is one that Gantry has mapped.
pub(super) fn is_mapped(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nam_1_what_several_servers_show_unchanged_stays_with_who_had_it() {
        let item =
            |(server, own): (&str, &str)| Item { server: server.into(), own: own.into(), text: "{}".into() };
        let check = |before: &[(&str, &str)], expected: &[(&str, &str)]| {
            let now = [("a", "u:1"), ("b", "u:1"), ("b", "u:2"), ("prefixed", "u:1")].map(item).to_vec();
            let before: Vec<Item> = before.iter().copied().map(item).collect();
            let left = undisputed(now, &HashSet::from(["a", "b"]), &before);
            assert_eq!(left, expected.iter().copied().map(item).collect::<Vec<_>>(), "{before:?}");
        };
        let (a, b, other, prefixed) = (("a", "u:1"), ("b", "u:1"), ("b", "u:2"), ("prefixed", "u:1"));
        check(&[], &[a, other, prefixed]);
        check(&[b], &[b, other, prefixed]);
        check(&[("gone", "u:1"), prefixed], &[a, other, prefixed]);
    }

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
