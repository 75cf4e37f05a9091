//! The reference page of the configuration, written from the key table.

use std::fmt::{self, Write as _};

use super::table::{AGENT_JSON, Catalogue, FRONT_MATTER, Fallback, Key, Kind, Number, ROOT, Zero};
use super::text::Rule;

/// A file that uses every key of this version.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// The reference page in Markdown.
pub fn reference() -> String {
    let mut page = String::new();
    // Writing to a `String` cannot fail; an error here would mean a broken `Display`.
    match write_page(&mut page) {
        Ok(()) => page,
        Err(fmt::Error) => String::new(),
    }
}

fn write_page(page: &mut String) -> fmt::Result {
    page.push_str(INTRODUCTION);
    writeln!(page, "\n## Top level\n")?;
    write_section(page, ROOT, "")?;
    page.push_str(AGENT_FILES);
    writeln!(page, "\n### `agents/<name>/agent.json`\n\n{AGENT_JSON_WORDS}\n")?;
    write_rows(page, AGENT_JSON)?;
    writeln!(page, "\n### `agents/<name>.md`\n\n{FRONT_MATTER_WORDS}\n")?;
    write_rows(page, FRONT_MATTER)?;
    page.push_str(TOOL_FILES);
    writeln!(page, "\n## Keys without effect\n")?;
    writeln!(page, "These keys are taken, because others write them, and named in a warning.\n")?;
    write_list(page, &|key| matches!(key.kind, Kind::Inert(_)))?;
    writeln!(page, "\n## Keys of later versions\n")?;
    writeln!(page, "These keys are reserved. A file that has one of them is refused.\n")?;
    write_list(page, &|key| matches!(key.kind, Kind::Later))?;
    writeln!(page, "\n## A complete example\n\n```yaml\n{EXAMPLE}```")
}

const INTRODUCTION: &str = "\
# Configuration reference

Generated from the program; do not edit.

Gantry reads `gantry.yaml`, `gantry.yml`, `gantry.json` or `gantry.toml`: the file that `--config` names, else the one
that `$GANTRY_CONFIG` names, else the one in the working folder. Two of them in one folder are an error. Without a file,
every key has its default. A file may have up to 1 MiB.

Unknown keys, duplicate keys and values of the wrong type are errors, reported together with their lines.

`${VAR}` in a text is replaced by the variable VAR, and `${VAR:-default}` by `default` when VAR is unset or empty. The
environment of the process is asked first, then a file `.env` beside the configuration. The value of a variable is not
expanded again. `$${` writes `${`. An unset variable without a default is an error; in the entry of an MCP server it
switches off that server only, and in an entry of `restTools` or `openapiSpecs` that tool or that API. In the entry of a
server, `${env:VAR}` is read as `${VAR}`, as editors write it. Where a number or a truth value is
expected, a text with a variable in it may spell one: `toolTimeout: ${TIMEOUT:-60000}`. Anything else in `${…}` stays
as it is.

The data folder is the one that `--data` names, else the one that `$GANTRY_DATA` names, else `.gantry` beside the
configuration.

In limits and timeouts, 0 means the default, never \"without limit\".
";

const AGENT_FILES: &str = "
## Files for agents

Agents may have files of their own beside the configuration; those of a project are below `projects/<project>/` there. An
agent is defined in one place; in two it is an error. A folder has at most 1000 such files of at most 1 MiB each. Hidden
files and links to folders are not read, and named in a warning. A file that cannot be used is an error. Without a
configuration it is left out, with a warning, because many folders that are called so are not Gantry's.
";

const AGENT_JSON_WORDS: &str = "The folder's name is the agent's. Variables are replaced as in the configuration, but not in the prompt.";

const FRONT_MATTER_WORDS: &str = "\
Front matter in YAML between two lines `---`, then the prompt, as editors keep their agents. A file without front matter \
is no agent, nor is one whose front matter has none of `name`, `description` and `tools`. Variables are not replaced. Keys \
that are not listed have no effect, and are named in a warning; those that look as if they said which tools the agent has \
(`allowed-tools`, `permission`) are refused. A file `<name>.agent.md` is the agent `<name>`. A `name` that cannot be an \
agent's (`Code Reviewer`) is what people are shown, and the agent is called as the file. Of a list of models the first one \
counts. `tools` may also be one text with commas: `tools: Read, mcp__github__search_code`. A name `mcp__server__tool` of \
editors means `server__tool` here, unless there is a server `mcp`, and `mcp__server` means `server__*`; `server/tool` means \
`server__tool`.";

const TOOL_FILES: &str = "
## Files for tools

An entry of the catalogue may be a file of its own, `tools/<id>/tool.json` beside the configuration; those of a project are
below `projects/<project>/` there. The folder's name is the id, and the keys are those of `tools.<id>`.
";

