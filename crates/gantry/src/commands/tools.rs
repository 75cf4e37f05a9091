//! `gantry tools`: lists the tools as a table or in the formats of models.

use crate::cli::{CallerArgs, Format};
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::commands::unavailable_servers::warn_unavailable;
use crate::exit::Outcome;
use crate::term;
use anyhow::Context as _;
use gantry_server::model::Tool;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) async fn run(
    context: CommandContext,
    caller: &CallerArgs,
    format: Format,
) -> anyhow::Result<Outcome> {
    let format = if context.json { Format::Json } else { format };
    let project = caller.project.name();
    let work = async |client: &ApiClient| {
        client.wait_until_ready().await;
        print_tools(client, project, caller.agent.as_deref(), format).await?;
        warn_unavailable(client, project).await?;
        Ok(Outcome::Success)
    };
    context.with_client(Scope::Project(project), work).await
}

async fn print_tools(
    client: &ApiClient,
    project: &str,
    agent: Option<&str>,
    format: Format,
) -> anyhow::Result<()> {
    // The API makes every format, so that the command line and HTTP cannot differ.
    let word = match format {
        Format::Table | Format::Json => None,
        Format::Mcp => Some("mcp"),
        Format::OpenAi => Some("openai"),
        Format::Anthropic => Some("anthropic"),
    };
    let query = query(&[("project", Some(project)), ("agent", agent), ("format", word)]);
    let tools: Tools = client.get(&format!("/api/v1/tools{query}")).await?;
    match format {
        Format::Table => tools.print_table()?,
        Format::Json | Format::Mcp | Format::OpenAi | Format::Anthropic => term::print_json(&tools),
    }
    Ok(())
}

/// Tools as JSON text. There can be tens of thousands, so only one at a time becomes a value.
#[derive(Deserialize)]
struct Tools {
    items: Vec<Box<RawValue>>,
}

impl Tools {
    fn print_table(&self) -> anyhow::Result<()> {
        let rows = self.items.iter().map(|item| serde_json::from_str(item.get()).map(|tool| row(&tool)));
        let rows = rows.collect::<Result<Vec<_>, _>>().context("the answer is no list of tools")?;
        if rows.is_empty() {
            term::eprint("There are no tools here. `gantry doctor TOOL` says why one is missing.");
        } else {
            term::table(&["NAME", "KIND", "EFFECT", "DESCRIPTION"], &rows);
        }
        Ok(())
    }
}

impl Serialize for Tools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = self.items.iter().filter_map(|item| serde_json::from_str::<Value>(item.get()).ok());
        serializer.collect_seq(values)
    }
}

fn row(tool: &Tool) -> Vec<String> {
    let description = match &tool.reason {
        Some(reason) => format!("quarantined: {reason}"),
        None => tool.description.clone(),
    };
    let name = match &tool.alias_of {
        Some(target) => format!("{} → {target}", tool.name),
        None => tool.name.clone(),
    };
    vec![name, tool.provider.kind.to_string(), tool.annotations.effect().to_string(), description]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_alias_shows_its_tool() {
        let tool = json!({ "name": "read", "aliasOf": "files__read_file", "description": "Reads.", "inputSchema": {},
            "provider": { "id": "files", "kind": "mcp", "namespace": "files" },
            "annotations": { "readOnlyHint": true }, "status": "ready" });
        let tool: Tool = serde_json::from_value(tool).unwrap();
        assert_eq!(row(&tool), ["read → files__read_file", "mcp", "read", "Reads."]);
    }
}
