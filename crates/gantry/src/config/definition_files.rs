//! The files beside a configuration that each define one agent or one entry of the catalogue of tools:
//! `agents/<name>/agent.json`, `agents/<name>.md` and `tools/<id>/tool.json`.

pub(super) mod front_matter;
mod list;

pub(super) use list::{AGENTS, TOOLS, names};

use super::compose::{Both, Ignored};
use super::de::{self, Context, Findings};
use super::document::{Document, Entry, Format, Node, Syntax, Value, find, quoted};
use super::dotenv::Variables;
use super::error::{Location, Problem};
use super::find::read;
use super::key_path::KeyPath;
use super::model::Places;
use super::resolve::{NameKind, Resolver, is_own_name};
use super::schema::{Agent, CatalogueEntry};
use super::suggest;
use gantry_core::options::{Name, Title};
use gantry_runtime::options::AgentOptions;
use list::{DefinitionFile, FileKind, list};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What the files beside a configuration add to a project.
#[derive(Default)]
pub(super) struct DefinitionFiles {
    pub(super) agents: BTreeMap<String, AgentOptions>,
    pub(super) tools: BTreeMap<String, CatalogueEntry>,
    /// The files that are links. What they lead to configures Gantry too.
    pub(super) links: Vec<PathBuf>,
}

/// An `agent.json`.
pub(super) type AgentFile = Both<Agent, AgentFileKeys>;
/// The front matter of a Markdown file.
pub(super) type FrontMatter = Both<AgentOptions, FrontMatterKeys>;

/// What an `agent.json` has besides.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AgentFileKeys {
    /// What people are shown. The agent's name is that of the folder.
    name: Option<Title>,
    /// The schema of another program.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// this version of Gantry does not read it
    region: Ignored,
    /// this version of Gantry does not read it
    ui: Ignored,
    /// this version of Gantry does not read it
    icon: Ignored,
    /// this version of Gantry does not read it
    max_steps: Ignored,
    /// this version of Gantry does not read it
    skills: Ignored,
    /// this version of Gantry does not read it
    prompts: Ignored,
    /// this version of Gantry does not read it
    commands: Ignored,
    /// this version of Gantry does not read it
    streaming: Ignored,
}

/// What front matter has besides.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FrontMatterKeys {
    /// The agent's name; that of the file, without `.md`, unless given. One that cannot be a name is what people are shown.
    name: Option<Title>,
}

/// What makes front matter an agent's.
const AGENT_KEYS: [&str; 3] = ["name", "description", "tools"];
/// The keys of front matter that are read.
const FRONT_MATTER_KEYS: [&str; 5] = ["name", "description", "tools", "model", "$schema"];

const AGENT: KeyPath<'static> = KeyPath::Root("this agent");
const TOOL: KeyPath<'static> = KeyPath::Root("this tool");

/// Reads the files of a project. Without a configuration, nothing says that the files in these folders are Gantry's: then
/// one that cannot be used is left out.
pub(super) fn read_all(
    places: &Places,
    resolver: &mut Resolver<'_>,
    variables: &Variables<'_>,
) -> DefinitionFiles {
    let mut files = DefinitionFiles::default();
    // What an agent's tools are called can depend on which provider has them, so these come first.
    for kind in [&TOOLS, &AGENTS] {
        let mut findings = Findings::default();
        let found = list(places, kind, &mut findings);
        accept(findings, resolver);
        for file in found {
            let mut findings = Findings::default();
            let defined = define(&file, places, resolver, variables, &mut findings);
            let is_accepted = accept(findings, resolver);
            let project = places.name.as_str();
            if let Some((name, defined, document)) = defined.filter(|_| is_accepted) {
                let named = find(&document.root, "name").filter(|_| file.kind == FileKind::AgentMarkdown);
                let at = Location { file: file.shown.clone(), line: named.map_or(1, |entry| entry.line) };
                let name_kind = defined.name_kind();
                match resolver.names.claim(name_kind, project, kind.folder, &name, &at) {
                    Ok(()) => {
                        resolver.documents.define(project, kind.folder, &name, document);
                        files.insert(name, defined);
                    }
                    Err(message) => {
                        let mut findings = Findings::default();
                        findings.problems.push(Problem::at(&at, message));
                        accept(findings, resolver);
                    }
                }
            }
            if file.path.is_symlink() {
                files.links.push(file.path);
            }
        }
    }
    files
}

/// Takes over what was found about a file, and says whether the file is used.
fn accept(findings: Findings, resolver: &mut Resolver<'_>) -> bool {
    let Findings { problems, warnings } = findings;
    resolver.warnings.extend(warnings);
    if !resolver.is_lenient {
        let is_good = problems.count() == 0;
        resolver.problems.extend(problems);
        return is_good;
    }
    let Some(error) = problems.into_error() else { return true };
    resolver.warnings.extend(error.left_out());
    false
}

/// What a file defines.
enum Defined {
    Agent(AgentOptions),
    Tool(Box<CatalogueEntry>),
}

impl Defined {
    fn name_kind(&self) -> NameKind {
        match self {
            Self::Agent(_) => NameKind::Agent,
            Self::Tool(_) => NameKind::Provider,
        }
    }
}

impl DefinitionFiles {
    fn insert(&mut self, name: String, defined: Defined) {
        match defined {
            Defined::Agent(agent) => drop(self.agents.insert(name, agent)),
            Defined::Tool(entry) => drop(self.tools.insert(name, *entry)),
        }
    }
}

