//! Objects that are nothing but a closed set of properties.

use super::discriminator::discriminator;
use super::{Direction, keywords, kinds};
use crate::openapi::bundle::Version;
use crate::openapi::limits::HOPS;
use crate::openapi::spot::{Spot, reading};
use std::collections::{HashMap, HashSet, VecDeque};

/// Properties that an object may have to be taken apart.
const PROPERTIES: usize = 100;
/// Properties of any other object that are told of.
const LOOSE_PROPERTIES: usize = 500;
/// Schemas that are looked at for it.
const SCHEMAS: usize = 200;
/// Schemas, properties and references that are looked at for it, those that come again included.
const LOOKS: usize = 5000;
/// References and `allOf`s inside each other.
const DEPTH: usize = 24;

/// The properties of an object that can each be an argument of their own.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    /// In the order of the document; those of `allOf` included.
    pub(crate) properties: Vec<(String, Spot<'a>)>,
    pub(crate) required: Vec<String>,
}

/// The properties of an object, if it is nothing but a closed set of them: no alternatives, no further properties, not
/// null. Counts what is looked at for it.
///
/// # Errors
/// A reference leads nowhere.
pub(crate) fn fields<'a>(
    spot: Spot<'a>,
    direction: Direction,
    looks: &mut usize,
) -> Result<Option<Fields<'a>>, String> {
    found(spot, Level::default(), direction, looks)
}

/// The same for a schema that is told of in detail, and whose kinds are not.
///
/// # Errors
/// A reference leads nowhere.
pub(super) fn all_fields<'a>(
    spot: Spot<'a>,
    direction: Direction,
    looks: &mut usize,
) -> Result<Option<Fields<'a>>, String> {
    found(spot, Level { named: true, ..Level::default() }, direction, looks)
}

fn found<'a>(
    spot: Spot<'a>,
    level: Level,
    direction: Direction,
    looks: &mut usize,
) -> Result<Option<Fields<'a>>, String> {
    let mut search = Search {
        properties: Vec::new(),
        places: HashMap::new(),
        required: Vec::new(),
        seen: HashMap::new(),
        looks: 0,
        sent: !level.named && direction == Direction::Input,
        torn: false,
    };
    let whole = search.add(spot, level);
    *looks += search.looks;
    if !whole? {
        return Ok(None);
    }
    let Search { mut properties, required, .. } = search;
    properties.retain(|(_, property)| !is_hidden(*property, direction, looks));
    if properties.is_empty() {
        return Ok(None);
    }
    let mut unmet: HashSet<&str> = properties.iter().map(|(name, _)| *name).collect();
    let required = required.into_iter().filter(|name| unmet.remove(name)).map(str::to_owned).collect();
    *looks += properties.iter().map(|(name, _)| reading(name.len())).sum::<usize>();
    let properties = properties.into_iter().map(|(name, property)| (name.to_owned(), property)).collect();
    Ok(Some(Fields { properties, required }))
}

/// The properties that an object and its parts describe, whatever else it allows, and those of them that are required in
/// any case. Counts what is looked at for it.
pub(crate) fn loose_fields<'a>(spot: Spot<'a>, direction: Direction, looks: &mut usize) -> Fields<'a> {
    let most = *looks + LOOKS;
    let mut waiting = VecDeque::from([(spot, 0, true)]);
    let mut seen = HashSet::new();
    let mut names = HashSet::new();
    let mut properties: Vec<(String, Spot<'a>)> = Vec::new();
    let mut required: Vec<&str> = Vec::new();
    while let Some((spot, depth, always)) = waiting.pop_front() {
        *looks += 1;
        if *looks > most || !seen.insert(spot.identity()) || depth > DEPTH {
            continue;
        }
        if let Some(reference) = spot.reference() {
            *looks += 1 + reading(reference.len());
            let target = spot.bundle.find(spot.document, reference);
            waiting.extend(target.into_iter().map(|target| (target, depth + 1, always)));
            if spot.bundle.version != Version::V31 {
                continue;
            }
        }
        for (name, property) in spot.get("properties").into_iter().flat_map(Spot::members) {
            *looks += 1 + reading(name.len());
            if *looks > most || properties.len() == LOOSE_PROPERTIES {
                break;
            }
            if names.insert(name) && !is_hidden(property, direction, looks) {
                properties.push((name.to_owned(), property));
            }
        }
        let demanded = spot.get("required").filter(|_| always).into_iter().flat_map(Spot::elements);
        let demanded = demanded.take(LOOSE_PROPERTIES).inspect(|_| *looks += 1);
        required.extend(demanded.filter_map(|name| name.value.as_str()));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = spot.get(keyword).into_iter().flat_map(Spot::elements).take(SCHEMAS);
            waiting.extend(parts.map(|part| (part, depth + 1, always && keyword == "allOf")));
        }
    }
    let mut unmet: HashSet<&str> = properties.iter().map(|(name, _)| name.as_str()).collect();
    let required = required.into_iter().filter(|name| unmet.remove(name)).map(str::to_owned).collect();
    Fields { properties, required }
}

/// Whether a property does not go this way. Counts what is looked at for it.
pub(super) fn is_hidden(property: Spot<'_>, direction: Direction, looks: &mut usize) -> bool {
    let keyword = match direction {
        Direction::Input => "readOnly",
        Direction::Output => "writeOnly",
    };
    let mut spot = property;
    for _ in 0..HOPS {
        if spot.flag(keyword) {
            return true;
        }
        // Beside a reference it counts too, although only 3.1 says so: it is what the author meant.
        let Some(reference) = spot.reference() else { return false };
        *looks += 1 + reading(reference.len());
        let Ok(next) = spot.bundle.find(spot.document, reference) else { return false };
        spot = next;
    }
    false
}

