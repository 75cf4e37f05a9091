//! Schemas that could hurt are refused before they are compiled; the rest names every failing field.

use super::*;
use serde_json::json;

fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let result = Schema::compile(schema).unwrap().check(value);
    result.err().unwrap_or_default().into_iter().map(|v| format!("{}: {}", v.field, v.message)).collect()
}

#[test]
fn every_failing_field_is_named() {
    let schema = json!({
        "type": "object", "required": ["path", "to"], "additionalProperties": false,
        "properties": { "path": { "type": "string" }, "n": { "type": "integer", "minimum": 1 }, "to": {} }
    });
    let found = violations(&schema, &json!({ "path": 5, "n": 0, "a/b": 1 }));
    assert_eq!(
        found,
        [
            "/a~1b: is not known to this tool",
            "/n: the value is less than the minimum of 1",
            "/path: the value is not of type \"string\"",
            "/to: is required",
        ]
    );
}

#[test]
fn values_do_not_leak_into_messages() {
    let schema = json!({ "properties": { "password": { "type": "integer" } } });
    assert!(!violations(&schema, &json!({ "password": "s3cret" })).concat().contains("s3cret"));
}

#[test]
fn both_dialects_are_understood_and_unknown_ones_refused() {
    let tuple7 =
        json!({ "$schema": "http://json-schema.org/draft-07/schema#", "items": [{ "type": "string" }] });
    assert_eq!(violations(&tuple7, &json!([1])).len(), 1);
    let tuple2020 = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{ "type": "string" }] });
    assert_eq!(violations(&tuple2020, &json!([1])).len(), 1);
    let unknown = json!({ "$schema": "https://example.com/my-dialect" });
    assert!(matches!(Schema::compile(&unknown), Err(Error::UnknownDialect { .. })));
}

/// Fails if any crate in the build turns the library's file or network resolvers on.
#[test]
fn references_never_leave_the_document() {
    for reference in ["file:///etc/hostname", "http://127.0.0.1:9/x.json", "other.json", "//host/x"] {
        let schema = json!({ "properties": { "a": { "$ref": reference } } });
        assert!(matches!(Schema::compile(&schema), Err(Error::RemoteReference { .. })), "{reference}");
        assert!(build(&schema).is_err(), "the library itself followed {reference}");
    }
    let remote_id =
        json!({ "$id": "http://127.0.0.1:9/root.json", "properties": { "a": { "$ref": "x.json" } } });
    assert!(Schema::compile(&remote_id).is_err());
}

#[test]
fn doubling_references_are_counted_and_refused() {
    let mut defs = serde_json::Map::new();
    for n in 0..30 {
        let next = format!("#/$defs/d{}", n + 1);
        defs.insert(format!("d{n}"), json!({ "allOf": [{ "$ref": next }, { "$ref": next }] }));
    }
    defs.insert("d30".into(), json!({}));
    let hidden = json!({ "$defs": defs, "properties": { "default": { "$ref": "#/$defs/d0" } } });
    assert_eq!(Schema::compile(&hidden).unwrap_err(), Error::TooCostly, "a property's name is no keyword");
    assert_eq!(
        Schema::compile(&json!({ "$defs": defs, "$ref": "#/$defs/d0" })).unwrap_err(),
        Error::TooCostly
    );
}

