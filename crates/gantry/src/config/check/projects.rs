//! Judges the projects of a configuration, and that what is confined to a workspace lies in it.

use super::Walk;
use super::claims::Claim;
use crate::config::model::MAIN_PROJECT;
use crate::config::projects::{within, workspace};
use crate::config::table::Key;
use crate::config::trail::Trail;
use crate::config::tree::{Node, Value, find, quoted};
use std::path::Path;

/// A path that must lie in the workspace.
#[derive(Debug)]
pub(super) struct Inside {
    line: usize,
    /// Where it is written, and how.
    place: String,
    written: String,
    path: String,
}

impl Walk<'_, '_> {
    pub(super) fn projects(&mut self, node: &mut Node, path: &Trail<'_>, keys: &'static [Key]) {
        let Some(entries) = self.entries(node, path) else { return };
        let outer = std::mem::take(&mut self.inside);
        for entry in entries {
            self.name(entry, path);
            if entry.key == MAIN_PROJECT {
                let message = "is the file itself; choose another name, or write its keys at the top";
                self.report(entry.line, format!("{} in {path} {message}", quoted(&entry.key)));
            }
            if matches!(entry.node.value, Value::Null) {
                entry.node.line = entry.line;
            }
            let main = std::mem::replace(&mut self.project, entry.key.clone());
            self.section(&mut entry.node, &path.key(&entry.key), keys);
            self.settle(&entry.node);
            self.project = main;
        }
        self.inside = outer;
    }

    /// Remembers a path that must lie in the workspace of the project.
    pub(super) fn confined(&mut self, node: &Node, path: &Trail<'_>) {
        if let Some(text) = node.value.as_text() {
            let (place, written, path) = (path.to_string(), text.quoted(), text.text.clone());
            self.inside.push(Inside { line: node.line, place, written, path });
        }
    }

    /// What can be said when all of a project in the configuration is read.
    pub(super) fn settle(&mut self, project: &Node) {
        for agent in find(project, "agents").into_iter().flat_map(|entry| entry.node.value.entries()) {
            self.claim(Claim::Agent, &agent.key, agent.line, "agents");
        }
        let folder = workspace(project, self.judge.folder);
        self.confine(&folder);
    }

    /// Warns of projects without policies or approvals of their own where the file denies something or makes calls wait,
    /// which its author may take to hold everywhere.
    pub(super) fn uninherited(&mut self, root: &Node) {
        let denies = |policy: &Node| {
            let decide = find(policy, "decide").and_then(|entry| entry.node.value.as_text());
            decide.is_some_and(|word| word.text == "deny")
        };
        let policies = find(root, "policies").map_or(&[][..], |entry| entry.node.value.items());
        if policies.iter().any(denies) {
            self.without(root, "policies", "policies: []");
        }
        if find(root, "approvals").is_some_and(|entry| !entry.node.value.entries().is_empty()) {
            self.without(root, "approvals", "approvals: {}");
        }
    }

    /// Warns of projects that have no such key.
    fn without(&mut self, root: &Node, key: &str, none: &str) {
        let projects = find(root, "projects").map_or(&[][..], |entry| entry.node.value.entries());
        for project in projects.iter().filter(|project| find(&project.node, key).is_none()) {
            let name = Trail::CONFIGURATION.key("projects").key(&project.key).to_string();
            let advice = format!("write its own, or {none} if it needs none");
            self.warn(
                project.line,
                format!("{name} has no {key}, and those of the file are not inherited; {advice}"),
            );
        }
    }

    /// Reports the paths that leave the workspace.
    pub(super) fn confine(&mut self, workspace: &Path) {
        for Inside { line, place, written, path } in std::mem::take(&mut self.inside) {
            if within(workspace, &path).is_none() {
                let folder = workspace.display();
                let advice = "name a path in it, without \"..\"";
                self.report(
                    line,
                    format!("{place}: {written} is outside of the workspace {folder}; {advice}"),
                );
            }
        }
    }
}
