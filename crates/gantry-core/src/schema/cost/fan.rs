//! How often a recursive schema comes back to one value inside a value.
//!
//! Only what leads back counts: a choice of twelve things that each have a tree in them costs twelve trees, once, while
//! a tree whose every node is a choice of twelve costs twelve times as much at every level. So references are sorted
//! into circles first, and what is applied to a child is counted within each circle.

use super::{DATA, IN_PLACE, Walk};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// References and those that their targets hold, wherever in them.
pub(super) type Edges<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// The schemas of any circle that are applied to one child of a value, at most.
pub(super) fn of(walk: &Walk<'_>) -> u64 {
    let circles = circles(&walk.edges);
    let mut count = Count { walk, circles, steps: HashMap::new(), entries: Vec::new() };
    let members: Vec<(&str, usize)> = count.circles.iter().map(|(from, circle)| (*from, *circle)).collect();
    let mut most = members.into_iter().map(|(from, circle)| count.target(from, circle)).max().unwrap_or(0);
    while let Some((schema, circle)) = count.entries.pop() {
        most = most.max(count.step(schema, circle));
    }
    most
}

/// The circles that references form, by number; those that lead nowhere back are in none.
fn circles<'a>(edges: &Edges<'a>) -> HashMap<&'a str, usize> {
    let mut reversed: Edges<'a> = BTreeMap::new();
    for (from, targets) in edges {
        targets.iter().for_each(|to| reversed.entry(to).or_default().push(from));
    }
    let mut seen = HashSet::new();
    let order: Vec<&str> = edges.keys().flat_map(|start| finished(edges, start, &mut seen)).collect();
    let mut seen = HashSet::new();
    let mut circles = HashMap::new();
    for (number, start) in order.into_iter().rev().enumerate() {
        let members = finished(&reversed, start, &mut seen);
        let comes_back =
            members.len() > 1 || edges.get(start).is_some_and(|targets| targets.contains(&start));
        if comes_back {
            circles.extend(members.into_iter().map(|member| (member, number)));
        }
    }
    circles
}

/// What can be reached from there and was not seen before, each after all that it leads to. Without recursion: a row of
/// references may be longer than a schema is deep.
fn finished<'a>(edges: &Edges<'a>, start: &'a str, seen: &mut HashSet<&'a str>) -> Vec<&'a str> {
    let targets = |from: &str| edges.get(from).into_iter().flatten().copied();
    let mut done = Vec::new();
    if !seen.insert(start) {
        return done;
    }
    let mut path = vec![(start, targets(start))];
    while let Some((from, rest)) = path.last_mut() {
        match rest.find(|to| seen.insert(*to)) {
            Some(to) => path.push((to, targets(to))),
            None => {
                done.push(*from);
                path.pop();
            }
        }
    }
    done
}

struct Count<'w, 'a> {
    walk: &'w Walk<'a>,
    circles: HashMap<&'a str, usize>,
    /// The steps of targets, by reference.
    steps: HashMap<&'a str, u64>,
    /// Schemas of children, and the circle that they lead back to.
    entries: Vec<(&'a Value, usize)>,
}

impl<'a> Count<'_, 'a> {
    fn target(&mut self, reference: &'a str, circle: usize) -> u64 {
        if let Some(step) = self.steps.get(reference) {
            return *step;
        }
        // Whatever is no target was refused before. In place, references never come back.
        let step = self.walk.target(reference).map_or(0, |target| self.step(target, circle));
        self.steps.insert(reference, step);
        step
    }

    /// How many schemas that lead back a schema applies to one child of the value that it is applied to.
    fn step(&mut self, schema: &'a Value, circle: usize) -> u64 {
        let Value::Object(members) = schema else { return 0 };
        let mut step = self.children(schema, circle);
        for (keyword, member) in members {
            if let ("$ref" | "$dynamicRef" | "$recursiveRef", Some(reference)) = (&**keyword, member.as_str())
            {
                if self.circles.get(reference) == Some(&circle) {
                    step = step.saturating_add(self.target(reference, circle));
                }
            } else if IN_PLACE.contains(&&**keyword) {
                for branch in super::branches(keyword, member) {
                    step = step.saturating_add(self.step(branch, circle));
                }
            }
        }
        step
    }

    /// The same, of what the schema itself has for children. They are an object's or a list's, and most keywords take
    /// those that no other has taken.
    fn children(&mut self, schema: &'a Value, circle: usize) -> u64 {
        let mut all = |keyword: &str| -> Vec<u64> {
            let schemas = match schema.get(keyword) {
                Some(Value::Object(schemas)) if matches!(keyword, "properties" | "patternProperties") => {
                    schemas.values().collect()
                }
                Some(Value::Array(schemas)) => schemas.iter().collect(),
                Some(one) => vec![one],
                None => Vec::new(),
            };
            schemas.into_iter().map(|child| u64::from(self.enter(child, circle))).collect()
        };
        let most = |found: Vec<u64>| found.into_iter().max().unwrap_or(0);
        let members = most(all("properties")).saturating_add(all("patternProperties").into_iter().sum());
        let others = most(all("additionalProperties")).max(most(all("unevaluatedProperties")));
        let items = [all("prefixItems"), all("items"), all("additionalItems"), all("unevaluatedItems")];
        let items = items.into_iter().map(most).max().unwrap_or(0).saturating_add(most(all("contains")));
        members.max(others).max(items)
    }

    /// Whether what is applied to a child leads back; if so, it is counted in its turn.
    fn enter(&mut self, child: &'a Value, circle: usize) -> bool {
        let leads_back = self.leads_back(child, circle);
        if leads_back {
            self.entries.push((child, circle));
        }
        leads_back
    }

    fn leads_back(&self, schema: &Value, circle: usize) -> bool {
        match schema {
            Value::Object(members) => members.iter().any(|(keyword, member)| match (&**keyword, member) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    self.circles.get(&**reference) == Some(&circle)
                }
                // Here the keys are names that anybody chose.
                ("properties" | "patternProperties", Value::Object(schemas)) => {
                    schemas.values().any(|schema| self.leads_back(schema, circle))
                }
                (keyword, _) if DATA.contains(&keyword) || matches!(keyword, "$defs" | "definitions") => {
                    false
                }
                (_, member) => self.leads_back(member, circle),
            }),
            Value::Array(schemas) => schemas.iter().any(|schema| self.leads_back(schema, circle)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
}