#[test]
fn endless_references_are_refused_and_honest_recursion_works() {
    assert!(matches!(Schema::compile(&json!({ "$ref": "#" })), Err(Error::EndlessReference { .. })));
    let both = json!({ "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/b" }] }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" });
    assert!(matches!(Schema::compile(&both), Err(Error::EndlessReference { .. })));
    let tree = json!({ "type": "object", "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } }, "additionalProperties": false });
    assert!(violations(&tree, &json!({ "left": { "right": {} } })).is_empty());
    assert_eq!(violations(&tree, &json!({ "left": { "middle": {} } })).len(), 1);
}

#[test]
fn an_endless_reference_is_found_in_every_order() {
    let to = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    // The step into the property makes A known before B applies it to its own value.
    let (a, b) =
        (json!({ "allOf": [to("b")] }), json!({ "properties": { "p": to("a") }, "allOf": [to("a")] }));
    let (a2, b2) = (
        json!({ "anyOf": [{ "type": "string" }, { "not": to("c") }] }),
        json!({ "allOf": [to("a")], "items": to("c"), "properties": { "p": to("a") } }),
    );
    let c2 = json!({ "dependentSchemas": { "x": to("b") }, "properties": { "p": to("b") } });
    for definitions in [
        json!({ "a": a, "b": b }),
        json!({ "a": a2, "b": b2, "c": c2 }),
        json!({ "a": { "dependencies": { "x": to("b") } }, "b": { "items": to("a"), "if": to("a") } }),
    ] {
        for first in ["a", "b"] {
            for start in [json!({ "allOf": [to(first)] }), json!({ "properties": { "q": to(first) } })] {
                let mut schema = start;
                schema["$defs"] = definitions.clone();
                let found = Schema::compile(&schema).err();
                assert!(matches!(found, Some(Error::EndlessReference { .. })), "{found:?}: {schema}");
            }
        }
    }
    // With a step in every circle it ends where the value does.
    let honest = json!({
        "$defs": { "a": { "allOf": [to("b")] }, "b": { "properties": { "p": to("a"), "q": to("b") } } },
        "properties": { "x": to("a"), "y": to("b") },
    });
    assert!(violations(&honest, &json!({ "x": { "p": { "q": {} } }, "y": { "p": {} } })).is_empty());
}

#[test]
fn recursion_that_multiplies_is_bounded_by_the_nesting_of_the_value() {
    let schema = json!({ "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
    let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert!(violations(&schema, &nested(10)).is_empty());
    assert!(violations(&schema, &nested(100)).concat().contains("nested too deep"));
}

/// The validator meets these references in another order than they are written in, and remembers no result of them.
#[test]
fn recursion_is_counted_in_every_order_of_the_references() {
    let to = |n: usize| json!({ "$ref": format!("#/$defs/l{n}") });
    let level = |n: usize| {
        let mut properties = serde_json::Map::new();
        if n > 0 {
            properties.insert("d".to_owned(), to(n - 1));
        }
        if n < 8 {
            properties.insert("p".to_owned(), json!({ "allOf": vec![to(n + 1); 100] }));
        }
        (format!("l{n}"), json!({ "properties": properties }))
    };
    let definitions: serde_json::Map<String, Value> = (0..=8).map(level).collect();
    let by_condition = json!({ "then": to(8), "if": to(0), "$defs": definitions });
    let siblings = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": { "d": to(8) }, "$ref": "#/$defs/l0", "$defs": definitions,
    });
    let deep = (0..8).fold(json!({}), |inner, _| json!({ "p": inner }));
    for schema in [by_condition, siblings] {
        match Schema::compile(&schema) {
            Ok(compiled) => {
                let refused = compiled.check(&deep).unwrap_err();
                assert!(refused[0].message.contains("nested too deep"), "{refused:?}");
            }
            Err(error) => assert_eq!(error, Error::TooCostly),
        }
    }
}

/// Two ways lead to the same part of the value: a short one, and one through many schemas that takes from the stack.
#[test]
fn the_longest_way_to_a_part_of_a_value_is_bounded() {
    let step = json!({ "properties": { "p": { "$ref": "#" } } });
    let long = (0..25).fold(step.clone(), |inner, _| json!({ "allOf": [inner] }));
    for branches in [json!([step, long]), json!([long, step])] {
        let schema = Schema::compile(&json!({ "allOf": branches })).unwrap();
        assert_eq!(schema.check(&nested(4, json!({}))), Ok(()));
        assert!(schema.check(&nested(16, json!({}))).unwrap_err()[0].message.contains("nested too deep"));
    }
}

#[test]
fn only_what_leads_back_multiplies() {
    let to = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let list = |name: &str| json!({ "properties": { "next": { "items": to(name) } } });
    let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "next": [inner] }));
    let is_checked = |schema: &Value, value: &Value| violations(schema, value).is_empty();
    // A choice of things that each have a tree in them: the tree is met in each of them, and no more often below.
    let kinds: Vec<Value> =
        (0..12).map(|n| json!({ "properties": { "kind": { "const": n }, "tree": to("tree") } })).collect();
    let choice = json!({ "anyOf": kinds, "$defs": { "tree": list("tree") } });
    assert!(is_checked(&choice, &json!({ "kind": 3, "tree": deep(60) })));
    // A tree whose every node is such a choice.
    let nodes: Vec<Value> = (0..12).map(|_| list("node")).collect();
    let tree = json!({ "$ref": "#/$defs/node", "$defs": { "node": { "anyOf": nodes } } });
    assert!(is_checked(&tree, &deep(3)) && !is_checked(&tree, &deep(30)));
    // Children of different names are different values.
    let both = json!({ "properties": { "next": to("t"), "right": to("t") }, "additionalProperties": to("t"), "items": to("t") });
    assert!(is_checked(&json!({ "$ref": "#/$defs/t", "$defs": { "t": both } }), &deep(60)));
    let overlap = json!({ "properties": { "next": to("t") }, "items": to("t"),
        "patternProperties": { "n": to("t"), "e": to("t") } });
    assert!(!is_checked(&json!({ "$ref": "#/$defs/t", "$defs": { "t": overlap } }), &deep(30)));
}

