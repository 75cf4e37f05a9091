//! The body of a request: which of its media types is sent, and which arguments make it.

use crate::openapi::document::NodeRef;
use crate::openapi::document::Version;
use crate::openapi::import::input::arguments::{Argument, What, cleaned};
use crate::openapi::import::input::files::{self, Files, file};
use crate::openapi::import::input::parameters::styled;
use crate::openapi::import::swagger2;
use crate::openapi::limits::PROPERTY_DESCRIPTION_CHARS;
use crate::openapi::media;
use crate::openapi::request::body::{Body, BodyKind, Part, Source};
use crate::openapi::request::parameters::{Form, Place};
use crate::openapi::schema::{Fields, collapse, fields, loose_fields};
use std::borrow::Cow;
use std::collections::HashSet;

/// Media types of one body that are looked at.
const MEDIA_TYPES: usize = 50;
/// Bytes of a media type.
const MEDIA_BYTES: usize = 200;
/// Names in what is said about XML.
const XML_NAMES: usize = 30;
/// Characters of those.
const XML_CHARS: usize = 160;

/// The kinds of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Json,
    Form,
    Multipart,
    Text,
    Binary,
}

/// A body as the document has it.
#[derive(Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) media: String,
    pub(crate) required: bool,
    pub(crate) shape: Shape,
    pub(crate) schema: Option<NodeRef<'a>>,
    /// The fields of a form of Swagger, which has no schema.
    pub(crate) fields: Option<Fields<'a>>,
    pub(crate) encoding: Option<NodeRef<'a>>,
    pub(crate) description: Option<&'a str>,
}

/// A body with the arguments that make it.
#[derive(Debug)]
pub(crate) struct Content<'a> {
    pub(crate) arguments: Vec<Argument<'a>>,
    pub(crate) body: Body,
}

/// The body of an operation, if it has one.
pub(crate) fn of<'a>(
    operation: NodeRef<'a>,
    parameters: &[NodeRef<'a>],
) -> Result<Option<Payload<'a>>, String> {
    if operation.bundle.version == Version::V2 {
        return swagger2::payload(operation, parameters);
    }
    let Some(body) = operation.get("requestBody").filter(|body| !body.value.is_null()) else {
        return Ok(None);
    };
    let body = body.resolved().map_err(|error| format!("the request body cannot be read: {error}"))?;
    let mut best: Option<(usize, &str, NodeRef<'a>)> = None;
    let content = body.get("content").into_iter().flat_map(NodeRef::members).take(MEDIA_TYPES);
    let content = content.filter(|(media, _)| media.len() <= MEDIA_BYTES);
    // With whether one of the properties is a file.
    let content: Vec<(&str, NodeRef<'a>, bool)> = content
        .map(|(media, node)| {
            let may = is_form_data(media) || media::is_json(media);
            (media, node, may && carries_file(node, media))
        })
        .collect();
    let files = content.iter().any(|(media, _, file)| is_form_data(media) && *file)
        && !content.iter().any(|(media, _, file)| media::is_json(media) && *file);
    for (media, node, file) in content {
        let node = node.resolved().map_err(|error| format!("the request body cannot be read: {error}"))?;
        let rank = match is_form_data(media) && file {
            // Only multipart can carry the file.
            true if files => 0,
            true => 3,
            false => preference(media),
        };
        if best.is_none_or(|(other, _, _)| rank < other) {
            best = Some((rank, media, node));
        }
    }
    Ok(best.map(|(_, media, node)| {
        let schema = node.get("schema");
        let shape = shape(media, schema);
        Payload {
            media: sent(media, shape),
            required: body.flag("required"),
            shape,
            schema,
            fields: None,
            encoding: node.get("encoding"),
            description: body.text("description"),
        }
    }))
}

fn is_form_data(media: &str) -> bool {
    media::essence(media).starts_with("multipart/")
}

/// How welcome a media type is; the least is sent.
pub(crate) fn preference(media: &str) -> usize {
    match media::essence(media).as_str() {
        "application/json" => 1,
        _ if is_form_data(media) => 5,
        "application/x-www-form-urlencoded" => 4,
        _ if media::is_json(media) => 2,
        _ if media::is_text(media) => 6,
        _ => 7,
    }
}

/// Whether one of the properties is a file.
fn carries_file(content: NodeRef<'_>, media: &str) -> bool {
    let encoding = content.get("encoding");
    let schema = content.get("schema").and_then(|schema| schema.resolved().ok());
    let Some(schema) = schema else { return false };
    let properties = match fields(schema) {
        Ok(Some(fields)) => fields.properties,
        Ok(None) | Err(_) => loose_fields(schema).properties,
    };
    properties.iter().any(|(name, property)| {
        let encoded = media::is_json(media) && files::is_encoded(*property);
        encoded || file(*property, encoding.and_then(|all| all.get(name))).is_some()
    })
}

pub(crate) fn shape(media: &str, schema: Option<NodeRef<'_>>) -> Shape {
    let essence = media::essence(media);
    if is_form_data(media) {
        Shape::Multipart
    } else if essence == "application/x-www-form-urlencoded" {
        Shape::Form
    } else if media::is_json(media) {
        // `*/*` is JSON unless it says that it is bytes.
        let bytes = essence.contains('*') && schema.is_some_and(|schema| file(schema, None).is_some());
        if bytes { Shape::Binary } else { Shape::Json }
    } else if media::is_text(media) {
        Shape::Text
    } else {
        Shape::Binary
    }
}

/// The media type that is sent for one of a document.
pub(crate) fn sent(media: &str, shape: Shape) -> String {
    let essence = media::essence(media);
    let instead = match shape {
        Shape::Multipart if essence.contains('*') => Some("multipart/form-data"),
        // The boundary is made with the body.
        Shape::Multipart => Some(essence.as_str()),
        _ if http::HeaderValue::from_str(media.trim()).is_ok()
            && essence.contains('/')
            && !essence.contains('*') =>
        {
            None
        }
        Shape::Json => Some("application/json"),
        Shape::Text => Some("text/plain"),
        Shape::Form | Shape::Binary => Some("application/octet-stream"),
    };
    instead.unwrap_or(media.trim()).to_owned()
}

/// The arguments that make a body, and how they do it.
pub(crate) fn content<'a>(mut payload: Payload<'a>) -> Result<Content<'a>, String> {
    let mut known = match (payload.shape, payload.schema) {
        (Shape::Json | Shape::Form | Shape::Multipart, Some(schema)) => {
            fields(schema).map_err(|error| format!("the request body cannot be read: {error}"))?
        }
        _ => None,
    };
    known = payload.fields.take().or(known).filter(|fields| !fields.properties.is_empty());
    let flat = known.as_ref().is_some_and(|fields| payload.required || fields.required.is_empty());
    let listed = match &known {
        Some(fields) => kind(&payload, &fields.properties),
        None => match payload.shape {
            Shape::Form | Shape::Multipart => kind(&payload, &loose(&payload).properties),
            Shape::Json | Shape::Text | Shape::Binary => kind(&payload, &[]),
        },
    };
    let flattened = known.as_ref().filter(|_| flat).and_then(|fields| flattened(&payload, fields));
    let (arguments, source) = flattened.unwrap_or_else(|| {
        let description = whole_description(&payload);
        let what = whole(&payload, known);
        let required = payload.required;
        let argument = Argument { name: "body".to_owned(), original: None, required, what, description };
        (vec![argument], Source::Whole("body".to_owned()))
    });
    let body = Body { media: payload.media, required: payload.required, source, kind: listed };
    Ok(Content { arguments, body })
}

