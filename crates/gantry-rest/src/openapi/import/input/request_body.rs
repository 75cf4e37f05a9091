//! The body of a request: which of its media types is sent, and which arguments make it.

use crate::openapi::document::{NodeRef, Version};
use crate::openapi::import::input::arguments::{Argument, ArgumentType, legal_name};
use crate::openapi::import::input::files::{self, Files, file};
use crate::openapi::import::input::parameters::serialization;
use crate::openapi::import::swagger2;
use crate::openapi::limits::PROPERTY_DESCRIPTION_CHARS;
use crate::openapi::media;
use crate::openapi::request::body::{BODY, Body, BodyFormat, PropertyEncoding, Source};
use crate::openapi::request::parameters::{Place, Serialization, Style};
use crate::openapi::schema::{Fields, collapse, fields, loose_fields};
use std::borrow::Cow;
use std::collections::HashSet;

// Limit: media types of one body that are read.
const MEDIA_TYPES: usize = 50;
// Limit: bytes of a media type.
const MEDIA_BYTES: usize = 200;

#[derive(Debug)]
pub(crate) struct RequestBody<'a> {
    pub(crate) media: String,
    pub(crate) required: bool,
    pub(crate) format: BodyFormat,
    pub(crate) schema: Option<NodeRef<'a>>,
    /// The fields of a form of Swagger, which has no schema.
    pub(crate) fields: Option<Fields<'a>>,
    pub(crate) encoding: Option<NodeRef<'a>>,
    pub(crate) description: Option<&'a str>,
}

#[derive(Debug)]
pub(crate) struct BodyArguments<'a> {
    pub(crate) arguments: Vec<Argument<'a>>,
    pub(crate) body: Body,
}

/// The body of an operation, if it has one. Of several media types, multipart with a file is sent, since the others may
/// not have room for the file; else the first one of the preferred format.
pub(crate) fn select<'a>(
    operation: NodeRef<'a>,
    parameters: &[NodeRef<'a>],
) -> Result<Option<RequestBody<'a>>, String> {
    if operation.bundle.version == Version::V2 {
        return Ok(swagger2::request_body(operation, parameters));
    }
    let Some(body) = operation.get("requestBody").filter(|body| !body.value.is_null()) else {
        return Ok(None);
    };
    let unreadable = |error| format!("the request body cannot be read: {error}");
    let body = body.resolved().map_err(unreadable)?;
    let content = body.get("content").into_iter().flat_map(NodeRef::members).take(MEDIA_TYPES);
    let content: Vec<_> = content.filter(|(media, _)| media.len() <= MEDIA_BYTES).collect();
    let with_file = content.iter().find(|(media, node)| media::is_multipart(media) && has_file(*node));
    let Some((media, node)) = with_file.or_else(|| content.iter().min_by_key(|(media, _)| preference(media)))
    else {
        return Ok(None);
    };
    let node = node.resolved().map_err(unreadable)?;
    let schema = node.get("schema");
    let format = format_of(media, schema);
    Ok(Some(RequestBody {
        media: sendable(media, format),
        required: body.flag("required"),
        format,
        schema,
        fields: None,
        encoding: node.get("encoding"),
        description: body.text("description"),
    }))
}

/// The media type with the least of these is sent.
pub(crate) fn preference(media: &str) -> (BodyFormat, bool) {
    (format_of(media, None), media::essence(media) != "application/json")
}

fn has_file(content: NodeRef<'_>) -> bool {
    let encoding = content.get("encoding");
    let properties = content.get("schema").map(|schema| loose_fields(schema).properties).unwrap_or_default();
    let mut properties = properties.iter();
    properties.any(|(name, property)| file(*property, encoding.and_then(|all| all.get(name))).is_some())
}

