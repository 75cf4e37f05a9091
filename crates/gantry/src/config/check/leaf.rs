//! Judges single values: texts, numbers, flags, words, names of queues, and the variables in them.

use serde_json::Number;

use super::{LATER, Walk};
use crate::config::error::Location;
use crate::config::expand::{Fault, expand};
use crate::config::table::{self, Kind, Zero};
use crate::config::text::{Judgement, Rule};
use crate::config::trail::Trail;
use crate::config::tree::{Node, Value};
use crate::config::{suggest, yaml};

impl Walk<'_, '_> {
    pub(super) fn texts(&mut self, node: &mut Node, path: &Trail<'_>, rule: Rule, min: usize) {
        let noun = Kind::Texts(rule, min).noun();
        let Value::List(items) = &mut node.value else {
            return self.mismatch(node, path, &noun);
        };
        if items.len() < min {
            return self.report(node.line, format!("{path} must be {noun}, found {}", items.len()));
        }
        for (n, item) in items.iter_mut().enumerate() {
            let path = path.item(n);
            if self.expand(item, &path) {
                self.text(item, &path, rule);
            }
        }
    }

    pub(super) fn choices(&mut self, node: &mut Node, path: &Trail<'_>, words: &[&str], noun: &str) {
        let Value::List(items) = &mut node.value else {
            return self.mismatch(node, path, noun);
        };
        for (n, item) in items.iter_mut().enumerate() {
            let path = path.item(n);
            if self.expand(item, &path)
                && !item.value.as_text().is_some_and(|word| words.contains(&word.text.as_str()))
            {
                self.mismatch(item, &path, &words.join(" or "));
            }
        }
    }

    /// A list of patterns, or a group that says more.
    pub(super) fn agent_tools(&mut self, node: &mut Node, path: &Trail<'_>, kind: &'static Kind) {
        match (&node.value, kind) {
            (Value::List(_), _) => self.texts(node, path, Rule::Pattern, 0),
            (Value::Map(_), Kind::AgentTools(keys)) => self.section(node, path, keys),
            _ => self.mismatch(node, path, &kind.noun()),
        }
    }

    pub(super) fn aliases(&mut self, node: &mut Node, path: &Trail<'_>) {
        let Some(entries) = self.entries(node, path) else { return };
        for entry in entries {
            self.name(entry, path);
            let path = path.key(&entry.key);
            if self.expand(&mut entry.node, &path) {
                self.text(&entry.node, &path, Rule::Tool);
            }
        }
    }

    /// What others write to take something away.
    pub(super) fn granted(&mut self, node: &Node, path: &Trail<'_>, advice: &str) {
        if !matches!(node.value, Value::Null | Value::Flag(true)) {
            let found = node.value.quoted();
            self.report(node.line, format!("{path}: {found} {advice}"));
        }
    }

    pub(super) fn gated(&mut self, node: &mut Node, path: &Trail<'_>, noun: &str) {
        if matches!(node.value, Value::List(_)) {
            return self.texts(node, path, Rule::Pattern, 0);
        }
        if !self.expand(node, path) {
            return;
        }
        if !node.value.as_text().is_some_and(|text| text.text == "all" || text.text == "none") {
            self.mismatch(node, path, noun);
        }
    }

    pub(super) fn scalar(&mut self, node: &mut Node, path: &Trail<'_>, kind: &'static Kind) {
        let noun = kind.noun();
        match (kind, &node.value) {
            (Kind::Text(rule), _) => self.text(node, path, *rule),
            (Kind::Verbatim, _) => self.text(node, path, Rule::Any),
            (Kind::Number(bounds), _) => self.number(node, path, *bounds, &noun),
            (Kind::QueueOrNone, Value::Null | Value::Flag(false)) | (Kind::Flag, Value::Flag(_)) => {}
            (Kind::Flag, Value::Text(text)) if text.written.is_some() => match text.text.as_str() {
                "true" => node.value = Value::Flag(true),
                "false" => node.value = Value::Flag(false),
                _ => self.mismatch(node, path, &noun),
            },
            (Kind::Queue | Kind::QueueOrNone, Value::Text(text)) => {
                if !self.judge.queues.contains(&text.text) {
                    let message = self.unknown_queue(path, &text.text, &text.quoted());
                    self.report(node.line, message);
                }
            }
            (Kind::Choice(words, later), Value::Text(text)) => {
                let word = text.text.as_str();
                if later.contains(&word) {
                    self.report(node.line, format!("{path}: {} {LATER}; use {noun}", text.quoted()));
                } else if !words.contains(&word) {
                    self.mismatch(node, path, &noun);
                }
            }
            _ => self.mismatch(node, path, &noun),
        }
    }

