//! Judges the catalogue of tools: which keys an entry can have follows from its kind.

use super::claims::Claim;
use super::{LATER, Walk};
use crate::config::table::{Catalogue, Key};
use crate::config::trail::Trail;
use crate::config::transport::Spelling;
use crate::config::tree::{Entry, Node, Value, find, quoted};

/// The ids of Gantry's own tools: those on the workspace, which can be set up, and those on stored results.
pub(super) const OWN_PROVIDERS: [&str; 2] = [WORKSPACE, "outputs"];
const WORKSPACE: &str = "workspace";

/// Which tools run commands; the others work on files.
const SHELL: &str = "shell_exec";

const COMMANDS: &str = "builtinPolicy.allowedCommands";
const PATHS: &str = "builtinPolicy.allowedPaths";

/// Keys that say the same, of which an entry can have one. A dot leads into a group.
const SYNONYMS: [(&str, &str); 5] = [
    ("exposedTools", "toolsAllowed"),
    ("timeouts.requestMs", "requestTimeoutMs"),
    ("builtinPolicy.timeout", "requestTimeoutMs"),
    ("builtinPolicy.timeout", "timeouts.requestMs"),
    ("timeouts.startupMs", "startupTimeoutMs"),
];

impl Walk<'_, '_> {
    pub(super) fn catalogue(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static Catalogue) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            if matches!(entry.node.value, Value::Null) {
                entry.node.line = entry.line;
            }
            if entry.key == WORKSPACE {
                self.section(&mut entry.node, &path.key(&entry.key), keys.own);
                continue;
            }
            self.server_id(entry, path);
            self.claim(Claim::Provider, &entry.key, entry.line, "tools");
            let Entry { key: id, node, .. } = entry;
            self.provider(id, node, &path.key(id), keys);
        }
    }

    /// One entry, in the configuration or in a file of its own.
    pub(super) fn provider(&mut self, id: &str, node: &mut Node, path: &Trail<'_>, keys: &'static Catalogue) {
        if self.entries(node, path).is_none() {
            return;
        }
        // The kind decides how everything else is read, so a variable in it must be set.
        if let Some(kind) = entry_mut(node, "kind")
            && !self.expand(&mut kind.node, &path.key("kind"))
        {
            return;
        }
        match kind_of(node) {
            Some(ProviderKind::Mcp) => {
                self.foreign(node, path, keys.mcp, (keys.builtin, "builtin"));
                self.server(id, node, path, (keys.mcp, &Spelling::CATALOGUE));
                self.health_check(node, path);
            }
            Some(ProviderKind::Builtin) => {
                self.foreign(node, path, keys.builtin, (keys.mcp, "mcp"));
                self.section(node, path, keys.builtin);
                self.allowed_twice(node, path);
                self.commands(node, path);
            }
            None => return self.unkind(node, path, keys.mcp),
        }
        self.synonyms(node, path);
        if let Some(entry) = find(node, "id")
            && let Some(found) = entry.node.value.as_text().filter(|found| found.text != id)
        {
            let message = format!("{} must be {}, found {}", path.key("id"), quoted(id), found.quoted());
            self.report(entry.line, message);
        }
    }

    /// Says what is wrong with a kind that is none.
    fn unkind(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static [Key]) {
        let kind = keys.iter().find(|key| key.name == "kind").map(|key| &key.kind);
        match (entry_mut(node, "kind"), kind) {
            (Some(entry), Some(kind)) => self.scalar(&mut entry.node, &path.key("kind"), kind),
            _ => self.report(node.line, format!("{path} needs the key \"kind\": mcp or builtin")),
        }
    }

    /// Reports the keys that belong to the other kind, and takes them out.
    fn foreign(
        &mut self,
        node: &mut Node,
        path: &Trail<'_>,
        own: &'static [Key],
        (other, kind): (&'static [Key], &str),
    ) {
        let Value::Map(entries) = &mut node.value else { return };
        entries.retain(|entry| {
            let knows = |keys: &[Key]| keys.iter().any(|key| key.name == entry.key && key.is_offered());
            let is_foreign = !own.iter().any(|key| key.name == entry.key) && knows(other);
            if is_foreign {
                self.report(entry.line, format!("{} is for kind {kind}; remove it", path.key(&entry.key)));
            }
            !is_foreign
        });
    }

    fn synonyms(&mut self, node: &Node, path: &Trail<'_>) {
        for (one, two) in SYNONYMS {
            if let (Some(_), Some(second)) = (find_deep(node, one), find_deep(node, two)) {
                self.report(second.line, format!("{path} has \"{one}\" and \"{two}\"; keep one"));
            }
        }
    }

    /// Two lists of paths that differ would have to hold both, which nobody can see from one of them.
    fn allowed_twice(&mut self, node: &Node, path: &Trail<'_>) {
        let paths = |key| find_deep(node, key).map(|entry| (sorted_texts(&entry.node), entry.line));
        let (one, two) = ("builtinPolicy.allowedPaths", "permissions.allowedPaths");
        if let (Some((first, _)), Some((second, line))) = (paths(one), paths(two))
            && first != second
        {
            self.report(line, format!("{path} has \"{one}\" and another \"{two}\"; keep one"));
        }
    }

    /// What is for commands is for those tools that run some, and they need it; what is for files is for the others.
    fn commands(&mut self, node: &Node, path: &Trail<'_>) {
        let runs = policy(node).is_some_and(|name| name == SHELL);
        let (needed, foreign) = if runs { (COMMANDS, PATHS) } else { ("", COMMANDS) };
        let policy = path.key("builtinPolicy");
        if runs && find_deep(node, needed).is_none() {
            let advice = "name the commands that may be run";
            self.report(node.line, format!("{policy} needs the key \"allowedCommands\": {advice}"));
        }
        if let Some(entry) = find_deep(node, foreign) {
            let kinds = if runs { "fs_read and fs_write" } else { SHELL };
            self.report(entry.line, format!("{} is for {kinds}; remove it", policy.key(&entry.key)));
        }
    }

    fn health_check(&mut self, node: &Node, path: &Trail<'_>) {
        let Some(kind) = find_deep(node, "healthCheck.kind") else { return };
        if let Some(word) = kind.node.value.as_text().filter(|word| word.text != "jsonrpc") {
            let (path, word) = (path.key("healthCheck"), word.quoted());
            let warning =
                format!("{}: {word} {LATER}; it is asked over the connection (jsonrpc)", path.key("kind"));
            self.warn(kind.line, warning);
        }
    }
}

