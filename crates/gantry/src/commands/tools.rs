//! `gantry tools`: lists the tools as a table or in the formats of models.

use crate::cli::{CallerArgs, Format};
use crate::client::{ApiClient, CommandContext, Scope};
use crate::commands::unavailable_servers::warn_unavailable;
use crate::exit::Outcome;
use crate::term::{self, Column};
use gantry_core::tool::Annotations;
use gantry_server::model::ToolProvider;
use serde::Deserialize;
use serde_json::value::RawValue;

const PATH: &str = "/api/v1/tools";

/// A tool without its schemas: there can be tens of thousands.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolRow {
    name: String,
    alias_of: Option<String>,
    description: String,
    annotations: Annotations,
    provider: ToolProvider,
    reason: Option<String>,
}

const COLUMNS: [Column<ToolRow>; 4] = [
    Column::new("NAME", name),
    Column::new("KIND", |tool| tool.provider.kind.to_string()),
    Column::new("EFFECT", |tool| tool.annotations.effect().to_string()),
    Column::new("DESCRIPTION", |tool| match &tool.reason {
        Some(reason) => format!("quarantined: {reason}"),
        None => tool.description.clone(),
    }),
];

pub(super) async fn run(
    context: CommandContext,
    caller: &CallerArgs,
    format: Format,
) -> anyhow::Result<Outcome> {
    let format = if context.json { Format::Json } else { format };
    let project = caller.project.name();
    // The API makes every format, so that the command line and HTTP cannot differ.
    let word = match format {
        Format::Table | Format::Json => None,
        Format::Mcp => Some("mcp"),
        Format::OpenAi => Some("openai"),
        Format::Anthropic => Some("anthropic"),
    };
    let query = [("project", Some(project)), ("agent", caller.agent.as_deref()), ("format", word)];
    let work = async |client: &ApiClient| {
        client.wait_until_ready().await;
        if format == Format::Table {
            let tools: Vec<ToolRow> = client.list(PATH, &query).await?;
            if tools.is_empty() {
                term::eprint("There are no tools here. `gantry doctor TOOL` says why one is missing.");
            }
            term::print_table(&tools, &COLUMNS, |_| None);
        } else {
            term::print_json(&client.list::<Box<RawValue>>(PATH, &query).await?);
        }
        warn_unavailable(client, project).await?;
        Ok(Outcome::Success)
    };
    context.with_client(Scope::Project(project), work).await
}

/// The name of a tool; of an alias, also the tool that it is for.
fn name(tool: &ToolRow) -> String {
    match &tool.alias_of {
        Some(target) => format!("{} → {target}", tool.name),
        None => tool.name.clone(),
    }
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
        let tool: ToolRow = serde_json::from_value(tool).unwrap();
        assert_eq!(name(&tool), "read → files__read_file");
        assert_eq!((tool.provider.kind.as_str(), tool.annotations.effect().as_str()), ("mcp", "read"));
    }
}
