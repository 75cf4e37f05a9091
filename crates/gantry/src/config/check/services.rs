//! Judges REST services: names, credentials, and what switches off one service only.

use super::Walk;
use crate::config::table::{Key, Kind};
use crate::config::text::{Judgement, Rule};
use crate::config::trail::Trail;
use crate::config::tree::{Entry, Node, Value, find, quoted};

/// The kinds of credentials: the keys that each needs, and those that it can have besides.
const CREDENTIALS: [(&[&str], &[&str]); 4] = [
    (&["apiKey"], &[]),
    (&["token"], &[]),
    (&["username", "password"], &[]),
    (&["clientId", "clientSecret"], &["tokenUrl", "scopes"]),
];
const ONE_OF_THEM: &str = "apiKey, token, username and password, or clientId and clientSecret";

/// Keys of `streaming` that mean something to one mode only.
const OF_JSON_STREAM: [&str; 6] =
    ["linePrefix", "discriminatorField", "doneValue", "answerField", "tokenValue", "tokenField"];
const JSON_STREAM: &str = "json-stream";

/// What a service is called among all that can be switched off. No id of a server has a colon in it.
pub(in crate::config) fn service_id(rule: Rule, name: &str) -> String {
    format!("{}:{name}", if rule == Rule::RestTool { "rest" } else { "openapi" })
}

impl Walk<'_, '_> {
    pub(super) fn services(&mut self, node: &mut Node, path: &Trail<'_>, rule: Rule, keys: &'static [Key]) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            if rule.judge(&entry.key) != Judgement::Good {
                let (name, noun) = (quoted(&entry.key), rule.noun());
                self.report(entry.line, format!("{name} in {path} must be {noun}"));
            }
            let path = path.key(&entry.key);
            if matches!(entry.node.value, Value::Null) {
                entry.node.line = entry.line;
            }
            self.missing = Some(Vec::new());
            self.section(&mut entry.node, &path, keys);
            self.streaming(&entry.node, &path);
            let missing = self.missing.take().unwrap_or_default();
            if missing.is_empty() {
                continue;
            }
            let reason = missing.join("; ");
            // Whoever switched it off need not set its variables.
            if !find(&entry.node, "enabled").is_some_and(|entry| entry.node.value == Value::Flag(false)) {
                self.warn(entry.line, format!("{path} is switched off: {reason}"));
            }
            let service = (self.project.clone(), service_id(rule, &entry.key));
            self.judge.unusable.insert(service, reason);
        }
    }

    /// What is said of one way to read a stream, and another one is chosen.
    fn streaming(&mut self, service: &Node, path: &Trail<'_>) {
        let Some(streaming) = find(service, "streaming") else { return };
        let mode = find(&streaming.node, "mode").and_then(|mode| mode.node.value.as_text());
        let Some(mode) = mode.map(|mode| mode.text.as_str()).filter(|mode| *mode != JSON_STREAM) else {
            return;
        };
        let path = path.key("streaming");
        for key in OF_JSON_STREAM {
            if let Some(entry) = find(&streaming.node, key) {
                self.warn(entry.line, format!("{} has no effect with mode {mode}", path.key(key)));
            }
        }
    }

    /// What is shown to an API, by the name of the security scheme. No message shows any of it.
    pub(super) fn credentials(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static [Key]) {
        let entries = match &mut node.value {
            Value::Null => return,
            Value::Map(entries) => entries,
            Value::Flag(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
                let example = "such as { api_key: { apiKey: \"${KEY}\" } }";
                return self
                    .report(node.line, format!("{path} must be a group of security schemes, {example}"));
            }
        };
        for entry in entries {
            if entry.key.is_empty() || entry.key.contains(char::is_control) {
                let name = quoted(&entry.key);
                self.report(entry.line, format!("{name} in {path} must be the name of a security scheme"));
            }
            let path = path.key(&entry.key);
            if !matches!(entry.node.value, Value::Map(_)) {
                self.report(entry.line, format!("{path} must be a group with {ONE_OF_THEM}"));
                continue;
            }
            self.section(&mut entry.node, &path, keys);
            self.credential(entry, &path);
        }
    }

    /// One kind of credential, and all of it.
    fn credential(&mut self, entry: &Entry, path: &Trail<'_>) {
        let has = |key: &&str| find(&entry.node, key).is_some();
        let mut kinds = CREDENTIALS.iter().filter_map(|(needed, others)| {
            let found = needed.iter().chain(*others).find(|key| has(key))?;
            Some((*found, *needed))
        });
        match (kinds.next(), kinds.next()) {
            (None, _) => self.report(entry.line, format!("{path} needs {ONE_OF_THEM}")),
            (Some((one, _)), Some((two, _))) => {
                let message =
                    format!("{path} has \"{one}\" and \"{two}\", which are different credentials; keep one");
                self.report(entry.line, message);
            }
            (Some((one, needed)), None) => {
                for key in needed.iter().filter(|key| !has(key)) {
                    self.report(entry.line, format!("{path} needs the key \"{key}\" with \"{one}\""));
                }
            }
        }
    }

    pub(super) fn per_operation(&mut self, node: &mut Node, path: &Trail<'_>, kind: &'static Kind) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            if Rule::Operation.judge(&entry.key) != Judgement::Good {
                let (name, noun) = (quoted(&entry.key), Rule::Operation.noun());
                self.report(entry.line, format!("{name} in {path} must be {noun}"));
            }
            self.value(&mut entry.node, &path.key(&entry.key), kind, entry.line);
        }
    }

    pub(super) fn object(&mut self, node: &Node, path: &Trail<'_>, noun: &str) {
        if !matches!(node.value, Value::Map(_)) {
            self.mismatch(node, path, noun);
        }
    }
}
