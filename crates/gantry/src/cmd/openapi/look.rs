//! A document and the tools that it gives.

use crate::config::Project;
use gantry_core::names::{self, NameRequest, Style};
use gantry_core::schema::{Schema, SchemaText};
use gantry_core::tool::{Effect, Origin, Settings, Tool, ToolKind, ToolSpec};
use gantry_core::truncate::tokens;
use gantry_rest::openapi::{Bundle, Import, Operation, import};
use gantry_rest::{ApiOptions, NAMESPACE, RestClient, SpecPlace, load, provider_id};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What became of a document.
pub(in crate::cmd) struct Look {
    pub(in crate::cmd) import: Import,
    /// One for each operation of it, in the same order.
    pub(super) tools: Vec<Shown>,
    /// What reading and importing took.
    pub(super) elapsed: Duration,
    /// Bytes of the document itself, where it is a file.
    pub(super) bytes: Option<u64>,
}

/// An operation as a tool.
pub(super) struct Shown {
    /// The name that clients are shown.
    pub(super) name: String,
    /// The name as the provider has it.
    pub(super) own_name: String,
    pub(super) effect: Effect,
    /// The tokens of its definition in the list of tools.
    pub(super) tokens: u64,
    /// The same without its output schema.
    pub(super) without_output: u64,
    /// Why it cannot be called although it is there.
    pub(super) trouble: Option<String>,
}

impl Look {
    pub(super) fn tools(&self) -> impl Iterator<Item = (&Operation, &Shown)> {
        self.import.operations.iter().zip(&self.tools)
    }

    /// How many chosen operations are no tools, those beyond the limit included.
    pub(super) fn skipped(&self) -> usize {
        let Import { operations, total, filtered, .. } = &self.import;
        total.saturating_sub(operations.len() + filtered)
    }

    /// What the list costs, and what it would cost without output schemas.
    pub(super) fn tokens(&self) -> (u64, u64) {
        let sum = |of: fn(&Shown) -> u64| self.tools.iter().map(of).sum();
        (sum(|tool| tool.tokens), sum(|tool| tool.without_output))
    }
}

/// Reads a document and imports it.
///
/// # Errors
/// Says why it cannot be used.
pub(in crate::cmd) async fn look(options: &ApiOptions, project: &Project) -> Result<Look, String> {
    let client = RestClient::new(project.web.allow_private.clone());
    let begun = Instant::now();
    let bundle: Bundle = load(&options.spec, &client).await?;
    let bytes = match &options.spec {
        SpecPlace::File(file) => file.metadata().ok().map(|metadata| metadata.len()),
        SpecPlace::Url(_) => None,
    };
    let spelled_out = project.rest_tools.iter().filter(|(_, tool)| tool.off.is_none());
    let import_options = options.import_options(spelled_out.map(|(name, _)| name.as_str()));
    let options = options.clone();
    let work = move || {
        let import = import(&bundle, &import_options);
        let elapsed = begun.elapsed();
        drop(bundle);
        let tools = shown(&options, &import.operations);
        Look { import, tools, elapsed, bytes }
    };
    // A large document keeps a thread busy for a while.
    tokio::task::spawn_blocking(work).await.map_err(|crash| format!("importing it failed: {crash}"))
}

fn shown(options: &ApiOptions, operations: &[Operation]) -> Vec<Shown> {
    let specs: Vec<ToolSpec> = operations.iter().map(|operation| options.tool(operation)).collect();
    let requests: Vec<NameRequest<'_>> = specs
        .iter()
        .map(|spec| NameRequest { namespace: NAMESPACE, tool: &spec.name, style: Style::Prefixed })
        .collect();
    let (names, _) = names::assign(&requests);
    let provider = provider_id(&options.id).into();
    let origin = Origin { provider, namespace: NAMESPACE.into(), kind: ToolKind::Rest };
    let mut verdicts = HashMap::new();
    specs.into_iter().zip(names).map(|(spec, name)| one(&origin, spec, name, &mut verdicts)).collect()
}

/// What is wrong with each schema that was looked at, if anything is.
type Verdicts = HashMap<SchemaText, Option<String>>;

fn one(origin: &Origin, spec: ToolSpec, name: String, verdicts: &mut Verdicts) -> Shown {
    let tool = Tool::new(origin, name, spec, Settings::default());
    // Its key, the colon and the comma.
    let around = r#""outputSchema":,"#.len();
    let output = tool.spec.output_schema.as_ref().map_or(0, |schema| schema.as_str().len() + around);
    let definition = tool.definition();
    let without_output = (definition.len().saturating_sub(output) as u64).div_ceil(4);
    // The server compiles it for the first call only; here its problems are shown.
    let schema = &tool.spec.input_schema;
    let verdict = || Schema::compile(&schema.value()).err().map(|error| error.to_string());
    let verdict = verdicts.entry(schema.clone()).or_insert_with(verdict);
    Shown {
        name: tool.name.to_string(),
        own_name: tool.spec.name.clone(),
        effect: tool.effect,
        tokens: tokens(definition),
        without_output,
        trouble: tool.quarantined().map(str::to_owned).or_else(|| verdict.clone()),
    }
}
