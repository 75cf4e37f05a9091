//! A serde `Deserializer` over the located tree: reads a file into the option structs, and says at which line and key a
//! value is wrong.
//!
//! A problem does not end the reading. It is recorded, the value is marked, and what contains it is read again without it
//! ([`read`], [`Entry`](super::compose::Entry)); so one run reports every problem. Unknown keys are known at once, because
//! serde hands over the fields of a struct. Variables are put in where a text is read.

mod access;
mod context;
mod fault;

pub(super) use context::{Context, Findings};
pub(super) use fault::Fault;

use super::compose::{BOTH, ENTRY, IGNORED, REFUSED, SERVER};
use super::document::{Entry, Node, Value, find, number};
use super::expand::{ExpandError, VariableSyntax, expand};
use super::key_path::KeyPath;
use access::{Fields, ItemAccess, KindAccess, MapEntries, SameNode, Take};
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, Deserializer, Error as _, Expected, IntoDeserializer, Unexpected, Visitor,
};
use serde_json::Number;
use std::borrow::Cow;

/// Reads a value, again and again without what is wrong in it. `None` when something that is needed is wrong; what is
/// wrong is in the context.
pub(super) fn read<T: DeserializeOwned>(node: &Node, path: KeyPath<'_>, context: &Context<'_>) -> Option<T> {
    loop {
        let reader = Reader::new(node, path, context);
        match T::deserialize(reader) {
            Ok(value) => return Some(value),
            Err(fault) => {
                reader.place(fault);
            }
        }
        if context.is_bad(node) || context.is_full() {
            return None;
        }
    }
}

/// A value of the tree, on its way into a type.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    node: &'a Node,
    path: KeyPath<'a>,
    context: &'a Context<'a>,
    /// Collects the fields of the structs that are read from this one value, if there are several.
    shared: Option<&'a Fields>,
    /// The struct that the value is a field of.
    owner: &'static str,
    syntax: VariableSyntax,
    /// Whether texts stay as they are written.
    is_verbatim: bool,
}

impl<'a> Reader<'a> {
    fn new(node: &'a Node, path: KeyPath<'a>, context: &'a Context<'a>) -> Self {
        let syntax = VariableSyntax::Gantry;
        Self { node, path, context, shared: None, owner: "", syntax, is_verbatim: false }
    }

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
        self.context.report(self.node.line, message);
        self.context.mark_bad(self.node);
    }

    /// The text with its variables put in, and whether it had any.
    fn text(&self) -> Result<Option<(Cow<'a, str>, bool)>, Fault> {
        let Value::Text(text) = &self.node.value else { return Ok(None) };
        let variables = self.context.variables.filter(|_| !self.is_verbatim);
        let Some(variables) = variables else { return Ok(Some((text.into(), false))) };
        match expand(text, variables, self.syntax) {
            Ok(None) => Ok(Some((text.into(), false))),
            Ok(Some(expanded)) => Ok(Some((expanded.into(), true))),
            Err(ExpandError::Missing(message)) => {
                let message = format!("{}: {message}", self.path);
                self.context.report_missing(self.node.line, message);
                self.context.mark_bad(self.node);
                Err(Fault::Placed)
            }
            Err(ExpandError::Wrong(message)) => Err(Fault::Custom(message)),
        }
    }

    /// What the text of a variable spells, for a number or a truth value.
    fn spelled<T>(&self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, Fault> {
        Ok(self.text()?.filter(|(_, from_variable)| *from_variable).and_then(|(text, _)| parse(&text)))
    }

    fn mismatch<T>(&self, expected: &dyn Expected) -> Result<T, Fault> {
        Err(Fault::invalid_type(Unexpected::Other(self.node.value.kind()), expected))
    }

    /// Groups and lists may hold secrets, so what stands in place of one is not quoted.
    fn wrong_kind<T>(&self, expected: &str) -> Result<T, Fault> {
        Err(Fault::Custom(format!("must be {expected}, found {}", self.node.value.kind())))
    }

    /// Reads structs from this value that share its keys, then reports the keys that none of them knows.
    fn sharing<T>(self, read: impl FnOnce(Reader<'_>) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.shared.is_some() {
            return read(self);
        }
        let fields = Fields::default();
        let result = read(Reader { shared: Some(&fields), ..self });
        fields.report_unknown(&self);
        result
    }

    /// An enumeration whose variant is named by a key of the group itself.
    fn tagged<'de, V: Visitor<'de>>(
        self,
        tag: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if !matches!(self.node.value, Value::Null | Value::Map(_)) {
            return self.wrong_kind("a group of keys");
        }
        let choice = variants.join(" or ");
        let Some(entry) = find(self.node, tag) else {
            return Err(Fault::Custom(format!("needs the key {tag:?}: {choice}")));
        };
        let reader = Reader { node: &entry.node, path: self.path.key(tag), ..self };
        let read = reader.text();
        let word = match read.map_err(|fault| self.give_up(fault))? {
            Some((word, _)) if variants.contains(&&*word) => word,
            _ => {
                reader.place(Fault::Expected(choice));
                return Err(self.give_up(Fault::Placed));
            }
        };
        self.sharing(|reader| {
            reader.note_fields("", &[tag]);
            visitor.visit_enum(KindAccess { kind: word.into_owned(), reader })
        })
    }

    /// Marks a group that cannot be read at all because of one value in it.
    fn give_up(&self, fault: Fault) -> Fault {
        self.context.mark_bad(self.node);
        fault
    }

    fn note_fields(&self, name: &'static str, fields: &[&'static str]) {
        if let Some(shared) = self.shared {
            shared.add(name, fields);
        }
    }
}

