//! From the schemas of OpenAPI to JSON Schema 2020-12.
//!
//! Only keywords that are known are taken over, each after a look at its own type: documents from the wild have
//! `required: true`, `minimum: "1"` and `type: int`, and a tool must not be lost for it. Where exactness and what an API
//! really takes are at odds, the schema is the laxer one, since the API has the last word anyway: `oneOf` becomes `anyOf`
//! (formats are not enforced, so two alternatives often fit), `not` stays only where it is simple.
//!
//! A value that comes back ([`Direction::Output`]) is described more laxly still: real APIs return null and values that
//! they never listed, and clients refuse a whole result for one mismatch.

mod convert;
mod definitions;
mod discriminator;
mod fields;
mod keywords;
mod kinds;
mod parts;
mod references;
mod text;

pub(crate) use fields::{Fields, fields, loose_fields};
pub(crate) use text::{folded, without_comments};

use crate::openapi::limits::{INPUT_BYTES, INPUT_NODES, OUTPUT_BYTES, OUTPUT_NODES};
use crate::openapi::spot::{Spot, reading};
use convert::At;
use gantry_core::schema::Schema;
use kinds::Kinds;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Which way the value goes. What is `readOnly` is not sent, what is `writeOnly` does not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Input,
    Output,
}

impl Direction {
    /// How many nodes and bytes its schemas may have.
    fn limits(self) -> (usize, usize) {
        match self {
            Self::Input => (INPUT_NODES, INPUT_BYTES),
            Self::Output => (OUTPUT_NODES, OUTPUT_BYTES),
        }
    }
}

/// How much of a schema is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All of it.
    Full,
    /// The kinds of an argument itself, but not of what is in it.
    Top,
    /// No kinds that the schema does not list itself.
    Open,
    /// Down to this many levels; of what is deeper only the type is told.
    Levels(usize),
}

/// Why there is no schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Less detail may fit.
    TooLarge,
    /// The same, and kinds are part of the detail.
    TooManyKinds,
    /// Says what is wrong with the document.
    Broken(String),
}

impl From<String> for Misfit {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

/// What a tool's schema is tried with, from most to least.
const DETAILS: [Detail; 9] = [
    Detail::Full,
    Detail::Top,
    Detail::Open,
    Detail::Levels(6),
    Detail::Levels(4),
    Detail::Levels(3),
    Detail::Levels(2),
    Detail::Levels(1),
    Detail::Levels(0),
];

/// How many of those differ only in kinds.
const WITHOUT_LEVELS: usize = 3;

/// The schema with as much detail as a tool can afford, and which of the tries that was. Those before `first` are known
/// to be too much.
///
/// # Errors
/// What is wrong with the document, or that even the least detail is too much.
pub(crate) fn fitted(
    direction: Direction,
    first: usize,
    mut build: impl FnMut(Detail) -> Result<Value, Misfit>,
) -> Result<(Value, usize), String> {
    // Fewer levels are never larger, so that halving finds the most that fit. The first one is what most end with.
    let mut best = None;
    let mut left = first.min(DETAILS.len() - 1)..DETAILS.len();
    let mut next = left.start;
    while let Some(detail) = DETAILS.get(next).filter(|_| left.contains(&next)) {
        match build(*detail) {
            Ok(schema) => {
                best = Some((schema, next));
                left.end = next;
            }
            Err(Misfit::TooManyKinds) => left.start = next + 1,
            // Without kinds it would be the same.
            Err(Misfit::TooLarge) => left.start = (next + 1).max(WITHOUT_LEVELS),
            Err(Misfit::Broken(reason)) => return Err(reason),
        }
        // Kinds cost little to try without, and few schemas are too large for other reasons.
        next = if left.start < WITHOUT_LEVELS { left.start } else { left.start + left.len() / 2 };
    }
    let (nodes, bytes) = direction.limits();
    best.ok_or_else(|| {
        format!("its schema is too large even without details: more than {nodes} values or {bytes} bytes")
    })
}

/// Whether a schema is small enough.
fn fits(direction: Direction, schema: &Value) -> bool {
    let (nodes, bytes) = direction.limits();
    definitions::nodes(schema) <= nodes
        && schema.to_string().len() <= bytes
        && Schema::check_cost(schema).is_ok()
}

/// A try to make the schema of a tool.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) schema: Result<Value, Misfit>,
    /// What it took, as bytes of schema that could have been made instead.
    pub(crate) effort: usize,
}

/// Converts schemas that belong to one tool, which share what they refer to.
#[derive(Debug)]
pub(crate) struct Converter<'a> {
    direction: Direction,
    detail: Detail,
    /// What is referred to, by its name under `$defs`, in the order of first use.
    definitions: Vec<(String, Place<'a>)>,
    /// Which of those is at a place.
    places: HashMap<(usize, bool), usize>,
    /// The names that are given out, each with the number that the next of that name gets.
    taken: HashMap<String, usize>,
    budget: Budget,
    /// The places that were put in for a reference since the last step into a child value.
    chain: Vec<(usize, bool)>,
    /// Properties that the compositions around know, so that `required` may name them.
    known: Vec<HashSet<&'a str>>,
    /// The kinds of what was looked at, by its place.
    kinds: HashMap<usize, Option<Rc<Kinds<'a>>>>,
}

