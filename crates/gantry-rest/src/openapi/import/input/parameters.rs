//! The parameters that an operation declares, and how their values are written.

use crate::openapi::document::NodeRef;
use crate::openapi::document::Version;
use crate::openapi::import::swagger2;
use crate::openapi::limits::{HOPS, PARAMETERS, PROPERTY_DESCRIPTION_CHARS};
use crate::openapi::media;
use crate::openapi::request::FRAMING;
use crate::openapi::request::parameters::{Form, Place, Style};
use crate::openapi::schema::collapse;
use std::borrow::Cow;
use std::collections::HashSet;

/// Parameters that are read, those included that turn out to be none.
const LOOKED_AT: usize = PARAMETERS * 4;
/// Bytes of the name of a parameter.
const NAME_BYTES: usize = 1000;
/// Characters of a media type that are told.
const MEDIA_CHARS: usize = 80;

/// A parameter as the document has it.
#[derive(Debug)]
pub(crate) struct Declared<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: Place,
    pub(crate) form: Form,
    pub(crate) required: bool,
    /// Nothing means a string.
    pub(crate) schema: Option<NodeRef<'a>>,
    pub(crate) description: Option<Cow<'a, str>>,
}

/// Headers besides those that frame a request which no caller sets; OpenAPI ignores the first three.
const NOT_FOR_CALLERS: [&str; 7] = [
    "accept",
    "content-type",
    "authorization",
    "cookie",
    // With these a call is of another method than the one that its effect was told from.
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

/// The parameters of the path item and of the operation, which wins. Those of Swagger that are bodies are among them.
///
pub(crate) fn merged<'a>(item: NodeRef<'a>, operation: NodeRef<'a>) -> Result<Vec<NodeRef<'a>>, String> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    let mut own = 0;
    for (level, owner) in std::iter::once(operation).chain(layers(item)?).enumerate() {
        for parameter in owner.get("parameters").into_iter().flat_map(NodeRef::elements).take(LOOKED_AT) {
            let parameter =
                parameter.resolved().map_err(|error| format!("a parameter cannot be read: {error}"))?;
            let name = parameter.text("name").filter(|name| (1..=NAME_BYTES).contains(&name.len()));
            let Some(name) = name else {
                if parameter.flag("required") {
                    return Err(format!(
                        "a required parameter has no name, or one beyond {NAME_BYTES} bytes"
                    ));
                }
                continue;
            };
            if !seen.insert((name, parameter.text("in"))) {
                continue;
            }
            if out.len() == PARAMETERS {
                return Err(format!("it has more than {PARAMETERS} parameters"));
            }
            out.push(parameter);
        }
        if level == 0 {
            own = out.len();
        }
    }
    // Their names are compared with each other later.
    // Those of the path item come first, as they do in the document.
    out.rotate_left(own);
    Ok(out)
}

/// A path item, then those that its references lead to, which have less to say.
fn layers<'a>(item: NodeRef<'a>) -> Result<Vec<NodeRef<'a>>, String> {
    let mut layers = vec![item];
    let mut node = item;
    while let Some(reference) = node.reference().filter(|_| layers.len() <= HOPS) {
        node = node.bundle.find(node.document, reference)?;
        layers.push(node);
    }
    Ok(layers)
}