/// What provides the tools of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum ProviderKind {
    Mcp,
    Builtin,
}

/// The kind of an entry, if it has one that is known.
pub(in crate::config) fn kind_of(node: &Node) -> Option<ProviderKind> {
    match find(node, "kind")?.node.value.as_text()?.text.as_str() {
        "mcp" => Some(ProviderKind::Mcp),
        "builtin" => Some(ProviderKind::Builtin),
        _ => None,
    }
}

fn policy(node: &Node) -> Option<&str> {
    Some(find_deep(node, "builtinPolicy.name")?.node.value.as_text()?.text.as_str())
}

fn sorted_texts(list: &Node) -> Vec<&str> {
    let texts = list.value.items().iter().filter_map(|item| item.value.as_text());
    let mut texts: Vec<&str> = texts.map(|text| text.text.as_str()).collect();
    texts.sort_unstable();
    texts
}

fn entry_mut<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Entry> {
    let Value::Map(entries) = &mut node.value else { return None };
    entries.iter_mut().find(|entry| entry.key == key)
}

/// An entry of a node, or of a group in it.
fn find_deep<'n>(node: &'n Node, path: &str) -> Option<&'n Entry> {
    match path.split_once('.') {
        Some((group, key)) => find(&find(node, group)?.node, key),
        None => find(node, path),
    }
}
