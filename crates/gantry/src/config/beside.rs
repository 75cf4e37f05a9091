//! The files beside a configuration that each define one agent or one entry of the catalogue of tools:
//! `agents/<name>/agent.json`, `agents/<name>.md` and `tools/<id>/tool.json`.

mod list;

pub(super) use list::{AGENTS, TOOLS, names};

use super::build::Base;
use super::build::agents::{of_front_matter, of_json};
use super::build::catalogue::{Provider, provider};
use super::check::Judge;
use super::error::{Location, Problem};
use super::find;
use super::front_matter;
use super::model::{Agent, Builtin, McpServer};
use super::projects::Place;
use super::tree::{Format, Syntax};
use list::{File, Form, list};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What the files beside a configuration add to a project.
#[derive(Debug, Default)]
pub(super) struct Beside {
    pub(super) agents: BTreeMap<String, Agent>,
    pub(super) mcp_servers: BTreeMap<String, McpServer>,
    pub(super) builtin: BTreeMap<String, Builtin>,
    /// The files that are links. What they lead to configures Gantry too.
    pub(super) links: Vec<PathBuf>,
}

impl Beside {
    /// Reads the files of a project.
    pub(super) fn read(place: &Place, base: &Base, judge: &mut Judge<'_>) -> Self {
        let mut beside = Self::default();
        // What an agent's tools are called can depend on who provides them, so these come first.
        for folder in [&TOOLS, &AGENTS] {
            let files = list(place, folder, judge);
            judge.leaves_out(&place.shown.join(folder.folder));
            for file in files {
                let defined = defined(&file, place, base, judge).unwrap_or_else(|problem| {
                    judge.problems.push(problem);
                    None
                });
                if !judge.leaves_out(&file.shown) {
                    beside.insert(file.name, defined);
                }
                if file.path.is_symlink() {
                    beside.links.push(file.path);
                }
            }
        }
        beside
    }

    fn insert(&mut self, id: String, defined: Option<Defined>) {
        match defined {
            Some(Defined::Agent(name, agent)) => drop(self.agents.insert(name, agent)),
            Some(Defined::Provider(Provider::Mcp(server))) => drop(self.mcp_servers.insert(id, server)),
            Some(Defined::Provider(Provider::Builtin(builtin))) => drop(self.builtin.insert(id, builtin)),
            None => {}
        }
    }
}

/// What a file defines.
enum Defined {
    Agent(String, Agent),
    Provider(Provider),
}

/// Reads one file; some define nothing.
fn defined(
    file: &File,
    place: &Place,
    base: &Base,
    judge: &mut Judge<'_>,
) -> Result<Option<Defined>, Problem> {
    let File { name, path, shown, form } = file;
    let text = find::read(path, shown)?;
    let at = |line| Location { file: shown.clone(), line };
    let unreadable =
        |syntax: Syntax| Problem::at(&at(syntax.line), syntax.message).with_column(syntax.column);
    if *form == Form::AgentText {
        let is_provider = |id: &str| judge.has_provider(&place.name, id);
        let Some(page) = front_matter::read(&text, &is_provider).map_err(unreadable)? else {
            return Ok(None);
        };
        let mut root = page.root;
        let warnings = page.warnings.into_iter();
        judge.warnings.extend(warnings.map(|(line, text)| Problem::at(&at(line), text)));
        let name = judge.front_matter(&mut root, shown, place, name);
        return Ok(name.map(|name| Defined::Agent(name, of_front_matter(&root, shown, page.prompt))));
    }
    let mut root = Format::Json.parse(&text).map_err(unreadable)?;
    if *form == Form::AgentJson {
        judge.agent(&mut root, shown, place, name);
        return Ok(Some(Defined::Agent(name.clone(), of_json(&root, shown))));
    }
    judge.tool(&mut root, shown, place, name);
    Ok(provider(name, (&root, shown), base, place, &judge.unusable).map(Defined::Provider))
}
