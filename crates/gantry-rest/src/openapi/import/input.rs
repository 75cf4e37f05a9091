//! The input schema of an operation: its parameters and its body as the arguments of one tool.
//!
//! Parameters are arguments by their own names. So are the properties of a body that is nothing but an object with these
//! properties; any other body is the argument `body`. A model should not have to know where in a request a value goes, so
//! places only show in names where two arguments would have the same one.

mod arguments;
mod files;
pub(crate) mod parameters;
pub(crate) mod request_body;

pub(crate) use request_body::{Payload, Shape, preference, sent, shape};

use crate::openapi::document::NodeRef;
use crate::openapi::import::ImportBudget;
use crate::openapi::request::Template;
use crate::openapi::request::parameters::{Parameter, Place};
use crate::openapi::schema::{Converter, Direction, fit};
use arguments::{Argument, Names, What};
use gantry_core::schema::SchemaText;
use parameters::Declared;
use serde_json::{Map, Value};

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
    item: NodeRef<'_>,
    operation: NodeRef<'_>,
    secret: &dyn Fn(Place, &str) -> bool,
    budget: &mut ImportBudget,
) -> Result<Input, String> {
    let all = parameters::merged(item, operation)?;
    let payload = request_body::of(operation, &all)?;
    let content = payload.map(request_body::content).transpose()?;
    let declared: Vec<Declared<'_>> = parameters::read(path, &all)?
        .into_iter()
        .filter(|parameter| !secret(parameter.place, parameter.name))
        .collect();

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
    let schema = fit(Direction::Input, |converter| object(&all, converter))?;
    Ok(Input { schema: budget.text(&schema), template: Template { parameters, body } })
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
