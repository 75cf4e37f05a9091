//! The input schema of an operation: its parameters and its body as the arguments of one tool.
//!
//! Parameters are arguments by their own names. So are the properties of a body that is nothing but an object with these
//! properties; any other body is the argument `body`. A model should not have to know where in a request a value goes, so
//! places only show in names where two arguments would have the same one.

mod argument;
mod declared;
mod files;
mod media;
mod payload;
mod work;

pub(crate) use media::{essence, is_any, is_json, is_json_for_sure};
pub(crate) use payload::{Payload, Shape, preference, sent, shape};
pub(crate) use work::Work;

use crate::openapi::body::{BodyKind, Part, Source};
use crate::openapi::parameter::{Parameter, Place};
use crate::openapi::request::Template;
use crate::openapi::schema::{Converter, Direction, fitted};
use crate::openapi::spot::Spot;
use argument::{Argument, Names, What};
use declared::Declared;
use gantry_core::schema::SchemaText;
use payload::Content;
use serde_json::{Map, Value};

/// What an entry of a list takes besides its text.
const ENTRY_BYTES: usize = 24;

/// What an operation takes.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) schema: SchemaText,
    pub(crate) template: Template,
}

/// The arguments of an operation.
///
/// `secret` tells which parameters are credentials: those come from elsewhere and never from a model.
///
/// # Errors
/// Says why the operation cannot be called with arguments.
pub(crate) fn input(
    path: &str,
    item: Spot<'_>,
    operation: Spot<'_>,
    secret: &dyn Fn(Place, &str) -> bool,
    work: &mut Work,
) -> Result<Input, String> {
    work.check()?;
    let mut looks = 0;
    let parts = parts(path, item, operation, &mut looks);
    work.look(looks);
    let (declared, content) = parts?;
    let first = content.as_ref().and_then(|content| content.schema).map_or(0, |body| affordable(body, work));
    let declared: Vec<Declared<'_>> =
        declared.into_iter().filter(|parameter| !secret(parameter.place, parameter.name)).collect();

    let mut names = Names::default();
    if let Some(content) = &content {
        names.reserve(content.arguments.iter().map(|argument| argument.name.as_str()));
    }
    let arguments = names.of_parameters(&declared);
    let mut all: Vec<Argument<'_>> = Vec::new();
    let mut parameters = Vec::new();
    for (parameter, argument) in declared.into_iter().zip(arguments) {
        let name = parameter.name.to_owned();
        let Declared { place, form, .. } = parameter;
        all.push(Argument {
            name: argument.clone(),
            original: Some(name.clone()).filter(|name| *name != argument),
            required: parameter.required,
            what: parameter.schema.map_or(What::Text, What::Schema),
            description: parameter.description,
        });
        parameters.push(Parameter { argument, name, place, form });
    }
    let body = content.map(|content| {
        all.extend(content.arguments);
        content.body
    });
    let (schema, _) = fitted(Direction::Input, first, |detail| {
        let converter = Converter::new(Direction::Input, detail);
        work.tried(converter.build(|converter| object(&all, converter)))
    })?;
    let template = Template { parameters, body };
    let schema = work.text(&schema);
    work.keep(schema.as_str().len() + template_bytes(&template));
    Ok(Input { schema, template })
}

/// How much detail of a body can be afforded where it is all that there is. With parameters beside it, it is no more, so
/// that no operation with that body need find it out again. It must not depend on the operation: tools stay as they are
/// when others come, go or change places.
fn affordable(body: Spot<'_>, work: &mut Work) -> usize {
    if let Some(known) = work.known_detail(body) {
        return known;
    }
    let found = fitted(Direction::Input, 0, |detail| {
        let converter = Converter::new(Direction::Input, detail);
        work.tried(converter.build(|converter| {
            let schema = converter.schema(body)?;
            let properties = Map::from_iter([("body".to_owned(), schema)]);
            Ok(Map::from_iter([("properties".to_owned(), Value::Object(properties))]))
        }))
    });
    // What is wrong with it is said for each operation, unless it makes something else of it.
    let detail = found.map_or(0, |(_, detail)| detail);
    work.know_detail(body, detail);
    detail
}

type Parts<'a> = (Vec<Declared<'a>>, Option<Content<'a>>);

/// The parameters, and what becomes of the body. Counts what is looked at for it.
fn parts<'a>(
    path: &'a str,
    item: Spot<'a>,
    operation: Spot<'a>,
    looks: &mut usize,
) -> Result<Parts<'a>, String> {
    let all = declared::merged(item, operation, looks)?;
    let payload = payload::of(operation, &all, looks)?;
    let content = payload.map(|payload| payload::content(payload, looks)).transpose()?;
    Ok((declared::read(path, &all)?, content))
}

/// About how much text a template is.
fn template_bytes(template: &Template) -> usize {
    let of = |name: &String| name.len() + ENTRY_BYTES;
    let parameters = template.parameters.iter().map(|one| of(&one.argument) + of(&one.name));
    let body = template.body.as_ref().map_or(0, |body| {
        let source = match &body.source {
            Source::Whole(name) => of(name),
            Source::Fields(names) => names.iter().map(|(name, original)| of(name) + of(original)).sum(),
        };
        let kind: usize = match &body.kind {
            BodyKind::Form(forms) => forms.iter().map(|(name, _)| of(name)).sum(),
            BodyKind::Multipart(parts) => {
                let content = |part: &Part| part.content_type.as_ref().map_or(0, String::len);
                parts.iter().map(|(name, part)| of(name) + content(part)).sum()
            }
            BodyKind::Json | BodyKind::Text | BodyKind::Binary => 0,
        };
        source + kind
    });
    parameters.sum::<usize>() + body
}

/// The object that all arguments make.
fn object<'a>(
    arguments: &[Argument<'a>],
    converter: &mut Converter<'a>,
) -> Result<Map<String, Value>, String> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in arguments {
        properties.insert(argument.name.clone(), argument.schema(converter)?);
        if argument.required {
            required.push(Value::from(argument.name.as_str()));
        }
    }
    let mut root = Map::new();
    root.insert("type".to_owned(), "object".into());
    root.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
    root.insert("additionalProperties".to_owned(), false.into());
    Ok(root)
}

#[cfg(test)]
mod tests;