    fn unknown_queue(&self, path: &Trail<'_>, name: &str, shown: &str) -> String {
        let names = self.judge.queues.iter().map(String::as_str);
        let advice = match suggest::nearest(name, names.clone()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if self.judge.queues.is_empty() => {
                "no queue is configured; add it under \"queues\"".to_owned()
            }
            None => format!("queues are {}", suggest::list(names)),
        };
        format!("{path}: unknown queue {shown}; {advice}")
    }

    fn text(&mut self, node: &Node, path: &Trail<'_>, rule: Rule) {
        match node.value.as_text().map_or(Judgement::Bad, |text| rule.judge(&text.text)) {
            Judgement::Good if rule == Rule::Inside => self.confined(node, path),
            Judgement::Good => {}
            // It may be a secret, or hold one, so it is not quoted.
            Judgement::Bad if rule.is_secret() => {
                self.report(node.line, format!("{path} must be {}", rule.noun()));
            }
            Judgement::Bad => self.mismatch(node, path, rule.noun()),
            Judgement::Later(what) => {
                // The text may hold a password, so it is not quoted.
                self.report(node.line, format!("{path}: {what} {LATER}; use {}", rule.noun()));
            }
        }
    }

    fn number(&mut self, node: &mut Node, path: &Trail<'_>, bounds: table::Number, noun: &str) {
        let spelled = node.value.as_text().filter(|text| text.written.is_some());
        let spelled = spelled.and_then(|text| yaml::number(&text.text));
        match node.value.as_number().or(spelled.as_ref()).and_then(Number::as_u64) {
            None => self.mismatch(node, path, noun),
            Some(0) if bounds.zero == Zero::Refused => {
                self.mismatch(node, path, &format!("{noun}, at least 1"))
            }
            Some(n) if n > bounds.max => {
                self.mismatch(node, path, &format!("{noun}, at most {}", bounds.max))
            }
            Some(n) => node.value = Value::Number(n.into()),
        }
    }

    /// Puts variables into a text. False when that failed and was reported.
    pub(super) fn expand(&mut self, node: &mut Node, path: &Trail<'_>) -> bool {
        let Some(variables) = self.variables else { return true };
        let Value::Text(text) = &mut node.value else { return true };
        match expand(&text.text, variables, self.dialect) {
            Ok(None) => true,
            Ok(Some(expanded)) => {
                text.written = Some(std::mem::replace(&mut text.text, expanded));
                true
            }
            Err(Fault::Missing(message)) if let Some(missing) = &mut self.missing => {
                let at = Location { file: self.file.clone(), line: node.line };
                // A server that is added stands in no file.
                let place = if at.file.as_os_str().is_empty() { String::new() } else { format!("{at}: ") };
                missing.push(format!("{place}{path}: {message}"));
                // Nothing takes the name of a variable for its value.
                node.value = Value::Null;
                false
            }
            Err(Fault::Missing(message) | Fault::Wrong(message)) => {
                self.report(node.line, format!("{path}: {message}"));
                false
            }
        }
    }

    pub(super) fn expand_all(&mut self, node: &mut Node, path: &Trail<'_>) {
        match &mut node.value {
            Value::Null | Value::Flag(_) | Value::Number(_) => {}
            Value::Text(_) => {
                self.expand(node, path);
            }
            Value::List(items) => {
                items.iter_mut().enumerate().for_each(|(n, item)| self.expand_all(item, &path.item(n)));
            }
            Value::Map(entries) => {
                entries.iter_mut().for_each(|entry| self.expand_all(&mut entry.node, &path.key(&entry.key)));
            }
        }
    }
}
