//! JSON paths (RFC 9535) with a bound on what one costs: nested filters and descents multiply, so each look at a value is a
//! step, and a path that needs too many fails. Left out, and refused: the function value, functions of anything
//! but a path, slices backwards, escapes in single quotes.

use gantry_core::truncate::truncate;
use regex::Regex;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Steps that a path may take: about a second, and some more for regular expressions.
const STEPS: usize = 5_000_000;

/// Filters and parentheses within each other.
const DEPTH: usize = 16;

/// Bytes of a text that are compared in one step, and steps that a regular expression takes for a byte.
const TEXT_STEP: usize = 64;
const REGEX_STEPS: usize = 8;

/// Compiled size of a regular expression.
const REGEX_BYTES: usize = 64 * 1024;

type Holds = fn(Option<Ordering>) -> bool;

/// Longer signs stand before those that they begin with.
const COMPARISONS: [(&str, Holds); 6] = [
    ("==", |order| order == Some(Ordering::Equal)),
    ("!=", |order| order != Some(Ordering::Equal)),
    ("<=", |order| order.is_some_and(Ordering::is_le)),
    (">=", |order| order.is_some_and(Ordering::is_ge)),
    ("<", |order| order == Some(Ordering::Less)),
    (">", |order| order == Some(Ordering::Greater)),
];

/// The values in `root` that a path leads to. An error says what is wrong with the path.
pub(super) fn find<'v>(path: &str, root: &'v Value) -> Result<Vec<&'v Value>, String> {
    let mut parser = Parser { rest: path, depth: 0 };
    let query = parser.query()?;
    if !query.is_absolute || !parser.rest.is_empty() {
        return fail(parser.rest, "\"$\" at its beginning, and \".\", \"[\" or the end");
    }
    Walk { root, left: STEPS }.find(&query, root).map_err(|_too_costly| {
        format!(
            "the path needs more than {STEPS} steps in this output; use fewer filters and \"..\" within each other, \
             name the way as in $.items[0].name, or use lines or grep"
        )
    })
}

#[derive(Debug)]
struct Query {
    /// Begins with `$` and not with `@`.
    is_absolute: bool,
    segments: Vec<Segment>,
}

impl Query {
    /// Whether it leads to one value at most, which can be compared.
    fn is_single(&self) -> bool {
        let is_one = |selectors: &[_]| matches!(selectors, [Selector::Name(_) | Selector::Index(_)]);
        self.segments.iter().all(|segment| !segment.descends && is_one(&segment.selectors))
    }
}

#[derive(Debug)]
struct Segment {
    /// `..`: selects from all that is below, too.
    descends: bool,
    selectors: Vec<Selector>,
}

#[derive(Debug)]
enum Selector {
    Name(String),
    Index(i64),
    Slice(Option<i64>, Option<i64>, usize),
    Wildcard,
    Filter(Test),
}

#[derive(Debug)]
enum Test {
    /// Holds if all of one list hold.
    Any(Vec<Vec<Self>>),
    Not(Box<Self>),
    Exists(Query),
    Compare(Operand, Holds, Operand),
    Matches(Query, Regex),
}

#[derive(Debug)]
enum Operand {
    Query(Query),
    Length(Query),
    Count(Query),
    Literal(Value),
}

