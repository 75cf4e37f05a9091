//! The import of a document: its operations become tools.

mod budget;
mod filter;
pub(crate) mod input;
pub(crate) mod names;
mod operations;
pub(crate) mod output;
pub(crate) mod security;
pub(crate) mod servers;
pub(crate) mod swagger2;
pub(crate) mod text;

pub(crate) use budget::ImportBudget;

use crate::openapi::document::Bundle;
use crate::openapi::import::input::Input;
use crate::openapi::import::security::Scheme;
use crate::openapi::import::servers::Servers;
use crate::openapi::limits::{OPERATIONS, SKIPPED_SHOWN};
use crate::openapi::operation::{Method, Operation};
use crate::openapi::schema::collapse;
use gantry_core::pattern::Pattern;
use gantry_core::schema::SchemaText;
use gantry_core::tool::Effect;
use operations::OperationRef;
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

// Limit: warnings that are listed.
pub(crate) const WARNINGS: usize = 100;

// Limit: characters of the path of a skipped operation, and of the reason.
const REASON_CHARS: usize = 500;

/// The operations to import, and how the API is reached.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Only these methods; empty means all.
    pub methods: Vec<Method>,
    /// Only operations with one of these tags; empty means all.
    pub tags: Vec<String>,
    /// Only these: by name, `operationId` or `METHOD /path`, with globs; `None` means all.
    pub include: Option<Vec<Pattern>>,
    /// None of these, also where `include` names them.
    pub exclude: Vec<Pattern>,
    /// The address of the API, instead of all servers in the document.
    pub base_url: Option<Url>,
    /// Values of the variables in the addresses of servers.
    pub variables: BTreeMap<String, String>,
    /// Whether operations may be at another origin than the API itself (the document's first server).
    /// Credentials go with every request, so this is for documents that are trusted.
    pub other_origins: bool,
    pub name_chars: usize,
    /// Names that other tools have.
    pub taken: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Import {
    pub title: String,
    /// The API's own version.
    pub api_version: String,
    /// The version of OpenAPI, as the document has it.
    pub openapi: String,
    /// By name.
    pub operations: Vec<Operation>,
    pub skipped: Vec<SkippedOperation>,
    /// How many operations the document has.
    pub total: usize,
    /// How many of them the options leave out.
    pub filtered: usize,
    /// By name.
    pub schemes: BTreeMap<String, Scheme>,
    /// Problems that stop nothing.
    pub warnings: Vec<String>,
}

/// An operation that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SkippedOperation {
    /// The method in capitals.
    pub method: String,
    pub path: String,
    pub reason: String,
}

impl Import {
    fn skip(&mut self, method: String, path: &str, reason: &str) {
        if self.skipped.len() < SKIPPED_SHOWN {
            // A reason may quote the document, and many methods may have the same long path.
            let [path, reason] = [path, reason].map(|text| collapse(text, REASON_CHARS));
            self.skipped.push(SkippedOperation { method, path, reason });
        }
    }
}

