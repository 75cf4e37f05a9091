//! The parameters that an operation declares, and how their values are written.

use crate::openapi::document::{NodeRef, Version};
use crate::openapi::import::security::KeyPlace;
use crate::openapi::import::swagger2;
use crate::openapi::limits::PARAMETERS;
use crate::openapi::media;
use crate::openapi::request::parameters::{Place, Serialization, Style};
use crate::openapi::request::{may_be_argument, path};
use crate::openapi::schema::is_scalar;
use std::collections::{BTreeSet, HashSet};

// Limit: parameters that are read, those included that are left out.
const READ: usize = PARAMETERS * 4;
// Limit: bytes of the name of a parameter.
const NAME_BYTES: usize = 1000;

#[derive(Debug)]
pub(crate) struct ParameterDecl<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: Place,
    pub(crate) serialization: Serialization,
    pub(crate) required: bool,
    /// `None` means a string.
    pub(crate) schema: Option<NodeRef<'a>>,
    pub(crate) description: Option<&'a str>,
}

/// The parameters of the path item and of the operation, which wins. Bodies of Swagger are among them.
pub(crate) fn merged<'a>(item: NodeRef<'a>, operation: NodeRef<'a>) -> Result<Vec<NodeRef<'a>>, String> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    let mut of_operation = 0;
    for owner in [operation, item] {
        of_operation = out.len();
        for parameter in owner.get("parameters").into_iter().flat_map(NodeRef::elements).take(READ) {
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
    }
    // Those of the path item come first, as they do in the document.
    out.rotate_left(of_operation);
    Ok(out)
}

/// The parameters that are neither bodies nor API keys, by place; those of the path in the order of its template.
pub(crate) fn read<'a>(
    path: &'a str,
    all: &[NodeRef<'a>],
    keys: &BTreeSet<(KeyPlace, &str)>,
) -> Result<Vec<ParameterDecl<'a>>, String> {
    let mut out = Vec::new();
    for name in path_names(path, all)? {
        let mut declared = all.iter().filter(|node| node.text("in") == Some("path"));
        out.push(match declared.find(|node| node.text("name") == Some(name)) {
            Some(node) => ParameterDecl { required: true, ..parameter(*node, name, Place::Path)? },
            None => ParameterDecl {
                name,
                place: Place::Path,
                serialization: usual(Place::Path),
                required: true,
                schema: None,
                description: None,
            },
        });
    }
    let named = || all.iter().map(|node| (*node, node.text("name").unwrap_or_default()));
    for (node, name) in named().filter(|(node, _)| node.text("in") == Some("query")) {
        if !keys.contains(&(KeyPlace::Query, name)) {
            out.push(parameter(node, name, Place::Query)?);
        }
    }
    for (node, name) in named().filter(|(node, _)| node.text("in") == Some("header")) {
        let is_key =
            keys.iter().any(|(place, key)| *place == KeyPlace::Header && key.eq_ignore_ascii_case(name));
        if is_key || !may_be_argument(name) {
            continue;
        }
        if http::HeaderName::from_bytes(name.as_bytes()).is_ok() {
            out.push(parameter(node, name, Place::Header)?);
        } else if node.flag("required") {
            return Err(format!("the parameter {name:?} is required and no name of a header"));
        }
    }
    for (node, name) in named() {
        match node.text("in").unwrap_or_default() {
            "path" | "query" | "header" => {}
            "body" | "formData" if node.bundle.version == Version::V2 => {}
            "cookie" if keys.contains(&(KeyPlace::Cookie, name)) => {}
            "cookie" => {
                return Err(format!("the parameter {name:?} goes into a cookie, which is not supported"));
            }
            place if node.flag("required") => {
                return Err(format!(
                    "the parameter {name:?} is required and in {place:?}, which is not supported"
                ));
            }
            _ => {}
        }
    }
    Ok(out)
}

/// The names of the path parameters, in the order of the template. A placeholder in its query may stand for a query
/// parameter instead.
fn path_names<'a>(template: &'a str, all: &[NodeRef<'a>]) -> Result<Vec<&'a str>, String> {
    let (path, query) = path::split(template);
    if !path::is_sent_whole(template) {
        return Err("its path goes on after a list of parameters such as {?page}".to_owned());
    }
    for part in [path, query] {
        let (opening, closing) = (part.matches('{').count(), path::placeholders(part).count());
        if opening != closing || path::placeholders(part).any(|name| name.is_empty() || name.contains('{')) {
            return Err("its path has braces that do not match, or nothing between them".to_owned());
        }
    }
    let in_query = |name: &str| {
        all.iter().any(|node| node.text("in") == Some("query") && node.text("name") == Some(name))
    };
    let mut seen = HashSet::new();
    let names = path::placeholders(path).chain(path::placeholders(query).filter(|name| !in_query(name)));
    let names: Vec<&str> = names.filter(|name| seen.insert(*name)).take(PARAMETERS + 1).collect();
    if names.len() > PARAMETERS {
        return Err(format!("its path has more than {PARAMETERS} parameters"));
    }
    Ok(names)
}

fn parameter<'a>(node: NodeRef<'a>, name: &'a str, place: Place) -> Result<ParameterDecl<'a>, String> {
    let (schema, serialization) =
        shape(node, place).map_err(|error| format!("the parameter {name:?}: {error}"))?;
    let required = node.flag("required");
    Ok(ParameterDecl { name, place, serialization, required, schema, description: node.text("description") })
}

fn shape(node: NodeRef<'_>, place: Place) -> Result<(Option<NodeRef<'_>>, Serialization), String> {
    if node.bundle.version == Version::V2 {
        // A parameter without a schema is one itself.
        return Ok((Some(node.get("schema").unwrap_or(node)), swagger2::serialization(node, place)?));
    }
    let Some((media, content)) = node.get("content").and_then(|content| content.members().next()) else {
        // `type` beside `name` is the form of 2.0, which documents of 3.0 have too.
        let schema = node.get("schema").or_else(|| node.get("type").map(|_| node));
        return Ok((schema, serialization(node, place)?));
    };
    let schema = content.resolved()?.get("schema");
    if media::is_json(media) {
        return Ok((schema, Serialization::new(Style::Json)));
    }
    if !schema.map(NodeRef::resolved).transpose()?.is_none_or(is_scalar) {
        return Err(format!("the media type {media:?} is not supported"));
    }
    Ok((schema, usual(place)))
}

/// How a value is written where the document does not say it.
fn usual(place: Place) -> Serialization {
    Serialization::new(match place {
        Place::Path | Place::Header => Style::Joined,
        Place::Query => Style::Exploded,
    })
}

/// How a value is written, by `style`, `explode` and `allowReserved` of a parameter or an encoding.
pub(crate) fn serialization(node: NodeRef<'_>, place: Place) -> Result<Serialization, String> {
    let usual = usual(place);
    let explode = node.get("explode").and_then(|explode| explode.value.as_bool());
    let style = match (node.text("style").unwrap_or_default(), explode) {
        (style @ ("label" | "matrix" | "spaceDelimited" | "pipeDelimited"), _) => {
            return Err(format!("the style {style:?} is not supported"));
        }
        ("deepObject", _) if place == Place::Query => Style::DeepObject,
        // Every place has one other style, so a word that does not fit it means that one.
        (_, Some(true)) => Style::Exploded,
        (_, Some(false)) => Style::Joined,
        (_, None) => usual.style,
    };
    // `allowReserved` is about queries and forms only.
    Ok(Serialization { style, allow_reserved: place == Place::Query && node.flag("allowReserved") })
}