struct Search<'a> {
    properties: Vec<(&'a str, Spot<'a>)>,
    /// Where among those a name is.
    places: HashMap<&'a str, usize>,
    required: Vec<&'a str>,
    /// The schemas that were looked at, and whether all of each was. One that comes again demands nothing new.
    seen: HashMap<usize, bool>,
    looks: usize,
    /// Whether the object is a whole body, which is closed when it is taken apart.
    sent: bool,
    /// Whether two parts say different things of one property, of which neither says all.
    torn: bool,
}

/// Where in an object a schema is.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    depth: usize,
    /// Whether it is what another one inherits from.
    part: bool,
    /// Whether something refers to it, so that an `allOf` in it makes it a schema of its own.
    named: bool,
}

impl<'a> Search<'a> {
    /// Adds what a schema demands; false if that is more than properties.
    fn add(&mut self, spot: Spot<'a>, at: Level) -> Result<bool, String> {
        self.looks += 1;
        if let Some(done) = self.seen.insert(spot.identity(), false) {
            self.seen.insert(spot.identity(), done);
            return Ok(done);
        }
        if self.seen.len() > SCHEMAS || self.looks > LOOKS || at.depth > DEPTH || !spot.value.is_object() {
            return Ok(false);
        }
        let whole = self.add_parts(spot, at)?;
        self.seen.insert(spot.identity(), true);
        Ok(whole)
    }

    fn add_parts(&mut self, spot: Spot<'a>, at: Level) -> Result<bool, String> {
        if let Some(reference) = spot.reference() {
            self.looks += 1 + reading(reference.len());
            let target = spot.bundle.find(spot.document, reference)?;
            if !self.add(target, Level { depth: at.depth + 1, named: true, ..at })? {
                return Ok(false);
            }
            // Only there does something beside a reference count.
            if spot.bundle.version != Version::V31 {
                return Ok(true);
            }
        }
        // What is told apart by a property has further ones, in each of its kinds. As a part it is one of those kinds.
        if is_more(spot) || !at.part && self.has_kinds(spot, at) {
            return Ok(false);
        }
        let part = at.part || at.named || spot.bundle.is_heir(spot);
        for one in spot.get("allOf").into_iter().flat_map(Spot::elements) {
            if !self.add(one, Level { depth: at.depth + 1, part, named: false })? {
                return Ok(false);
            }
        }
        self.add_own(spot);
        Ok(!self.torn && self.properties.len() <= PROPERTIES)
    }

    fn has_kinds(&mut self, spot: Spot<'a>, at: Level) -> bool {
        // What stands in a body is no kind of anything; what it refers to is asked by itself.
        if self.sent && (at.named || spot.bundle.is_heir(spot)) {
            kinds::has_kinds(spot, &mut self.looks)
        } else {
            discriminator(spot).is_some()
        }
    }

    fn add_own(&mut self, spot: Spot<'a>) {
        let properties = spot.get("properties").into_iter().flat_map(Spot::members);
        for (name, property) in properties.take(PROPERTIES + 1) {
            self.looks += 1 + reading(name.len());
            match self.places.get(name).and_then(|place| self.properties.get_mut(*place)) {
                Some((_, earlier)) => match fuller(*earlier, property) {
                    Some(one) => *earlier = one,
                    None => self.torn = true,
                },
                None => {
                    self.places.insert(name, self.properties.len());
                    self.properties.push((name, property));
                }
            }
        }
        for name in spot.get("required").into_iter().flat_map(Spot::elements).take(PROPERTIES * 2) {
            self.looks += 1;
            self.required.extend(name.value.as_str());
        }
    }
}

/// The one of two schemas of a property that says all that both say.
fn fuller<'a>(earlier: Spot<'a>, later: Spot<'a>) -> Option<Spot<'a>> {
    let hides = |spot: Spot<'_>| spot.flag("readOnly") || spot.flag("writeOnly");
    let changed = match (earlier.get("type"), later.get("type")) {
        (Some(before), Some(after)) => before.value != after.value,
        (_, None) | (None, _) => false,
    };
    if changed || hides(later) || covers(later, earlier) {
        Some(later)
    } else {
        Some(earlier).filter(|_| hides(earlier) || covers(earlier, later))
    }
}

/// Whether a schema has its own word on all that another demands.
fn covers(schema: Spot<'_>, other: Spot<'_>) -> bool {
    let notes =
        ["title", "description", "example", "examples", "default", "deprecated", "externalDocs", "xml"];
    let tells =
        |keyword: &str| notes.contains(&keyword) || keyword.starts_with("x-") || keyword == "nullable";
    other.members().all(|(keyword, _)| tells(keyword) || schema.get(keyword).is_some())
}

/// Whether a schema demands or allows something that a list of properties does not say.
fn is_more(spot: Spot<'_>) -> bool {
    let kinds = keywords::kinds(spot);
    let other = ["oneOf", "anyOf", "not", "patternProperties", "enum", "const", "if", "items"];
    let open = spot.get("additionalProperties").is_some_and(|further| {
        // What is neither a flag nor a schema says nothing.
        keywords::flag_value(further.value).unwrap_or(further.value.is_object())
    });
    open || keywords::is_nullable(spot)
        || !(kinds.is_empty() || kinds == ["object"])
        || other.iter().any(|keyword| spot.get(keyword).is_some_and(|found| !found.value.is_null()))
}