/// Visits a whole number.
macro_rules! whole_numbers {
    ($($method:ident)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let spelled = self.spelled(number)?;
            let found = if let Value::Number(number) = &self.node.value { Some(number) } else { spelled.as_ref() };
            match found.and_then(Number::as_u64) {
                Some(number) => visitor.visit_u64(number),
                None => self.mismatch(&visitor),
            }
        })+
    };
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Flag(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (.., Some(number)) => visitor.visit_f64(number),
                (None, None, None) => self.mismatch(&visitor),
            },
            Value::Text(_) => self.deserialize_string(visitor),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let spelled = self.spelled(|text| text.parse().ok())?;
        let found = if let Value::Flag(flag) = self.node.value { Some(flag) } else { spelled };
        found
            .map_or_else(|| Err(Fault::Expected("true or false".to_owned())), |flag| visitor.visit_bool(flag))
    }

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.text()? {
            Some((text, _)) => visitor.visit_str(&text),
            None => self.mismatch(&visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
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
        match name {
            "$secret" if !matches!(self.node.value, Value::Text(_)) => {
                Err(Fault::Custom(format!("must be {}", &visitor as &dyn Expected)))
            }
            "$verbatim" => visitor.visit_newtype_struct(Reader { is_verbatim: true, ..self }),
            BOTH => self.sharing(|reader| visitor.visit_seq(SameNode { reader })),
            ENTRY => visitor.visit_seq(Take::new(self)),
            SERVER => visitor.visit_seq(Take::new(Reader { syntax: VariableSyntax::Editor, ..self })),
            IGNORED => {
                self.context.warn_ignored(self.owner, &self.path, self.node.line);
                visitor.visit_unit()
            }
            REFUSED => Err(Fault::Custom(self.context.description(self.owner, &self.path))),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::List(items) = &self.node.value else {
            return self.wrong_kind("a list, such as [a, b], or [] for none");
        };
        visitor.visit_seq(ItemAccess::new(self, items))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    /// Nothing at all counts as an empty group, as YAML writes one that way.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if !matches!(self.node.value, Value::Null | Value::Map(_)) {
            return self.wrong_kind("a group of keys");
        }
        visitor.visit_map(MapEntries::new(self, self.node.value.entries(), None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if !matches!(self.node.value, Value::Null | Value::Map(_)) {
            return self.wrong_kind("a group of keys");
        }
        if self.shared.is_some() {
            self.note_fields(name, fields);
        } else {
            let alone = Fields::default();
            alone.add(name, fields);
            alone.report_unknown(&self);
        }
        let reader = Reader { owner: name, shared: None, ..self };
        let access = MapEntries::new(reader, self.node.value.entries(), Some(fields));
        let last = access.last.clone();
        visitor.visit_map(access).map_err(|fault| match fault {
            Fault::Missing(key) => reader.report_needed(name, key),
            Fault::Duplicate(key) => reader.report_synonyms(key, last.get()),
            other @ (Fault::Placed | Fault::Expected(_) | Fault::Custom(_)) => other,
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
                Value::Null | Value::Flag(_) | Value::Number(_) => "",
            };
            return match variants.contains(&kind) {
                true => visitor.visit_enum(KindAccess { kind: kind.to_owned(), reader: self }),
                false => self.mismatch(&visitor),
            };
        }
        match self.text()? {
            Some((word, _)) => {
                let word: StrDeserializer<'_, Fault> = (&*word).into_deserializer();
                visitor.visit_enum(word)
            }
            None => Err(Fault::unknown_variant("", variants)),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        f32 f64 char bytes byte_buf unit unit_struct
    }
}

impl Reader<'_> {
    /// Reports the keys that the struct needs and the group lacks. One whose value is wrong is not missing.
    fn report_needed(&self, name: &str, key: &'static str) -> Fault {
        let required = self.context.required(name);
        let others = required.iter().map(String::as_str).filter(|other| *other != key);
        for key in std::iter::once(key).chain(others).filter(|key| find(self.node, key).is_none()) {
            self.report(format!("{} needs the key {key:?}", self.path));
        }
        self.give_up(Fault::Placed)
    }

    /// Reports two spellings of one key.
    fn report_synonyms(&self, key: &str, last: Option<usize>) -> Fault {
        let Some(entry) = last.and_then(|n| self.node.value.entries().get(n)) else {
            return self.place(Fault::Custom(format!("has two spellings of {key:?}; keep one")));
        };
        // The same key twice was reported when the file was read.
        let is_same = |other: &&Entry| other.key == entry.key;
        if self.node.value.entries().iter().filter(is_same).count() == 1 {
            let message = format!("{} has {key:?} in two spellings; keep one", self.path);
            self.context.report(entry.line, message);
        }
        self.context.mark_bad(&entry.node);
        Fault::Placed
    }
}
