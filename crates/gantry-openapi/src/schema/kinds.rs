//! Kinds of a schema that a property tells apart, where the schema itself does not list them: a base with a
//! `discriminator`, and schemas elsewhere in the document that have it in their `allOf`.
//!
//! A base is offered as its kinds, each with the value that stands for it. What the document does not say for certain is
//! not refused: unless it leaves no doubt which kinds there are, any other one is what the base itself says.

use super::convert::{At, Role};
use super::discriminator::{self, discriminator, state_values};
use super::fields::is_hidden;
use super::parts::{self, Distinct};
use super::references::KINDS_SUFFIX;
use super::{Converter, Detail, Direction, keywords};
use crate::bundle::{Heir, bases};
use crate::spot::{Spot, reading};
use serde_json::{Map, Value};
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

/// Kinds that are listed; where there are more, the base says what there is to know.
const KINDS: usize = 64;
/// Values in a mapping that are looked at.
const MAPPINGS: usize = 200;
/// Schemas above a schema that are looked at, and what is looked at for them.
const LINEAGE: usize = 64;
const LINEAGE_LOOKS: usize = 400;
/// Values that a property may list.
const VALUES: usize = 200;
/// Bytes of a value.
const VALUE_BYTES: usize = 200;

/// What a base can be.
#[derive(Debug)]
pub(super) struct Kinds<'a> {
    /// What tells them apart.
    property: &'a str,
    all: Vec<Kind<'a>>,
    /// Whether there may be further ones.
    others: bool,
}

#[derive(Debug)]
struct Kind<'a> {
    name: &'a str,
    spot: Spot<'a>,
    /// What stands for it.
    values: Vec<&'a str>,
    /// Whether it has the properties of the base in itself.
    inherits: bool,
    /// Whether it has kinds of its own that something else tells apart.
    told_apart: bool,
}