#[test]
fn choices_of_choices_multiply_on_one_value() {
    // Ten definitions that choose twice between the next, and the last leads back to the first.
    let mut definitions = serde_json::Map::new();
    for n in 0..10 {
        let next = json!({ "$ref": format!("#/$defs/c{}", n + 1) });
        definitions.insert(format!("c{n}"), json!({ "anyOf": [next, next] }));
    }
    definitions.insert("c10".to_owned(), json!({ "properties": { "p": { "$ref": "#/$defs/c0" } } }));
    let schema = json!({ "$ref": "#/$defs/c0", "$defs": definitions });
    assert_eq!(Schema::check_cost(&schema), Ok(()), "1,024 schemas for every child");
    let deep = (0..20).fold(json!({}), |inner, _| json!({ "p": inner }));
    assert!(violations(&schema, &deep).concat().contains("nested too deep"));
}

#[test]
fn patterns_run_on_the_linear_engine_or_not_at_all() {
    let bomb = "a".repeat(100_000);
    let schema =
        json!({ "properties": { "a": { "pattern": "(a+)+$" }, "b": { "pattern": "(?<=a)(a|a)*b$" } } });
    let compiled = Schema::compile(&schema).unwrap();
    assert_eq!(compiled.unenforced().len(), 1, "{:?}", compiled.unenforced());
    assert!(compiled.check(&json!({ "a": bomb, "b": bomb })).is_ok());
    assert!(compiled.check(&json!({ "a": "b" })).is_err());
}

#[test]
fn nonsense_is_refused() {
    assert_eq!(Schema::compile(&json!("x")).unwrap_err(), Error::NotASchema);
    assert!(matches!(Schema::compile(&json!({ "minLength": -1 })), Err(Error::Invalid { .. })));
    assert!(matches!(Schema::compile(&json!({ "type": "strin" })), Err(Error::Invalid { .. })));
    assert!(matches!(
        Schema::compile(&json!({ "enum": ["x".repeat(300_000)] })),
        Err(Error::TooLarge { .. })
    ));
    assert!(matches!(
        Schema::compile(&json!({ "$ref": "#/$defs/none" })),
        Err(Error::DanglingReference { .. })
    ));
    let deep = (0..80).fold(json!({}), |inner, _| json!({ "not": inner }));
    assert_eq!(Schema::compile(&deep).unwrap_err(), Error::TooDeep);
}

