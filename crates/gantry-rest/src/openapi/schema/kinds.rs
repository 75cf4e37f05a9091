//! Kinds of a schema that a property tells apart, where the schema itself does not list them: a base with a
//! `discriminator`, and schemas elsewhere in the document that have it in their `allOf`.
//!
//! A base is offered as its kinds, each with the value that stands for it, and as what it is by itself. Kinds show what
//! there is to send. They refuse nothing: documents leave kinds out, and map values that are not the ones that are sent.

mod values;

use super::convert::{At, Role};
use super::discriminator::{discriminator, state_values};
use super::fields::is_hidden;
use super::parts::{self, Distinct};
use super::references::KINDS_SUFFIX;
use super::{Converter, Detail, Direction};
use crate::openapi::bundle::{Heir, bases};
use crate::openapi::spot::{Spot, reading};
use serde_json::{Map, Value};
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;
use values::{Listed, texts};

/// Kinds that are listed; where there are more, the base says what there is to know.
const KINDS: usize = 64;
/// Values in a mapping that are looked at.
const MAPPINGS: usize = 200;
/// Schemas above a schema that are looked at, and what is looked at for them.
const LINEAGE: usize = 64;
const LINEAGE_LOOKS: usize = 400;
/// Bytes of a value.
const VALUE_BYTES: usize = 200;
/// What a mapping that leads nowhere costs, next to one look at a value: finding that out takes all ways there are.
const ASTRAY: usize = 16;

/// What a base can be.
#[derive(Debug)]
pub(super) struct Kinds<'a> {
    /// What tells them apart.
    property: &'a str,
    all: Vec<Kind<'a>>,
}

#[derive(Debug)]
struct Kind<'a> {
    name: &'a str,
    spot: Spot<'a>,
    /// What stands for it, each once.
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

    /// Whether a value of this schema may have properties that only schemas elsewhere describe.
    pub(super) fn has_kinds(&mut self, spot: Spot<'a>) -> bool {
        let mut looks = 0;
        let found = has_kinds(spot, &mut looks);
        self.budget.look(looks);
        found
    }

    /// A schema as its kinds, and as what it is by itself.
    pub(super) fn alternative_kinds(
        &mut self,
        spot: Spot<'a>,
        kinds: &Kinds<'a>,
        at: At,
    ) -> Result<Map<String, Value>, String> {
        self.budget.tell_kinds(self.direction);
        let out = self.heading(spot, at);
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
        let mut plain = self.base(spot, at)?;
        if let Value::Object(plain) = &mut plain {
            plain.insert("description".to_owned(), Value::from("Any other kind."));
        }
        self.budget.spend(1, 32);
        self.budget.look(distinct.add(plain));
        Ok(parts::with_alternatives(out, distinct.found))
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

/// Whether a schema can have kinds that it does not list itself. Costs next to nothing for those that have none.
fn is_base(spot: Spot<'_>) -> bool {
    let listed = || spot.get("oneOf").is_some() || spot.get("anyOf").is_some();
    let has = || spot.get("discriminator").is_some() || has_heirs(spot);
    spot.reference().is_none() && has() && !listed()
}

fn has_heirs(spot: Spot<'_>) -> bool {
    spot.bundle.heirs(spot).next().is_some()
}

/// Whether a value of this schema may have properties that only schemas elsewhere describe. So may one that inherits from
/// a base, unless it is plain that it is one of the kinds itself: it may be but another name of the base. Counts what is
/// looked at for it.
pub(super) fn has_kinds(spot: Spot<'_>, looks: &mut usize) -> bool {
    if discriminator(spot).is_some() {
        return true;
    }
    // Only what is put together from others can inherit.
    if !spot.bundle.tells_kinds() || spot.get("allOf").is_none() {
        return false;
    }
    let lineage = lineage(spot, looks);
    let holder = lineage.iter().copied().find(|spot| discriminator(*spot).is_some());
    holder.is_some_and(|holder| has_heirs(spot) || !is_surely_kind(spot, holder, looks))
}

/// Whether a document says of a schema that one value stands for it: in the mapping of what it inherits from, or itself
/// if there is none.
fn is_surely_kind(spot: Spot<'_>, holder: Spot<'_>, looks: &mut usize) -> bool {
    let Some(property) = discriminator(holder) else { return false };
    let mut mapping = mapping(holder).peekable();
    if mapping.peek().is_some() {
        let mut targets = mapping.filter_map(|(_, named)| target(holder, named, looks));
        return targets.any(|target| target.identity() == spot.identity());
    }
    let Some(value) = only_value(spot, property, looks) else { return false };
    // Another one that stands for that value is the kind, and this one is a narrower view of the base.
    let mut others =
        spot.bundle.heirs(holder).take(LINEAGE).filter(|heir| heir.spot.identity() != spot.identity());
    !others.any(|other| only_value(other.spot, property, looks) == Some(value))
}

/// The one value that a schema says that stands for it.
fn only_value<'a>(spot: Spot<'a>, property: &str, looks: &mut usize) -> Option<&'a str> {
    if let Some(stated) = spot.text("x-ms-discriminator-value") {
        return Some(stated);
    }
    let own = declared(own_parts(spot), property).next()?;
    let listed = texts(own, looks)?.listed;
    if let [only] = listed.as_slice() { Some(*only) } else { None }
}