/// Where something is defined.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    spot: Spot<'a>,
    /// Whether it is taken without its kinds although it has some.
    plain: bool,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(direction: Direction, detail: Detail) -> Self {
        Self {
            direction,
            detail,
            definitions: Vec::new(),
            places: HashMap::new(),
            taken: HashMap::new(),
            budget: Budget::new(direction),
            chain: Vec::new(),
            known: Vec::new(),
            kinds: HashMap::new(),
        }
    }

    /// One schema, with references into `$defs`. Past the limits it says nothing (`{}`), and [`Self::complete`] fails.
    ///
    /// # Errors
    /// A reference leads nowhere.
    pub(crate) fn schema(&mut self, spot: Spot<'a>) -> Result<Value, String> {
        self.chain.clear();
        self.known.clear();
        self.convert(spot, At::top(self.direction))
    }

    /// The schema of a tool whose root is made by this, and what it took.
    pub(crate) fn build(
        mut self,
        root: impl FnOnce(&mut Self) -> Result<Map<String, Value>, String>,
    ) -> Attempt {
        let schema = root(&mut self).map_err(Misfit::Broken).and_then(|root| self.complete(root));
        Attempt { schema, effort: self.budget.effort }
    }

    /// Counts what is said around the schemas of arguments.
    pub(crate) fn tell(&mut self, nodes: usize, bytes: usize) {
        self.budget.tell(nodes, bytes);
    }

    /// Counts a text that is read for the schema.
    pub(crate) fn read(&mut self, bytes: usize) {
        self.budget.look(reading(bytes));
    }

    /// The schema of the tool, with the `$defs` that it needs.
    fn complete(&mut self, root: Map<String, Value>) -> Result<Value, Misfit> {
        let mut bodies = Vec::new();
        // Converting one may bring further ones.
        while let Some((_, place)) = self.definitions.get(bodies.len()).filter(|_| !self.budget.is_spent()) {
            let Place { spot, plain } = *place;
            self.chain.clear();
            self.known.clear();
            let at = if plain { At::definition().base() } else { At::definition() };
            bodies.push(self.convert(spot, at)?);
        }
        let names = std::mem::take(&mut self.definitions).into_iter().map(|(name, _)| name);
        let schema = if self.budget.is_spent() {
            None
        } else {
            definitions::assemble(root, names.zip(bodies).collect())
        };
        let misfit = if self.budget.kinds { Misfit::TooManyKinds } else { Misfit::TooLarge };
        schema.filter(|schema| fits(self.direction, schema)).ok_or(misfit)
    }
}

/// What one tool's schemas may still cost while they are made. Stopping early is what keeps a document that doubles at
/// every level, or repeats a long name, from costing more than any other.
#[derive(Debug)]
struct Budget {
    nodes: usize,
    bytes: usize,
    /// What may be looked at without anything coming of it.
    steps: usize,
    /// What was spent, as bytes of schema that could have been made instead.
    effort: usize,
    /// Whether kinds are told of.
    kinds: bool,
    /// Nodes and bytes that are said around the schemas. There are not so many that they alone are too much, but they are
    /// part of what has to be small where kinds are told of.
    around: (usize, usize),
}

/// The share of the limits that a schema with kinds may have: they are worth less than the rest of it.
const KINDS_SHARE: usize = 4;

/// How many bytes of schema can be made in the time of one look at a value.
pub(crate) const LOOK_BYTES: usize = 8;

impl Budget {
    fn new(direction: Direction) -> Self {
        let (nodes, bytes) = direction.limits();
        // Inlining and leaving out make the result smaller than what was produced; `fits` has the exact say.
        Self {
            nodes: nodes + nodes / 4,
            bytes: bytes + bytes / 4,
            steps: nodes * 40 + 20_000,
            effort: 0,
            kinds: false,
            around: (0, 0),
        }
    }

    /// Leaves what a schema with kinds may have.
    fn tell_kinds(&mut self, direction: Direction) {
        if !self.kinds {
            let Self { nodes, bytes, .. } = Self::new(direction);
            let left = |all: usize, left: usize| (all / KINDS_SHARE).saturating_sub(all - left);
            (self.nodes, self.bytes) = (left(nodes, self.nodes), left(bytes, self.bytes));
            self.kinds = true;
            let (nodes, bytes) = std::mem::take(&mut self.around);
            self.tell(nodes, bytes);
        }
    }

    fn tell(&mut self, nodes: usize, bytes: usize) {
        if self.kinds {
            self.nodes = self.nodes.saturating_sub(nodes);
            self.bytes = self.bytes.saturating_sub(bytes);
        } else {
            self.around = (self.around.0.saturating_add(nodes), self.around.1.saturating_add(bytes));
        }
    }

    fn spend(&mut self, nodes: usize, bytes: usize) {
        self.nodes = self.nodes.saturating_sub(nodes);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.effort = self.effort.saturating_add(nodes.saturating_mul(LOOK_BYTES)).saturating_add(bytes);
    }

    fn look(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(steps);
        self.effort = self.effort.saturating_add(steps.saturating_mul(LOOK_BYTES));
    }

    fn exhaust(&mut self) {
        self.nodes = 0;
    }

    fn is_spent(&self) -> bool {
        self.nodes == 0 || self.bytes == 0 || self.steps == 0
    }
}

#[cfg(test)]
mod tests;