#[test]
fn the_cost_is_known_without_compiling() {
    assert_eq!(Schema::check_cost(&json!({ "type": "object" })), Ok(()));
    assert_eq!(Schema::check_cost(&json!(5)), Err(Error::NotASchema));
    let levels = (0..30).map(|n| {
        let next = json!({ "$ref": format!("#/$defs/l{}", n + 1) });
        (format!("l{n}"), json!({ "allOf": [next, next] }))
    });
    let mut definitions: serde_json::Map<String, Value> = levels.collect();
    definitions.insert("l30".to_owned(), json!({ "type": "string" }));
    let doubling = json!({ "$ref": "#/$defs/l0", "$defs": definitions });
    assert_eq!(Schema::check_cost(&doubling), Err(Error::TooCostly));
    assert_eq!(Schema::compile(&doubling).err(), Some(Error::TooCostly));
    // What only compiling finds is not said.
    assert_eq!(Schema::check_cost(&json!({ "type": "nonsense" })), Ok(()));
}

#[test]
fn a_trusted_schema_is_compiled_on_first_use() {
    let trusted =
        |schema: Value| Schema::of(&SchemaText::trusted(schema.to_string().into()), &mut 1000).unwrap();
    let schema = trusted(json!({ "properties": { "a": { "type": "string", "pattern": "(?<=a)b" } } }));
    assert!(schema.compiled.get().is_none());
    assert_eq!(schema.unenforced().len(), 1, "what is not enforced is known before");
    assert!(schema.check(&json!({ "a": "x" })).is_ok());
    assert!(schema.check(&json!({ "a": 1 })).is_err());
    assert!(schema.compiled.get().is_some());

    // The importer was wrong: no value gets through.
    let broken = trusted(json!({ "type": "strin" })).check(&json!({})).unwrap_err();
    assert!(broken[0].message.contains("cannot be used"), "{broken:?}");
    assert!(
        Schema::of(&json!({ "type": "strin" }).into(), &mut 1000).is_err(),
        "and without that it is known at once"
    );
}

#[test]
fn a_schema_as_text_is_the_value_it_was_made_of() {
    let schema = json!({ "type": "object", "maximum": 1.5, "minimum": 12_345_678_901_234_567_890_u64, "title": "ä\"\n" });
    let text = SchemaText::from(schema.clone());
    assert_eq!((text.value(), json!({ "schema": text })), (schema.clone(), json!({ "schema": schema })));
}

/// A schema with a property for each of these patterns.
fn with_patterns(patterns: impl Iterator<Item = String>) -> Value {
    let properties =
        patterns.enumerate().map(|(n, pattern)| (format!("p{n}"), json!({ "pattern": pattern })));
    json!({ "properties": properties.collect::<serde_json::Map<_, _>>() })
}

#[test]
fn who_calls_first_does_not_wait_for_many_patterns() {
    let of = |schema: &Value| Schema::of(&SchemaText::trusted(schema.to_string().into()), &mut 1000).unwrap();
    let few = of(&with_patterns((0..30).map(|n| format!("^a{n}-[a-z]{{1,63}}$"))));
    assert!(few.compiled.get().is_none());
    assert!(few.check(&json!({ "p3": "a3-x" })).is_ok() && few.check(&json!({ "p3": "a4-x" })).is_err());
    let same = of(&with_patterns((0..300).map(|_| "^a$".to_owned())));
    assert!(same.compiled.get().is_none(), "one pattern is one, wherever it is");
    let many = of(&with_patterns((0..40).map(|n| format!("^a{n}$"))));
    assert!(many.compiled.get().is_some() && many.unenforced().is_empty());
    assert!(many.check(&json!({ "p1": "b" })).is_err());
}

#[test]
fn only_so_many_patterns_are_enforced() {
    let schema = with_patterns((0..600).map(|n| format!("^a{n}$")));
    let compiled = Schema::compile(&schema).unwrap();
    assert_eq!(compiled.unenforced().len(), 600 - 128);
    assert!(compiled.unenforced()[0].ends_with("(there are too many patterns)"));
    assert!(
        compiled.check(&json!({ "p599": "b" })).is_ok() && compiled.check(&json!({ "p0": "b" })).is_err()
    );

    let large = Schema::compile(&with_patterns(["^a.{1000}$".to_owned()].into_iter())).unwrap();
    assert!(large.unenforced()[0].ends_with("(needs look-around or is too large)"));
}

