//! Swagger 2.0, where it has another shape than OpenAPI 3.

use crate::openapi::document::NodeRef;
use crate::openapi::import::input::{Payload, Shape, preference, sent, shape};
use crate::openapi::import::servers::{located, location};
use crate::openapi::media::{essence, is_json};
use crate::openapi::request::parameters::{Form, Place, Style};
use crate::openapi::schema::Fields;
use url::Url;

/// Where the API is, by `schemes`, `host` and `basePath`.
pub(crate) fn server(root: NodeRef<'_>) -> Result<Url, String> {
    let path = root.text("basePath").unwrap_or("/").trim();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let Some(host) = root.text("host").map(str::trim).filter(|host| !host.is_empty()) else {
        return located(root, &path);
    };
    let schemes =
        || root.get("schemes").into_iter().flat_map(NodeRef::elements).filter_map(|word| word.value.as_str());
    let has = |word: &str| schemes().any(|scheme| scheme.eq_ignore_ascii_case(word));
    let came_by = || location(root.bundle, root.document).map(Url::scheme);
    let scheme = match (has("https"), has("http"), schemes().next()) {
        (true, _, _) => "https",
        (false, true, _) => "http",
        (false, false, Some(other)) => {
            return Err(format!("the server is reached by {other}, not by http or https; set baseUrl"));
        }
        // Without a word, it is what the document itself came by.
        (false, false, None) => came_by().unwrap_or("https"),
    };
    // A path in the host, or a scheme before it, is wrong and common.
    let host = host.split_once("://").map_or(host, |(_, host)| host).trim_end_matches('/');
    let url = format!("{scheme}://{host}{path}");
    Url::parse(&url).map_err(|error| format!("the server address {url:?} is invalid: {error}; set baseUrl"))
}

/// Whether a parameter is a list, for which `collectionFormat` says something.
pub(crate) fn is_list(node: NodeRef<'_>) -> bool {
    node.text("type") == Some("array")
}

/// How the value of a parameter is written, by `collectionFormat`.
pub(crate) fn form(node: NodeRef<'_>, place: Place) -> Form {
    let (default, many) = match place {
        Place::Path | Place::Header => (Style::Simple, false),
        Place::Query | Place::Cookie => (Style::Form, true),
    };
    let (style, explode) = match node.text("collectionFormat").unwrap_or("csv") {
        "multi" if many => (Style::Form, true),
        "ssv" => (Style::SpaceDelimited, false),
        "tsv" => (Style::TabDelimited, false),
        "pipes" => (Style::PipeDelimited, false),
        _ => (default, false),
    };
    Form::Styled { style, explode, allow_reserved: false }
}

/// The body of an operation: the parameter `in: body`, or all those `in: formData`.
pub(crate) fn payload<'a>(
    operation: NodeRef<'a>,
    parameters: &[NodeRef<'a>],
) -> Result<Option<Payload<'a>>, String> {
    let consumed = consumes(operation);
    if let Some(body) = parameters.iter().find(|node| node.text("in") == Some("body")) {
        return Ok(Some(whole(*body, &consumed)));
    }
    let fields: Vec<NodeRef<'a>> =
        parameters.iter().copied().filter(|node| node.text("in") == Some("formData")).collect();
    if fields.is_empty() {
        return Ok(None);
    }
    let file = fields.iter().any(|field| field.text("type") == Some("file"));
    let multipart = consumed.iter().any(|media| essence(media) == "multipart/form-data");
    let urlencoded = consumed.iter().any(|media| essence(media) == "application/x-www-form-urlencoded");
    let (shape, media) = if file || multipart && !urlencoded {
        (Shape::Multipart, "multipart/form-data")
    } else {
        (Shape::Form, "application/x-www-form-urlencoded")
    };
    let named = |node: &NodeRef<'a>| (node.text("name").unwrap_or_default().to_owned(), *node);
    let required = fields.iter().filter(|field| field.flag("required"));
    let required: Vec<String> = required.map(|field| named(field).0).collect();
    Ok(Some(Payload {
        media: media.to_owned(),
        required: !required.is_empty(),
        shape,
        schema: None,
        fields: Some(Fields { properties: fields.iter().map(named).collect(), required }),
        encoding: None,
        description: None,
    }))
}

/// The media types that an operation takes, the best first.
fn consumes(operation: NodeRef<'_>) -> Vec<&str> {
    let root = operation.bundle.root();
    let list = operation.get("consumes").or_else(|| root.and_then(|root| root.get("consumes")));
    list.into_iter().flat_map(NodeRef::elements).filter_map(|media| media.value.as_str()).collect()
}

fn whole<'a>(body: NodeRef<'a>, consumed: &[&str]) -> Payload<'a> {
    let schema = body.get("schema");
    let best = consumed.iter().min_by_key(|media| preference(media));
    let media = best.copied().unwrap_or("application/json");
    // Only a form parameter is a form; a body is what its schema says.
    let shape = match shape(media, schema) {
        Shape::Form | Shape::Multipart => Shape::Json,
        shape @ (Shape::Json | Shape::Text | Shape::Binary) => shape,
    };
    let media = if shape == Shape::Json && !is_json(media) { "application/json" } else { media };
    Payload {
        media: sent(media, shape),
        required: body.flag("required"),
        shape,
        schema,
        fields: None,
        encoding: None,
        description: body.text("description"),
    }
}
