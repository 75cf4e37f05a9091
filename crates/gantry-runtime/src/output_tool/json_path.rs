//! JSON paths (RFC 9535) with a bound on what one costs: nested filters and descents multiply, so each look at a value is a
//! step, and a path that needs too many fails.

use gantry_core::truncate::truncate;
use regex::Regex;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Steps that a path may take: less than a second.
const STEPS: usize = 5_000_000;

/// Filters, parentheses and functions within each other.
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
    parser.need("$")?;
    let query = parser.query(true)?;
    if !parser.rest.is_empty() {
        return parser.fail("\".\", \"[\" or the end");
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
    Slice(Option<i64>, Option<i64>, i64),
    Wildcard,
    Filter(Expr),
}

/// A condition, or an operand of one.
#[derive(Debug)]
enum Expr {
    /// Holds if all of one list hold.
    Any(Vec<Vec<Self>>),
    Not(Box<Self>),
    Compare(Box<Self>, Holds, Box<Self>),
    Matches(Box<Self>, Regex),
    Query(Query),
    Literal(Value),
    Length(Box<Self>),
    Count(Query),
}

impl Expr {
    /// Whether it is one value at most, which can be compared.
    fn is_value(&self) -> bool {
        let is_one = |segment: &Segment| {
            !segment.descends && matches!(&*segment.selectors, [Selector::Name(_) | Selector::Index(_)])
        };
        match self {
            Self::Query(query) => query.segments.iter().all(is_one),
            Self::Literal(_) | Self::Length(_) | Self::Count(_) => true,
            Self::Any(_) | Self::Not(_) | Self::Compare(..) | Self::Matches(..) => false,
        }
    }
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn fail<T>(&self, expected: &str) -> Result<T, String> {
        Err(format!(
            "the path is not a JSON path: there should be {expected} at {:?}",
            truncate(self.rest, 40)
        ))
    }

    /// Takes a token, with the blanks before it.
    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn need(&mut self, token: &str) -> Result<(), String> {
        if self.eat(token) { Ok(()) } else { self.fail(&format!("{token:?}")) }
    }