/// The properties that are known of a body, whatever else is allowed in it.
fn loose<'a>(payload: &Payload<'a>) -> Fields<'a> {
    let found = payload.schema.map(|schema| loose_fields(schema));
    found.unwrap_or(Fields { properties: Vec::new(), required: Vec::new() })
}

/// Each property as an argument of its own, unless two would have the same name.
fn flattened<'a>(payload: &Payload<'a>, fields: &Fields<'a>) -> Option<(Vec<Argument<'a>>, Source)> {
    let mut seen = HashSet::new();
    let mut arguments = Vec::with_capacity(fields.properties.len());
    let mut names = Vec::with_capacity(fields.properties.len());
    for (property, node) in &fields.properties {
        let name = cleaned(property);
        if !seen.insert(name.clone()) {
            return None;
        }
        let what = what(payload, property, *node);
        arguments.push(Argument {
            original: Some(property.clone()).filter(|property| *property != name),
            required: fields.required.contains(property),
            description: match what {
                // Its schema is not there to be converted.
                What::File | What::Files => files::description(*node).map(Cow::Borrowed),
                What::Schema(_) | What::Text | What::Anything | What::Object(..) => None,
            },
            what,
            name: name.clone(),
        });
        names.push((name, property.clone()));
    }
    Some((arguments, Source::Fields(names)))
}

/// What may be in a property.
fn what<'a>(payload: &Payload<'a>, property: &str, node: NodeRef<'a>) -> What<'a> {
    if payload.shape != Shape::Multipart {
        return What::Schema(node);
    }
    match file(node, payload.encoding.and_then(|all| all.get(property))) {
        Some(Files::One) => What::File,
        Some(Files::Many) => What::Files,
        None => What::Schema(node),
    }
}