impl<'a> Converter<'a> {
    /// The kinds of a schema, where they are to be told of.
    pub(super) fn told_kinds(&mut self, spot: Spot<'a>, at: At) -> Option<Rc<Kinds<'a>>> {
        let told = match (self.detail, at.role()) {
            (Detail::Full, Role::Argument | Role::Inner) | (Detail::Top, Role::Argument) => true,
            (Detail::Full | Detail::Top, Role::Inner | Role::Base)
            | (Detail::Open | Detail::Levels(_), Role::Argument | Role::Inner | Role::Base) => false,
        };
        if told { self.known_kinds(spot) } else { None }
    }

    /// Whether something is another where its kinds are told of.
    pub(super) fn has_two_forms(&mut self, spot: Spot<'a>) -> bool {
        matches!(self.detail, Detail::Full | Detail::Top) && self.known_kinds(spot).is_some()
    }

    fn known_kinds(&mut self, spot: Spot<'a>) -> Option<Rc<Kinds<'a>>> {
        if self.direction == Direction::Output || !is_base(spot) {
            return None;
        }
        if let Some(known) = self.kinds.get(&spot.identity()) {
            return known.clone();
        }
        let mut looks = 0;
        let found = kinds(spot, &mut looks).map(Rc::new);
        self.budget.look(looks);
        self.kinds.insert(spot.identity(), found.clone());
        found
    }

    /// A schema as its kinds.
    pub(super) fn alternative_kinds(
        &mut self,
        spot: Spot<'a>,
        kinds: &Kinds<'a>,
        at: At,
    ) -> Result<Map<String, Value>, String> {
        self.budget.tell_kinds(self.direction);
        let mut out = self.heading(spot, at);
        let at = at.one_of_many();
        let mut distinct = Distinct::default();
        for kind in &kinds.all {
            if self.budget.is_spent() {
                break;
            }
            let mut schema = self.kind(spot, kind, at)?;
            let values: Vec<Value> = kind.values.iter().copied().map(Value::from).collect();
            self.spend_values(&values);
            state_values(&mut schema, kinds.property, values);
            self.budget.look(distinct.add(schema));
        }
        if kinds.others && !self.budget.is_spent() {
            let mut schema = self.base(spot, at)?;
            let values: Vec<&str> = kinds.all.iter().flat_map(|kind| kind.values.iter().copied()).collect();
            let values: Vec<Value> = values.into_iter().map(Value::from).collect();
            self.spend_values(&values);
            except_values(&mut schema, kinds.property, values);
            self.budget.look(distinct.add(schema));
        }
        out = parts::with_alternatives(out, distinct.found);
        Ok(out)
    }

    fn kind(&mut self, base: Spot<'a>, kind: &Kind<'a>, at: At) -> Result<Value, String> {
        let at_kind = if kind.told_apart { at } else { at.base() };
        if kind.inherits {
            return self.placed(kind.spot, kind.name, at_kind, Map::new());
        }
        let part = self.placed(kind.spot, kind.name, at_kind.open_if(true), Map::new())?;
        let mut out = Map::new();
        parts::push_all_of(&mut out, self.base(base, at)?);
        parts::push_all_of(&mut out, part);
        Ok(Value::Object(out))
    }

    /// What all kinds of it have in common.
    fn base(&mut self, spot: Spot<'a>, at: At) -> Result<Value, String> {
        let known = self.places.get(&(spot.identity(), false)).and_then(|place| self.definitions.get(*place));
        let name = known.and_then(|(name, _)| name.strip_suffix(KINDS_SUFFIX));
        let name = name.unwrap_or("Base").to_owned();
        self.placed(spot, &name, at.base(), Map::new())
    }

    fn spend_values(&mut self, values: &[Value]) {
        let bytes = values.iter().filter_map(Value::as_str).map(str::len).sum::<usize>();
        self.budget.spend(values.len() + 2, bytes + 16);
    }
}

/// Says of a schema that it is about none of these values.
fn except_values(schema: &mut Value, property: &str, values: Vec<Value>) {
    let Value::Object(schema) = schema else { return };
    schema.insert("description".to_owned(), Value::from("Any other kind."));
    let listed = Map::from_iter([("enum".to_owned(), Value::Array(values))]);
    if let Some(property) = discriminator::property(schema, property) {
        // What it must not be already is said by somebody who knew.
        property.entry("not").or_insert(Value::Object(listed));
    }
}

/// Whether a schema can have kinds that it does not list itself. Costs next to nothing for those that have none.
fn is_base(spot: Spot<'_>) -> bool {
    let listed = || spot.get("oneOf").is_some() || spot.get("anyOf").is_some();
    let has = || spot.get("discriminator").is_some() || spot.bundle.heirs(spot).next().is_some();
    spot.reference().is_none() && has() && !listed()
}

/// Whether a value of this schema may have properties that only schemas elsewhere describe. Counts what is looked at for
/// it.
pub(super) fn has_kinds(spot: Spot<'_>, looks: &mut usize) -> bool {
    discriminator(spot).is_some()
        || is_base(spot) && lineage(spot, looks).into_iter().any(|spot| discriminator(spot).is_some())
}

/// A schema, the parts that stand in it, and the schemas that it inherits from, the nearest first. Counts what is looked
/// at for it.
fn lineage<'a>(spot: Spot<'a>, looks: &mut usize) -> Vec<Spot<'a>> {
    let mut out = Vec::new();
    let mut seen = HashSet::new();
    let mut waiting = VecDeque::from([spot]);
    let most = *looks + LINEAGE_LOOKS;
    while let Some(spot) = waiting.pop_front() {
        *looks += 1;
        if *looks > most || out.len() == LINEAGE || !seen.insert(spot.identity()) {
            continue;
        }
        out.push(spot);
        let parts = spot.get("allOf").into_iter().flat_map(Spot::elements).take(LINEAGE);
        waiting.extend(parts.filter(|part| part.reference().is_none()));
        waiting.extend(bases(spot, looks).into_iter().take(LINEAGE));
    }
    out
}

/// What the kinds of a schema are found by.
struct Search<'a> {
    base: Spot<'a>,
    property: &'a str,
    mapping: Vec<(&'a str, &'a str)>,
    /// The document that the mapping is in.
    document: usize,
    /// The values that the property may have, where the base lists them.
    listed: Vec<&'a str>,
    /// Whether the property has to be there.
    required: bool,
}

