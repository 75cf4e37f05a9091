//! Kinds that a property tells apart: every value that the API may take is let through, and one tool does not depend on another.

use super::*;

/// A name for the schema of that name.
fn at(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn string() -> Value {
    json!({"type": "string"})
}

/// A base that `kind` tells the kinds of, by this mapping; `more` is said of it besides.
fn pet(mapping: Value, kind: Value, more: Value) -> Value {
    let mut pet = json!({
        "type": "object", "required": ["kind"], "properties": {"kind": kind, "name": string()},
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    });
    pet.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    pet
}

fn derived(base: &str, properties: Value) -> Value {
    json!({"allOf": [at(base), {"type": "object", "properties": properties}]})
}

fn both() -> Value {
    json!({"cat": "#/components/schemas/Cat", "dog": "Dog"})
}

/// These schemas with a cat and a dog, unless they have their own.
fn family(mut schemas: Value) -> Value {
    let all = schemas.as_object_mut().unwrap();
    for (name, own) in [("Cat", "claws"), ("Dog", "bark")] {
        all.entry(name).or_insert_with(|| {
            let mut cat = derived("Pet", json!({own: string()}));
            cat["allOf"][1]["required"] = json!([own]);
            cat
        });
    }
    schemas
}

#[track_caller]
fn with_body(version: &str, body: &Value, schemas: &Value) -> Operation {
    only(&json!({
        "openapi": version, "info": {}, "components": {"schemas": schemas},
        "paths": {"/a": {"post": {"requestBody": {
            "required": true, "content": {"application/json": {"schema": body}}}}}},
    }))
}

/// A discriminator that this is said of, and what its kinds say of it.
fn discriminated_by(kind: Value) -> Value {
    family(json!({"Pet": pet(both(), kind, json!({})), "K": {"type": "integer"}, "T": string(),
        "E": {"type": "string", "enum": ["cat", "dog", "dog"]}}))
}

type Case = (&'static str, &'static str, Value, Value, Vec<Value>);

/// What was refused once because of the property: the version, the body, the schemas, and what has to be taken.
fn by_property() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for kind in [
        json!({"allOf": [at("K")]}),
        json!({"enum": [1, 2]}),
        json!({"type": ["integer", "string"]}),
        json!({"anyOf": [at("T"), at("K")]}),
        json!({"const": 1}),
        at("K"),
    ] {
        cases.push((
            "no text",
            "3.1.0",
            at("Pet"),
            discriminated_by(kind),
            vec![json!({"kind": 1, "claws": "x"})],
        ));
    }
    let mut own = discriminated_by(json!({}));
    own["Cat"]["allOf"][1]["properties"]["kind"] = at("K");
    cases.push((
        "no text in a kind",
        "3.0.3",
        at("Pet"),
        own.clone(),
        vec![json!({"kind": 1, "claws": "x"})],
    ));
    own["Pet"] = json!({"oneOf": [at("Cat"), at("Dog")], "discriminator": {"propertyName": "kind", "mapping": both()}});
    own["Cat"] = json!({"type": "object", "properties": {"kind": at("K"), "claws": string()}});
    own["Dog"] = json!({"type": "object", "required": ["bark"], "properties": {"bark": string()}});
    cases.push((
        "no text in an alternative",
        "3.0.3",
        at("Pet"),
        own,
        vec![json!({"kind": 1, "claws": "x"})],
    ));
    let mixed = discriminated_by(json!({"enum": ["cat", 1]}));
    cases.push(("mixed values", "3.0.3", at("Pet"), mixed, vec![json!({"kind": 1}), json!({"kind": "cat"})]));
    for (version, kind) in [
        ("3.1.0", json!({"enum": ["cat", "dog", null]})),
        ("3.1.0", json!({"type": ["string", "null"]})),
        ("3.0.3", json!({"type": "string", "nullable": true, "enum": ["cat", "dog"]})),
        ("3.0.3", json!({"nullable": true, "allOf": [at("T")]})),
    ] {
        cases.push((
            "null values",
            version,
            at("Pet"),
            discriminated_by(kind),
            vec![json!({"kind": null, "wings": 2})],
        ));
    }
    cases
}