pub(crate) fn format_of(media: &str, schema: Option<NodeRef<'_>>) -> BodyFormat {
    // `*/*` is JSON unless its schema is that of bytes.
    let is_file = || media::is_any(media) && schema.is_some_and(|schema| file(schema, None).is_some());
    if media::is_multipart(media) {
        BodyFormat::Multipart
    } else if media::is_form(media) {
        BodyFormat::Form
    } else if media::is_json(media) && !is_file() {
        BodyFormat::Json
    } else if media::is_text(media) {
        BodyFormat::Text
    } else {
        BodyFormat::Binary
    }
}

/// The media type that is sent where the document has this one, which may be a range or no media type.
pub(crate) fn sendable(media: &str, format: BodyFormat) -> String {
    // The parameters of a multipart body are made with it.
    let media = if format == BodyFormat::Multipart { media::essence(media) } else { media.trim().to_owned() };
    if media::is_valid(&media) {
        return media;
    }
    let usual = match format {
        BodyFormat::Json => "application/json",
        BodyFormat::Form => "application/x-www-form-urlencoded",
        BodyFormat::Multipart => "multipart/form-data",
        BodyFormat::Text => "text/plain",
        BodyFormat::Binary => "application/octet-stream",
    };
    usual.to_owned()
}

/// The arguments that make a body, and how they do it.
pub(crate) fn arguments(mut body: RequestBody<'_>) -> Result<BodyArguments<'_>, String> {
    let known = match (body.fields.take(), body.format, body.schema) {
        (Some(fields), _, _) => Some(fields),
        (None, BodyFormat::Json | BodyFormat::Form | BodyFormat::Multipart, Some(schema)) => {
            fields(schema).map_err(|error| format!("the request body cannot be read: {error}"))?
        }
        (None, _, _) => None,
    };
    // The properties of an optional body with required ones are no arguments: they are required only if there is a body.
    let flat = known.as_ref().filter(|fields| body.required || fields.required.is_empty());
    let flat = flat.and_then(|fields| flattened(&body, fields));
    let fields = known.or_else(|| body.schema.map(|schema| loose_fields(schema)));
    let fields = fields.unwrap_or(Fields { properties: Vec::new(), required: Vec::new() });
    let encodings = encodings(&body, &fields.properties)?;
    let (arguments, source) = flat.unwrap_or_else(|| {
        let argument = Argument {
            name: BODY.to_owned(),
            original: None,
            required: body.required,
            description: description(&body),
            accepts: whole(&body, fields),
        };
        (vec![argument], Source::Whole)
    });
    let RequestBody { media, required, format, .. } = body;
    Ok(BodyArguments { arguments, body: Body { media, required, format, source, encodings } })
}

/// Each property as an argument, unless two would have the same name.
fn flattened<'a>(body: &RequestBody<'a>, fields: &Fields<'a>) -> Option<(Vec<Argument<'a>>, Source)> {
    let mut seen = HashSet::new();
    let mut arguments = Vec::with_capacity(fields.properties.len());
    let mut names = Vec::with_capacity(fields.properties.len());
    for (property, node) in &fields.properties {
        let name = legal_name(property);
        if !seen.insert(name.clone()) {
            return None;
        }
        let accepts = property_type(body, property, *node);
        arguments.push(Argument {
            original: Some(property.clone()).filter(|property| *property != name),
            required: fields.required.contains(property),
            description: match accepts {
                // Its own schema is not converted.
                ArgumentType::File | ArgumentType::Files => files::description(*node).map(Cow::Borrowed),
                ArgumentType::Schema(_)
                | ArgumentType::Text
                | ArgumentType::Anything
                | ArgumentType::Object(..) => None,
            },
            accepts,
            name: name.clone(),
        });
        names.push((name, property.clone()));
    }
    Some((arguments, Source::Fields(names)))
}

