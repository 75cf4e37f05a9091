//! The parts of a value in the shapes in which serde asks for them: entries, items, variants, and the same value twice.

use super::{Fault, Reader};
use crate::config::document::{Entry, Node, quoted};
use crate::config::key_path::KeyPath;
use crate::config::shapes::shapes;
use crate::config::suggest;
use serde::de::value::{BoolDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer as _, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The fields of the structs that are read from one value.
#[derive(Default)]
pub(super) struct Fields {
    structs: RefCell<Vec<&'static str>>,
    names: RefCell<Vec<&'static str>>,
}

impl Fields {
    pub(super) fn add(&self, name: &'static str, fields: &[&'static str]) {
        // A struct is read again when something in it is wrong.
        if name.is_empty() || !self.structs.borrow().contains(&name) {
            self.structs.borrow_mut().push(name);
            self.names.borrow_mut().extend(fields);
        }
    }

    pub(super) fn report_unknown(&self, reader: &Reader<'_>) {
        let (names, structs) = (self.names.borrow(), self.structs.borrow());
        if structs.is_empty() {
            return;
        }
        for entry in reader.node.value.entries().iter().filter(|entry| !names.contains(&entry.key.as_str())) {
            let advice = match suggest::nearest(&entry.key, names.iter().copied()) {
                Some(name) => format!("did you mean {name:?}?"),
                None => {
                    let known = names.iter().copied();
                    let known = known.filter(|name| structs.iter().any(|of| shapes().is_offered(of, name)));
                    format!("known keys are {}", suggest::list(known))
                }
            };
            let (key, within) = (quoted(&entry.key), reader.path.within());
            reader.context.report(entry.line, format!("unknown key {key}{within}; {advice}"));
        }
    }
}

/// The entries of a group; of a struct, those that are its fields.
pub(super) struct MapEntries<'a> {
    reader: Reader<'a>,
    entries: &'a [Entry],
    fields: Option<&'static [&'static str]>,
    next: usize,
    /// The number of the entry whose key was read last.
    pub(super) last: Rc<Cell<Option<usize>>>,
}

impl<'a> MapEntries<'a> {
    pub(super) fn new(
        reader: Reader<'a>,
        entries: &'a [Entry],
        fields: Option<&'static [&'static str]>,
    ) -> Self {
        Self { reader, entries, fields, next: 0, last: Rc::default() }
    }
}

impl<'de> MapAccess<'de> for MapEntries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        while let Some(entry) = self.entries.get(self.next) {
            let is_field = self.fields.is_none_or(|fields| fields.contains(&entry.key.as_str()));
            if !is_field || self.reader.context.is_bad(&entry.node) {
                self.next += 1;
                continue;
            }
            self.last.set(Some(self.next));
            let key: StrDeserializer<'_, Fault> = entry.key.as_str().into_deserializer();
            return seed.deserialize(key).map(Some).map_err(|fault| {
                let (context, key) = (self.reader.context, quoted(&entry.key));
                let message = match fault {
                    Fault::Expected(expected) => format!("{key} in {} must be {expected}", self.reader.path),
                    Fault::Custom(message) => format!("{key} in {}: {message}", self.reader.path),
                    Fault::Placed | Fault::Missing(_) | Fault::Duplicate(_) => return fault,
                };
                context.report(entry.line, message);
                context.mark_bad(&entry.node);
                Fault::Placed
            });
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some(entry) = self.entries.get(self.next) else { return Err(Fault::custom("has no value")) };
        self.next += 1;
        let is_verbatim = self.reader.is_verbatim
            || (matches!(self.reader.path, KeyPath::Root(_))
                && self.reader.context.verbatim_key == Some(&entry.key));
        let path = self.reader.path.key(&entry.key);
        let reader = Reader { node: &entry.node, path, is_verbatim, ..self.reader };
        seed.deserialize(reader).map_err(|fault| reader.place(fault))
    }
}

/// The items of a list.
pub(super) struct ItemAccess<'a> {
    reader: Reader<'a>,
    items: &'a [Node],
    next: usize,
}

impl<'a> ItemAccess<'a> {
    pub(super) fn new(reader: Reader<'a>, items: &'a [Node]) -> Self {
        Self { reader, items, next: 0 }
    }
}

impl<'de> SeqAccess<'de> for ItemAccess<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        while let Some(node) = self.items.get(self.next) {
            let path = self.reader.path.item(self.next);
            self.next += 1;
            if !self.reader.context.is_bad(node) {
                let reader = Reader { node, path, ..self.reader };
                return seed.deserialize(reader).map(Some).map_err(|fault| reader.place(fault));
            }
        }
        Ok(None)
    }
}

/// The same value for each struct that is read from it.
pub(super) struct SameNode<'a> {
    pub(super) reader: Reader<'a>,
}

impl<'de> SeqAccess<'de> for SameNode<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        seed.deserialize(self.reader).map(Some).map_err(|fault| self.reader.place(fault))
    }
}

/// The same value again and again, each time without what was found to be wrong in it; then what the environment lacks
/// for it.
pub(super) struct Take<'a> {
    reader: Reader<'a>,
    is_outermost: bool,
    next: Question,
}

/// What is asked for next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    Value,
    Missing,
    IsWhole,
}

impl<'a> Take<'a> {
    pub(super) fn new(reader: Reader<'a>) -> Self {
        Self { reader, is_outermost: reader.context.begin_entry(), next: Question::Value }
    }
}

impl<'de> SeqAccess<'de> for Take<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Self { reader, next, .. } = *self;
        match next {
            Question::Value if reader.context.is_bad(reader.node) || reader.context.is_full() => {
                self.next = Question::Missing;
                Ok(None)
            }
            Question::Value => {
                let value = seed.deserialize(reader).map_err(|fault| reader.place(fault))?;
                self.next = Question::Missing;
                Ok(Some(value))
            }
            Question::Missing => {
                self.next = Question::IsWhole;
                let missing = if self.is_outermost { reader.context.end_entry() } else { Vec::new() };
                let missing: StringDeserializer<Fault> = missing.join("; ").into_deserializer();
                seed.deserialize(missing).map(Some)
            }
            Question::IsWhole => {
                let is_whole: BoolDeserializer<Fault> =
                    (!reader.context.has_bad_part(reader.node)).into_deserializer();
                seed.deserialize(is_whole).map(Some)
            }
        }
    }
}

/// A variant that is chosen by the shape of a value, or by a key in it; its content is the value itself.
pub(super) struct KindAccess<'a> {
    pub(super) kind: String,
    pub(super) reader: Reader<'a>,
}

impl<'de, 'a> EnumAccess<'de> for KindAccess<'a> {
    type Error = Fault;
    type Variant = Content<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'a>), Fault> {
        let kind: StringDeserializer<Fault> = self.kind.into_deserializer();
        Ok((seed.deserialize(kind)?, Content { reader: self.reader }))
    }
}

/// The content of a variant.
pub(super) struct Content<'a> {
    reader: Reader<'a>,
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Fault> {
        self.reader.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.reader.deserialize_struct("", fields, visitor)
    }
}
