//! `allOf`, `anyOf`, `oneOf` and null: schemas that are composed of others.

use super::Converter;
use super::convert::SchemaContext;
use crate::Object;
use crate::openapi::document::NodeRef;
use serde_json::{Value, json};

/// Keywords that constrain nothing; where two schemas have them, the outer one counts.
const ANNOTATIONS: [&str; 3] = ["description", "deprecated", "default"];

impl<'a> Converter<'a> {
    /// Adds the schemas that a schema is composed of.
    pub(super) fn composition(
        &mut self,
        node: NodeRef<'a>,
        at: SchemaContext,
        mut out: Object,
    ) -> Result<Object, String> {
        for keyword in ["oneOf", "anyOf"] {
            let mut parts = self.parts(node, keyword, at)?;
            if parts.len() == 1 {
                out = with_siblings(parts.pop().unwrap_or_default(), out);
            } else if !parts.is_empty() && !parts.iter().any(Object::is_empty) {
                let alternatives: Value = parts.into_iter().map(Value::Object).collect();
                if out.contains_key("anyOf") {
                    push_all_of(&mut out, Object::from_iter([("anyOf".to_owned(), alternatives)]));
                } else {
                    out.insert("anyOf".to_owned(), alternatives);
                }
            }
        }
        let mut parts = self.parts(node, "allOf", at)?;
        parts.retain(|part| !part.is_empty());
        if parts.len() == 1 {
            out = with_siblings(parts.pop().unwrap_or_default(), out);
        }
        parts.into_iter().for_each(|part| push_all_of(&mut out, part));
        if at.whole {
            state_object(&mut out);
        }
        Ok(out)
    }

    fn parts(&mut self, node: NodeRef<'a>, keyword: &str, at: SchemaContext) -> Result<Vec<Object>, String> {
        let parts: Vec<NodeRef<'a>> = node.get(keyword).into_iter().flat_map(NodeRef::elements).collect();
        let at = at.in_place(parts.len());
        let mut found = Vec::new();
        for part in parts.into_iter().take_while(|_| !node.bundle.is_exhausted()) {
            if self.room == 0 {
                break;
            }
            found.push(self.convert(part, at)?);
        }
        Ok(found)
    }
}

/// A schema with further keywords for the same value.
pub(super) fn with_siblings(mut inner: Object, mut outer: Object) -> Object {
    let clash = |keyword: &String| inner.contains_key(keyword) && !ANNOTATIONS.contains(&keyword.as_str());
    if outer.keys().any(clash) {
        push_all_of(&mut outer, inner);
        return outer;
    }
    inner.extend(outer);
    inner
}

fn push_all_of(schema: &mut Object, part: Object) {
    let parts = schema.entry("allOf").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(parts) = parts {
        parts.push(Value::Object(part));
    }
}

/// States that a returned value is an object where its parts say so: MCP clients require the type at the root.
fn state_object(out: &mut Object) {
    let is_object = |part: &Value| part.get("type").is_some_and(|name| name == "object");
    let parts = |keyword: &str| out.get(keyword).and_then(Value::as_array);
    let all = parts("allOf").is_some_and(|parts| parts.iter().any(is_object));
    let any = parts("anyOf").is_some_and(|parts| parts.iter().all(is_object));
    if !out.contains_key("type") && (all || any) {
        out.insert("type".to_owned(), Value::from("object"));
    }
}

pub(super) fn or_null(mut out: Object) -> Object {
    if !["$ref", "allOf", "anyOf"].iter().any(|keyword| out.contains_key(*keyword)) {
        null_in_type(&mut out);
        return out;
    }
    let annotation = |keyword: &&str| out.shift_remove(*keyword).map(|value| ((*keyword).to_owned(), value));
    let mut either: Object = ANNOTATIONS.iter().filter_map(annotation).collect();
    let alone = out.len() == 1;
    let alternatives = match out.get_mut("anyOf") {
        Some(Value::Array(alternatives)) if alone => {
            alternatives.push(json!({ "type": "null" }));
            std::mem::take(alternatives).into()
        }
        Some(_) | None => json!([out, { "type": "null" }]),
    };
    either.insert("anyOf".to_owned(), alternatives);
    either
}

fn null_in_type(out: &mut Object) {
    match out.get_mut("type") {
        Some(Value::Array(types)) if !types.iter().any(|name| name == "null") => types.push("null".into()),
        Some(name @ Value::String(_)) if *name != "null" => *name = json!([name.clone(), "null"]),
        Some(_) | None => {}
    }
    if let Some(Value::Array(values)) = out.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}