fn fail<T>(at: &str, expected: &str) -> Result<T, String> {
    Err(format!("the path is not a JSON path: there should be {expected} at {:?}", truncate(at, 40)))
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// Takes a token, with the blanks before it.
    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn need(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) { Ok(()) } else { fail(self.rest, &format!("{token:?}")) }
    }

    fn take(&mut self, wanted: fn(char) -> bool) -> &'t str {
        let (taken, rest) = self.rest.split_at(self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn list<T>(&mut self, comma: &str, item: fn(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        let mut items = vec![item(self)?];
        while self.eat(comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn query(&mut self) -> Result<Query, String> {
        let is_absolute = !self.eat("@");
        if is_absolute {
            self.need("$")?;
        }
        let mut segments = Vec::new();
        loop {
            let descends = self.eat("..");
            let selectors = if self.eat("[") {
                let selectors = self.list(",", Self::selector)?;
                self.need("]")?;
                selectors
            } else if !descends && !self.eat(".") {
                return Ok(Query { is_absolute, segments });
            } else if self.eat("*") {
                vec![Selector::Wildcard]
            } else {
                let name = self.take(|c| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii());
                if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                    return fail(self.rest, "a name, in [\"…\"] if it is not a word,");
                }
                vec![Selector::Name(name.to_owned())]
            };
            segments.push(Segment { descends, selectors });
        }
    }

    fn single(&mut self) -> Result<Query, String> {
        let (start, query) = (self.rest, self.query()?);
        if query.is_single() { Ok(query) } else { fail(start, "a path to a single value") }
    }

    fn selector(&mut self) -> Result<Selector, String> {
        if self.eat("*") {
            return Ok(Selector::Wildcard);
        } else if self.eat("?") {
            return self.condition().map(Selector::Filter);
        } else if self.rest.starts_with(['"', '\'']) {
            return self.string().map(Selector::Name);
        }
        let (at, start) = (self.rest, self.integer()?);
        if !self.eat(":") {
            return start
                .map(Selector::Index)
                .map_or_else(|| fail(at, "a name in quotes, a number, * or ?"), Ok);
        }
        let end = self.integer()?;
        let step = if self.eat(":") { self.integer()? } else { None }.unwrap_or(1);
        match usize::try_from(step) {
            Ok(step) if step > 0 => Ok(Selector::Slice(start, end, step)),
            _ => fail(at, "a slice with steps of 1 or more"),
        }
    }

    fn integer(&mut self) -> Result<Option<i64>, String> {
        self.eat("");
        let (at, digits) = (self.rest, self.take(|c| c == '-' || c.is_ascii_digit()));
        let number = (!digits.is_empty()).then(|| digits.parse());
        number.transpose().or_else(|_invalid| fail(at, "a whole number"))
    }

    fn string(&mut self) -> Result<String, String> {
        let plain = self.rest.strip_prefix('\'').and_then(|text| text.split_once('\''));
        if let Some((text, rest)) = plain.filter(|(text, _)| !text.contains('\\')) {
            self.rest = rest;
            return Ok(text.to_owned());
        }
        let mut texts = serde_json::Deserializer::from_str(self.rest).into_iter();
        let Some(Ok(text)) = texts.next() else {
            return fail(self.rest, "a text in quotes, in double ones if it has escapes,");
        };
        self.rest = self.rest.get(texts.byte_offset()..).unwrap_or_default();
        Ok(text)
    }

    fn condition(&mut self) -> Result<Test, String> {
        if self.depth == DEPTH {
            return fail(self.rest, &format!("at most {DEPTH} levels"));
        }
        self.depth += 1;
        let lists = self.list("||", |parser| parser.list("&&", Self::test))?;
        self.depth -= 1;
        Ok(Test::Any(lists))
    }

    fn test(&mut self) -> Result<Test, String> {
        let is_negated = self.eat("!");
        let is_whole = self.eat("match(");
        let test = if is_whole || self.eat("search(") {
            let value = self.single()?;
            self.need(",")?;
            self.eat("");
            let pattern = self.string()?;
            self.need(")")?;
            let pattern = if is_whole { format!("^(?:{pattern})$") } else { pattern };
            Test::Matches(value, super::slice::regex(&pattern, REGEX_BYTES)?)
        } else if self.eat("(") {
            let inner = self.condition()?;
            self.need(")")?;
            inner
        } else {
            let (start, left) = (self.rest, self.operand()?);
            match (COMPARISONS.iter().find(|(sign, _)| self.eat(sign)), left) {
                (Some((_, holds)), left) if !is_negated => {
                    let right = self.operand()?;
                    let is_many = |it: &Operand| matches!(it, Operand::Query(query) if !query.is_single());
                    if is_many(&left) || is_many(&right) {
                        return fail(start, "single values on both sides");
                    }
                    Test::Compare(left, *holds, right)
                }
                (None, Operand::Query(query)) => Test::Exists(query),
                _ => return fail(start, "a comparison or a path, in parentheses after \"!\","),
            }
        };
        Ok(if is_negated { Test::Not(Box::new(test)) } else { test })
    }

    fn operand(&mut self) -> Result<Operand, String> {
        if self.eat("length(") {
            let value = self.single()?;
            return self.need(")").map(|()| Operand::Length(value));
        } else if self.eat("count(") {
            let found = self.query()?;
            return self.need(")").map(|()| Operand::Count(found));
        } else if self.rest.starts_with(['$', '@']) {
            return self.query().map(Operand::Query);
        } else if self.rest.starts_with(['"', '\'']) {
            return self.string().map(|text| Operand::Literal(text.into()));
        }
        let (at, word) =
            (self.rest, self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')));
        serde_json::from_str(word).map(Operand::Literal).or_else(|_invalid| {
            fail(at, "a path, a value, length(path), count(path), match(path, \"regex\") or search(path, \"regex\")")
        })
    }
}

/// The steps are used up.
struct TooCostly;

type Walked<T> = Result<T, TooCostly>;

struct Walk<'v> {
    root: &'v Value,
    left: usize,
}

impl<'v> Walk<'v> {
    fn spend(&mut self, steps: usize) -> Walked<()> {
        self.left = self.left.checked_sub(steps).ok_or(TooCostly)?;
        Ok(())
    }

    fn find(&mut self, query: &Query, at: &'v Value) -> Walked<Vec<&'v Value>> {
        let mut found = vec![if query.is_absolute { self.root } else { at }];
        for segment in &query.segments {
            let mut next = Vec::new();
            found.into_iter().try_for_each(|value| self.select(segment, value, &mut next))?;
            found = next;
        }
        Ok(found)
    }

    fn select(&mut self, segment: &Segment, at: &'v Value, found: &mut Vec<&'v Value>) -> Walked<()> {
        let elements = at.as_array().map_or(&[][..], Vec::as_slice);
        let from_start = |index: i64| {
            let distance = index.unsigned_abs() as usize;
            if index < 0 { elements.len().checked_sub(distance) } else { Some(distance) }
        };
        for selector in &segment.selectors {
            let before = found.len();
            match selector {
                Selector::Name(name) => found.extend(at.get(name)),
                Selector::Index(index) => {
                    found.extend(from_start(*index).and_then(|index| elements.get(index)))
                }
                Selector::Slice(start, end, step) => {
                    let start = start.map_or(0, |start| from_start(start).unwrap_or(0));
                    let end = end.map_or(usize::MAX, |end| from_start(end).unwrap_or(0)).min(elements.len());
                    found.extend(elements.get(start..end).unwrap_or_default().iter().step_by(*step));
                }
                Selector::Wildcard => found.extend(children(at)),
                Selector::Filter(test) => children(at).try_for_each(|child| {
                    found.extend(self.holds(test, child)?.then_some(child));
                    Ok(())
                })?,
            }
            self.spend(1 + found.len() - before)?;
        }
        if segment.descends {
            children(at).try_for_each(|child| self.select(segment, child, found))?;
        }
        Ok(())
    }

    fn holds(&mut self, test: &Test, at: &'v Value) -> Walked<bool> {
        self.spend(1)?;
        match test {
            Test::Any(lists) => lists.iter().try_fold(false, |held, list| {
                Ok(held || list.iter().try_fold(true, |held, test| Ok(held && self.holds(test, at)?))?)
            }),
            Test::Not(test) => Ok(!self.holds(test, at)?),
            Test::Exists(query) => Ok(!self.find(query, at)?.is_empty()),
            Test::Compare(left, holds, right) => {
                let (left, right) = (self.value(left, at)?, self.value(right, at)?);
                self.order(left.as_deref(), right.as_deref()).map(holds)
            }
            Test::Matches(query, regex) => {
                let [Value::String(text)] = self.find(query, at)?[..] else { return Ok(false) };
                self.spend(text.len() * REGEX_STEPS)?;
                Ok(regex.is_match(text))
            }
        }
    }

    fn value<'a>(&mut self, operand: &'a Operand, at: &'v Value) -> Walked<Option<Cow<'a, Value>>>
    where
        'v: 'a,
    {
        let query = match operand {
            Operand::Literal(value) => return Ok(Some(Cow::Borrowed(value))),
            Operand::Query(query) => return Ok(self.find(query, at)?.first().copied().map(Cow::Borrowed)),
            Operand::Count(query) => return Ok(Some(Cow::Owned(self.find(query, at)?.len().into()))),
            Operand::Length(query) => query,
        };
        let length = match self.find(query, at)?[..] {
            [Value::String(text)] => {
                self.spend(text.len() / TEXT_STEP)?;
                text.chars().count()
            }
            [Value::Array(elements)] => elements.len(),
            [Value::Object(members)] => members.len(),
            _ => return Ok(None),
        };
        Ok(Some(Cow::Owned(length.into())))
    }

    /// How two values compare; none if they differ and neither is less. Missing values are equal.
    fn order(&mut self, left: Option<&Value>, right: Option<&Value>) -> Walked<Option<Ordering>> {
        self.spend(1)?;
        let is_equal = match (left, right) {
            (Some(Value::Number(a)), Some(Value::Number(b))) => {
                let whole = a.as_i128().zip(b.as_i128()).map(|(a, b)| a.cmp(&b));
                return Ok(whole.or_else(|| a.as_f64().partial_cmp(&b.as_f64())));
            }
            (Some(Value::String(a)), Some(Value::String(b))) => {
                return self.spend(a.len().min(b.len()) / TEXT_STEP).map(|()| Some(a.cmp(b)));
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
                self.are_equal(a.iter().zip(b.iter().map(Some)))?
            }
            (Some(Value::Object(a)), Some(Value::Object(b))) if a.len() == b.len() => {
                self.are_equal(a.iter().map(|(name, a)| (a, b.get(name))))?
            }
            // Lists and objects differ here at the first look: in kind or in size.
            (a, b) => a == b,
        };
        Ok(is_equal.then_some(Ordering::Equal))
    }

    fn are_equal<'a>(
        &mut self,
        mut pairs: impl Iterator<Item = (&'a Value, Option<&'a Value>)>,
    ) -> Walked<bool> {
        pairs.try_fold(true, |same, (a, b)| Ok(same && self.order(Some(a), b)? == Some(Ordering::Equal)))
    }
}

fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let (elements, members) = (value.as_array(), value.as_object());
    elements.into_iter().flatten().chain(members.into_iter().flat_map(Map::values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn all(path: &str, root: &Value) -> Value {
        find(path, root).unwrap_or_else(|error| panic!("{path}: {error}")).into_iter().cloned().collect()
    }

    /// The example of RFC 9535, and its queries with what they find.
    #[test]
    fn paths_find_what_the_rfc_says() {
        let book = |category: &str, author: &str, title: &str, price: f64| json!({ "category": category, "author": author, "title": title, "price": price });
        let mut books = vec![
            book("reference", "Nigel Rees", "Sayings of the Century", 8.95),
            book("fiction", "Evelyn Waugh", "Sword of Honour", 12.99),
            book("fiction", "Herman Melville", "Moby Dick", 8.99),
            book("fiction", "J. R. R. Tolkien", "The Lord of the Rings", 22.99),
        ];
        books[2]["isbn"] = json!("0-553-21311-3");
        books[3]["isbn"] = json!("0-395-19395-8");
        let bicycle = json!({ "color": "red", "price": 399 });
        let root = json!({ "store": { "book": books, "bicycle": bicycle } });
        let some = |wanted: &[usize]| wanted.iter().map(|n| books[*n].clone()).collect::<Value>();
        let authors = json!(["Nigel Rees", "Evelyn Waugh", "Herman Melville", "J. R. R. Tolkien"]);
        for (path, expected) in [
            ("$", json!([root])),
            ("$.store.book[*].author", authors.clone()),
            ("$..author", authors),
            ("$.store.*", json!([books, bicycle])),
            ("$.store..price", json!([8.95, 12.99, 8.99, 22.99, 399])),
            ("$..book[2]", some(&[2])),
            ("$..book[2].publisher", json!([])),
            ("$..book[-1]", some(&[3])),
            ("$..book[0,1]", some(&[0, 1])),
            ("$..book[:2]", some(&[0, 1])),
            ("$..book[1:9:2]", some(&[1, 3])),
            ("$..book[-9:3:3]", some(&[0])),
            ("$..book[-2:]", some(&[2, 3])),
            ("$..book[3:1]", json!([])),
            ("$..book[9223372036854775807, -9223372036854775808, -5, 9:]", json!([])),
            ("$..book[-9223372036854775808:9223372036854775807]", some(&[0, 1, 2, 3])),
            ("$..book[?@.isbn]", some(&[2, 3])),
            ("$..book[?!@.isbn]", some(&[0, 1])),
            ("$..book[?@.price<10]", some(&[0, 2])),
            ("$..book[?@.price >= 8.99 && @['category'] == 'fiction' || @.x]", some(&[1, 2, 3])),
            ("$..book[?!(@.price<10 || @.isbn)].title", json!(["Sword of Honour"])),
            ("$..book[?length(@.title) > 15].price", json!([8.95, 22.99])),
            ("$..book[?match(@.title, 'S.*')].price", json!([8.95, 12.99])),
            (r#"$..book[?search(@.title, "o[fb]\\b")].price"#, json!([8.95, 12.99, 22.99])),
            ("$.store[?count(@.*) == 2]", json!([bicycle])),
            ("$.store[?@ == $.store.bicycle]", json!([bicycle])),
            ("$..book[?@.x == $.y].price", json!([8.95, 12.99, 8.99, 22.99])),
            (" $ . store [ 'bicycle' , \"bicycle\" ] [ \"color\" ] ", json!(["red", "red"])),
        ] {
            assert_eq!(all(path.trim_start(), &root), expected, "{path}");
        }
        let texts = json!({ "a'b": 1, "a\"b": 2, "a\\b": 3, "é☺": 4 });
        assert_eq!(
            all(r#"$["a'b", 'a"b', "a\"b", "a\\b", "\u00e9☺", 'é☺'] "#, &texts),
            json!([1, 2, 2, 3, 4, 4])
        );
        assert_eq!(all("$.é☺", &texts), json!([4]));
        let mixed = json!([1, 1.0, "1", null, true, [1], [1.0], { "a": [1] }, {}]);
        for (test, expected) in [
            ("@ == 1", json!([1, 1.0])),
            ("@ <= 'z'", json!(["1"])),
            ("@ == null || @ >= true", json!([null, true])),
            ("@ == $[5]", json!([[1], [1.0]])),
            ("@ == $[7]", json!([{ "a": [1] }])),
            ("@ != $[0] && @ != $[8]", json!(["1", null, true, [1], [1.0], { "a": [1] }])),
        ] {
            assert_eq!(all(&format!("$[?{test}]"), &mixed), expected, "{test}");
        }
    }

    #[test]
    fn what_is_no_path_says_where() {
        let deep = format!("$[?{}@{}]", "(".repeat(400), ")".repeat(400));
        let chained = format!("${}@{}", "[?@".repeat(300), "]".repeat(300));
        for path in [
            "",
            "a",
            "$.",
            "$..",
            "$[",
            "$[]",
            "$['a]",
            "$[1",
            "$[a]",
            "$.1a",
            "$x",
            "$[?]",
            "$[?@.a ==]",
            "$[?1]",
            "$[?@.* == 1]",
            "$[?length(@.*) == 1]",
            "$[?length(@.a)]",
            "$[?match(@.a)]",
            "$[?match(@.a, '(')]",
            "$[?match(@.a, 'a') == true]",
            "$[?!@.a == 1]",
            "$[?count(1) == 1]",
            "$[?match(@.*, 'a')]",
            "$[::0]",
            "$[::-1]",
            "$['a\\'b']",
            "@.a",
            "$[?x(@)]",
            "$[?(@.a]",
            "$['\\x']",
            "$[1e3]",
            "$[--1]",
            "$.a b",
            &deep,
            &chained,
        ] {
            let error = find(path, &json!([])).expect_err(path);
            assert!(error.contains("is not a") && error.len() < 300, "{path}: {error}");
        }
    }

    #[test]
    fn no_path_takes_more_than_its_steps() {
        let entries: Vec<Value> =
            (0..9000).map(|n| json!({ "size": n % 7 + 2, "name": "x".repeat(50) })).collect();
        let root = json!({ "entries": entries, "same": entries, "long": "a".repeat(2_000_000) });
        let wide = format!("$.entries{}", "[*,*]".repeat(150));
        for path in [
            "$.entries[?$.entries[?$.entries[?@.size==1]]]",
            "$.entries[?$.entries == $.same]",
            "$.entries[?length($.long) == 1]",
            "$.entries[?search($.long, 'b')]",
            "$.entries[?$.long == $.long]",
            "$..[?$..*]",
            "$..*..*..*..*..*..*..*..*..*..*..*..*..*",
            "$[*,*][*,*][*,*][*,*]..[*,*]..[*,*]..[*,*]..[*,*]",
            "$.entries[?count($..*) > 1]",
            "$.entries[::1,::1,::1]..[::1,::1]",
            &wide,
        ] {
            match find(path, &root) {
                Ok(found) => assert!(found.len() < STEPS, "{path}"),
                Err(error) => assert!(error.contains("more than 5000000 steps"), "{path}: {error}"),
            }
        }
        assert!(find("$.entries[?$.entries[?$.entries[?@.size==1]]]", &root).is_err());
        assert_eq!(find("$..[?@.size == 2 && search(@.name, 'x+')].size", &root).unwrap().len(), 2572);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(path in r#"\$([.\[\]?@$*:,'"!()&|=<> a0-9\\-]|==|&&|length\(|match\(){0,30}"#) {
            find(&path, &json!({ "a": [1, { "a": "b" }] })).ok();
        }
    }
}