/// The values that a schema with a discriminator maps, and what to.
fn mapping(holder: Spot<'_>) -> impl Iterator<Item = (&str, &str)> {
    let mapping = holder.get("discriminator").and_then(|found| found.get("mapping"));
    let mapping = mapping.into_iter().flat_map(Spot::members).take(MAPPINGS + 1);
    mapping.filter_map(|(value, named)| Some((value, named.value.as_str()?)))
}

/// What a mapping leads to: by a reference, or by the name of a schema. Counts what is looked at for it.
fn target<'a>(holder: Spot<'a>, named: &'a str, looks: &mut usize) -> Option<Spot<'a>> {
    *looks += 1 + reading(named.len());
    let Spot { bundle, document, .. } = holder;
    let found = bundle.find(document, named).or_else(|reason| {
        let is_name = !named.contains(['/', '#']);
        if is_name && document > 0 { bundle.find(0, named) } else { Err(reason) }
    });
    let Ok(found) = found else {
        *looks += ASTRAY;
        return None;
    };
    let found = found.aliased(looks);
    found.value.is_object().then_some(found)
}

/// A schema and the parts that stand in it.
fn own_parts(spot: Spot<'_>) -> impl Iterator<Item = Spot<'_>> {
    let parts = spot.get("allOf").into_iter().flat_map(Spot::elements).take(LINEAGE);
    std::iter::once(spot).chain(parts.filter(|part| part.reference().is_none()))
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

/// What schemas say of a property.
fn declared<'a>(
    schemas: impl IntoIterator<Item = Spot<'a>>,
    property: &str,
) -> impl Iterator<Item = Spot<'a>> {
    schemas.into_iter().filter_map(move |spot| spot.get("properties")?.get(property))
}

/// Whether these values can be stated for the property of an alternative. Not if it lists others itself, or may be more
/// than one kind, and then tells which. Counts what is looked at for it.
pub(super) fn can_have(spot: Spot<'_>, property: &str, values: &[&str], looks: &mut usize) -> bool {
    if has_heirs(spot) {
        return false;
    }
    let own: HashSet<usize> = own_parts(spot).map(Spot::identity).collect();
    lineage(spot, looks).into_iter().all(|above| {
        let Some(declared) = declared([above], property).next() else { return true };
        let Some(texts) = texts(declared, looks) else { return false };
        *looks += texts.listed.len() * values.len() / 8;
        let lists =
            || !own.contains(&above.identity()) && values.iter().all(|value| texts.listed.contains(value));
        !texts.null && (texts.listed.is_empty() || lists())
    })
}

/// What the kinds of a schema are found by.
struct Search<'a> {
    base: Spot<'a>,
    /// The base and what it inherits from.
    lineage: HashSet<usize>,
    property: &'a str,
    /// What has the discriminator.
    holder: Spot<'a>,
    mapping: Vec<(&'a str, &'a str)>,
    /// The values that the property may have, where the base lists them.
    listed: Listed<'a>,
}

/// The kinds of a schema, if there is no doubt about how they are told apart. Counts what is looked at for it.
fn kinds<'a>(base: Spot<'a>, looks: &mut usize) -> Option<Kinds<'a>> {
    let search = Search::new(base, looks)?;
    let mut all = search.mapped(looks)?;
    if all.is_empty() {
        let heirs = search.heirs(looks)?.into_iter();
        all = heirs.map(|heir| search.kind(heir.name, heir.spot, Vec::new(), looks)).collect();
    }
    all.retain(|kind| !kind.values.is_empty());
    *looks += all.len();
    (!all.is_empty()).then_some(Kinds { property: search.property, all })
}

