//! The report on a document: its tools as the pool would list them, and what is skipped. `--json` prints exactly this; for
//! people it is shown without schemas, with the configuration entry that would use the document.

use super::SpecSource;
use crate::commands::yaml_key;
use crate::config::Project;
use crate::term::{self, Column, plural, thousands};
use gantry_core::names::Style;
use gantry_core::schema::{Schema, SchemaText};
use gantry_core::tool::{Effect, Origin, Settings, Tool, ToolSpec};
use gantry_core::toolset::{Candidate, Pool};
use gantry_core::truncate::tokens;
use gantry_rest::openapi::{KeyPlace, Scheme, SkippedOperation};
use gantry_rest::{ApiOptions, ImportedApi, RestClient, api_origin};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An imported document, and its tools as a pool has them.
pub(super) struct Imported {
    api: ImportedApi,
    /// Each with the reason why it could not be called, if any.
    tools: Vec<(Arc<Tool>, Option<String>)>,
}

/// Reads a document and imports it as its provider would. The error says which document cannot be used, and why.
pub(super) async fn import(options: &ApiOptions, project: &Project) -> Result<Imported, String> {
    let inline = project.rest_tools.iter().filter(|(_, tool)| tool.off().is_none());
    let import_options = options.import_options(inline.map(|(name, _)| &**name));
    let client = RestClient::new(project.web.allow_private.clone());
    let api = ImportedApi::read(Arc::new(options.clone()), import_options, &client).await?;
    let origin = api_origin(&options.id);
    // A large document keeps a thread busy for a while.
    let work = tokio::task::spawn_blocking(move || Imported { tools: pooled(&origin, &api), api });
    work.await.map_err(|crash| format!("importing it failed: {crash}"))
}

fn pooled(origin: &Origin, api: &ImportedApi) -> Vec<(Arc<Tool>, Option<String>)> {
    let candidate = |spec: &ToolSpec| Candidate {
        origin: origin.clone(),
        style: Style::Prefixed,
        spec: spec.clone(),
        settings: Settings::default(),
    };
    let pool = Pool::build(api.tools.iter().map(candidate).collect());
    // A server compiles a schema for the first call only. Compiled ones are dropped here: all of them take too much memory.
    let compile = |tool: &Tool| Schema::compile(&tool.spec.input_schema.value()).err();
    let fault = |tool: &Tool| {
        tool.quarantined().map(str::to_owned).or_else(|| compile(tool).map(|error| error.to_string()))
    };
    pool.tools().iter().map(|tool| (Arc::clone(tool), fault(tool))).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportReport<'a> {
    title: &'a str,
    /// The version of the API.
    version: &'a str,
    /// The version of OpenAPI.
    openapi: &'a str,
    /// The addresses that operations are sent to.
    servers: BTreeSet<&'a str>,
    schemes: BTreeMap<&'a str, SchemeReport<'a>>,
    pub(super) counts: Counts,
    tokens: Tokens,
    tools: Vec<ToolPreview<'a>>,
    pub(super) skipped: &'a [SkippedOperation],
    warnings: Vec<String>,
}

/// A security scheme, and whether the entry has credentials for it.
#[derive(Serialize)]
struct SchemeReport<'a> {
    #[serde(flatten)]
    scheme: &'a Scheme,
    configured: bool,
}

#[derive(Serialize)]
pub(super) struct Counts {
    operations: usize,
    tools: usize,
    /// Left out by the options.
    filtered: usize,
    /// Chosen, but no tools; also those beyond the limit, which are not listed.
    skipped: usize,
}

#[derive(Serialize)]
struct Tokens {
    /// Of the list of all tools.
    listing: u64,
}

/// An operation as the tool that clients would see.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolPreview<'a> {
    name: &'a str,
    method: String,
    path: &'a str,
    operation_id: Option<&'a str>,
    tags: &'a [String],
    effect: Effect,
    description: &'a str,
    input_schema: &'a SchemaText,
    output_schema: Option<&'a SchemaText>,
    tokens: u64,
    /// Why the tool could not be called, if so.
    quarantined: Option<&'a str>,
}

