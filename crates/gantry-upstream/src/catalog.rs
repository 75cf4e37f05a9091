//! The catalog of what servers offer besides tools, under the names and URIs that clients see.

use crate::server::UpstreamServer;
use crate::uri_map::{OBJECT, TEMPLATE, UriPlaces, with_string_at};
use gantry_core::names::{NamePrefixes, NameRequest, Style, assign, imitated, owners};
use gantry_core::raw;
use gantry_provider::resources::ListKind;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

const KINDS: [ListKind; 3] = [ListKind::Resources, ListKind::Templates, ListKind::Prompts];

#[derive(Debug, Default)]
pub(crate) struct ResourceCatalog {
    items: HashMap<ListKind, Vec<CatalogItem>>,
    /// The names of the prompts that clients see, in the order of their list.
    prompt_names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CatalogItem {
    pub(crate) server: Arc<str>,
    /// Its URI or name as the server spells it.
    pub(crate) own: String,
    text: Box<str>,
}

impl ResourceCatalog {
    /// What these servers offer now, which come in the order of their ids. Names and URIs that are shown unchanged stay
    /// with the servers that have them in the catalog `before`.
    pub(crate) fn build(
        servers: &[Arc<UpstreamServer>],
        prefixes: &[NamePrefixes<'_>],
        before: Option<&Self>,
    ) -> Self {
        let plain: HashSet<&str> =
            servers.iter().filter(|server| server.uri_map.is_plain()).map(|server| &**server.id()).collect();
        let had = |kind| before.map(|catalog| catalog.items(kind)).unwrap_or_default();
        let mut catalog = Self::default();
        for kind in KINDS {
            let items = servers.iter().flat_map(|server| offered(server, kind, prefixes)).collect();
            catalog.items.insert(kind, resolve_conflicts(items, &plain, had(kind)));
        }
        catalog.name_prompts(&plain);
        catalog
    }

    fn name_prompts(&mut self, plain: &HashSet<&str>) {
        let style =
            |item: &CatalogItem| if plain.contains(&*item.server) { Style::Bare } else { Style::Prefixed };
        let prompts = self.items.entry(ListKind::Prompts).or_default();
        let requests: Vec<NameRequest<'_>> = prompts
            .iter()
            .map(|item| NameRequest { namespace: &item.server, tool: &item.own, style: style(item) })
            .collect();
        (self.prompt_names, _) = assign(&requests);
        for (item, name) in
            prompts.iter_mut().zip(&self.prompt_names).filter(|(item, name)| item.own != **name)
        {
            item.text = with_string_at(&item.text, &["name"], name).into();
        }
    }

    fn items(&self, kind: ListKind) -> &[CatalogItem] {
        self.items.get(&kind).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn list_json(&self, kind: ListKind, visible: impl Fn(&str) -> bool) -> String {
        let items = self.items(kind).iter().filter(|item| visible(&item.server));
        format!("[{}]", items.map(|item| &*item.text).collect::<Vec<_>>().join(","))
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&CatalogItem> {
        let place = self.prompt_names.iter().position(|known| known == name)?;
        self.items(ListKind::Prompts).get(place)
    }

    /// The server that has a resource of this URI, given as the server itself spells it: listed there and nowhere else,
    /// or covered by a template of it.
    pub(crate) fn server_of(&self, uri: &str, visible: impl Fn(&str) -> bool) -> Option<&Arc<str>> {
        let mut having = self.items(ListKind::Resources).iter().filter(|item| item.own == uri);
        let owner = having.next().filter(|item| having.next().is_none() && visible(&item.server));
        let templates = self.items(ListKind::Templates).iter();
        let covering = templates.filter(|item| visible(&item.server) && covers(&item.own, uri));
        let found = owner.or_else(|| covering.max_by_key(|item| literal_prefix(&item.own).len()));
        found.map(|item| &item.server)
    }

    /// The servers whose items of a kind are others than before, and the kind.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<(Arc<str>, ListKind)> {
        KINDS.into_iter().flat_map(|kind| changes(self.items(kind), before.items(kind), kind)).collect()
    }
}

/// The servers whose part of a list is another now.
fn changes(now: &[CatalogItem], before: &[CatalogItem], kind: ListKind) -> Vec<(Arc<str>, ListKind)> {
    fn part<'a>(items: &'a [CatalogItem], server: &Arc<str>) -> Vec<&'a str> {
        items.iter().filter(|item| item.server == *server).map(|item| &*item.text).collect()
    }
    let servers: BTreeSet<&Arc<str>> = now.iter().chain(before).map(|item| &item.server).collect();
    let changed = servers.into_iter().filter(|server| part(now, server) != part(before, server));
    changed.map(|server| (Arc::clone(server), kind)).collect()
}

/// The part of a template before its first variable.
fn literal_prefix(template: &str) -> &str {
    template.split('{').next().unwrap_or_default()
}

/// Whether a template can make this URI, as far as its fixed beginning and end tell.
fn covers(template: &str, uri: &str) -> bool {
    let end = template.rsplit('}').next().unwrap_or_default();
    let start = literal_prefix(template);
    uri.len() >= start.len() && uri.starts_with(start) && (!template.contains('{') || uri.ends_with(end))
}

/// What a server offers of a kind, under its own names; without prompts that are shown unchanged and would pass for a prompt
/// of another server.
fn offered(server: &Arc<UpstreamServer>, kind: ListKind, prefixes: &[NamePrefixes<'_>]) -> Vec<CatalogItem> {
    let (member, places): (&str, UriPlaces) = match kind {
        ListKind::Prompts | ListKind::Tools => ("name", &[]),
        ListKind::Resources => ("uri", OBJECT),
        ListKind::Templates => ("uriTemplate", TEMPLATE),
    };
    let Some(listing) = server.listing() else { return Vec::new() };
    let (id, mut bare) = (server.id(), HashSet::new());
    let mut item = |text: &str| {
        let own = raw::string_member(text, member)?.into_owned();
        if kind == ListKind::Prompts && server.uri_map.is_plain() {
            if let Some(other) = imitated(&own, id, prefixes) {
                tracing::warn!("prompt {own:?} of {id} is left out: it would pass for one of {other}");
                return None;
            }
            bare.insert(own.clone()).then_some(())?;
        }
        let text = server.uri_map.rewrite(places, text).into();
        Some(CatalogItem { server: Arc::clone(id), own, text })
    };
    listing.items(kind).iter().filter_map(|text| item(text)).collect()
}

/// Of several servers that show one name or URI unchanged, one has it: the one that had it before, else the first.
fn resolve_conflicts(
    items: Vec<CatalogItem>,
    plain: &HashSet<&str>,
    before: &[CatalogItem],
) -> Vec<CatalogItem> {
    let is_plain = |item: &&CatalogItem| plain.contains(&*item.server);
    let had: HashMap<&str, &Arc<str>> =
        before.iter().filter(is_plain).map(|item| (item.own.as_str(), &item.server)).collect();
    let wanted = items.iter().filter(is_plain).map(|item| (item.own.as_str(), &item.server));
    let owners = owners(wanted, |own| had.get(own).copied());
    let loses = |item: &CatalogItem| is_plain(&item) && owners.get(item.own.as_str()) != Some(&&item.server);
    let lost: Vec<bool> = items.iter().map(loses).collect();
    let mut warned: HashSet<Arc<str>> = HashSet::new();
    let left = items.into_iter().zip(lost).filter_map(|(item, lost)| {
        let CatalogItem { server, own, text: _ } = &item;
        // One example a server will do: there can be thousands.
        if lost && warned.insert(Arc::clone(server)) {
            tracing::warn!("{own:?} of {server} is left out: another server without a prefix has it too");
        }
        (!lost).then_some(item)
    });
    left.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nam_1_what_several_servers_show_unchanged_stays_with_who_had_it() {
        let item = |(server, own): (&str, &str)| CatalogItem {
            server: server.into(),
            own: own.into(),
            text: "{}".into(),
        };
        let check = |before: &[(&str, &str)], expected: &[(&str, &str)]| {
            let now = [("a", "u:1"), ("b", "u:1"), ("b", "u:2"), ("prefixed", "u:1")].map(item).to_vec();
            let before: Vec<CatalogItem> = before.iter().copied().map(item).collect();
            let left = resolve_conflicts(now, &HashSet::from(["a", "b"]), &before);
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