impl<'a> Search<'a> {
    fn new(base: Spot<'a>, looks: &mut usize) -> Option<Self> {
        let lineage = lineage(base, looks);
        let holder = lineage.iter().copied().find(|spot| discriminator(*spot).is_some())?;
        let property = discriminator(holder).filter(|property| !property.is_empty())?;
        let mapping: Vec<_> = mapping(holder).collect();
        *looks += mapping.len();
        if mapping.len() > MAPPINGS || mapping.iter().any(|(value, _)| value.len() > VALUE_BYTES) {
            return None;
        }
        let mut listed = Vec::new();
        for declared in declared(lineage.iter().copied(), property) {
            if is_hidden(declared, Direction::Input, looks) {
                return None;
            }
            let texts = texts(declared, looks)?;
            if listed.is_empty() {
                listed = texts.listed;
            }
        }
        let lineage = lineage.into_iter().map(Spot::identity).collect();
        Some(Self { base, lineage, property, holder, mapping, listed: Listed::new(listed) })
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

    /// The kinds that the document maps values to. Nothing if there are too many.
    fn mapped(&self, looks: &mut usize) -> Option<Vec<Kind<'a>>> {
        let mut targets: Vec<(Spot<'a>, &'a str, Vec<&'a str>)> = Vec::new();
        for (value, named) in &self.mapping {
            let Some(target) = target(self.holder, named, looks) else { continue };
            *looks += targets.len() / 8;
            match targets.iter_mut().find(|(known, _, _)| known.identity() == target.identity()) {
                Some((_, _, values)) => values.push(value),
                None => targets.push((target, named, vec![value])),
            }
        }
        let kinds = targets.into_iter().map(|(spot, named, values)| self.kind(named, spot, values, looks));
        // What another schema maps may be about other heirs of that one.
        let own = self.base.get("discriminator").is_some();
        let all: Vec<_> = kinds.filter(|kind| own || kind.inherits).collect();
        (all.len() <= KINDS).then_some(all)
    }

    fn kind(&self, name: &'a str, spot: Spot<'a>, mapped: Vec<&'a str>, looks: &mut usize) -> Kind<'a> {
        let lineage = lineage(spot, looks);
        let inherits = lineage.iter().any(|above| above.identity() == self.base.identity());
        // One that is not told by a text has no value here, and so is no kind that can be told of.
        let own = self.own_values(&lineage, looks);
        let values = own.map(|own| self.values((name, spot), own, mapped, looks)).unwrap_or_default();
        Kind { name, spot, values, inherits, told_apart: self.is_told_apart(spot) }
    }

    /// What stands for a kind: what it says itself, or else what the document maps to it, or else its name.
    fn values(
        &self,
        (name, spot): (&'a str, Spot<'a>),
        own: Vec<&'a str>,
        mapped: Vec<&'a str>,
        looks: &mut usize,
    ) -> Vec<&'a str> {
        let stated = spot.text("x-ms-discriminator-value").filter(|value| value.len() <= VALUE_BYTES);
        let wished = match (own.as_slice(), stated) {
            ([only], _) => vec![*only],
            _ if !mapped.is_empty() => mapped,
            (_, Some(stated)) => vec![stated],
            (_, None) => vec![name],
        };
        let own = Listed::new(own);
        let values = match own.among(wished, looks) {
            values if values.is_empty() => own.texts,
            values => values,
        };
        let mut seen = HashSet::new();
        let values = self.listed.among(values, looks).into_iter();
        values.filter(|value| seen.insert(*value)).collect()
    }

    /// The values that a kind lists for the property, where the base does not do it. Nothing if it is not text there.
    fn own_values(&self, lineage: &[Spot<'a>], looks: &mut usize) -> Option<Vec<&'a str>> {
        let own = lineage.iter().copied().filter(|spot| !self.lineage.contains(&spot.identity()));
        let mut values = Vec::new();
        for declared in declared(own, self.property) {
            let texts = texts(declared, looks)?;
            if values.is_empty() {
                values = texts.listed;
            }
        }
        Some(values)
    }
}
