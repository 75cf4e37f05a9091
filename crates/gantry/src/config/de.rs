//! A serde `Deserializer` over the located tree: reads a file into the option structs, and says at which line and key a
//! value is wrong.
//!
//! A problem does not end the reading. It is recorded, the value is marked, and the file is read again without it
//! ([`read`]); so one run reports every problem. Unknown keys are known at once, because serde hands over the fields of a
//! struct. Variables are put in where a text is read.

mod access;
mod context;
mod fault;

pub(super) use context::{Context, Findings};
pub(super) use fault::Fault;

use super::compose::{IGNORED, MISSING, REFUSED, SERVER};
use super::document::{Node, Value, find, kind, number};
use super::expand::{ExpandError, VariableSyntax, expand};
use super::key_path::KeyPath;
use super::shapes::shapes;
use access::{Group, ItemAccess, MapEntries};
use serde::de::value::{MapAccessDeserializer, MapDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer, Unexpected, Visitor,
};
use std::borrow::Cow;

/// Reads a value, again and again without what is wrong in it. `None` when something that is needed is wrong; what is
/// wrong is in the context.
pub(super) fn read<T: DeserializeOwned>(node: &Node, path: KeyPath<'_>, context: &Context<'_>) -> Option<T> {
    let syntax = VariableSyntax::Gantry;
    let reader = Reader { node, path, context, group: None, owner: "", syntax, is_verbatim: false };
    loop {
        let before = context.progress();
        let result = T::deserialize(reader).map_err(|fault| reader.place(fault));
        // A part that could not be read may be left out of a value that could.
        if context.is_bad(node) || context.is_full() || context.progress() == before {
            return result.ok();
        }
    }
}

/// A value of the tree, on its way into a type.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    node: &'a Node,
    path: KeyPath<'a>,
    context: &'a Context<'a>,
    /// The group that the value is, while several structs may be read from it.
    group: Option<&'a Group>,
    /// The struct that the value is a field of.
    owner: &'static str,
    syntax: VariableSyntax,
    /// Whether texts stay as they are written.
    is_verbatim: bool,
}

impl<'a> Reader<'a> {
    /// Records what is wrong with this value, unless that was done further inside.
    fn place(&self, fault: Fault) -> Fault {
        match fault.message(&self.path, &self.node.value) {
            // What is left of it without that is not judged.
            Some(_) if self.context.has_bad_part(self.node) => self.context.mark_bad(self.node),
            Some(message) => self.report(message),
            None => {}
        }
        Fault::Placed
    }

    fn report(&self, message: String) {
        self.context.report(self.node.place.line, message);
        self.context.mark_bad(self.node);
    }

    /// The text with its variables put in, and whether it had any.
    fn expanded(&self) -> Result<Option<(Cow<'a, str>, bool)>, ExpandError> {
        let Value::Text(text) = &self.node.value else { return Ok(None) };
        let variables = self.context.variables.filter(|_| !self.is_verbatim);
        let expanded = variables.map(|variables| expand(text, variables, self.syntax)).transpose()?.flatten();
        Ok(Some(expanded.map_or((text.into(), false), |expanded| (expanded.into(), true))))
    }

    fn text(&self) -> Result<Option<(Cow<'a, str>, bool)>, Fault> {
        self.expanded().map_err(|error| match error {
            ExpandError::Missing(message) => {
                self.context.report_missing(self.node, format!("{}: {message}", self.path));
                Fault::Placed
            }
            ExpandError::Wrong(message) => Fault::Custom(message),
        })
    }

    /// What the text of a variable spells, for a number or a truth value.
    fn spelled<T>(&self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Fault> {
        Ok(self.text()?.filter(|(_, from_variable)| *from_variable).and_then(|(text, _)| parse(&text)))
    }

    /// Groups and lists may hold secrets, so what stands in place of one is not quoted.
    fn wrong_kind<T>(&self, expected: &str) -> Result<T, Fault> {
        Err(Fault::Custom(format!("must be {expected}, found {}", kind(&self.node.value))))
    }

    /// Reads structs from this one value, then reports the keys that none of them knows. Nothing at all counts as an empty
    /// group, as YAML writes one that way.
    fn in_group<T>(self, read: impl FnOnce(Reader<'_>, &Group) -> Result<T, Fault>) -> Result<T, Fault> {
        if !matches!(self.node.value, Value::Null | Value::Map(_)) {
            return self.wrong_kind("a group of keys");
        }
        if let Some(group) = self.group {
            return read(self, group);
        }
        let group = Group::default();
        let result = read(Reader { group: Some(&group), ..self }, &group);
        group.report_unknown(&self);
        result
    }

    /// An enumeration whose variant is named by a key of the group itself.
    fn tagged<'de, V: Visitor<'de>>(
        self,
        tag: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.in_group(|reader, group| {
            let choice = variants.join(" or ");
            let Some(entry) = find(self.node, tag) else {
                return Err(Fault::Custom(format!("needs the key {tag:?}: {choice}")));
            };
            group.fields.borrow_mut().push(tag);
            let kind = Reader { node: &entry.node, path: self.path.key(tag), ..reader };
            match kind.text().map_err(|fault| self.give_up(fault))? {
                Some((word, _)) if variants.contains(&&*word) => visitor.visit_enum(variant(&word, reader)),
                _ => {
                    kind.place(Fault::Expected(choice));
                    Err(self.give_up(Fault::Placed))
                }
            }
        })
    }

    /// Marks a group that cannot be read at all because of one value in it.
    fn give_up(&self, fault: Fault) -> Fault {
        self.context.mark_bad(self.node);
        fault
    }

    /// Reports the keys that the struct needs and the group lacks. One whose value is wrong is not missing.
    fn report_needed(&self, owner: &str, key: &'static str) -> Fault {
        let others = shapes().required(owner).filter(|other| *other != key);
        for key in std::iter::once(key).chain(others).filter(|key| find(self.node, key).is_none()) {
            self.context.report(self.node.place.line, format!("{} needs the key {key:?}", self.path));
        }
        Fault::Placed
    }

    fn report_synonyms(&self, key: &str, last: usize) -> Fault {
        if let Some(entry) = self.node.value.entries().get(last) {
            let message = format!("{} has {key:?} in two spellings; keep one", self.path);
            self.context.report(entry.place.line, message);
            self.context.mark_bad(&entry.node);
        }
        Fault::Placed
    }
}

/// A variant of this name, whose content is the value itself.
fn variant<'de>(name: &str, content: Reader<'_>) -> impl EnumAccess<'de, Error = Fault> {
    MapAccessDeserializer::new(MapDeserializer::new(std::iter::once((name, content))))
}