/// The kinds of a schema, if there is no doubt about how they are told apart. Counts what is looked at for it.
fn kinds<'a>(base: Spot<'a>, looks: &mut usize) -> Option<Kinds<'a>> {
    let search = Search::new(base, looks)?;
    let heirs = search.heirs(looks);
    let (mut all, mut others) = search.mapped(heirs.as_deref(), looks)?;
    if all.is_empty() {
        all = heirs?.into_iter().map(|heir| search.kind(heir.name, heir.spot, Vec::new(), true)).collect();
        others = true;
    }
    all.retain(|kind| !kind.values.is_empty());
    *looks += all.len() * (1 + search.listed.len() / 4);
    let known: HashSet<&str> = all.iter().flat_map(|kind| kind.values.iter().copied()).collect();
    let covered = !search.listed.is_empty() && search.listed.iter().all(|value| known.contains(value));
    let others = !search.required || if search.listed.is_empty() { others } else { !covered };
    (!all.is_empty()).then_some(Kinds { property: search.property, all, others })
}

impl<'a> Search<'a> {
    fn new(base: Spot<'a>, looks: &mut usize) -> Option<Self> {
        let lineage = lineage(base, looks);
        let holder = lineage.iter().copied().find(|spot| discriminator(*spot).is_some())?;
        let property = discriminator(holder).filter(|property| !property.is_empty())?;
        let mapping = holder.get("discriminator")?.get("mapping");
        let mapping = mapping.into_iter().flat_map(Spot::members).take(MAPPINGS + 1);
        let mapping: Vec<_> =
            mapping.filter_map(|(value, named)| Some((value, named.value.as_str()?))).collect();
        if mapping.len() > MAPPINGS || mapping.iter().any(|(value, _)| value.len() > VALUE_BYTES) {
            return None;
        }
        *looks += mapping.len();
        let declared = lineage.iter().find_map(|spot| spot.get("properties")?.get(property));
        let mut listed = Vec::new();
        if let Some(declared) = declared {
            if is_hidden(declared, Direction::Input, looks) {
                return None;
            }
            let declared = declared.followed(looks).ok()?;
            let kinds = keywords::kinds(declared);
            listed = values(declared);
            if !kinds.is_empty() && !kinds.contains(&"string") || listed.len() > VALUES {
                return None;
            }
            *looks += listed.len();
        }
        let mut required = lineage.iter().filter_map(|spot| spot.get("required")).flat_map(Spot::elements);
        let required = required.by_ref().take(VALUES).any(|name| name.value.as_str() == Some(property));
        Some(Self { base, property, mapping, document: holder.document, listed, required })
    }