/// What may be in a body that is one argument.
fn whole<'a>(payload: &Payload<'a>, known: Option<Fields<'a>>) -> What<'a> {
    match (payload.shape, payload.schema) {
        (Shape::Binary, _) => What::File,
        (Shape::Text, _) => What::Text,
        (Shape::Multipart, schema) => {
            let fields = known.unwrap_or_else(|| loose(payload));
            let mut files = false;
            let properties = fields.properties.into_iter().map(|(name, node)| {
                let what = what(payload, &name, node);
                files |= matches!(what, What::File | What::Files);
                (name, what)
            });
            let properties: Vec<_> = properties.collect();
            match schema {
                Some(schema) if !files => What::Schema(schema),
                _ => What::Object(properties, fields.required),
            }
        }
        (Shape::Json | Shape::Form, Some(schema)) => What::Schema(schema),
        (Shape::Json, None) => What::Anything,
        (Shape::Form, None) => match known {
            Some(fields) => {
                let properties = fields.properties.into_iter().map(|(name, node)| (name, What::Schema(node)));
                What::Object(properties.collect(), fields.required)
            }
            None => What::Object(Vec::new(), Vec::new()),
        },
    }
}

fn whole_description<'a>(payload: &Payload<'a>) -> Option<Cow<'a, str>> {
    let text = payload.description.or_else(|| payload.schema?.resolved().ok()?.text("description"));
    let hint = match payload.shape {
        Shape::Text if media::is_xml(&payload.media) => Some(xml_hint(payload)),
        Shape::Text => Some(format!("The body as text ({}).", payload.media)),
        Shape::Binary => Some(format!("The body as a file ({}).", payload.media)),
        Shape::Json | Shape::Form | Shape::Multipart => None,
    };
    match (hint, text) {
        (Some(hint), Some(text)) => {
            Some(Cow::Owned(format!("{hint} {}", collapse(text, PROPERTY_DESCRIPTION_CHARS))))
        }
        (hint, text) => hint.map(Cow::Owned).or(text.map(Cow::Borrowed)),
    }
}

/// What the document says of the XML that a body is: the root, what is in it, and with an `@` what are its attributes.
fn xml_hint(payload: &Payload<'_>) -> String {
    let schema = payload.schema.and_then(|schema| schema.resolved().ok());
    let root = schema.and_then(|schema| schema.get("xml")?.text("name"));
    let names = loose(payload).properties.into_iter().take(XML_NAMES).map(|(name, node)| {
        let xml = node.get("xml");
        let at = if xml.is_some_and(|xml| xml.flag("attribute")) { "@" } else { "" };
        let name = xml.and_then(|xml| xml.text("name")).map_or(name, str::to_owned);
        format!("{at}{}", collapse(&name, XML_CHARS))
    });
    let names = collapse(&names.collect::<Vec<_>>().join(", "), XML_CHARS);
    let root = root.map(|root| format!(" with the root {}", collapse(root, XML_CHARS))).unwrap_or_default();
    let names = if names.is_empty() { names } else { format!(" In it: {names}.") };
    format!("The body as XML text{root}.{names}")
}

/// How the body is written, with what is said of single properties.
fn kind(payload: &Payload<'_>, properties: &[(String, NodeRef<'_>)]) -> BodyKind {
    let encoding = |name: &str| payload.encoding.and_then(|all| all.get(name));
    match payload.shape {
        Shape::Json => BodyKind::Json,
        Shape::Text => BodyKind::Text,
        Shape::Binary => BodyKind::Binary,
        Shape::Form => {
            let listed = properties.iter().filter_map(|(name, node)| {
                let form = written(*node, encoding(name)).or_else(|| {
                    let json = encoding(name)?.text("contentType").is_some_and(media::is_json);
                    json.then_some(Form::Json)
                });
                Some((name.clone(), form?))
            });
            BodyKind::Form(listed.collect())
        }
        Shape::Multipart => {
            let listed = properties.iter().filter_map(|(name, node)| {
                let part = Part {
                    file: file(*node, encoding(name)).is_some(),
                    content_type: files::content_type(*node, encoding(name)),
                    form: written(*node, encoding(name)),
                };
                let plain = !part.file && part.content_type.is_none() && part.form.is_none();
                (!plain).then(|| (name.clone(), part))
            });
            BodyKind::Multipart(listed.collect())
        }
    }
}

/// How a property is written, where the document says so.
fn written(property: NodeRef<'_>, encoding: Option<NodeRef<'_>>) -> Option<Form> {
    if property.bundle.version == Version::V2 {
        return swagger2::is_list(property).then(|| swagger2::form(property, Place::Query));
    }
    let encoding = encoding?;
    let said = ["style", "explode", "allowReserved"].iter().any(|key| encoding.get(key).is_some());
    said.then(|| styled(encoding, Place::Query))
}
