//! `gantry tools`.

use crate::cli::{CallerArgs, Format};
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::commands::absent;
use crate::exit::Outcome;
use crate::term;
use anyhow::Context as _;
use gantry_core::raw;
use http::Method;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Characters that are shown of an answer that cannot be read.
const BEGINNING: usize = 100;

pub(super) async fn run(
    context: CommandContext,
    caller: &CallerArgs,
    format: Format,
) -> anyhow::Result<Outcome> {
    let json = context.json;
    let client = context.connect(Scope::Project(caller.project.name())).await?;
    client.wait_until_ready().await;
    let done = listed(&client, caller, if json { Format::Json } else { format }).await;
    client.close().await;
    done
}

async fn listed(client: &ApiClient, caller: &CallerArgs, format: Format) -> anyhow::Result<Outcome> {
    // Every format is the API's, so that the command line and HTTP cannot differ.
    let word = match format {
        Format::Table | Format::Json => None,
        Format::Mcp => Some("mcp"),
        Format::OpenAi => Some("openai"),
        Format::Anthropic => Some("anthropic"),
    };
    let project = caller.project.name();
    let query = query(&[("project", Some(project)), ("agent", caller.agent.as_deref()), ("format", word)]);
    let answer = client.send(Method::GET, &format!("/api/v1/tools{query}"), String::new()).await?;
    if !answer.status.is_success() {
        answer.into_result::<Value>()?;
        anyhow::bail!("the request failed");
    }
    let items = Items::of(&answer.text)?;
    match format {
        Format::Table => table(&items),
        Format::Json | Format::Mcp | Format::OpenAi | Format::Anthropic => term::print_json(&items),
    }
    absent::tell_all(client, project).await?;
    Ok(Outcome::Success)
}

/// Tools as text. An API may have tens of thousands, so that only one of them at a time is a value.
struct Items<'a>(Vec<&'a str>);

impl<'a> Items<'a> {
    fn of(answer: &'a str) -> anyhow::Result<Self> {
        let items = raw::member(answer, "items").and_then(raw::elements).with_context(|| {
            let beginning: String = answer.chars().take(BEGINNING).collect();
            format!(
                "the answer is no list of tools; is a Gantry at that address? It begins: {}",
                term::sanitize(&beginning)
            )
        })?;
        Ok(Self(items))
    }

    fn values(&self) -> impl Iterator<Item = Value> {
        self.0.iter().filter_map(|text| serde_json::from_str(text).ok())
    }
}

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.values())
    }
}

fn table(tools: &Items<'_>) {
    let rows: Vec<Vec<String>> = tools.values().map(|tool| row(&tool)).collect();
    if rows.is_empty() {
        term::eprint("There are no tools here. `gantry doctor TOOL` says why one is missing.");
        return;
    }
    term::table(&["NAME", "KIND", "EFFECT", "DESCRIPTION"], &rows);
}

fn row(tool: &Value) -> Vec<String> {
    let text = |pointer: &str| tool.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let what = match text("/reason") {
        reason if reason.is_empty() => text("/description"),
        reason => format!("quarantined: {reason}"),
    };
    let name = match text("/aliasOf") {
        of if of.is_empty() => text("/name"),
        of => format!("{} → {of}", text("/name")),
    };
    vec![name, text("/provider/kind"), effect(tool).to_owned(), what]
}

fn effect(tool: &Value) -> &'static str {
    let hint = |name: &str| tool.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool);
    match (hint("destructiveHint"), hint("readOnlyHint")) {
        (Some(true), _) => "destructive",
        (_, Some(true)) => "read",
        _ => "write",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_list_is_no_empty_list() {
        assert!(Items::of(r#"{"items":[]}"#).unwrap().0.is_empty());
        assert_eq!(Items::of(r#"{"items":[{"name":"a"}]}"#).unwrap().values().count(), 1);
        for answer in ["<html>Sign in</html>", "", "[]", "{}", r#"{"items":5}"#] {
            let error = Items::of(answer).err().unwrap().to_string();
            assert!(error.contains("no list of tools"), "{error}");
        }
    }

    #[test]
    fn an_alias_shows_what_it_stands_for() {
        let tool = json!({ "name": "read", "aliasOf": "files__read_file", "provider": { "kind": "mcp" },
            "annotations": { "readOnlyHint": true }, "description": "Reads.", "reason": null });
        assert_eq!(row(&tool), ["read → files__read_file", "mcp", "read", "Reads."]);
    }
}