fn property_type<'a>(body: &RequestBody<'a>, property: &str, node: NodeRef<'a>) -> ArgumentType<'a> {
    if body.format != BodyFormat::Multipart {
        return ArgumentType::Schema(node);
    }
    match file(node, body.encoding.and_then(|all| all.get(property))) {
        Some(Files::One) => ArgumentType::File,
        Some(Files::Many) => ArgumentType::Files,
        None => ArgumentType::Schema(node),
    }
}

/// The type of a body that is one argument.
fn whole<'a>(body: &RequestBody<'a>, fields: Fields<'a>) -> ArgumentType<'a> {
    match (body.format, body.schema) {
        (BodyFormat::Binary, _) => ArgumentType::File,
        (BodyFormat::Text, _) => ArgumentType::Text,
        (BodyFormat::Json, Some(schema)) => ArgumentType::Schema(schema),
        (BodyFormat::Json, None) => ArgumentType::Anything,
        (BodyFormat::Form | BodyFormat::Multipart, schema) => {
            let Fields { properties, required } = fields;
            let typed = properties.into_iter().map(|(name, node)| {
                let accepts = property_type(body, &name, node);
                (name, accepts)
            });
            let typed: Vec<_> = typed.collect();
            let files = typed.iter().any(|(_, it)| matches!(it, ArgumentType::File | ArgumentType::Files));
            match schema {
                Some(schema) if !files => ArgumentType::Schema(schema),
                Some(_) | None => ArgumentType::Object(typed, required),
            }
        }
    }
}

fn description<'a>(body: &RequestBody<'a>) -> Option<Cow<'a, str>> {
    let text = body.description.or_else(|| body.schema?.resolved().ok()?.text("description"));
    let hint = match body.format {
        BodyFormat::Text => format!("The body as text ({}).", body.media),
        BodyFormat::Binary => format!("The body as a file ({}).", body.media),
        BodyFormat::Json | BodyFormat::Form | BodyFormat::Multipart => return text.map(Cow::Borrowed),
    };
    let text = text.map(|text| format!(" {}", collapse(text, PROPERTY_DESCRIPTION_CHARS)));
    Some(Cow::Owned(format!("{hint}{}", text.unwrap_or_default())))
}

/// How single properties of a form or a multipart body are written, where the document says so.
fn encodings(
    body: &RequestBody<'_>,
    properties: &[(String, NodeRef<'_>)],
) -> Result<Vec<(String, PropertyEncoding)>, String> {
    let mut out = Vec::new();
    if !matches!(body.format, BodyFormat::Form | BodyFormat::Multipart) {
        return Ok(out);
    }
    for (name, node) in properties {
        let encoding = body.encoding.and_then(|all| all.get(name));
        let serialization = property_serialization(*node, encoding)
            .map_err(|error| format!("the property {name:?} of the request body: {error}"))?;
        let mut found = PropertyEncoding { serialization, ..PropertyEncoding::default() };
        if body.format == BodyFormat::Multipart {
            found.file = file(*node, encoding).is_some();
            found.content_type = files::content_type(*node, encoding);
        } else if found.serialization.is_none() {
            let content_type = encoding.and_then(|encoding| encoding.text("contentType"));
            let is_json = content_type.is_some_and(media::is_json);
            found.serialization = is_json.then(|| Serialization::new(Style::Json));
        }
        if found != PropertyEncoding::default() {
            out.push((name.clone(), found));
        }
    }
    Ok(out)
}

/// How a property is written, where the document says so.
fn property_serialization(
    property: NodeRef<'_>,
    encoding: Option<NodeRef<'_>>,
) -> Result<Option<Serialization>, String> {
    if property.bundle.version == Version::V2 {
        let is_list = swagger2::is_list(property);
        return is_list.then(|| swagger2::serialization(property, Place::Query)).transpose();
    }
    let keys = ["style", "explode", "allowReserved"];
    let encoding = encoding.filter(|encoding| keys.iter().any(|key| encoding.get(key).is_some()));
    encoding.map(|encoding| serialization(encoding, Place::Query)).transpose()
}