/// Reads one file; some define nothing.
fn define(
    file: &DefinitionFile,
    places: &Places,
    resolver: &Resolver<'_>,
    variables: &Variables<'_>,
    findings: &mut Findings,
) -> Option<(String, Defined, Document)> {
    let DefinitionFile { name, path, shown, kind } = file;
    let at = |line| Location { file: shown.clone(), line };
    let unreadable =
        |syntax: Syntax| Problem::at(&at(syntax.line), syntax.message).with_column(syntax.column);
    let text = read(path, shown).map_err(|problem| findings.problems.push(problem)).ok()?;
    let (root, prompt) = if *kind == FileKind::AgentMarkdown {
        let is_provider = |id: &str| resolver.names.has_provider(&places.name, id);
        let page = front_matter::read(&text, &is_provider).map_err(unreadable);
        let page = page.map_err(|problem| findings.problems.push(problem)).ok()??;
        findings.warnings.extend(page.warnings.into_iter().map(|(line, text)| Problem::at(&at(line), text)));
        (page.root, page.prompt)
    } else {
        let root = Format::Json.parse(&text).map_err(unreadable);
        (root.map_err(|problem| findings.problems.push(problem)).ok()?, None)
    };
    let mut document = Document::new(shown.clone(), root);
    // What people write about in a text for a model may look like a variable and is none.
    let variables = Some(variables).filter(|_| *kind != FileKind::AgentMarkdown);
    let mut context = Context::new(shown.clone(), variables);
    let defined = match kind {
        FileKind::AgentMarkdown => markdown_agent(&mut document, prompt, name, &context),
        FileKind::AgentJson => {
            context.verbatim_key = Some("prompt");
            json_agent(&document, &context).map(|agent| (name.clone(), Defined::Agent(agent)))
        }
        FileKind::ToolJson => tool(&mut document, name, &context).map(|tool| (name.clone(), tool)),
    };
    let Findings { problems, warnings } = context.into_findings();
    findings.problems.extend(problems);
    findings.warnings.extend(warnings);
    let (name, defined) = defined?;
    Some((name, defined, document))
}

fn check_duplicates(document: &Document, context: &Context<'_>) {
    document.duplicates().into_iter().for_each(|(line, message)| context.report(line, message));
}

fn json_agent(document: &Document, context: &Context<'_>) -> Option<AgentOptions> {
    check_duplicates(document, context);
    let Both(Both(agent, _), keys) = de::read::<AgentFile>(&document.root, AGENT, context)?;
    Some(named(agent, keys.name))
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
    check_duplicates(document, context);
    remove_editor_keys(&mut document.root, context);
    let written = find(&document.root, "name");
    let line = written.map_or(1, |entry| entry.line);
    let name =
        written.and_then(|entry| entry.node.value.as_text()).filter(|name| name.parse::<Name>().is_ok());
    let name = name.unwrap_or(stem).to_owned();
    let Both(agent, keys) = de::read::<FrontMatter>(&document.root, AGENT, context)?;
    if let Err(noun) = name.parse::<Name>() {
        let advice = "rename the file, or write such a \"name\" into its front matter";
        context.report(
            line,
            format!("the agent would be called {}, which is not {noun}; {advice}", quoted(stem)),
        );
        return None;
    }
    let title = keys.name.filter(|title| title.parse::<Name>().is_err());
    Some((name, Defined::Agent(AgentOptions { prompt, ..named(agent, title) })))
}

/// Removes the keys that editors keep in front matter, with a warning. One that looks as if it said which tools the agent
/// has is refused: to pass it over would give what it was written to take.
fn remove_editor_keys(root: &mut Node, context: &Context<'_>) {
    let Value::Map(entries) = &mut root.value else { return };
    entries.retain(|entry| {
        let key = entry.key.to_lowercase();
        if FRONT_MATTER_KEYS.contains(&entry.key.as_str()) {
            return entry.key != "$schema";
        }
        if suggest::nearest(&key, ["tools"]).is_some() {
            let advice = "did you mean \"tools\"?";
            context.report(entry.line, format!("unknown key {}; {advice}", quoted(&entry.key)));
        } else if key.contains("tool") || matches!(key.as_str(), "permission" | "permissions") {
            let advice = "write the tools that it may use into \"tools\"";
            context.report(entry.line, format!("{} is not read by Gantry; {advice}", quoted(&entry.key)));
        } else {
            let restricts = key.contains("permission");
            let why = if restricts { "nothing is restricted by it" } else { "it is for editors" };
            let key = AGENT.key(&entry.key).to_string();
            context.warn(entry.line, format!("{key} has no effect; {why}"));
        }
        false
    });
}

fn tool(document: &mut Document, id: &str, context: &Context<'_>) -> Option<Defined> {
    check_duplicates(document, context);
    if let Value::Map(entries) = &mut document.root.value {
        entries.retain(|entry| entry.key != "$schema");
    }
    if is_own_name(id) {
        let advice = "rename its folder; Gantry's own tools are set up under \"tools\" in the configuration";
        context.report(1, format!("{} is a name of Gantry's own; {advice}", quoted(id)));
        return None;
    }
    de::read::<CatalogueEntry>(&document.root, TOOL, context).map(|entry| Defined::Tool(Box::new(entry)))
}