fn write_section(page: &mut String, keys: &'static [Key], path: &str) -> fmt::Result {
    write_rows(page, keys)?;
    for key in keys {
        for (n, (suffix, inner)) in inner(&key.kind).into_iter().enumerate() {
            let path = join(path, key.name) + suffix;
            writeln!(page, "\n## `{path}`\n")?;
            // It holds of all groups under the key, and is said once.
            if n == 0 {
                writeln!(page, "{}\n", key.meaning)?;
            }
            if matches!(key.kind, Kind::Projects(_)) {
                // What it has in common with the file is described there.
                page.push_str(PROJECT_WORDS);
                write_rows(page, inner)?;
            } else {
                write_section(page, inner, &path)?;
            }
        }
    }
    Ok(())
}

const PROJECT_WORDS: &str = "\
The keys are those at the top of the file. The data of a project is in `projects/<name>` in the data folder, its tools are
pinned in `gantry.<name>.lock`, and its agent and tool files are below `projects/<name>/`, both beside the configuration.

";

fn write_rows(page: &mut String, keys: &'static [Key]) -> fmt::Result {
    writeln!(page, "| key | type | default | meaning | example |\n|---|---|---|---|---|")?;
    for key in keys.iter().filter(|key| key.is_offered()) {
        let row = [format!("`{}`", key.name), noun(&key.kind), fallback(key), meaning(key), example(key)];
        let cells = row.map(|cell| cell.replace('|', "\\|"));
        writeln!(page, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

/// Lists the keys of the table and of the agent files that are of some sort.
fn write_list(page: &mut String, is_listed: &dyn Fn(&Key) -> bool) -> fmt::Result {
    let (mut names, mut in_files) = (Vec::new(), Vec::new());
    collect(ROOT, "", is_listed, &mut names);
    collect(AGENT_JSON, "", is_listed, &mut in_files);
    names.iter().try_for_each(|name| writeln!(page, "- `{name}`"))?;
    in_files.iter().try_for_each(|name| writeln!(page, "- `{name}` in `agent.json`"))
}

fn collect(keys: &'static [Key], path: &str, is_listed: &dyn Fn(&Key) -> bool, names: &mut Vec<String>) {
    for key in keys {
        if is_listed(key) {
            names.push(join(path, key.name));
        }
        // The keys of projects are those of the file.
        if !matches!(key.kind, Kind::Projects(_)) {
            for (suffix, inner) in inner(&key.kind) {
                collect(inner, &(join(path, key.name) + suffix), is_listed, names);
            }
        }
    }
}

/// The groups of keys under a key, and how its path goes on to each.
pub(super) fn inner(kind: &'static Kind) -> Vec<(&'static str, &'static [Key])> {
    match kind {
        Kind::Section(keys) | Kind::AgentTools(keys) => vec![("", keys)],
        Kind::Named(keys) | Kind::Projects(keys) => vec![(".<name>", keys)],
        Kind::Services(Rule::RestTool, keys) => vec![(".<name>", keys)],
        Kind::Credentials(keys) => vec![(".<scheme>", keys)],
        Kind::Servers(keys) | Kind::Services(_, keys) => vec![(".<id>", keys)],
        Kind::Items(keys) => vec![("[]", keys)],
        Kind::Catalogue(Catalogue { own, builtin, mcp }) => {
            vec![(".workspace", own), (".<id> (kind: builtin)", builtin), (".<id> (kind: mcp)", mcp)]
        }
        Kind::PerTool(_)
        | Kind::PerOperation(_)
        | Kind::Object
        | Kind::Json
        | Kind::Secrets(_)
        | Kind::Aliases
        | Kind::Flag
        | Kind::Number(_)
        | Kind::Text(_)
        | Kind::Verbatim
        | Kind::Texts(..)
        | Kind::Queue
        | Kind::QueueOrNone
        | Kind::Choice(..)
        | Kind::Choices(_)
        | Kind::Gated
        | Kind::Arguments
        | Kind::Later
        | Kind::Inert(_)
        | Kind::Granted(_)
        | Kind::Refused(_) => Vec::new(),
    }
}

fn noun(kind: &Kind) -> String {
    let mut noun = kind.noun();
    if let Kind::PerTool(value) | Kind::PerOperation(value) = kind {
        noun = format!("{noun}, each {}", value.noun());
    }
    if let Some(number) = number(kind) {
        noun = format!("{noun}, at most {}", number.max);
    }
    noun
}

fn number(kind: &Kind) -> Option<&Number> {
    if let Kind::Number(number) | Kind::PerTool(Kind::Number(number)) = kind { Some(number) } else { None }
}

fn fallback(key: &Key) -> String {
    match key.default {
        Fallback::Required => "required".to_owned(),
        Fallback::Flag(flag) => format!("`{flag}`"),
        Fallback::Number(number) => format!("`{number}`"),
        Fallback::Text("") => "nothing".to_owned(),
        Fallback::Text(text) => format!("`{text}`"),
        Fallback::Absent(words) => words.to_owned(),
    }
}

fn meaning(key: &Key) -> String {
    match number(&key.kind).map(|number| number.zero) {
        Some(Zero::Off) => format!("{} 0 is off.", key.meaning),
        Some(Zero::Refused) => format!("{} At least 1.", key.meaning),
        Some(Zero::Default) | None => key.meaning.to_owned(),
    }
}

fn example(key: &Key) -> String {
    if key.example.is_empty() { "see below".to_owned() } else { format!("`{}`", key.example) }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
