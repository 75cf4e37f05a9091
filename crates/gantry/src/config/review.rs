//! Why a changed configuration waits for a person: it takes protection away, or brings files that were not there.

use super::accepted::Accepted;
use super::{Config, Loaded, Project};
use std::path::Path;

/// Reasons that are told; the rest are counted.
const MAX_REASONS: usize = 50;

impl Loaded {
    /// Why this configuration must not take the place of the former one by itself; nothing if it may.
    pub fn reasons_to_hold(&self, former: &Self, accepted: &Accepted) -> Vec<String> {
        let new = self.sources.all().filter(|file| !accepted.has(file));
        let new = new.map(|file| format!("{} was not there before", self.shown(file)));
        let cut =
            self.is_cut_short(former).then(|| "the file ends in the middle of the former one".to_owned());
        let mut reasons: Vec<String> =
            new.chain(cut).chain(taken_away(&former.config, &self.config)).collect();
        let more = reasons.len().saturating_sub(MAX_REASONS);
        if more > 0 {
            reasons.truncate(MAX_REASONS);
            reasons.push(format!("and {more} more"));
        }
        reasons
    }

    /// Whether it says the same as the former one.
    pub fn is_like(&self, former: &Self) -> bool {
        *self == Self { warnings: self.warnings.clone(), ..former.clone() }
    }

    /// The files of this configuration that a tool may have made, as messages name them.
    pub fn suspects(&self, accepted: &Accepted) -> Vec<String> {
        self.sources.all().filter(|file| accepted.suspects(file)).map(|file| self.shown(file)).collect()
    }

    fn shown(&self, file: &Path) -> String {
        file.strip_prefix(&self.folder).unwrap_or(file).display().to_string()
    }

    /// Whether the file is the beginning of the former one: its writer may not have got further.
    fn is_cut_short(&self, former: &Self) -> bool {
        let (now, before) = (self.documents.text.trim_end(), former.documents.text.trim_end());
        self.config != former.config
            && self.file == former.file
            && now.len() < before.len()
            && before.starts_with(now)
    }
}

fn taken_away(former: &Config, now: &Config) -> Vec<String> {
    let mut reasons = Vec::new();
    for (name, before) in former.all() {
        let Some(project) = now.project(name) else {
            reasons.push(format!("project {name} is removed"));
            continue;
        };
        let place = if name == super::MAIN_PROJECT { String::new() } else { format!(" of project {name}") };
        let policies = before.policies.iter().map(|policy| &policy.name);
        let gone = policies.filter(|name| project.policies.iter().all(|policy| policy.name != **name));
        reasons.extend(gone.map(|policy| format!("policy {policy}{place} is removed")));
        let gone = before.agents.keys().filter(|agent| !project.agents.contains_key(*agent));
        reasons.extend(gone.map(|agent| format!("agent {agent}{place} is removed")));
        if is_wider(before, project) {
            let (from, to) = (before.workspace.display(), project.workspace.display());
            reasons.push(format!("the workspace{place} is {to}, which is not within {from}"));
        }
    }
    reasons
}

fn is_wider(before: &Project, now: &Project) -> bool {
    let canonical = |project: &Project| project.workspace.canonicalize();
    match (canonical(before), canonical(now)) {
        (Ok(before), Ok(now)) => !now.starts_with(before),
        // A folder that is gone says nothing about what is in another one.
        _ => before.workspace != now.workspace,
    }
}
