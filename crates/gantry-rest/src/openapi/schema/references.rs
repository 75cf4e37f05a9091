//! References: put in where they stand, or kept as references into `$defs`.

use super::convert::{At, FEW_CHOICES, anything};
use super::definitions::refer;
use super::parts::{self, join};
use super::{Converter, Detail, Direction, Place, keywords, text};
use crate::openapi::bundle::Version;
use crate::openapi::spot::{Spot, reading};
use serde_json::{Map, Value};

/// What the name of a schema ends in where its kinds are told of, so that the plain one has the name itself.
pub(super) const KINDS_SUFFIX: &str = "_kinds";
/// Keywords that hold schemas.
const NESTING: [&str; 9] = [
    "properties",
    "items",
    "prefixItems",
    "additionalProperties",
    "patternProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
];

impl<'a> Converter<'a> {
    /// What is there, or a reference to it. `nullable` beside one counts for nothing, but what is
    /// meant is plain.
    pub(super) fn reference(&mut self, spot: Spot<'a>, reference: &'a str, at: At) -> Result<Value, String> {
        let nullable = spot.bundle.version != Version::V31 && keywords::is_nullable(spot);
        let mut found = self.referred(spot, reference, at)?;
        if let Value::Object(out) = &mut found
            && nullable
            && !self.is_lax()
        {
            *out = parts::or_null(std::mem::take(out));
        }
        Ok(found)
    }

    fn referred(&mut self, spot: Spot<'a>, reference: &'a str, at: At) -> Result<Value, String> {
        self.budget.look(1 + reading(reference.len()));
        let target = match (spot.bundle.find(spot.document, reference), self.direction) {
            (Ok(target), _) => target,
            (Err(reason), Direction::Input) => return Err(reason),
            (Err(_), Direction::Output) => return Ok(anything()),
        };
        let beside = match spot.bundle.version {
            // Beside a reference only 3.1 has anything; what it describes is meant all the same.
            Version::V2 | Version::V3 => self.described(spot),
            Version::V31 if self.is_too_deep(at) => self.described(spot),
            Version::V31 => self.object(spot, at)?,
        };
        let at = at.open_if(spot.bundle.version == Version::V31 && spot.get("properties").is_some());
        self.placed(target, reference, at, beside)
    }

    /// What is at a place, or a reference to it by this name, with what is said beside it.
    pub(super) fn placed(
        &mut self,
        target: Spot<'a>,
        name: &str,
        at: At,
        beside: Map<String, Value>,
    ) -> Result<Value, String> {
        let kinds = self.told_kinds(target, at).is_some();
        let plain = !kinds && self.has_two_forms(target);
        let copied = at.is_whole()
            || self.is_opened(target, at)
            || matches!(self.detail, Detail::Levels(_))
            || is_plain(target) && !kinds
            || is_alias(target);
        if !copied {
            let stem = text::definition_name(name);
            let stem = if kinds { format!("{stem}{KINDS_SUFFIX}") } else { stem };
            let name = self.defined(Place { spot: target, plain }, stem);
            self.budget.spend(1, name.len());
            return Ok(join(refer(&name), beside));
        }
        let place = (target.identity(), plain);
        if self.chain.contains(&place) {
            return Ok(Value::Object(beside));
        }
        self.chain.push(place);
        let schema = self.convert(target, at.beside());
        self.chain.pop();
        Ok(join(schema?, beside))
    }

    /// Whether something has to be another here than where it stands alone: it refuses further properties, and there are
    /// some.
    fn is_opened(&mut self, target: Spot<'a>, at: At) -> bool {
        let mut looks = 0;
        let opened = at.is_open() && !self.is_lax() && parts::is_closed(target, &mut looks);
        self.budget.look(looks);
        opened
    }

    /// The name under `$defs` of what is there; it begins with this.
    fn defined(&mut self, target: Place<'a>, stem: String) -> String {
        let place = (target.spot.identity(), target.plain);
        let known = self.places.get(&place).and_then(|place| self.definitions.get(*place));
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
        self.places.insert(place, self.definitions.len());
        self.definitions.push((name.clone(), target));
        name
    }
}

/// Whether a schema is short enough to be copied to wherever it is referred to.
fn is_plain(target: Spot<'_>) -> bool {
    let few = target.get("enum").is_none_or(|values| values.elements().count() <= FEW_CHOICES);
    few && target.reference().is_none() && NESTING.iter().all(|keyword| target.get(keyword).is_none())
}

/// Whether a schema is nothing but a reference.
fn is_alias(target: Spot<'_>) -> bool {
    let more = |keyword: &str| !matches!(keyword, "$ref" | "description" | "summary" | "title");
    let counts = target.bundle.version == Version::V31;
    target.reference().is_some() && !(counts && target.members().any(|(keyword, _)| more(keyword)))
}
