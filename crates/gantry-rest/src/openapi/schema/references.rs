//! References: put in place, or kept as references into `$defs`.

use super::composition::{or_null, with_siblings};
use super::convert::{FEW_CHOICES, SchemaContext};
use super::{Converter, DetailLevel, Direction, keywords, text};
use crate::Object;
use crate::openapi::document::{NodeRef, Version};

/// Keywords that hold schemas.
const NESTING: [&str; 7] = ["$ref", "properties", "items", "additionalProperties", "allOf", "oneOf", "anyOf"];

impl<'a> Converter<'a> {
    pub(super) fn reference(
        &mut self,
        node: NodeRef<'a>,
        reference: &'a str,
        at: SchemaContext,
    ) -> Result<Object, String> {
        let target = match (node.bundle.find(node.document, reference), self.direction) {
            (Ok(target), _) => target.skip_aliases(),
            (Err(reason), Direction::Input) => return Err(reason),
            (Err(_), Direction::Output) => return Ok(Object::new()),
        };
        // Only 3.1 has keywords beside a reference; authors of older documents mean their descriptions all the same.
        let has_siblings = node.bundle.version == Version::V31;
        let beside =
            if has_siblings && !self.is_too_deep(at) { self.object(node, at)? } else { self.described(node) };
        let out = with_siblings(self.target(target, reference, at)?, beside);
        let nullable = !has_siblings && !self.is_lax() && keywords::is_nullable(node);
        Ok(if nullable { or_null(out) } else { out })
    }

    /// The schema that a reference leads to, or a reference to its definition.
    ///
    /// **Invariant:** no definition refers to another for its own value, only for child values, so that following
    /// references in the result always ends.
    fn target(&mut self, target: NodeRef<'a>, reference: &str, at: SchemaContext) -> Result<Object, String> {
        let address = target.address();
        // A reference back to the same value demands nothing.
        if self.chain.contains(&address) {
            return Ok(Object::new());
        }
        let plain = NESTING.iter().all(|keyword| target.get(keyword).is_none())
            && keywords::choices(target).len() <= FEW_CHOICES;
        if self.detail == DetailLevel::Definitions && !plain && !at.in_definition && !at.whole {
            let name = self.define(target, text::definition_name(reference));
            self.spend(name.len() + 16);
            return Ok(Object::from_iter([("$ref".to_owned(), format!("#/$defs/{name}").into())]));
        }
        if self.detail == DetailLevel::Inline && !plain && !self.inlined.insert(address) {
            self.room = 0;
        }
        self.chain.push(address);
        let schema = self.convert(target, at.in_place(1));
        self.chain.pop();
        schema
    }

    /// The name of a definition. It begins with `stem`.
    fn define(&mut self, target: NodeRef<'a>, stem: String) -> String {
        let known = self.defined.get(&target.address()).and_then(|index| self.definitions.get(*index));
        if let Some((name, _)) = known {
            return name.clone();
        }
        let mut name = stem.clone();
        let mut number = self.taken.get(&stem).copied().unwrap_or(1);
        while self.taken.contains_key(&name) {
            number += 1;
            name = format!("{stem}_{number}");
        }
        self.taken.insert(stem, number);
        self.taken.entry(name.clone()).or_insert(1);
        self.defined.insert(target.address(), self.definitions.len());
        self.definitions.push((name.clone(), target));
        name
    }
}
