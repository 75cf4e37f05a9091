//! Swagger 2.0, where it has another shape than OpenAPI 3.

use crate::openapi::document::NodeRef;
use crate::openapi::import::input::request_body::{RequestBody, format_of, preference, sendable};
use crate::openapi::import::servers::{located, location};
use crate::openapi::media;
use crate::openapi::request::body::BodyFormat;
use crate::openapi::request::parameters::{Place, Serialization, Style};
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
pub(crate) fn serialization(node: NodeRef<'_>, place: Place) -> Result<Serialization, String> {
    let style = match node.text("collectionFormat").unwrap_or("csv") {
        format @ ("ssv" | "tsv" | "pipes") if is_list(node) => {
            return Err(format!("the collectionFormat {format:?} is not supported"));
        }
        "multi" if place == Place::Query => Style::Exploded,
        _ => Style::Joined,
    };
    Ok(Serialization::new(style))
}

/// The body of an operation: the parameter `in: body`, or all those `in: formData`.
pub(crate) fn request_body<'a>(
    operation: NodeRef<'a>,
    parameters: &[NodeRef<'a>],
) -> Option<RequestBody<'a>> {
    let consumed = consumes(operation);
    if let Some(body) = parameters.iter().find(|node| node.text("in") == Some("body")) {
        return Some(whole(*body, &consumed));
    }
    let fields: Vec<NodeRef<'a>> =
        parameters.iter().copied().filter(|node| node.text("in") == Some("formData")).collect();
    if fields.is_empty() {
        return None;
    }
    let file = fields.iter().any(|field| field.text("type") == Some("file"));
    let multipart = consumed.iter().any(|media| media::is_multipart(media));
    let urlencoded = consumed.iter().any(|media| media::is_form(media));
    let (format, media) = if file || multipart && !urlencoded {
        (BodyFormat::Multipart, "multipart/form-data")
    } else {
        (BodyFormat::Form, "application/x-www-form-urlencoded")
    };
    let named = |node: &NodeRef<'a>| (node.text("name").unwrap_or_default().to_owned(), *node);
    let required = fields.iter().filter(|field| field.flag("required"));
    let required: Vec<String> = required.map(|field| named(field).0).collect();
    Some(RequestBody {
        media: media.to_owned(),
        required: !required.is_empty(),
        format,
        schema: None,
        fields: Some(Fields { properties: fields.iter().map(named).collect(), required }),
        encoding: None,
        description: None,
    })
}

/// The media types that an operation takes, the best first.
fn consumes(operation: NodeRef<'_>) -> Vec<&str> {
    let root = operation.bundle.root();
    let list = operation.get("consumes").or_else(|| root.and_then(|root| root.get("consumes")));
    list.into_iter().flat_map(NodeRef::elements).filter_map(|media| media.value.as_str()).collect()
}

fn whole<'a>(body: NodeRef<'a>, consumed: &[&str]) -> RequestBody<'a> {
    let schema = body.get("schema");
    let best = consumed.iter().min_by_key(|media| preference(media));
    let media = best.copied().unwrap_or("application/json");
    // Only parameters in `formData` make a form.
    let format = match format_of(media, schema) {
        BodyFormat::Form | BodyFormat::Multipart => BodyFormat::Json,
        format @ (BodyFormat::Json | BodyFormat::Text | BodyFormat::Binary) => format,
    };
    let media = if format == BodyFormat::Json && !media::is_json(media) { "application/json" } else { media };
    RequestBody {
        media: sendable(media, format),
        required: body.flag("required"),
        format,
        schema,
        fields: None,
        encoding: None,
        description: body.text("description"),
    }
}
