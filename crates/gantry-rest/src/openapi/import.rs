//! The operations of a bundle that somebody wants.

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
use crate::openapi::import::security::{KeyPlace, Need, Scheme};
use crate::openapi::import::servers::Servers;
use crate::openapi::limits::{OPERATIONS, SKIPPED_SHOWN};
use crate::openapi::operation::{Method, Operation};
use crate::openapi::request::parameters::Place;
use crate::openapi::schema::collapse;
use gantry_core::pattern::Pattern;
use gantry_core::schema::SchemaText;
use gantry_core::tool::Effect;
use operations::Found;
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

/// Warnings that are listed; whoever has so many does not read more.
pub(crate) const WARNINGS: usize = 100;

/// Characters of the reason why an operation was skipped.
const REASON_CHARS: usize = 500;

/// What of an API is wanted, and how it is reached.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only these methods; empty means all.
    pub methods: Vec<Method>,
    /// Only operations with one of these tags; empty means all.
    pub tags: Vec<String>,
    /// Only these: by name, `operationId` or `METHOD /path`, with globs; nothing means all.
    pub include: Option<Vec<Pattern>>,
    /// None of these, whatever else is said.
    pub exclude: Vec<Pattern>,
    /// Where the API is, instead of all that the document says: of its paths and operations as well.
    pub base_url: Option<Url>,
    /// Values of the variables in the addresses of servers.
    pub variables: BTreeMap<String, String>,
    /// Whether operations may be at another origin than the API itself (the document's first server).
    /// Credentials go with every request, so this is for documents that are trusted.
    pub other_origins: bool,
    /// Characters that a name may have.
    pub name_chars: usize,
    /// Names that are somebody else's.
    pub taken: BTreeSet<String>,
}

/// What became of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Import {
    pub title: String,
    /// The API's own version.
    pub api_version: String,
    /// The version of OpenAPI, as the document has it.
    pub openapi: String,
    /// By name.
    pub operations: Vec<Operation>,
    /// In the order of the document.
    pub skipped: Vec<Skipped>,
    /// How many operations the document has.
    pub total: usize,
    /// How many of them were not wanted.
    pub filtered: usize,
    /// By name.
    pub schemes: BTreeMap<String, Scheme>,
    /// What a person should know although it stops nothing.
    pub warnings: Vec<String>,
}

/// An operation that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The method in capitals.
    pub method: String,
    pub path: String,
    pub reason: String,
}

impl Import {
    fn skip(&mut self, method: String, path: &str, reason: &str) {
        if self.skipped.len() < SKIPPED_SHOWN {
            // A reason may quote the document.
            let reason = collapse(reason, REASON_CHARS);
            self.skipped.push(Skipped { method, path: path.to_owned(), reason });
        }
    }
}

/// The operations of a bundle that are wanted. What is wrong with one is said and costs that one only.
#[must_use]
pub fn import(bundle: &Bundle, choice: &Choice) -> Import {
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
    let walk = operations::operations(root);
    out.warnings.extend(walk.warnings);
    out.total = walk.found.len() + walk.left_out + walk.broken.len();
    let origins: Vec<names::Origin<'_>> = walk.found.iter().map(Found::origin).collect();
    let names = names::assign(&origins, choice.name_chars, &choice.taken);
    let wanted = filter::wanted(&walk.found, &names, choice, &mut out.warnings);

    let mut servers = Servers::new(root, choice);
    out.schemes = security::schemes(root, &servers);
    let mut budget = ImportBudget::new(wanted.iter().filter(|wanted| **wanted).count());
    let mut left_out = walk.left_out;
    let mut broken = walk.broken.into_iter().peekable();
    for (position, ((found, name), wanted)) in walk.found.iter().zip(names).zip(wanted).enumerate() {
        while let Some(broken) = broken.next_if(|broken| broken.before <= position) {
            out.skip(broken.method, broken.path, &broken.reason);
        }
        if !wanted {
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
    for broken in broken {
        out.skip(broken.method, broken.path, &broken.reason);
    }
    if left_out > 0 {
        let most = "choose fewer by tags, methods or names";
        out.warnings.insert(0, format!("{left_out} operations beyond {OPERATIONS} were left out; {most}"));
    }
    for name in servers.unused() {
        let why = match &choice.base_url {
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
    found: &Found<'a>,
    name: String,
    servers: &mut Servers<'a>,
    budget: &mut ImportBudget,
    out: &mut Import,
) -> Result<Operation, String> {
    let Found { method, path, item, at, node } = *found;
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
    let server = servers.of(at, node)?;
    let security = security::needs(node, &mut out.schemes, &mut out.warnings);
    let secret = |place: Place, name: &str| is_secret(place, name, &security, &out.schemes);
    let Input { schema, template } = input::input(path, item, node, &secret, budget)?;
    // What comes back from a HEAD has no body.
    let has_body = method != Method::Head;
    let output_schema = has_body.then(|| output::schema(node)).flatten().map(|schema| budget.text(&schema));
    let tags: Vec<String> = found.tags().map(str::to_owned).collect();
    let description = text::description(found);
    let keys = keys(&security, &out.schemes);
    let texts = [schema.as_str(), output_schema.as_ref().map_or("", SchemaText::as_str), &description, path];
    // A document can refer to the same names from every path.
    let names = format!("{:?}", (&template, &tags, &security, &keys));
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
        keys,
        template,
    })
}

/// Whether a parameter is the API key that a scheme of this operation puts there. Documents often have both.
fn is_secret(place: Place, name: &str, needs: &[Need], schemes: &BTreeMap<String, Scheme>) -> bool {
    needed_keys(needs, schemes).any(|(key_place, key)| match (key_place, place) {
        (KeyPlace::Header, Place::Header) => key.eq_ignore_ascii_case(name),
        (KeyPlace::Query, Place::Query) | (KeyPlace::Cookie, Place::Cookie) => key == name,
        (KeyPlace::Query | KeyPlace::Header | KeyPlace::Cookie, _) => false,
    })
}

/// The API keys that may go with an operation, each once.
fn keys(needs: &[Need], schemes: &BTreeMap<String, Scheme>) -> Vec<(KeyPlace, String)> {
    let keys: BTreeSet<(KeyPlace, &str)> = needed_keys(needs, schemes).collect();
    keys.into_iter().map(|(place, name)| (place, name.to_owned())).collect()
}

fn needed_keys<'s>(
    needs: &'s [Need],
    schemes: &'s BTreeMap<String, Scheme>,
) -> impl Iterator<Item = (KeyPlace, &'s str)> {
    let needed = needs.iter().flat_map(|Need(all)| all).filter_map(|(scheme, _)| schemes.get(scheme));
    needed.filter_map(|scheme| match scheme {
        Scheme::ApiKey { place, name } => Some((*place, name.as_str())),
        Scheme::Basic | Scheme::Bearer | Scheme::ClientCredentials { .. } | Scheme::Unsupported(_) => None,
    })
}

/// What calling it may change. A document may say that it is worse than its method, never that it is better.
fn effect(found: &Found<'_>, name: &str, warnings: &mut Vec<String>) -> Effect {
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
