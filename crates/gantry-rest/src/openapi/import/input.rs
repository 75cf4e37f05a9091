//! The input schema of an operation: its parameters and its body as the arguments of one tool.
//!
//! Parameters are arguments by their own names. So are the properties of a body that is nothing but an object with these
//! properties; any other body is the argument `body`. A model should not have to know where in a request a value goes, so
//! places only show in names where two arguments would have the same one.

mod arguments;
mod files;
pub(crate) mod parameters;
pub(crate) mod request_body;

use crate::Object;
use crate::openapi::document::NodeRef;
use crate::openapi::import::ImportBudget;
use crate::openapi::import::security::KeyPlace;
use crate::openapi::request::Template;
use crate::openapi::request::parameters::Parameter;
use crate::openapi::schema::{Converter, Direction, fit};
use arguments::{Argument, ArgumentType, parameter_names};
use gantry_core::schema::SchemaText;
use parameters::ParameterDecl;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) schema: SchemaText,
    pub(crate) template: Template,
}

/// The arguments of an operation. The API keys among its parameters come from the configuration, never from a model.
pub(crate) fn input(
    path: &str,
    item: NodeRef<'_>,
    operation: NodeRef<'_>,
    keys: &BTreeSet<(KeyPlace, &str)>,
    budget: &mut ImportBudget,
) -> Result<Input, String> {
    let all = parameters::merged(item, operation)?;
    let body = request_body::select(operation, &all)?.map(request_body::arguments).transpose()?;
    let (of_body, body) = body.map(|body| (body.arguments, body.body)).unzip();
    let of_body = of_body.unwrap_or_default();
    let declared = parameters::read(path, &all, keys)?;
    let names = parameter_names(&declared, &of_body);
    let mut arguments: Vec<Argument<'_>> = Vec::new();
    let mut parameters = Vec::new();
    for (declared, argument) in declared.into_iter().zip(names) {
        let ParameterDecl { name, place, serialization, required, schema, description } = declared;
        arguments.push(Argument {
            name: argument.clone(),
            original: Some(name.to_owned()).filter(|name| *name != argument),
            required,
            accepts: schema.map_or(ArgumentType::Text, ArgumentType::Schema),
            description: description.map(Cow::Borrowed),
        });
        parameters.push(Parameter { argument, name: name.to_owned(), place, serialization });
    }
    arguments.extend(of_body);
    let schema = fit(Direction::Input, |converter| object(&arguments, converter))?;
    let query_keys = keys.iter().filter(|(place, _)| *place == KeyPlace::Query);
    let query_keys = query_keys.map(|(_, name)| (*name).to_owned()).collect();
    Ok(Input { schema: budget.text(&schema), template: Template { parameters, body, query_keys } })
}

/// The object that all arguments make.
fn object<'a>(arguments: &[Argument<'a>], converter: &mut Converter<'a>) -> Result<Object, String> {
    let mut properties = Object::new();
    let mut required = Vec::new();
    for argument in arguments {
        properties.insert(argument.name.clone(), argument.schema(converter)?);
        if argument.required {
            required.push(Value::from(argument.name.as_str()));
        }
    }
    let mut root = Object::new();
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
