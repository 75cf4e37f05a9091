//! Judges the entries of MCP servers: what editors add to them, how they are reached, and what must not be shown.

use super::Walk;
use super::catalogue::OWN_PROVIDERS;
use super::claims::Claim;
use crate::config::editors;
use crate::config::expand::Dialect;
use crate::config::table::Key;
use crate::config::text::{Judgement, Rule};
use crate::config::trail::Trail;
use crate::config::transport::{Spelling, Transport, Undecided};
use crate::config::tree::{Entry, Node, Value, find, quoted};
use gantry_core::names::{is_reserved_namespace, sanitised};

impl Walk<'_, '_> {
    pub(super) fn servers(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static [Key]) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            self.server_id(entry, path);
            self.claim(Claim::Provider, &entry.key, entry.line, "mcpServers");
            let path = path.key(&entry.key);
            if matches!(entry.node.value, Value::Null) {
                entry.node.line = entry.line;
            }
            for (line, text) in editors::adopt_server(&mut entry.node, &path) {
                self.warn(line, text);
            }
            self.server(&entry.key, &mut entry.node, &path, (keys, &Spelling::SERVER));
        }
    }

    /// One server, by the keys that it can have and what it calls those that say how it is reached.
    pub(super) fn server(
        &mut self,
        id: &str,
        node: &mut Node,
        path: &Trail<'_>,
        (keys, spelling): (&'static [Key], &'static Spelling),
    ) {
        self.missing = Some(Vec::new());
        self.dialect = Dialect::Editor;
        self.section(node, path, keys);
        self.reach(node, path, spelling);
        self.dialect = Dialect::Gantry;
        let missing = self.missing.take().unwrap_or_default();
        if !missing.is_empty() {
            let server = (self.project.clone(), id.to_owned());
            self.judge.unusable.insert(server, missing.join("; "));
        }
    }

    pub(super) fn server_id(&mut self, entry: &Entry, path: &Trail<'_>) {
        let (id, noun) = (quoted(&entry.key), Rule::ServerId.noun());
        if Rule::ServerId.judge(&entry.key) != Judgement::Good {
            return self.report(entry.line, format!("{id} in {path} must be {noun}"));
        }
        if is_own_name(&entry.key) {
            self.report(entry.line, format!("{id} in {path} is a name of Gantry's own; choose another"));
        }
    }

    /// One way to reach the server, and all that this way needs.
    fn reach(&mut self, node: &Node, path: &Trail<'_>, spelling: &'static Spelling) {
        if !matches!(node.value, Value::Null | Value::Map(_)) {
            return;
        }
        let Spelling { transport: kind, address: url, addresses } = spelling;
        let transport = match Transport::of(node, spelling) {
            Ok(transport) => transport,
            Err(Undecided::Unknown) => return,
            Err(Undecided::Nothing) => {
                let message =
                    format!("{path} needs \"command\", the program to start, or \"{url}\", where it listens");
                return self.report(node.line, message);
            }
            Err(Undecided::Both) => {
                let message = "has both a command and an address; keep one, or make it two servers";
                return self.report(node.line, format!("{path} {message}"));
            }
        };
        let word = transport.word();
        for key in transport.without_effect() {
            if let Some(entry) = find(node, key).filter(|entry| says_something(&entry.node.value)) {
                self.warn(entry.line, format!("{} has no effect with {kind} {word}", path.key(key)));
            }
        }
        let stdio = transport == Transport::Stdio;
        let mut addresses = addresses.iter().filter_map(|key| find(node, key));
        let (first, second) = (addresses.next(), addresses.next());
        match (find(node, "command"), first, second) {
            (Some(command), _, _) if !stdio => {
                let message = format!("is for {kind} stdio, and this is {word}; keep one of the two");
                self.report(command.line, format!("{} {message}", path.key("command")));
            }
            (_, Some(address), _) if stdio => {
                let message = format!("is not for {kind} stdio; keep one of the two");
                self.report(address.line, format!("{} {message}", path.key(&address.key)));
            }
            (None, _, _) if stdio => self.report(node.line, format!("{path} needs the key \"command\"")),
            (_, None, _) if !stdio => self.report(node.line, format!("{path} needs the key \"{url}\"")),
            (_, Some(one), Some(two)) => {
                let message = format!("{path} has \"{}\" and \"{}\"; keep one", one.key, two.key);
                self.report(two.line, message);
            }
            (_, Some(address), None) => self.address(address, path, transport),
            (_, None, _) => {}
        }
    }

    fn address(&mut self, entry: &Entry, path: &Trail<'_>, transport: Transport) {
        let path = path.key(&entry.key);
        if entry.key == "address" && transport != Transport::Tcp {
            return self.report(entry.line, format!("{path} is for type tcp; use \"url\""));
        }
        let bad = |node: &Node| node.value.as_text().is_some_and(|text| !transport.takes(&text.text));
        let nodes = std::iter::once(&entry.node).chain(entry.node.value.items());
        let lines: Vec<usize> = nodes.filter(|node| bad(node)).map(|node| node.line).collect();
        for line in lines {
            // An address may hold a key, so it is not quoted.
            self.report(line, format!("{path} must be {}", transport.address_noun()));
        }
    }

    /// A group of names and texts. No message shows what the texts are.
    pub(super) fn secrets(&mut self, node: &mut Node, path: &Trail<'_>, rule: Rule) {
        let noun = rule.noun();
        let entries = match &mut node.value {
            Value::Null => return,
            Value::Map(entries) => entries,
            Value::Flag(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
                return self.report(node.line, format!("{path} must be a group of texts, each under {noun}"));
            }
        };
        for entry in entries {
            if rule.judge(&entry.key) != Judgement::Good {
                self.report(entry.line, format!("{} in {path} must be {noun}", quoted(&entry.key)));
            }
            let path = path.key(&entry.key);
            if !self.expand(&mut entry.node, &path) {
                continue;
            }
            let text = entry.node.value.as_text().map(|text| text.text.as_str());
            if text.is_none() {
                self.report(entry.node.line, format!("{path} must be text; put it in quotes"));
            } else if !text.is_some_and(|text| can_be_sent(text, rule)) {
                self.report(entry.node.line, format!("{path} holds a character that cannot stand there"));
            }
        }
    }
}

/// Whether an id is for Gantry's own tools.
pub(super) fn is_own_name(id: &str) -> bool {
    is_reserved_namespace(id) || OWN_PROVIDERS.contains(&sanitised(id).as_str())
}

/// Editors write empty groups and lists into every entry.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::List(items) => !items.is_empty(),
        Value::Map(entries) => !entries.is_empty(),
        Value::Flag(_) | Value::Number(_) | Value::Text(_) => true,
    }
}

fn can_be_sent(text: &str, rule: Rule) -> bool {
    if rule == Rule::Header { http::HeaderValue::from_str(text).is_ok() } else { !text.contains('\0') }
}