#[test]
fn patterns_that_servers_declare_are_enforced() {
    for pattern in
        ["^.{1,255}$", "^[A-Za-z0-9._-]{1,100}$", r"^\d{4}-\d{2}-\d{2}$", r"^\S+@\S+$", "^[^/]+(/[^/]+)*$"]
    {
        let schema = Schema::compile(&with_patterns([pattern.to_owned()].into_iter())).unwrap();
        assert!(schema.unenforced().is_empty(), "{pattern}");
        assert!(schema.check(&json!({ "p0": "" })).is_err(), "{pattern}");
    }
}

#[test]
fn what_only_looks_like_a_pattern_stays_as_it_is() {
    let schema = json!({ "const": { "pattern": "(?<=a)b" } });
    let compiled = Schema::compile(&schema).unwrap();
    assert!(compiled.unenforced().is_empty());
    assert!(compiled.check(&json!({ "pattern": "(?<=a)b" })).is_ok());
    assert!(compiled.check(&json!({})).is_err());
}

/// Definitions that each refer to the next, met in an order in which none looks deep.
fn in_a_row(count: usize, link: fn(Value) -> Value) -> Value {
    let refer = |n: usize| json!({ "$ref": format!("#/$defs/c{n}") });
    let links = (0..count).map(|n| (format!("c{n}"), link(refer(n + 1))));
    let mut definitions: serde_json::Map<String, Value> = links.collect();
    definitions.insert(format!("c{count}"), json!({ "type": "object" }));
    let starts: Vec<Value> = (0..count).rev().step_by(26).map(refer).collect();
    json!({ "$defs": definitions, "allOf": starts })
}

fn nested(levels: usize, inner: Value) -> Value {
    (0..levels).fold(inner, |inner, _| json!({ "p": inner }))
}

#[test]
fn rows_of_references_fit_the_stack_or_are_refused() {
    let child = in_a_row(400, |next| json!({ "properties": { "p": next } }));
    let schema = Schema::compile(&child).unwrap();
    assert_eq!(schema.check(&nested(120, json!({}))), Ok(()));
    assert!(schema.check(&nested(390, json!(5))).is_err());
    let here = in_a_row(100, |next| json!({ "allOf": [next] }));
    assert_eq!(Schema::compile(&here).unwrap_err(), Error::TooDeep);

    // As deep on every value as may be, and coming back.
    let again = (0..28)
        .fold(json!({ "properties": { "p": { "$ref": "#" } } }), |inner, _| json!({ "allOf": [inner] }));
    let schema = Schema::compile(&again).unwrap();
    assert_eq!(schema.check(&nested(12, json!({}))), Ok(()));
    assert!(schema.check(&nested(100, json!({}))).unwrap_err()[0].message.contains("nested too deep"));
    let with_end = json!({ "allOf": [again["allOf"][0], { "properties": { "z": { "type": "string" } } }] });
    let schema = Schema::compile(&with_end).unwrap();
    assert!(schema.check(&nested(12, json!({ "z": 1 }))).is_err());
}

#[test]
fn circles_in_a_row_multiply_too() {
    let to = |n: usize| json!({ "$ref": format!("#/$defs/a{n}") });
    let circles = (0..30).map(|n| {
        let both = json!({ "allOf": [to(n), to((n + 1).min(29))] });
        (format!("a{n}"), json!({ "properties": { "p": both, "z": { "type": "string" } } }))
    });
    let schema = json!({ "allOf": [to(29), to(20), to(10), to(0)], "$defs": circles.collect::<serde_json::Map<_, _>>() });
    let compiled = Schema::compile(&schema).unwrap();
    let bad = |levels: usize| compiled.check(&nested(levels, json!({ "z": 1 }))).unwrap_err();
    assert_eq!(
        bad(3),
        [Violation { field: "/p/p/p/z".into(), message: bad(3)[0].message.clone() }],
        "said once"
    );
    assert!(bad(34)[0].message.contains("nested too deep"), "{:?}", bad(34));
}

