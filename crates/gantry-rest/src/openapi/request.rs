//! From arguments to the parts of an HTTP request.
//!
//! **Invariant:** no argument can end the part of the request that it is written into. Names and values are encoded for
//! where they stand, and what cannot be encoded there (a line break in a header, a step upwards in a path) is refused.

pub(crate) mod body;
pub(crate) mod encode;
mod file;
mod multipart;
pub(crate) mod parameters;
mod path;

#[cfg(test)]
mod tests;

use crate::openapi::import::security::KeyPlace;
use crate::openapi::limits::ADDRESS_BYTES;
use crate::openapi::operation::Operation;
use crate::openapi::request::body::Body;
use crate::openapi::request::parameters::{Pairs, Parameter, Place, Sheet, TooLong, in_header};
use http::HeaderName;
use serde_json::{Map, Value};

/// Headers that say where a request goes and where it ends, and so are never an argument.
pub(crate) const FRAMING: [&str; 11] = [
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
];

/// How the arguments of an operation become a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    /// In the order in which they are written.
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
}

/// What of a request comes from the arguments. All of it is encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The path below the server's address; it begins with `/`.
    pub path: String,
    /// The query without its `?`; empty for none.
    pub query: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What the `Cookie` header holds; empty for none.
    pub cookies: String,
    /// The media type and the bytes.
    pub body: Option<(String, Vec<u8>)>,
}

impl Operation {
    /// The request that these arguments, which the input schema has let pass, stand for.
    ///
    /// # Errors
    /// Says which argument cannot be sent, and why.
    pub fn prepare(&self, arguments: &Map<String, Value>) -> Result<Prepared, String> {
        let request = Request { template: &self.template, keys: &self.keys };
        request.prepare(&self.path, arguments)
    }
}

/// What a request is made of, but for its arguments.
struct Request<'t> {
    template: &'t Template,
    /// The API keys that may go with it.
    keys: &'t [(KeyPlace, String)],
}

