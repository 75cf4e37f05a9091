//! The report on a document: its tools as the pool would list them, and what is skipped. `--json` prints exactly this.

use super::SpecSource;
use crate::config::Project;
use gantry_core::names::Style;
use gantry_core::schema::{Schema, SchemaText};
use gantry_core::tool::{Effect, Origin, Settings, Tool, ToolSpec};
use gantry_core::toolset::{Candidate, Pool};
use gantry_core::truncate::tokens;
use gantry_rest::openapi::{Scheme, SkippedOperation};
use gantry_rest::{ApiOptions, ImportedApi, RestClient, SpecPlace, api_origin};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An imported document, and its tools as a pool has them.
pub(super) struct Imported {
    api: ImportedApi,
    /// Each with the reason why it could not be called, if any.
    tools: Vec<(Arc<Tool>, Option<String>)>,
    elapsed: Duration,
    /// The size of the document, if it is a file.
    bytes: Option<u64>,
}

impl Imported {
    /// Reads a document and imports it as its provider would.
    ///
    /// # Errors
    /// Says which document cannot be used, and why.
    pub(super) async fn read(options: &ApiOptions, project: &Project) -> Result<Self, String> {
        let started = Instant::now();
        let inline = project.rest_tools.iter().filter(|(_, tool)| tool.off().is_none());
        let import_options = options.import_options(inline.map(|(name, _)| &**name));
        let client = RestClient::new(project.web.allow_private.clone());
        let api = ImportedApi::read(Arc::new(options.clone()), import_options, &client).await?;
        let elapsed = started.elapsed();
        let bytes = match &options.spec {
            SpecPlace::File(file) => file.metadata().ok().map(|metadata| metadata.len()),
            SpecPlace::Url(_) => None,
        };
        let origin = api_origin(&options.id);
        // A large document keeps a thread busy for a while.
        let work =
            tokio::task::spawn_blocking(move || Self { tools: pooled(&origin, &api), api, elapsed, bytes });
        work.await.map_err(|crash| format!("importing it failed: {crash}"))
    }
}

/// The tools of an API under the names that a pool gives them.
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

/// What a document gives.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImportReport<'a> {
    pub(super) title: &'a str,
    /// The version of the API.
    pub(super) version: &'a str,
    /// The version of OpenAPI.
    pub(super) openapi: &'a str,
    /// The addresses that operations are sent to.
    pub(super) servers: BTreeSet<&'a str>,
    pub(super) schemes: BTreeMap<&'a str, SchemeReport<'a>>,
    pub(super) counts: Counts,
    pub(super) tokens: Tokens,
    pub(super) stats: Stats,
    pub(super) tools: Vec<ToolPreview<'a>>,
    pub(super) skipped: &'a [SkippedOperation],
    pub(super) warnings: Vec<String>,
}

/// A security scheme, and whether the entry has credentials for it.
#[derive(Serialize)]
pub(super) struct SchemeReport<'a> {
    #[serde(flatten)]
    pub(super) scheme: &'a Scheme,
    pub(super) configured: bool,
}

#[derive(Serialize)]
pub(super) struct Counts {
    pub(super) operations: usize,
    pub(super) tools: usize,
    /// Left out by the options.
    pub(super) filtered: usize,
    /// Chosen, but no tools; also those beyond the limit, which are not listed.
    pub(super) skipped: usize,
}

#[derive(Serialize)]
pub(super) struct Tokens {
    /// Of the list of all tools.
    pub(super) listing: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stats {
    pub(super) elapsed_ms: u64,
    pub(super) bytes: Option<u64>,
}

/// An operation as the tool that clients would see.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolPreview<'a> {
    pub(super) name: &'a str,
    pub(super) method: String,
    pub(super) path: &'a str,
    operation_id: Option<&'a str>,
    tags: &'a [String],
    pub(super) effect: Effect,
    description: &'a str,
    input_schema: &'a SchemaText,
    output_schema: Option<&'a SchemaText>,
    pub(super) tokens: u64,
    /// Why the tool could not be called, if so.
    quarantined: Option<&'a str>,
}

impl<'a> ImportReport<'a> {
    pub(super) fn of(source: &'a SpecSource, imported: &'a Imported) -> Self {
        let Imported { api, tools, elapsed, bytes } = imported;
        let import = &api.import;
        let faults = tools.iter().filter_map(|(tool, fault)| Some((tool, fault.as_ref()?)));
        let faults = faults.map(|(tool, reason)| format!("{} cannot be called: {reason}", tool.name));
        let scheme_report = |name: &str, scheme: &'a Scheme| SchemeReport {
            scheme,
            configured: source.options.auth.contains_key(name),
        };
        let tools: Vec<_> =
            tools.iter().filter_map(|(tool, fault)| ToolPreview::of(api, tool, fault.as_deref())).collect();
        Self {
            title: &import.title,
            version: &import.api_version,
            openapi: &import.openapi,
            servers: import.operations.iter().map(|it| it.server.as_str().trim_end_matches('/')).collect(),
            schemes: import
                .schemes
                .iter()
                .map(|(name, scheme)| (&**name, scheme_report(name, scheme)))
                .collect(),
            counts: Counts {
                operations: import.total,
                tools: tools.len(),
                filtered: import.filtered,
                skipped: import.total.saturating_sub(tools.len() + import.filtered),
            },
            tokens: Tokens { listing: tools.iter().map(|tool| tool.tokens).sum() },
            stats: Stats {
                elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                bytes: *bytes,
            },
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