impl<'de> IntoDeserializer<'de, Fault> for Reader<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! whole_numbers {
    ($($method:ident)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match self.spelled(|text| number(text)?.as_u64())? {
                Some(number) => visitor.visit_u64(number),
                None => self.deserialize_any(visitor),
            }
        })+
    };
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (.., Some(number)) => visitor.visit_f64(number),
                (None, None, None) => Err(Fault::invalid_type(Unexpected::Other("a number"), &visitor)),
            },
            Value::Text(text) => match self.text()? {
                Some((text, _)) => visitor.visit_str(&text),
                None => visitor.visit_str(text),
            },
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.spelled(|text| text.parse().ok())? {
            Some(flag) => visitor.visit_bool(flag),
            None => self.deserialize_any(visitor),
        }
    }

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    /// A key that is there has a value; one without (`key:` in YAML) is not taken for an absent one.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let description = || {
            let key = if let KeyPath::Key(_, key) = self.path { key } else { "" };
            shapes().description(self.owner, key).unwrap_or_default()
        };
        match name {
            "$secret" if !matches!(self.node.value, Value::Text(_)) => {
                Err(Fault::Custom(format!("must be {}", &visitor as &dyn Expected)))
            }
            "$verbatim" => visitor.visit_newtype_struct(Reader { is_verbatim: true, ..self }),
            IGNORED => {
                let why = description();
                self.context.warn(self.node.place.line, format!("{} has no effect; {why}", self.path));
                visitor.visit_newtype_struct(self)
            }
            REFUSED => Err(Fault::Custom(description())),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::List(items) = &self.node.value else {
            return self.wrong_kind("a list, such as [a, b], or [] for none");
        };
        visitor.visit_seq(ItemAccess::new(self, items))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        // Nothing is no item of a list, and no value of its own.
        let needs_group = self.is_verbatim || matches!(self.path, KeyPath::Item(..));
        let is_nothing = matches!(self.node.value, Value::Null) && !needs_group;
        if !is_nothing && !matches!(self.node.value, Value::Map(_)) {
            return self.wrong_kind("a group of keys");
        }
        visitor.visit_map(MapEntries::new(self, None, None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.in_group(|reader, group| {
            let is_whole = group.add(name, fields);
            let is_entry = fields.contains(&MISSING);
            if is_entry {
                reader.context.enter(Some(self.node));
            }
            let is_server = fields.contains(&SERVER);
            let syntax = if is_server { VariableSyntax::Editor } else { reader.syntax };
            let reader = Reader { owner: group.owner.get(), syntax, ..reader };
            let access = MapEntries::new(reader, Some(fields), Some(group).filter(|_| is_whole));
            let result = visitor.visit_map(access);
            if is_entry {
                reader.context.enter(None);
            }
            result.map_err(|fault| match fault {
                Fault::Missing(key) if is_whole => self.give_up(reader.report_needed(group.owner.get(), key)),
                Fault::Missing(key) => reader.report_needed(group.owner.get(), key),
                Fault::Duplicate(key) => reader.report_synonyms(key, group.last.get()),
                other @ (Fault::Placed | Fault::Expected(_) | Fault::Custom(_)) => other,
            })
        })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if let Some(tag) = name.strip_prefix("$tag:") {
            return self.tagged(tag, variants, visitor);
        }
        if name == gantry_core::options::BY_SHAPE {
            let kind = match self.node.value {
                Value::Text(_) => "text",
                Value::List(_) => "list",
                Value::Map(_) => "group",
                Value::Null | Value::Bool(_) | Value::Number(_) => "",
            };
            return match variants.contains(&kind) {
                true => visitor.visit_enum(variant(kind, self)),
                false => Err(Fault::invalid_type(Unexpected::Enum, &visitor)),
            };
        }
        let Some((word, _)) = self.text()? else { return Err(Fault::unknown_variant("", variants)) };
        let word: StrDeserializer<'_, Fault> = (&*word).into_deserializer();
        visitor.visit_enum(word)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}