impl Request<'_> {
    fn prepare(&self, path: &str, arguments: &Map<String, Value>) -> Result<Prepared, String> {
        let (path, fixed) = path::write(path, &self.template.parameters, arguments)?;
        let query = self.query(&fixed, arguments)?;
        let length = path.len().saturating_add(query.len());
        if length > ADDRESS_BYTES {
            return Err(format!(
                "the path and the query would have {length} bytes, and {ADDRESS_BYTES} is the most; send less"
            ));
        }
        let body = match &self.template.body {
            Some(body) => body.write(arguments)?,
            None => None,
        };
        Ok(Prepared {
            path,
            query,
            headers: self.headers(arguments)?,
            cookies: self.cookies(arguments)?,
            body,
        })
    }

    /// The query: what the path of the document has of one, then the parameters.
    fn query(&self, fixed: &[path::Fixed], arguments: &Map<String, Value>) -> Result<String, String> {
        let mut pairs = Pairs::new(Sheet::Query, ADDRESS_BYTES);
        let mut written: Vec<&str> = Vec::new();
        for (parameter, value) in self.given(Place::Query, arguments) {
            let before = pairs.len();
            self.write(&mut pairs, parameter, value)?;
            if pairs.len() > before {
                written.push(&parameter.name);
            }
        }
        // A parameter that is written says the same again, or better.
        let kept = fixed.iter().filter(|pair| !written.contains(&pair.name.as_str()));
        let fixed: Vec<&str> = kept.map(|pair| pair.text.as_str()).collect();
        let between = if fixed.is_empty() || pairs.is_empty() { "" } else { "&" };
        Ok(format!("{}{between}{}", fixed.join("&"), pairs.join("&")))
    }

    /// The table of the specification has `&` between exploded cookies, which no server splits at; a cookie of its own
    /// for each is what can be meant.
    fn cookies(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        let mut pairs = Pairs::new(Sheet::Cookie, ADDRESS_BYTES);
        for (parameter, value) in self.given(Place::Cookie, arguments) {
            self.write(&mut pairs, parameter, value)?;
        }
        Ok(pairs.join("; "))
    }

    fn headers(&self, arguments: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
        let mut headers = Vec::new();
        let mut bytes: usize = 0;
        for (parameter, value) in self.given(Place::Header, arguments) {
            let Some(text) = in_header(&parameter.form, value) else { continue };
            let argument = &parameter.argument;
            check_header(&parameter.name, argument, &text, parameter.form.has_tabs())?;
            let mut cookies = text.split(';').map(|pair| pair.split('=').next().unwrap_or_default().trim());
            let key = cookies.find(|name| self.is_key(Place::Cookie, name));
            if let Some(key) = key.filter(|_| parameter.name.eq_ignore_ascii_case("cookie")) {
                return Err(format!(
                    "the argument {argument:?} has the cookie {key:?}, which is the API key of the operation and no \
                     argument; leave it out"
                ));
            }
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
        arguments: &'a Map<String, Value>,
    ) -> impl Iterator<Item = (&'a Parameter, &'a Value)> {
        let there = self.template.parameters.iter().filter(move |parameter| parameter.place == place);
        there.filter_map(|parameter| {
            let value = arguments.get(&parameter.argument).filter(|value| !value.is_null())?;
            Some((parameter, value))
        })
    }

    /// Writes one parameter. A property of an object that is spread must not pass for another parameter, nor for a
    /// credential.
    fn write(&self, pairs: &mut Pairs, parameter: &Parameter, value: &Value) -> Result<(), String> {
        for property in parameter.form.spread(value) {
            if self.is_key(parameter.place, property) {
                return Err(format!(
                    "the argument {:?} has the property {property:?}, which is the API key of the operation and no \
                     argument; leave it out",
                    parameter.argument
                ));
            }
            let other = self.template.parameters.iter().find(|other| {
                other.place == parameter.place
                    && other.name == property
                    && other.argument != parameter.argument
            });
            if let Some(other) = other {
                return Err(format!(
                    "the argument {:?} has the property {property:?}, which is a parameter of its own; give it as \
                     the argument {:?}",
                    parameter.argument, other.argument
                ));
            }
        }
        pairs.write(&parameter.name, value, &parameter.form).map_err(|error| too_long(parameter, error))
    }

    /// Whether an API key has this name there. Servers may not care for its case.
    fn is_key(&self, place: Place, name: &str) -> bool {
        self.keys.iter().any(|(key_place, key)| {
            let same = match key_place {
                KeyPlace::Query => place == Place::Query,
                KeyPlace::Header => place == Place::Header,
                KeyPlace::Cookie => place == Place::Cookie,
            };
            same && key.eq_ignore_ascii_case(name)
        })
    }
}

/// What a header may be called and hold.
fn check_header(name: &str, argument: &str, text: &str, tabs: bool) -> Result<(), String> {
    let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
        return Err(format!(
            "the argument {argument:?} would be the header {name:?}, which is no name of a header"
        ));
    };
    if FRAMING.contains(&header.as_str()) {
        return Err(format!(
            "the argument {argument:?} would be the header {name:?}, which belongs to the connection; leave it out"
        ));
    }
    let is_bad = |character: &char| character.is_ascii_control() && !(tabs && *character == '\t');
    if let Some(bad) = text.chars().find(is_bad) {
        return Err(format!("the argument {argument:?} has the character {bad:?}, which no header may have"));
    }
    if let Some(bad) = text.chars().find(|character| !character.is_ascii()) {
        return Err(format!(
            "the argument {argument:?} has the character {bad:?}, and a header has only those of ASCII"
        ));
    }
    Ok(())
}

/// The words for a parameter that no request has room for.
fn too_long(parameter: &Parameter, TooLong: TooLong) -> String {
    let place = match parameter.place {
        Place::Path | Place::Query => "address",
        Place::Header => "headers",
        Place::Cookie => "cookies",
    };
    format!(
        "the argument {:?} makes the {place} longer than {ADDRESS_BYTES} bytes; send less",
        parameter.argument
    )
}