    /// All that inherit from the base, and from those. Nothing if there are too many.
    fn heirs(&self, looks: &mut usize) -> Option<Vec<Heir<'a>>> {
        let mut out = Vec::new();
        let mut seen = HashSet::from([self.base.identity()]);
        let mut waiting = VecDeque::from([self.base]);
        while let Some(spot) = waiting.pop_front() {
            for heir in self.base.bundle.heirs(spot) {
                *looks += 1;
                if !seen.insert(heir.spot.identity()) {
                    continue;
                }
                if out.len() == KINDS {
                    return None;
                }
                out.push(heir);
                if !self.is_told_apart(heir.spot) {
                    waiting.push_back(heir.spot);
                }
            }
        }
        Some(out)
    }

    /// Whether something else than for the base tells the kinds of this one apart.
    fn is_told_apart(&self, spot: Spot<'a>) -> bool {
        discriminator(spot).is_some_and(|property| property != self.property)
    }

    /// The kinds that the document maps values to, and whether there may be others. Nothing if there are too many.
    fn mapped(&self, heirs: Option<&[Heir<'a>]>, looks: &mut usize) -> Option<(Vec<Kind<'a>>, bool)> {
        let mut targets: Vec<(Spot<'a>, &'a str, Vec<&'a str>)> = Vec::new();
        let mut lost = false;
        for (value, named) in &self.mapping {
            let Some(target) = self.target(named, looks) else {
                lost = true;
                continue;
            };
            *looks += targets.len() / 8;
            match targets.iter_mut().find(|(known, _, _)| known.identity() == target.identity()) {
                Some((_, _, values)) => values.push(value),
                None => targets.push((target, named, vec![value])),
            }
        }
        let is_heir = |spot: Spot<'a>| {
            heirs.is_some_and(|heirs| heirs.iter().any(|heir| heir.spot.identity() == spot.identity()))
        };
        let is_base = |spot: Spot<'a>| spot.identity() == self.base.identity();
        let own = self.base.get("discriminator").is_some();
        let mut all = Vec::new();
        for (spot, named, values) in targets {
            *looks += 8;
            let inherits = is_base(spot) || is_heir(spot) || self.is_above(spot, looks);
            // What another schema maps may be about other heirs of that one.
            if own || inherits {
                all.push(self.kind(named, spot, values, inherits));
            }
        }
        let unmapped = heirs.is_none_or(|heirs| {
            let mapped: HashSet<usize> = all.iter().map(|kind| kind.spot.identity()).collect();
            heirs.iter().any(|heir| !mapped.contains(&heir.spot.identity()))
        });
        (all.len() <= KINDS).then_some((all, lost || unmapped))
    }

    /// Whether a schema inherits from the base, wherever it stands.
    fn is_above(&self, spot: Spot<'a>, looks: &mut usize) -> bool {
        lineage(spot, looks).iter().any(|above| above.identity() == self.base.identity())
    }

    /// What a mapping leads to: by a reference, or by the name of a schema.
    fn target(&self, named: &'a str, looks: &mut usize) -> Option<Spot<'a>> {
        *looks += 1 + reading(named.len());
        let bundle = self.base.bundle;
        let found = bundle.find(self.document, named).or_else(|reason| {
            let is_name = !named.contains(['/', '#']);
            if is_name && self.document > 0 { bundle.find(0, named) } else { Err(reason) }
        });
        let found = found.ok()?.aliased(looks);
        found.value.is_object().then_some(found)
    }

    fn kind(&self, name: &'a str, spot: Spot<'a>, mapped: Vec<&'a str>, inherits: bool) -> Kind<'a> {
        let own = self.own_values(spot);
        let stated = spot.text("x-ms-discriminator-value").filter(|value| value.len() <= VALUE_BYTES);
        let wished = match (own.as_slice(), stated) {
            ([only], _) => vec![*only],
            _ if !mapped.is_empty() => mapped,
            (_, Some(stated)) => vec![stated],
            (_, None) => vec![name],
        };
        let among = |listed: &[&'a str]| -> Vec<&'a str> {
            if listed.is_empty() {
                return wished.clone();
            }
            wished.iter().filter_map(|wish| alike(wish, listed)).collect()
        };
        let values = match among(&own) {
            values if values.is_empty() => own,
            values => values,
        };
        let values = match self.listed.as_slice() {
            [] => values,
            listed => values.iter().filter_map(|value| alike(value, listed)).collect(),
        };
        Kind { name, spot, values, inherits, told_apart: self.is_told_apart(spot) }
    }

    /// The values that a kind lists for the property itself.
    fn own_values(&self, spot: Spot<'a>) -> Vec<&'a str> {
        if spot.identity() == self.base.identity() {
            return Vec::new();
        }
        let parts = spot.get("allOf").into_iter().flat_map(Spot::elements).take(LINEAGE);
        let parts = std::iter::once(spot).chain(parts.filter(|part| part.reference().is_none()));
        let own = parts.filter_map(|part| part.get("properties")?.get(self.property)).next();
        own.map(values).filter(|own| own.len() <= VALUES).unwrap_or_default()
    }
}

/// The texts that a schema allows alone.
fn values(spot: Spot<'_>) -> Vec<&str> {
    match (spot.text("const"), spot.get("enum")) {
        (Some(only), _) => vec![only],
        (None, listed) => {
            let listed = listed.into_iter().flat_map(Spot::elements).take(VALUES + 1);
            listed
                .filter_map(|value| value.value.as_str())
                .filter(|value| value.len() <= VALUE_BYTES)
                .collect()
        }
    }
}

/// The one of these values that is meant: itself, or the only one with the same letters. `Cat` is often sent as `cat`.
fn alike<'a>(wish: &str, listed: &[&'a str]) -> Option<&'a str> {
    if let Some(same) = listed.iter().find(|value| **value == wish) {
        return Some(same);
    }
    let letters = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    let wished = letters(wish);
    let mut same = listed.iter().filter(|value| letters(value) == wished);
    same.next().copied().filter(|_| same.next().is_none())
}
