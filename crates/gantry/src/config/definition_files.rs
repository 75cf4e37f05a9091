//! The files beside a configuration that each define one agent or one entry of the catalogue of tools:
//! `agents/<name>/agent.json`, `agents/<name>.md` and `tools/<id>/tool.json`.

pub(super) mod front_matter;
mod list;

pub(super) use list::{AGENTS, TOOLS, names};

use super::accepted::objection;
use super::compose::Ignored;
use super::de::{self, Context, Findings};
use super::document::{Document, Entry, Format, Node, Value, find, quoted};
use super::dotenv::Variables;
use super::error::{Location, Problem};
use super::find::read;
use super::key_path::KeyPath;
use super::resolve::{Resolver, is_own_name};
use super::schema::{Agent, CatalogueEntry, Project};
use super::suggest;
use gantry_core::options::{Name, ServerId, Title};
use gantry_runtime::options::AgentOptions;
use list::{DefinitionFile, FileKind, list};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// An `agent.json`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AgentFile {
    #[serde(rename = "..agent")]
    #[schemars(flatten)]
    agent: Agent,
    /// What people are shown. The agent's name is that of the folder.
    name: Option<Title>,
    region: Ignored,
    ui: Ignored,
    icon: Ignored,
    max_steps: Ignored,
    skills: Ignored,
    prompts: Ignored,
    commands: Ignored,
    streaming: Ignored,
}

/// The front matter of a Markdown file.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FrontMatter {
    #[serde(rename = "..agent")]
    #[schemars(flatten)]
    agent: AgentOptions,
    /// The agent's name; that of the file, without `.md`, unless given. One that cannot be a name is what people are shown.
    name: Option<Title>,
}

/// What makes front matter an agent's.
const AGENT_KEYS: [&str; 3] = ["name", "description", "tools"];
const FRONT_MATTER_KEYS: [&str; 4] = ["name", "description", "tools", "model"];

const AGENT: KeyPath<'static> = KeyPath::Root("this agent");
const TOOL: KeyPath<'static> = KeyPath::Root("this tool");

/// Adds what the files of a project define to it, and returns the files that were read.
pub(super) fn read_all(
    project: &mut Project,
    resolver: &mut Resolver<'_>,
    variables: &Variables<'_>,
) -> Vec<PathBuf> {
    let mut read = Vec::new();
    // What an agent's tools are called can depend on which provider has them, so these come first.
    for dir in [&TOOLS, &AGENTS] {
        let mut findings = Findings::default();
        let files = list(&project.places, dir, &mut findings);
        resolver.accept(findings);
        for file in files {
            let mut findings = Findings::default();
            let defined = define(&file, &project.places.name, resolver, variables, &mut findings);
            if resolver.base.leaves_out(&file.path) {
                // A file that defines nothing anyway needs no person.
                let new = defined.map(|_| Problem::in_file(&file.shown, objection("left out")));
                resolver.findings.warnings.extend(findings.problems.left_out().or(new));
                continue;
            }
            if let (true, Some((name, defined, document))) = (resolver.accept(findings), defined) {
                add(project, &file, name, defined, document, resolver);
                read.push(file.path);
            }
        }
    }
    read
}

enum Defined {
    Agent(AgentOptions),
    Tool(CatalogueEntry),
}

/// Adds what a file defines to its project, unless its name is taken.
fn add(
    project: &mut Project,
    file: &DefinitionFile,
    name: String,
    defined: Defined,
    document: Document,
    resolver: &mut Resolver<'_>,
) {
    let written = find(&document.root, "name").filter(|_| file.kind == FileKind::AgentMarkdown);
    let at = Location { file: file.shown.clone(), line: written.map_or(1, |entry| entry.place.line) };
    let section = match defined {
        Defined::Agent(_) => AGENTS.folder,
        Defined::Tool(_) => TOOLS.folder,
    };
    if !resolver.claim(&project.places.name, section, &name, &at) {
        return;
    }
    resolver.documents.define(&project.places.name, section, &name, document);
    match (defined, name.parse::<ServerId>()) {
        (Defined::Agent(agent), _) => drop(project.agents.insert(name, agent)),
        (Defined::Tool(entry), Ok(id)) => drop(project.tools.entries.insert(id, entry)),
        // Folders with such names are not read.
        (Defined::Tool(_), Err(_)) => {}
    }
}

