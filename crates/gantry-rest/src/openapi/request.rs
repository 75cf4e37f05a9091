//! From arguments to the parts of an HTTP request.
//!
//! **Invariant:** no argument can end the part of the request that it is written into. Names and values are encoded for
//! where they stand, and what cannot be encoded there (a line break in a header, a step upwards in a path) is refused.

pub(crate) mod body;
pub(crate) mod encode;
mod file;
mod multipart;
pub(crate) mod parameters;
pub(crate) mod path;

#[cfg(test)]
mod tests;

use crate::Object;
use crate::openapi::limits::ADDRESS_BYTES;
use crate::openapi::operation::Operation;
use body::Body;
use parameters::{Pairs, Parameter, Place, TooLong, in_header};
use serde_json::Value;

const NOT_ARGUMENTS: [&str; 18] = [
    // They say where a request goes and where it ends.
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    // OpenAPI ignores the first three, and credentials go into the last two.
    "accept",
    "content-type",
    "authorization",
    "cookie",
    // With these a call is of another method than the one that its effect comes from.
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];

pub(crate) fn may_be_argument(header: &str) -> bool {
    !NOT_ARGUMENTS.iter().any(|other| other.eq_ignore_ascii_case(header))
}

/// How the arguments of an operation become a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Template {
    /// In the order in which they are written.
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    /// The names of the API keys that may go into the query.
    pub(crate) query_keys: Vec<String>,
}

/// The parts of a request that come from the arguments, encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The path below the server's address; it begins with `/`.
    pub path: String,
    /// The query without its `?`; empty for none.
    pub query: String,
    pub headers: Vec<(String, String)>,
    /// The media type and the bytes.
    pub body: Option<(String, Vec<u8>)>,
}

impl Operation {
    /// The request that these arguments, which the input schema has let pass, stand for.
    pub fn prepare(&self, arguments: &Object) -> Result<Prepared, String> {
        self.template.prepare(&self.path, arguments)
    }
}

impl Template {
    fn prepare(&self, path: &str, arguments: &Object) -> Result<Prepared, String> {
        let (path, fixed) = path::write(path, &self.parameters, arguments)?;
        let query = self.query(&fixed, arguments)?;
        let length = path.len().saturating_add(query.len());
        if length > ADDRESS_BYTES {
            return Err(format!(
                "the path and the query would have {length} bytes, and {ADDRESS_BYTES} is the most; send less"
            ));
        }
        let body = match &self.body {
            Some(body) => body.write(arguments)?,
            None => None,
        };
        Ok(Prepared { path, query, headers: self.headers(arguments)?, body })
    }

    /// The pairs of the path's own query, then the parameters.
    fn query(&self, fixed: &[path::FixedQueryPair], arguments: &Object) -> Result<String, String> {
        let mut pairs = Pairs::encoded(ADDRESS_BYTES);
        let mut written: Vec<&str> = Vec::new();
        for (parameter, value) in self.given(Place::Query, arguments) {
            let before = pairs.len();
            self.check_spread(parameter, value)?;
            pairs
                .write(&parameter.name, value, parameter.serialization)
                .map_err(|error| too_long(parameter, error))?;
            if pairs.len() > before {
                written.push(&parameter.name);
            }
        }
        // A parameter that is written replaces a fixed pair of its name.
        let kept = fixed.iter().filter(|pair| !written.contains(&pair.name.as_str()));
        let fixed: Vec<&str> = kept.map(|pair| pair.text.as_str()).collect();
        let between = if fixed.is_empty() || pairs.len() == 0 { "" } else { "&" };
        Ok(format!("{}{between}{}", fixed.join("&"), pairs.join()))
    }

    fn headers(&self, arguments: &Object) -> Result<Vec<(String, String)>, String> {
        let mut headers = Vec::new();
        let mut bytes: usize = 0;
        for (parameter, value) in self.given(Place::Header, arguments) {
            let Some(text) = in_header(parameter.serialization.style, value) else { continue };
            check_header(&parameter.argument, &text)?;
            bytes = bytes.saturating_add(parameter.name.len()).saturating_add(text.len());
            if bytes > ADDRESS_BYTES {
                return Err(too_long(parameter, TooLong));
            }
            headers.push((parameter.name.clone(), text));
        }
        Ok(headers)
    }

    /// The parameters of a place that have a value, with it.
    fn given<'a>(
        &'a self,
        place: Place,
        arguments: &'a Object,
    ) -> impl Iterator<Item = (&'a Parameter, &'a Value)> {
        let there = self.parameters.iter().filter(move |parameter| parameter.place == place);
        there.filter_map(|parameter| {
            let value = arguments.get(&parameter.argument).filter(|value| !value.is_null())?;
            Some((parameter, value))
        })
    }

    /// Refuses an exploded object with a property that would pass for another parameter or for an API key. Servers may
    /// ignore the case of a key's name.
    fn check_spread(&self, parameter: &Parameter, value: &Value) -> Result<(), String> {
        let argument = &parameter.argument;
        for property in parameter.serialization.spread(value) {
            if self.query_keys.iter().any(|key| key.eq_ignore_ascii_case(property)) {
                return Err(format!(
                    "the argument {argument:?} has the property {property:?}, which is the API key of the \
                     operation and no argument; leave it out"
                ));
            }
            let other = self.parameters.iter().find(|other| {
                other.place == Place::Query && other.name == property && other.argument != *argument
            });
            if let Some(other) = other {
                return Err(format!(
                    "the argument {argument:?} has the property {property:?}, which is a parameter of its own; \
                     give it as the argument {:?}",
                    other.argument
                ));
            }
        }
        Ok(())
    }
}

/// Refuses values that a header cannot have. The importer refuses names.
fn check_header(argument: &str, text: &str) -> Result<(), String> {
    if let Some(bad) = text.chars().find(char::is_ascii_control) {
        return Err(format!("the argument {argument:?} has the character {bad:?}, which no header may have"));
    }
    if let Some(bad) = text.chars().find(|character| !character.is_ascii()) {
        return Err(format!(
            "the argument {argument:?} has the character {bad:?}, and a header has only those of ASCII"
        ));
    }
    Ok(())
}

/// The error for a parameter that no request has room for.
fn too_long(parameter: &Parameter, TooLong: TooLong) -> String {
    let place = match parameter.place {
        Place::Path | Place::Query => "address",
        Place::Header => "headers",
    };
    format!(
        "the argument {:?} makes the {place} longer than {ADDRESS_BYTES} bytes; send less",
        parameter.argument
    )
}