#[test]
fn what_is_wrong_is_not_listed_where_that_would_fill_the_memory() {
    let many: Vec<Value> = (0..500).map(|n| json!({ "minLength": n + 2, "type": "string" })).collect();
    let compiled = Schema::compile(&json!({ "items": { "allOf": many } })).unwrap();
    let list = |items: usize| Value::Array(vec![json!("a"); items]);
    assert!(compiled.check(&list(3)).unwrap_err().len() > 10);
    assert!(compiled.check(&list(1000)).unwrap_err()[0].message.contains("too many alternatives"));
    assert!(compiled.check(&list(100_000)).unwrap_err()[0].message.contains("too large"));
}

#[test]
fn a_part_with_an_id_of_its_own_hides_no_references() {
    let bomb = json!({ "$id": "http://x.example/b", "$ref": "#/$defs/d0", "$defs": { "d0": { "allOf": [{ "$ref": "#/$defs/d0" }] } } });
    let refused = |schema: &Value| Schema::compile(schema).unwrap_err();
    let hidden = json!({ "$ref": "#/$defs/bomb", "$defs": { "d0": {}, "bomb": bomb } });
    assert!(matches!(refused(&hidden), Error::EmbeddedId { id } if id == "http://x.example/b"));
    let in_data = json!({ "$ref": "#/default/bomb", "$defs": { "d0": {} }, "default": { "bomb": bomb } });
    assert!(matches!(refused(&in_data), Error::EmbeddedId { .. }));
    let old = json!({ "$schema": "http://json-schema.org/draft-04/schema#", "properties": { "a": { "id": "http://x.example/b", "$ref": "#/definitions/d0" } }, "definitions": { "d0": {} } });
    assert!(matches!(refused(&old), Error::EmbeddedId { .. }));
    let twice = json!({ "$dynamicRef": "#a", "$defs": { "x": { "$dynamicAnchor": "a" }, "y": { "$dynamicAnchor": "a" } } });
    assert_eq!(refused(&twice), Error::DoubleAnchor { anchor: "a".into() });

    // A property of that name, data, and ids without references are what they look like.
    let named = json!({ "properties": { "$id": { "$ref": "#/$defs/t" }, "default": { "$ref": "#/$defs/t" } },
        "default": { "$id": "x" }, "enum": [{ "$id": "x" }], "$defs": { "t": { "type": "string" } } });
    assert!(Schema::compile(&named).is_ok());
    assert!(Schema::compile(&json!({ "properties": { "a": { "$id": "A", "type": "string" } } })).is_ok());
}

#[test]
fn a_long_pattern_is_not_even_read() {
    let long =
        json!({ "properties": { "a": { "pattern": format!("(?i)[{}]", "\\pL\\pN".repeat(20_000)) } } });
    let compiled = Schema::compile(&long).unwrap();
    assert!(compiled.unenforced()[0].ends_with("(is too long)"));
    assert!(compiled.check(&json!({ "a": "-" })).is_ok());
}

/// Ends in seconds, or else not at all.
#[test]
fn definitions_that_all_apply_each_other_to_every_child_are_checked_or_refused() {
    for count in [3, 5] {
        let all: Vec<Value> = (0..count).map(|n| json!({ "$ref": format!("#/$defs/a{n}") })).collect();
        for extra in ["additionalProperties", "unevaluatedProperties", "unevaluatedItems"] {
            let each = json!({ "properties": { "p": { "allOf": all } }, "items": { "anyOf": all }, extra: all[0],
                "anyOf": [{ "properties": { "q": all[0] } }] });
            let definitions: serde_json::Map<String, Value> =
                (0..count).map(|n| (format!("a{n}"), each.clone())).collect();
            let Ok(compiled) = Schema::compile(&json!({ "allOf": all, "$defs": definitions })) else {
                continue;
            };
            drop(compiled.check(&nested(60, json!({}))));
            drop(compiled.check(&nested(3, Value::Array(vec![nested(20, json!({})); 1000]))));
        }
    }
}
