//! Judges the entries of MCP servers: what editors add to them, how they are reached, and what must not be shown.

use super::Walk;
use crate::config::editors;
use crate::config::table::Key;
use crate::config::text::{Judgement, Rule};
use crate::config::trail::Trail;
use crate::config::transport::{ADDRESSES, Transport, Undecided};
use crate::config::tree::{Entry, Node, Value, quoted};
use gantry_core::names::{RESERVED_NAMESPACES, sanitised};

/// The provider that is always there, which no server may be taken for.
const OWN_PROVIDER: &str = "workspace";

impl Walk<'_> {
    pub(super) fn servers(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static [Key]) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            self.server_id(entry, path);
            let path = path.key(&entry.key);
            if matches!(entry.node.value, Value::Null) {
                entry.node.line = entry.line;
            }
            self.findings.warnings.extend(editors::adopt_server(&mut entry.node, &path));
            self.missing = Some(Vec::new());
            self.section(&mut entry.node, &path, keys);
            self.reach(&entry.node, &path);
            let missing = self.missing.take().unwrap_or_default();
            if !missing.is_empty() {
                self.findings.unusable.insert(entry.key.clone(), missing.join("; "));
            }
        }
    }

    fn server_id(&mut self, entry: &Entry, path: &Trail<'_>) {
        let (id, noun) = (quoted(&entry.key), Rule::ServerId.noun());
        if Rule::ServerId.judge(&entry.key) != Judgement::Good {
            return self.report(entry.line, format!("{id} in {path} must be {noun}"));
        }
        let namespace = sanitised(&entry.key);
        if RESERVED_NAMESPACES.contains(&namespace.as_str()) || namespace == OWN_PROVIDER {
            self.report(entry.line, format!("{id} in {path} is a name of Gantry's own; choose another"));
        }
    }

    /// One way to reach the server, and all that this way needs.
    fn reach(&mut self, node: &Node, path: &Trail<'_>) {
        if !matches!(node.value, Value::Null | Value::Map(_)) {
            return;
        }
        let transport = match Transport::of(node) {
            Ok(transport) => transport,
            Err(Undecided::Unknown) => return,
            Err(Undecided::Nothing) => {
                let message = "needs \"command\", the program to start, or \"url\", where it listens";
                return self.report(node.line, format!("{path} {message}"));
            }
            Err(Undecided::Both) => {
                let message = "has both a command and an address; keep one, or make it two servers";
                return self.report(node.line, format!("{path} {message}"));
            }
        };
        let word = transport.word();
        for key in transport.without_effect() {
            if let Some(entry) = find(node, key).filter(|entry| says_something(&entry.node.value)) {
                let warning = format!("{path}.{key} has no effect with type {word}");
                self.findings.warnings.push((entry.line, warning));
            }
        }
        let stdio = transport == Transport::Stdio;
        let mut addresses = ADDRESSES.into_iter().filter_map(|key| find(node, key));
        let (first, second) = (addresses.next(), addresses.next());
        match (find(node, "command"), first, second) {
            (Some(command), _, _) if !stdio => {
                let message =
                    format!("{path}.command is for type stdio, and this is {word}; keep one of the two");
                self.report(command.line, message);
            }
            (_, Some(address), _) if stdio => {
                let message = format!("{path}.{} is not for type stdio; keep one of the two", address.key);
                self.report(address.line, message);
            }
            (None, _, _) if stdio => self.report(node.line, format!("{path} needs the key \"command\"")),
            (_, None, _) if !stdio => self.report(node.line, format!("{path} needs the key \"url\"")),
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

fn find<'n>(node: &'n Node, key: &str) -> Option<&'n Entry> {
    node.value.entries().iter().find(|entry| entry.key == key)
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
