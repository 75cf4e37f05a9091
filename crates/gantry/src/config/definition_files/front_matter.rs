//! Agents as editors write them: a Markdown file whose front matter says who the agent is, and whose text is its prompt.
//!
//! Nothing of such a file is expanded: a prompt may be about `${VAR}` without meaning it.

use crate::config::de::Context;
use crate::config::document::{Entry, Format, Node, Syntax, Value, quoted};
use gantry_core::options::ToolKey;
use gantry_core::yaml::Place;

/// The line that begins and ends front matter.
const FENCE: &str = "---";
/// How editors begin the names of tools of MCP servers: with a server that is none.
const EDITORS_PREFIX: &str = "mcp__";
const EDITORS: &str = "mcp";

type IsProvider<'a> = &'a dyn Fn(&str) -> bool;

/// Reads the front matter of a file, and the text below it if there is any. A file without front matter is no agent, and
/// `None`.
pub(in crate::config) fn read(
    text: &str,
    is_provider: IsProvider<'_>,
    context: &Context<'_>,
) -> Result<Option<(Node, Option<String>)>, Syntax> {
    let mut lines = text.split_inclusive('\n');
    if lines.next().is_none_or(|first| first.trim_end() != FENCE) {
        return Ok(None);
    }
    // The empty line stands for the fence, so that the lines keep their numbers.
    let mut yaml = "\n".to_owned();
    let mut is_closed = false;
    for line in lines.by_ref() {
        if line.trim_end() == FENCE {
            is_closed = true;
            break;
        }
        yaml.push_str(line);
    }
    if !is_closed {
        let message = "the front matter that begins here does not end; end it with a line ---".to_owned();
        return Err(Syntax { place: Place { line: 1, column: 1 }, message });
    }
    let body: String = lines.collect();
    let mut root = parse(&yaml)?;
    apply_editor_spelling(&mut root, is_provider, context);
    let prompt = Some(body.trim()).filter(|body| !body.is_empty()).map(str::to_owned);
    Ok(Some((root, prompt)))
}

/// Editors take a description with a colon in it, which is no YAML without quotes. So the line is read again as the text
/// that it is, when the whole cannot be read.
fn parse(yaml: &str) -> Result<Node, Syntax> {
    Format::Yaml.parse(yaml).or_else(|first| {
        let mut quoted = None;
        let quote = |(n, line): (usize, &str)| match line.strip_prefix("description:").map(str::trim) {
            Some(text) if !text.is_empty() && !text.starts_with(['"', '\'', '|', '>']) => {
                quoted = Some(n + 1);
                format!("description: {}\n", serde_json::Value::from(text))
            }
            _ => line.to_owned(),
        };
        let again: String = yaml.split_inclusive('\n').enumerate().map(quote).collect();
        // If the description was the first obstacle, then the mistake is the next one.
        Format::Yaml
            .parse(&again)
            .map_err(|second| if quoted == Some(first.place.line) { second } else { first })
    })
}

/// Reads `tools` as editors write it: one text with commas, or a list, with their names for the tools of servers. Of
/// several models the first counts.
fn apply_editor_spelling(root: &mut Node, is_provider: IsProvider<'_>, context: &Context<'_>) {
    let Value::Map(entries) = &mut root.value else { return };
    for Entry { node, .. } in entries.iter_mut().filter(|entry| entry.key == "model") {
        if let Some(first) = node.value.items().first().cloned() {
            *node = first;
        }
    }
    for Entry { node, .. } in entries.iter_mut().filter(|entry| entry.key == "tools") {
        if let Value::Text(text) = &node.value {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            let item = |name: &str| Node { value: Value::Text(name.to_owned()), place: node.place };
            node.value = Value::List(names.map(item).collect());
        }
        if let Value::List(items) = &mut node.value {
            items.retain(|item| {
                let unusable = item.value.as_text().filter(|text| text.parse::<ToolKey>().is_err());
                if let Some(text) = unusable {
                    let text = quoted(text);
                    let message = format!("tools: {text} names no tool of Gantry's; it is left out");
                    context.warn(item.place.line, message);
                }
                unusable.is_none()
            });
        }
        normalize_tool_names(node, is_provider);
    }
}

/// Gives the tools of servers the names that they have here, in lists and groups alike.
fn normalize_tool_names(node: &mut Node, is_provider: IsProvider<'_>) {
    match &mut node.value {
        Value::Text(text) => {
            if let Some(name) = normalized(text, is_provider) {
                *text = name;
            }
        }
        Value::List(items) => items.iter_mut().for_each(|item| normalize_tool_names(item, is_provider)),
        Value::Map(entries) => {
            entries.iter_mut().for_each(|entry| normalize_tool_names(&mut entry.node, is_provider))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The name here of what an editor calls `mcp__server__tool`, `mcp__server` or `server/tool`. What is the name of
/// something here already stays.
fn normalized(name: &str, is_provider: IsProvider<'_>) -> Option<String> {
    if is_provider(name) {
        return None;
    }
    if let Some(rest) = name.strip_prefix(EDITORS_PREFIX) {
        let all = if rest.contains("__") { "" } else { "__*" };
        return (!is_provider(EDITORS)).then(|| format!("{rest}{all}"));
    }
    let (server, tool) =
        name.split_once('/').filter(|(server, tool)| !server.is_empty() && !tool.is_empty())?;
    (!tool.contains('/') && !name.contains('@')).then(|| format!("{server}__{tool}"))
}