    fn take(&mut self, wanted: fn(char) -> bool) -> &'t str {
        let (taken, rest) = self.rest.split_at(self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn nested<T>(&mut self, parse: fn(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.fail(&format!("at most {DEPTH} levels"));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn list<T>(&mut self, comma: &str, item: fn(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        let mut items = vec![item(self)?];
        while self.eat(comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn query(&mut self, is_absolute: bool) -> Result<Query, String> {
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
                    return self.fail("a name, in [\"…\"] if it is not a word,");
                }
                vec![Selector::Name(name.to_owned())]
            };
            segments.push(Segment { descends, selectors });
        }
    }

    fn selector(&mut self) -> Result<Selector, String> {
        if self.eat("*") {
            return Ok(Selector::Wildcard);
        } else if self.eat("?") {
            return self.nested(Self::condition).map(Selector::Filter);
        } else if self.rest.starts_with(['"', '\'']) {
            return self.string().map(Selector::Name);
        }
        let start = self.integer()?;
        if !self.eat(":") {
            return start
                .map(Selector::Index)
                .map_or_else(|| self.fail("a name in quotes, a number, * or ?"), Ok);
        }
        let end = self.integer()?;
        let step = if self.eat(":") { self.integer()? } else { None };
        Ok(Selector::Slice(start, end, step.unwrap_or(1)))
    }

    fn integer(&mut self) -> Result<Option<i64>, String> {
        self.eat("");
        match self.take(|c| c == '-' || c.is_ascii_digit()) {
            "" => Ok(None),
            digits => {
                digits.parse().map_or_else(|_invalid| self.fail("a whole number before"), |n| Ok(Some(n)))
            }
        }
    }

    /// A text in quotes of either kind, which becomes a JSON text.
    fn string(&mut self) -> Result<String, String> {
        let (mut json, mut escaped) = (String::from('"'), false);
        let quote = if self.rest.starts_with('\'') { '\'' } else { '"' };
        for (at, c) in self.rest.char_indices().skip(1) {
            if c == quote && !escaped {
                self.rest = self.rest.get(at + 1..).unwrap_or_default();
                json.push('"');
                return serde_json::from_str(&json)
                    .or_else(|_invalid| self.fail("a text with JSON escapes before"));
            }
            if c == '\'' && escaped {
                json.pop();
            } else if c == '"' && !escaped {
                json.push('\\');
            }
            json.push(c);
            escaped = c == '\\' && !escaped;
        }
        self.fail("a text in quotes")
    }

    fn condition(&mut self) -> Result<Expr, String> {
        self.list("||", |parser| parser.list("&&", Self::test)).map(Expr::Any)
    }

    fn test(&mut self) -> Result<Expr, String> {
        let is_negated = self.eat("!");
        let test = if self.eat("(") {
            let inner = self.nested(Self::condition)?;
            self.need(")")?;
            inner
        } else {
            let left = self.operand()?;
            match COMPARISONS.iter().find(|(sign, _)| self.eat(sign)) {
                Some((_, holds)) if !is_negated => {
                    let right = self.operand()?;
                    if !left.is_value() || !right.is_value() {
                        return self.fail("single values on both sides before");
                    }
                    Expr::Compare(Box::new(left), *holds, Box::new(right))
                }
                None if matches!(left, Expr::Query(_) | Expr::Matches(..)) => left,
                Some(_) | None => return self.fail("a comparison or a path"),
            }
        };
        Ok(if is_negated { Expr::Not(Box::new(test)) } else { test })
    }

    fn operand(&mut self) -> Result<Expr, String> {
        if self.eat("$") {
            return self.query(true).map(Expr::Query);
        } else if self.eat("@") {
            return self.query(false).map(Expr::Query);
        } else if self.rest.starts_with(['"', '\'']) {
            return self.string().map(|text| Expr::Literal(text.into()));
        }
        let word = self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.'));
        if !self.rest.starts_with('(') {
            return serde_json::from_str(word)
                .map(Expr::Literal)
                .or_else(|_invalid| self.fail("a value before"));
        }
        self.need("(")?;
        let function = match (word, self.nested(Self::operand)?) {
            ("length", value) if value.is_value() => Expr::Length(Box::new(value)),
            ("count", Expr::Query(query)) => Expr::Count(query),
            ("match" | "search", value) if value.is_value() && self.eat(",") => {
                self.eat("");
                let pattern = self.string()?;
                let whole = if word == "match" { format!("^(?:{pattern})$") } else { pattern };
                Expr::Matches(Box::new(value), super::slice::regex(&whole, REGEX_BYTES)?)
            }
            _ => return self.fail("length(value), count(path), match or search(value, \"text\") before"),
        };
        self.need(")").map(|()| function)
    }
}

/// The steps are used up.
struct TooCostly;

struct Walk<'v> {
    root: &'v Value,
    left: usize,
}

impl<'v> Walk<'v> {
    fn spend(&mut self, steps: usize) -> Result<(), TooCostly> {
        self.left = self.left.checked_sub(steps).ok_or(TooCostly)?;
        Ok(())
    }

    fn find(&mut self, query: &Query, at: &'v Value) -> Result<Vec<&'v Value>, TooCostly> {
        let mut found = vec![if query.is_absolute { self.root } else { at }];
        for segment in &query.segments {
            let mut next = Vec::new();
            found.into_iter().try_for_each(|value| self.select(segment, value, &mut next))?;
            found = next;
        }
        Ok(found)
    }

    fn select(
        &mut self,
        segment: &Segment,
        at: &'v Value,
        found: &mut Vec<&'v Value>,
    ) -> Result<(), TooCostly> {
        for selector in &segment.selectors {
            self.spend(1)?;
            let elements = at.as_array().map_or(&[][..], Vec::as_slice);
            let element = |index| usize::try_from(index).ok().and_then(|index: usize| elements.get(index));
            match selector {
                Selector::Name(name) => found.extend(at.get(name)),
                Selector::Index(index) => found.extend(element(from_start(*index, elements.len()))),
                Selector::Slice(start, end, step) => {
                    for index in slice(elements.len(), *start, *end, *step) {
                        self.spend(1)?;
                        found.extend(element(index));
                    }
                }
                Selector::Wildcard => {
                    let before = found.len();
                    found.extend(children(at));
                    self.spend(found.len() - before)?;
                }
                Selector::Filter(test) => children(at).try_for_each(|child| {
                    found.extend(self.holds(test, child)?.then_some(child));
                    Ok(())
                })?,
            }
        }
        if segment.descends {
            children(at).try_for_each(|child| self.select(segment, child, found))?;
        }
        Ok(())
    }

    fn holds(&mut self, test: &Expr, at: &'v Value) -> Result<bool, TooCostly> {
        self.spend(1)?;
        match test {
            Expr::Any(lists) => lists.iter().try_fold(false, |held, list| {
                Ok(held || list.iter().try_fold(true, |held, test| Ok(held && self.holds(test, at)?))?)
            }),
            Expr::Not(test) => Ok(!self.holds(test, at)?),
            Expr::Compare(left, holds, right) => {
                let (left, right) = (self.value(left, at)?, self.value(right, at)?);
                self.order(left.as_deref(), right.as_deref()).map(holds)
            }
            Expr::Matches(value, regex) => {
                let value = self.value(value, at)?;
                let Some(text) = value.as_deref().and_then(Value::as_str) else { return Ok(false) };
                self.spend(text.len() * REGEX_STEPS)?;
                Ok(regex.is_match(text))
            }
            Expr::Query(query) => Ok(!self.find(query, at)?.is_empty()),
            // No test, as the parser has seen.
            Expr::Literal(_) | Expr::Length(_) | Expr::Count(_) => Ok(false),
        }
    }

    fn value<'a>(&mut self, operand: &'a Expr, at: &'v Value) -> Result<Option<Cow<'a, Value>>, TooCostly>
    where
        'v: 'a,
    {
        Ok(match operand {
            Expr::Literal(value) => Some(Cow::Borrowed(value)),
            Expr::Query(query) => self.find(query, at)?.first().copied().map(Cow::Borrowed),
            Expr::Count(query) => Some(Cow::Owned(self.find(query, at)?.len().into())),
            Expr::Length(operand) => {
                let value = self.value(operand, at)?;
                self.spend(
                    value.as_deref().and_then(Value::as_str).map_or(0, |text| text.len() / TEXT_STEP),
                )?;
                let length = value.as_deref().and_then(|value| match value {
                    Value::String(text) => Some(text.chars().count()),
                    Value::Array(elements) => Some(elements.len()),
                    Value::Object(members) => Some(members.len()),
                    Value::Null | Value::Bool(_) | Value::Number(_) => None,
                });
                length.map(|length| Cow::Owned(length.into()))
            }
            // No value, as the parser has seen.
            Expr::Any(_) | Expr::Not(_) | Expr::Compare(..) | Expr::Matches(..) => None,
        })
    }

    /// How two values compare; none if they differ and neither is less. Missing values are equal.
    fn order(&mut self, left: Option<&Value>, right: Option<&Value>) -> Result<Option<Ordering>, TooCostly> {
        self.spend(1)?;
        let is_equal = match (left, right) {
            (Some(Value::Number(a)), Some(Value::Number(b))) => {
                let whole = a.as_i128().zip(b.as_i128());
                return Ok(
                    whole.map_or_else(|| a.as_f64().partial_cmp(&b.as_f64()), |(a, b)| Some(a.cmp(&b)))
                );
            }
            (Some(Value::String(a)), Some(Value::String(b))) => {
                return self.spend(a.len().min(b.len()) / TEXT_STEP).map(|()| Some(a.cmp(b)));
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
                a.iter().zip(b).try_fold(true, |same, (a, b)| Ok(same && self.are_equal(a, Some(b))?))?
            }
            (Some(Value::Object(a)), Some(Value::Object(b))) if a.len() == b.len() => {
                a.iter().try_fold(true, |same, (name, a)| Ok(same && self.are_equal(a, b.get(name))?))?
            }
            (Some(Value::Array(_) | Value::Object(_)), _) => false,
            (a, b) => a == b,
        };
        Ok(is_equal.then_some(Ordering::Equal))
    }

    fn are_equal(&mut self, a: &Value, b: Option<&Value>) -> Result<bool, TooCostly> {
        Ok(self.order(Some(a), b)? == Some(Ordering::Equal))
    }
}

fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let (elements, members) = (value.as_array(), value.as_object());
    elements.into_iter().flatten().chain(members.into_iter().flat_map(Map::values))
}

fn from_start(index: i64, len: usize) -> i64 {
    if index < 0 { index.saturating_add_unsigned(len as u64) } else { index }
}

/// The indices of a slice, as RFC 9535 defines them.
fn slice(len: usize, start: Option<i64>, end: Option<i64>, step: i64) -> impl Iterator<Item = i64> {
    let (low, high) = if step > 0 { (0, len as i64) } else { (-1, len as i64 - 1) };
    let bound = |at: Option<i64>, missing| at.map_or(missing, |at| from_start(at, len).clamp(low, high));
    let (first, last) =
        if step > 0 { (bound(start, low), bound(end, high)) } else { (bound(start, high), bound(end, low)) };
    let within = move |at: &i64| if step > 0 { *at < last } else { step < 0 && *at > last };
    std::iter::successors(Some(first), move |at| at.checked_add(step)).take_while(within)
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
            ("$..book[::-2]", some(&[3, 1])),
            ("$..book[-2:]", some(&[2, 3])),
            ("$..book[::0]", json!([])),
            ("$..book[9223372036854775807, -9223372036854775808:9223372036854775807]", some(&[0, 1, 2, 3])),
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
            all(r#"$['a\'b', "a'b", 'a"b', "a\"b", "a\\b", 'a\\b', '\u00e9☺'] "#, &texts),
            json!([1, 1, 2, 2, 3, 3, 4])
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