/// The same because of what inherits from what.
fn by_lineage() -> Vec<Case> {
    let plain = || family(json!({"Pet": pet(both(), string(), json!({}))}));
    let cat = || json!({"kind": "cat", "name": "n", "claws": "x"});
    let mut cases: Vec<Case> = Vec::new();
    let claimed = |name: &str| json!({"kind": {"type": "string", "enum": ["cat"]}, name: string()});
    let mut saved = plain();
    saved["Cat"] = derived("Pet", claimed("claws"));
    saved["SavedCat"] = derived("Cat", claimed("id"));
    saved["SavedCat"]["allOf"][1]["required"] = json!(["id"]);
    for body in ["Cat", "Pet"] {
        cases.push(("claimed twice", "3.0.3", at(body), saved.clone(), vec![cat()]));
    }
    for (version, more) in
        [("3.1.0", json!({"type": ["object", "null"]})), ("3.0.3", json!({"nullable": true}))]
    {
        let schemas = family(json!({"Pet": pet(both(), string(), more)}));
        cases.push(("null", version, at("Pet"), schemas, vec![Value::Null, cat()]));
    }
    let implicit = vec![json!({"kind": "Cat", "claws": "x"}), json!({"kind": "cow", "milk": 1})];
    cases.push(("implicit names", "3.0.3", at("Pet"), plain(), implicit));
    let mut wrapped = plain();
    wrapped["PetInput"] = json!({"allOf": [at("Pet")]});
    wrapped["MorePetInput"] = derived("Pet", json!({"owner": string()}));
    wrapped["ShutPetInput"] = json!({"allOf": [at("Pet")], "additionalProperties": false, "properties": {
        "kind": string(), "name": string(), "owner": string()}});
    wrapped["Again"] = json!({"allOf": [at("PetInput")]});
    for body in ["PetInput", "MorePetInput", "ShutPetInput", "Again"] {
        cases.push(("a wrapper", "3.0.3", at(body), wrapped.clone(), vec![cat()]));
        cases.push(("a wrapper", "3.0.3", json!({"allOf": [at(body)]}), wrapped.clone(), vec![cat()]));
    }
    let mut shut = plain();
    shut["Fel"] = json!({"allOf": [at("Pet")], "additionalProperties": false, "type": "object",
        "properties": {"kind": string(), "name": string(), "whiskers": string()}});
    shut["Cat"] = derived("Fel", json!({"claws": string()}));
    let other = json!({"kind": "other", "name": "n", "wings": 2});
    cases.push(("closed on the way", "3.0.3", at("Fel"), shut, vec![cat(), other.clone()]));
    let closed = json!({"type": "object", "additionalProperties": false, "properties": {"kind": string()}});
    let above = family(json!({"Closed": closed, "Pet": {"allOf": [at("Closed")], "discriminator": {
        "propertyName": "kind", "mapping": both()}}}));
    cases.push(("closed above", "3.0.3", at("Pet"), above, vec![cat(), other]));
    let mut closed = plain();
    for (name, own) in [("Cat", "claws"), ("Dog", "bark")] {
        closed[name]["additionalProperties"] = json!(false);
        closed[name]["properties"] = json!({"kind": string(), "name": string(), own: string()});
        closed[name]["allOf"] = json!([at("Pet")]);
    }
    let owned = json!({"$ref": "#/components/schemas/Pet", "properties": {"owner": string()}});
    let value = json!({"kind": "cat", "claws": "x", "owner": "o"});
    cases.push(("beside a reference", "3.1.0", owned, closed, vec![value]));
    cases
}

#[test]
fn rst_2_kinds_refuse_nothing() {
    for (what, version, body, schemas, values) in by_property().into_iter().chain(by_lineage()) {
        let operation = with_body(version, &body, &schemas);
        let told = operation.input_schema.value();
        let schema = Schema::compile(&told).unwrap();
        assert_eq!(arguments(&operation), ["body!"], "{what}");
        for value in values {
            assert!(schema.check(&json!({"body": value})).is_ok(), "{what}: {value} should fit {told}");
        }
        assert!(schema.check(&json!({"body": 5})).is_err(), "{what}: {told}");
    }
}

/// Operations with the same body, of which one has many other arguments.
fn two(first: &str, second: &str) -> Value {
    let words: Vec<String> = (0..30).map(|n| format!("a-rather-long-value-{n}")).collect();
    let many: Vec<Value> = (0..120)
        .map(|n| json!({"in": "query", "name": format!("q{n}"), "schema": {"type": "string", "enum": words}}))
        .collect();
    let body = json!({"required": true, "content": {"application/json": {"schema": at("Pet")}}});
    let mut paths = json!({});
    for name in [first, second] {
        let parameters = if name == "a" { many.clone() } else { Vec::new() };
        let operation = json!({"operationId": name, "requestBody": body, "parameters": parameters});
        paths[format!("/{name}")] = json!({"post": operation});
    }
    let schemas = family(json!({"Pet": pet(both(), string(), json!({}))}));
    json!({"openapi": "3.0.3", "info": {}, "servers": [{"url": "https://a.example"}], "components": {"schemas": schemas}, "paths": paths})
}

#[test]
fn rst_3_a_tool_is_the_same_beside_any_others() {
    let tool = |document: &Value, choice: &ImportOptions, name: &str| {
        let location = Url::parse("https://docs.example.com/api.json").unwrap();
        let bundle = Bundle::open(location, document.to_string().as_bytes()).unwrap();
        let out = import(&bundle, choice);
        out.operations.into_iter().find(|one| one.name == name).unwrap().input_schema.value()
    };
    let all = ImportOptions::default();
    let alone = |name: &str| ImportOptions {
        include: Some(vec![gantry_core::pattern::Pattern::parse(name).unwrap()]),
        ..ImportOptions::default()
    };
    for name in ["a", "b"] {
        let told = tool(&two("a", "b"), &all, name);
        assert_eq!(told, tool(&two("b", "a"), &all, name));
        assert_eq!(told, tool(&two("a", "b"), &alone(name), name));
        let description = told["properties"]["body"]["description"].as_str();
        assert_eq!(description, Some("`kind` tells the kind: cat, dog."));
    }
}