impl<'a> ImportReport<'a> {
    pub(super) fn of(source: &'a SpecSource, imported: &'a Imported) -> Self {
        let Imported { api, tools } = imported;
        let import = &api.import;
        let faults = tools.iter().filter_map(|(tool, fault)| Some((tool, fault.as_ref()?)));
        let faults = faults.map(|(tool, reason)| format!("{} cannot be called: {reason}", tool.name));
        let schemes = import.schemes.iter().map(|(name, scheme)| {
            (name.as_str(), SchemeReport { scheme, configured: source.options.auth.contains_key(name) })
        });
        let tools: Vec<_> =
            tools.iter().filter_map(|(tool, fault)| ToolPreview::of(api, tool, fault.as_deref())).collect();
        Self {
            title: &import.title,
            version: &import.api_version,
            openapi: &import.openapi,
            servers: import.operations.iter().map(|it| it.server.as_str().trim_end_matches('/')).collect(),
            schemes: schemes.collect(),
            counts: Counts {
                operations: import.total,
                tools: tools.len(),
                filtered: import.filtered,
                skipped: import.total.saturating_sub(tools.len() + import.filtered),
            },
            tokens: Tokens { listing: tools.iter().map(|tool| tool.tokens).sum() },
            tools,
            skipped: &import.skipped,
            warnings: import.warnings.iter().cloned().chain(faults).collect(),
        }
    }
}

impl<'a> ToolPreview<'a> {
    fn of(api: &'a ImportedApi, tool: &'a Tool, fault: Option<&'a str>) -> Option<Self> {
        let operation = api.operation(tool)?;
        Some(Self {
            name: &tool.name,
            method: operation.method.to_string(),
            path: &operation.path,
            operation_id: operation.id.as_deref(),
            tags: &operation.tags,
            effect: tool.effect,
            description: &operation.description,
            input_schema: &operation.input_schema,
            output_schema: operation.output_schema.as_ref(),
            tokens: tokens(tool.definition()),
            quarantined: fault,
        })
    }
}

/// Operations that are listed below one reason.
const LISTED: usize = 10;

/// Prints everything but the schemas. The entry for the configuration goes to standard error.
pub(super) fn print_report(source: &SpecSource, report: &ImportReport<'_>) {
    summary(source, report).iter().for_each(|line| term::print(&term::sanitize(line)));
    term::print("");
    if report.tools.is_empty() {
        term::print("No operation becomes a tool.");
    } else {
        let columns = [
            Column::new("NAME", |tool: &ToolPreview<'_>| tool.name.to_owned()),
            Column::new("OPERATION", |tool| format!("{} {}", tool.method, tool.path)),
            Column::new("EFFECT", |tool| tool.effect.to_string()),
            Column::new("TOKENS", |tool| thousands(tool.tokens)),
        ];
        term::print_table(&report.tools, &columns, |_| None);
    }
    if !report.skipped.is_empty() {
        term::print("");
        print_skipped(report, LISTED);
    }
    if !report.warnings.is_empty() {
        term::print("\nWarnings:");
        report.warnings.iter().for_each(|warning| term::print(&format!("  - {}", term::sanitize(warning))));
    }
    if !source.is_entry && !report.tools.is_empty() {
        term::eprint(&format!("\nFor gantry.yaml:\n\n{}", term::sanitize_lines(&config_snippet(source))));
    }
}

/// Prints the skipped operations by reason, the most frequent reason first, with so many operations below each.
pub(super) fn print_skipped(report: &ImportReport<'_>, listed: usize) {
    if report.skipped.is_empty() {
        return term::eprint("No operation is skipped.");
    }
    term::print(&format!("Skipped {}:", plural(report.skipped.len(), "operation")));
    for (reason, operations) in by_reason(report.skipped) {
        term::print(&format!("  {} ({})", term::sanitize(reason), thousands(operations.len())));
        for operation in operations.iter().take(listed) {
            term::print(&term::sanitize(&format!("    {} {}", operation.method, operation.path)));
        }
        let more = operations.len().saturating_sub(listed);
        if more > 0 {
            term::print(&format!("    and {} more; --skipped lists all", thousands(more)));
        }
    }
}

fn by_reason(skipped: &[SkippedOperation]) -> Vec<(&str, Vec<&SkippedOperation>)> {
    let mut groups: BTreeMap<&str, Vec<&SkippedOperation>> = BTreeMap::new();
    for operation in skipped {
        groups.entry(&operation.reason).or_default().push(operation);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, operations)| std::cmp::Reverse(operations.len()));
    groups
}