/// The parameters that are no bodies, by place; those of the path as the path has them.
pub(crate) fn read<'a>(path: &'a str, all: &[NodeRef<'a>]) -> Result<Vec<Declared<'a>>, String> {
    let mut out = Vec::new();
    for name in template_names(path, all)? {
        let declared =
            all.iter().find(|node| node.text("in") == Some("path") && node.text("name") == Some(name));
        let parameter = match declared {
            Some(node) => Declared { required: true, ..parameter(*node, name, Place::Path)? },
            None => Declared {
                name,
                place: Place::Path,
                form: plain(Place::Path),
                required: true,
                schema: None,
                description: None,
            },
        };
        out.push(parameter);
    }
    for (word, place) in [("query", Place::Query), ("header", Place::Header), ("cookie", Place::Cookie)] {
        for node in all.iter().filter(|node| node.text("in") == Some(word)) {
            let name = node.text("name").unwrap_or_default();
            if place == Place::Header && !is_for_callers(name, node.flag("required"))? {
                continue;
            }
            out.push(parameter(*node, name, place)?);
        }
    }
    for node in all.iter().filter(|node| node.flag("required")) {
        let place = node.text("in").unwrap_or_default();
        let body = node.bundle.version == Version::V2 && matches!(place, "body" | "formData");
        if !body && !matches!(place, "path" | "query" | "header" | "cookie") {
            let name = node.text("name").unwrap_or_default();
            return Err(format!(
                "the parameter {name:?} is required and in {place:?}, which is not supported"
            ));
        }
    }
    Ok(out)
}

/// Whether somebody who calls the operation may say what is in this header.
fn is_for_callers(name: &str, required: bool) -> Result<bool, String> {
    if FRAMING.iter().chain(&NOT_FOR_CALLERS).any(|other| other.eq_ignore_ascii_case(name)) {
        return Ok(false);
    }
    let legal = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
    if !legal && required {
        return Err(format!("the parameter {name:?} is required and no name of a header"));
    }
    Ok(legal)
}

/// The parameters of a path, in order: what stands in braces and is not, in its query, a parameter of the query. Lists of
/// those (`{?page,size}`) and what follows a `#` are nothing that a path is written with.
fn template_names<'a>(path: &'a str, all: &[NodeRef<'a>]) -> Result<Vec<&'a str>, String> {
    let in_query = |name: &str| {
        all.iter().any(|node| node.text("in") == Some("query") && node.text("name") == Some(name))
    };
    let mut names: Vec<&str> = Vec::new();
    let mut query = false;
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        if before.contains('#') {
            return Ok(names);
        }
        query |= before.contains('?');
        let (name, after) = after.split_once('}').ok_or("its path has a { without its }")?;
        if before.contains('}') || name.contains('{') {
            return Err("its path has braces that do not match".to_owned());
        }
        if name.is_empty() {
            return Err("its path has a parameter without a name".to_owned());
        }
        let other = name.starts_with(['?', '&', '#']) || query && in_query(name) || names.contains(&name);
        if !other {
            names.push(name);
        }
        if names.len() > PARAMETERS {
            return Err(format!("its path has more than {PARAMETERS} parameters"));
        }
        rest = after;
    }
    Ok(names)
}

fn parameter<'a>(node: NodeRef<'a>, name: &'a str, place: Place) -> Result<Declared<'a>, String> {
    let required = node.flag("required");
    let description = node.text("description").map(Cow::Borrowed);
    if node.bundle.version == Version::V2 {
        // Where a parameter has no schema of its own, it is one.
        let schema = Some(node.get("schema").unwrap_or(node));
        return Ok(Declared {
            name,
            place,
            form: swagger2::form(node, place),
            required,
            schema,
            description,
        });
    }
    if let Some((media, content)) = node.get("content").and_then(|content| content.members().next()) {
        let content = content.resolved()?;
        let schema = content.get("schema");
        if media::is_json(media) {
            return Ok(Declared { name, place, form: Form::Json, required, schema, description });
        }
        let schema = schema.filter(|schema| is_scalar(*schema));
        // Only who calls it can write what is no plain value, as the one text that it is.
        let description = if schema.is_some() { description } else { Some(as_text(media, description)) };
        return Ok(Declared { name, place, form: plain(place), required, schema, description });
    }
    // `type` beside `name` is how 2.0 had it, and what many documents still do.
    let schema = node.get("schema").or_else(|| node.get("type").map(|_| node));
    Ok(Declared { name, place, form: styled(node, place), required, schema, description })
}

/// Whether a schema is of a plain value, for all that it says itself.
fn is_scalar(schema: NodeRef<'_>) -> bool {
    let kind = schema.resolved().ok().and_then(|schema| schema.text("type"));
    kind.is_some_and(|kind| matches!(kind, "string" | "integer" | "number" | "boolean"))
}

fn as_text<'a>(media: &str, description: Option<Cow<'a, str>>) -> Cow<'a, str> {
    let hint = format!("As text ({}).", collapse(media, MEDIA_CHARS));
    match description {
        Some(said) => Cow::Owned(format!("{hint} {}", collapse(&said, PROPERTY_DESCRIPTION_CHARS))),
        None => Cow::Owned(hint),
    }
}

/// How a value is written where nothing is said.
pub(crate) fn plain(place: Place) -> Form {
    let style = default_style(place);
    Form::Styled { style, explode: style == Style::Form, allow_reserved: false }
}

fn default_style(place: Place) -> Style {
    match place {
        Place::Path | Place::Header => Style::Simple,
        Place::Query | Place::Cookie => Style::Form,
    }
}

/// How a value is written, by `style`, `explode` and `allowReserved` of a parameter or an encoding.
pub(crate) fn styled(node: NodeRef<'_>, place: Place) -> Form {
    let style = match (node.text("style").unwrap_or_default(), place) {
        ("label", Place::Path) => Style::Label,
        ("matrix", Place::Path) => Style::Matrix,
        ("spaceDelimited", Place::Query) => Style::SpaceDelimited,
        ("pipeDelimited", Place::Query) => Style::PipeDelimited,
        ("deepObject", Place::Query) => Style::DeepObject,
        // What a place cannot have is written as the place has it.
        _ => default_style(place),
    };
    let explode = node.get("explode").and_then(|explode| explode.value.as_bool());
    let explode = explode.unwrap_or(style == Style::Form);
    Form::Styled { style, explode, allow_reserved: node.flag("allowReserved") }
}