/// Reads one file; some define nothing.
fn define(
    file: &DefinitionFile,
    project: &str,
    resolver: &Resolver<'_>,
    variables: &Variables<'_>,
    findings: &mut Findings,
) -> Option<(String, Defined, Document)> {
    let DefinitionFile { name, path, shown, kind } = file;
    // What people write about in a text for a model may look like a variable and is none.
    let variables = Some(variables).filter(|_| *kind != FileKind::AgentMarkdown);
    let mut context = Context::new(shown.clone(), variables);
    context.verbatim_key = Some("prompt").filter(|_| *kind == FileKind::AgentJson);
    let text = read(path, shown).map_err(|problem| findings.problems.push(problem)).ok()?;
    let page = if *kind == FileKind::AgentMarkdown {
        front_matter::read(&text, &|id| resolver.has_provider(project, id), &context)
    } else {
        Format::Json.parse(&text).map(|root| Some((root, None)))
    };
    let page = page.map_err(|syntax| findings.problems.push(Problem::syntax(shown, syntax)));
    let (root, prompt) = page.ok()??;
    let mut document = Document::new(shown.clone(), root);
    if let Value::Map(entries) = &mut document.root.value {
        // The schema of another program.
        entries.retain(|entry| entry.key != "$schema");
    }
    let defined = match kind {
        FileKind::AgentMarkdown => markdown_agent(&mut document, prompt, name, &context),
        FileKind::AgentJson => {
            context.report_duplicates(&mut document);
            let read = de::read::<AgentFile>(&document.root, AGENT, &context);
            read.map(|file| (name.clone(), Defined::Agent(named(file.agent.into(), file.name))))
        }
        FileKind::ToolJson => tool(&mut document, name, &context).map(|tool| (name.clone(), tool)),
    };
    findings.extend(context.into_findings());
    let (name, defined) = defined?;
    Some((name, defined, document))
}

/// An agent without a description is described by its name for people.
fn named(agent: AgentOptions, title: Option<Title>) -> AgentOptions {
    AgentOptions { description: agent.description.or(title.map(Into::into)), ..agent }
}

/// The agent of a Markdown file whose front matter is this document.
fn markdown_agent(
    document: &mut Document,
    prompt: Option<String>,
    stem: &str,
    context: &Context<'_>,
) -> Option<(String, Defined)> {
    let is_agent = |entry: &Entry| AGENT_KEYS.contains(&entry.key.as_str());
    if matches!(document.root.value, Value::Null | Value::Map(_))
        && !document.root.value.entries().iter().any(is_agent)
    {
        let keys = "name, description and tools";
        context.warn_file(&format!("not read, because its front matter has none of {keys}"));
        return None;
    }
    context.report_duplicates(document);
    remove_editor_keys(&mut document.root, context);
    let written = find(&document.root, "name");
    let line = written.map_or(1, |entry| entry.place.line);
    let name =
        written.and_then(|entry| entry.node.value.as_text()).filter(|name| name.parse::<Name>().is_ok());
    let name = name.unwrap_or(stem).to_owned();
    let FrontMatter { agent, name: title } = de::read(&document.root, AGENT, context)?;
    if let Err(noun) = name.parse::<Name>() {
        let advice = "rename the file, or write such a \"name\" into its front matter";
        context.report(
            line,
            format!("the agent would be called {}, which is not {noun}; {advice}", quoted(stem)),
        );
        return None;
    }
    let title = title.filter(|title| title.parse::<Name>().is_err());
    Some((name, Defined::Agent(AgentOptions { prompt, ..named(agent, title) })))
}

/// Removes the keys that editors keep in front matter, with a warning. One that looks as if it said which tools the agent
/// has is refused: to pass it over would give what it was written to take.
fn remove_editor_keys(root: &mut Node, context: &Context<'_>) {
    let Value::Map(entries) = &mut root.value else { return };
    entries.retain(|entry| {
        let key = entry.key.to_lowercase();
        if FRONT_MATTER_KEYS.contains(&entry.key.as_str()) {
            return true;
        }
        if suggest::nearest(&key, ["tools"]).is_some() {
            let advice = "did you mean \"tools\"?";
            context.report(entry.place.line, format!("unknown key {}; {advice}", quoted(&entry.key)));
        } else if key.contains("tool") || matches!(key.as_str(), "permission" | "permissions") {
            let advice = "write the tools that it may use into \"tools\"";
            context
                .report(entry.place.line, format!("{} is not read by Gantry; {advice}", quoted(&entry.key)));
        } else {
            let restricts = key.contains("permission");
            let why = if restricts { "nothing is restricted by it" } else { "it is for editors" };
            let key = AGENT.key(&entry.key).to_string();
            context.warn(entry.place.line, format!("{key} has no effect; {why}"));
        }
        false
    });
}

fn tool(document: &mut Document, id: &str, context: &Context<'_>) -> Option<Defined> {
    context.report_duplicates(document);
    if is_own_name(id) {
        let advice = "rename its folder; Gantry's own tools are set up under \"tools\" in the configuration";
        context.report(1, format!("{} is a name of Gantry's own; {advice}", quoted(id)));
        return None;
    }
    de::read(&document.root, TOOL, context).map(Defined::Tool)
}