fn summary(source: &SpecSource, report: &ImportReport<'_>) -> Vec<String> {
    let title = if report.title.is_empty() { "An API without a title" } else { report.title };
    let mut fields = vec![("document", source.shown())];
    if report.servers.is_empty() {
        fields.push(("server", "none".to_owned()));
    }
    fields.extend(report.servers.iter().map(|server| ("server", (*server).to_owned())));
    fields.extend(report.schemes.iter().map(|(name, SchemeReport { scheme, configured })| {
        let credentials = match (scheme, configured) {
            (Scheme::Unsupported { .. }, _) => "",
            _ if !source.is_entry => "",
            (_, true) => ": configured",
            (_, false) => ": no credentials",
        };
        ("auth", format!("{name}, {}{credentials}", describe(scheme)))
    }));
    let counts = &report.counts;
    let mut operations = format!("{}: {}", thousands(counts.operations), plural(counts.tools, "tool"));
    for (count, what) in [(counts.filtered, "left out by the options"), (counts.skipped, "skipped")] {
        if count > 0 {
            operations.push_str(&format!(", {} {what}", thousands(count)));
        }
    }
    fields.push(("operations", operations));
    fields.push(("tokens", format!("{} for the list of tools", thousands(report.tokens.listing))));
    let title = format!("{title} {} (OpenAPI {})", report.version, report.openapi);
    std::iter::once(title).chain(term::fields(11, fields)).collect()
}

fn describe(scheme: &Scheme) -> String {
    match scheme {
        Scheme::ApiKey { place, name } => {
            let place = match place {
                KeyPlace::Query => "query",
                KeyPlace::Header => "header",
                KeyPlace::Cookie => "cookie",
            };
            format!("an API key in the {place} {name:?}")
        }
        Scheme::Basic => "a user and a password".to_owned(),
        Scheme::Bearer => "a token".to_owned(),
        Scheme::ClientCredentials { token_url, .. } => {
            format!("OAuth 2 client credentials, tokens from {token_url}")
        }
        Scheme::Unsupported { reason } => format!("not supported: {reason}"),
    }
}

/// The entry that gives these tools. Its texts are quoted as JSON, which is YAML, and a `$` in them is no variable.
fn config_snippet(source: &SpecSource) -> String {
    let text = |text: &str| serde_json::Value::from(text.replace("${", "$${")).to_string();
    let (id, spec) = (yaml_key(&source.options.id), text(&source.typed));
    let mut snippet = format!("openapiSpecs:\n  {id}:\n    spec: {spec}");
    if let Some(url) = &source.options.base_url {
        snippet.push_str(&format!("\n    baseUrl: {}", text(url.as_str())));
    }
    snippet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_operations_are_grouped_by_reason() {
        let skipped = |path: &str, reason: &str| SkippedOperation {
            method: "GET".to_owned(),
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let all = [skipped("/a", "x"), skipped("/b", "y"), skipped("/c", "y")];
        let counts: Vec<_> = by_reason(&all).iter().map(|(reason, group)| (*reason, group.len())).collect();
        assert_eq!(counts, [("y", 2), ("x", 1)]);
    }
}