/// Imports the operations of a bundle that the options choose. An operation with a problem is skipped with the reason.
#[must_use]
pub fn import(bundle: &Bundle, options: &ImportOptions) -> Import {
    let mut out = Import::default();
    let Some(root) = bundle.root() else {
        out.warnings.push("there is no document".to_owned());
        return out;
    };
    let info = root.get("info");
    let said = |key: &str| info.and_then(|info| info.get(key)).map(text::scalar).unwrap_or_default();
    (out.title, out.api_version) = (said("title"), said("version"));
    out.openapi = root.get("openapi").or_else(|| root.get("swagger")).map(text::scalar).unwrap_or_default();

    out.warnings.extend(bundle.warnings.iter().cloned());
    if out.openapi.starts_with("3.2") {
        out.warnings.push("the document is of OpenAPI 3.2, and is read as if it were 3.1".to_owned());
    }
    let (found, mut left_out) = operations::find(root, &mut out);
    let origins: Vec<names::Origin<'_>> = found.iter().map(OperationRef::origin).collect();
    let names = names::assign(&origins, options.name_chars, &options.taken);
    let chosen = filter::chosen(&found, &names, options, &mut out.warnings);

    let mut servers = Servers::new(root, options);
    out.schemes = security::schemes(root, &servers);
    let mut budget = ImportBudget::new(chosen.iter().filter(|chosen| **chosen).count());
    for ((found, name), chosen) in found.iter().zip(names).zip(chosen) {
        if !chosen {
            out.filtered += 1;
        } else if out.operations.len() == OPERATIONS {
            left_out += 1;
        } else {
            let made =
                budget.operation(bundle, |budget| operation(found, name, &mut servers, budget, &mut out));
            match made {
                Ok(operation) => out.operations.push(operation),
                Err(reason) => out.skip(found.method.to_string(), found.path, &reason),
            }
        }
    }
    if left_out > 0 {
        let most = "choose fewer by tags, methods or names";
        out.warnings.insert(0, format!("{left_out} operations beyond {OPERATIONS} were left out; {most}"));
    }
    for name in servers.unused() {
        let why = match &options.base_url {
            Some(_) => "baseUrl replaces the servers of the specification".to_owned(),
            None => format!("no address of a server has {{{name}}}"),
        };
        out.warnings.push(format!("serverVariables.{name} is not used: {why}"));
    }
    out.operations.sort_by(|a, b| a.name.cmp(&b.name));
    out.warnings.truncate(WARNINGS);
    out
}

/// One operation, or why it cannot be a tool.
fn operation<'a>(
    found: &OperationRef<'a>,
    name: String,
    servers: &mut Servers<'a>,
    budget: &mut ImportBudget,
    out: &mut Import,
) -> Result<Operation, String> {
    let OperationRef { method, path, item, node } = *found;
    if !node.value.is_object() {
        return Err("it is not an object".to_owned());
    }
    if !path.starts_with('/') {
        return Err("its path does not begin with /".to_owned());
    }
    if method == Method::Trace {
        return Err(
            "TRACE gives back the request, with the credentials in it, and is not supported".to_owned()
        );
    }
    let server = servers.of(item, node)?;
    let security = security::requirements(node, &mut out.schemes, &mut out.warnings);
    let keys = security::api_keys(&security, &out.schemes);
    let Input { schema, template } = input::input(path, item, node, &keys, budget)?;
    // The answer to a HEAD has no body.
    let has_body = method != Method::Head;
    let output_schema = has_body.then(|| output::schema(node)).flatten().map(|schema| budget.text(&schema));
    let tags: Vec<String> = found.tags().map(str::to_owned).collect();
    let description = text::description(found);
    let texts = [schema.as_str(), output_schema.as_ref().map_or("", SchemaText::as_str), &description, path];
    // A document can refer to the same names from every path.
    let names = format!("{:?}", (&template, &tags, &security));
    budget.keep(texts.iter().map(|text| text.len()).sum::<usize>() + names.len());
    Ok(Operation {
        method,
        path: path.to_owned(),
        id: found.id().map(str::to_owned),
        tags,
        title: node.text("summary").map(text::line).filter(|title| !title.is_empty()),
        description,
        deprecated: node.flag("deprecated"),
        input_schema: schema,
        output_schema,
        effect: effect(found, &name, &mut out.warnings),
        name,
        server,
        security,
        template,
    })
}

/// The effect of an operation. The document may make it worse than that of its method, never better.
fn effect(found: &OperationRef<'_>, name: &str, warnings: &mut Vec<String>) -> Effect {
    let by_method = found.method.effect();
    let Some(word) = found.extension().and_then(|extension| extension.text("effect")) else {
        return by_method;
    };
    let harm = |effect: Effect| match effect {
        Effect::Read => 0,
        Effect::Write => 1,
        Effect::Destructive => 2,
    };
    let all = [Effect::Read, Effect::Write, Effect::Destructive];
    let Some(said) = all.into_iter().find(|effect| effect.as_str() == word) else {
        let word = text::line(word);
        warnings.push(format!("{name}: the effect {word:?} of x-mcp is none of read, write and destructive"));
        return by_method;
    };
    if harm(said) > harm(by_method) { said } else { by_method }
}

#[cfg(test)]
mod tests;
