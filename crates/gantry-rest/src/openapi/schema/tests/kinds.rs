//! Kinds that a base does not list itself.

mod limits;

use super::{Detail, bundle, compiled, spot, whole};
use crate::openapi::bundle::Bundle;
use crate::openapi::schema::{Converter, DETAILS, Direction, Misfit, fields, fitted};
use expect_test::{Expect, expect};
use gantry_core::schema::Schema;
use serde_json::{Map, Value, json};
use url::Url;

/// A document of this version with these schemas by name, which refer to each other by `#/d/`, and `x`.
pub(super) fn named(version: &str, x: &Value, schemas: &Value) -> Bundle {
    let old = version.starts_with('2');
    let (key, path) = if old { ("swagger", "#/definitions/") } else { ("openapi", "#/components/schemas/") };
    let mut document = json!({ key: version, "info": {}, "paths": {}, "s": { "x": x } });
    if old {
        document["definitions"] = schemas.clone();
    } else {
        document["components"] = json!({ "schemas": schemas });
    }
    let text = document.to_string().replace("#/d/", path);
    Bundle::open(Url::parse("file:///api/root.json").unwrap(), text.as_bytes()).unwrap()
}

fn at(name: &str) -> Value {
    json!({ "$ref": format!("#/d/{name}") })
}

/// What inherits from another one and has these properties, all of them texts.
fn heir(base: &str, properties: &[&str]) -> Value {
    let own: Map<String, Value> =
        properties.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    json!({ "allOf": [at(base), { "type": "object", "required": properties, "properties": own }] })
}

/// A base with a name, of which `kind` tells the kind.
fn base(discriminator: &Value) -> Value {
    json!({
        "type": "object", "required": ["kind"], "discriminator": discriminator,
        "properties": { "kind": { "type": "string" }, "name": { "type": "string" } },
    })
}

fn with(mut schema: Value, key: &str, value: &Value) -> Value {
    schema[key] = value.clone();
    schema
}

/// Whether a value fits a schema of a tool whose argument it is.
fn takes(schema: &Value, value: &Value) -> bool {
    Schema::compile(schema).unwrap().check(&json!({ "x": value })).is_ok()
}

/// A schema without what is there for kinds that nobody knows.
fn only_known(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            members.iter().map(|(key, member)| (key.clone(), only_known(member))).collect()
        }
        Value::Array(items) => {
            let known = items.iter().filter(|item| {
                item.get("description").is_none_or(|description| description != "Any other kind.")
            });
            known.map(only_known).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

/// That `good` is taken, and that `bad` is no kind that is told of. Kinds refuse nothing that would be taken without them.
#[track_caller]
fn check(bundle: &Bundle, good: &[Value], bad: &[Value]) {
    let told = compiled(whole(bundle, Detail::Full).unwrap());
    let known = compiled(only_known(&told));
    for value in bad {
        assert!(!takes(&known, value), "{value} should be none of {known}");
    }
    for detail in DETAILS {
        let schema = compiled(whole(bundle, detail).unwrap());
        for value in good {
            assert!(takes(&schema, value), "{value} should fit {schema}");
        }
    }
    let open = compiled(whole(bundle, Detail::Open).unwrap());
    for value in good.iter().chain(bad) {
        assert_eq!(takes(&told, value), takes(&open, value), "{value} with {told}");
    }
}

#[track_caller]
fn check_text(bundle: &Bundle, expected: &Expect) {
    expected.assert_eq(&compiled(whole(bundle, Detail::Full).unwrap()).to_string());
}

#[test]
fn rst_2_kinds_of_a_base_are_offered_as_alternatives() {
    let mapping = json!({ "propertyName": "kind", "mapping": { "cat": "#/d/Cat", "dog": "Dog" } });
    for (version, discriminator, [cat, dog]) in [
        ("2.0", json!("kind"), ["Cat", "Dog"]),
        ("3.0.3", json!({ "propertyName": "kind" }), ["Cat", "Dog"]),
        ("3.1.0", json!({ "propertyName": "kind" }), ["Cat", "Dog"]),
        ("3.0.3", mapping.clone(), ["cat", "dog"]),
        ("3.1.0", mapping, ["cat", "dog"]),
    ] {
        let schemas = json!({ "Pet": base(&discriminator), "Cat": heir("Pet", &["claws"]), "Dog": heir("Pet", &["bark"]) });
        for x in [at("Pet"), json!({ "allOf": [at("Pet")], "description": "Mine" })] {
            check(
                &named(version, &x, &schemas),
                &[
                    json!({ "kind": cat, "name": "a", "claws": "b" }),
                    json!({ "kind": dog, "bark": "b" }),
                    json!({ "kind": dog, "bark": "b", "more": 1 }),
                ],
                &[
                    json!({ "kind": cat, "bark": "b" }),
                    json!({ "kind": dog, "bark": 5 }),
                    json!({ "kind": dog, "bark": "b", "name": 5 }),
                    json!({ "bark": "b" }),
                    json!("a"),
                ],
            );
        }
    }
}

#[test]
fn a_base_is_told_as_its_kinds_and_as_what_it_is_itself() {
    let schemas =
        json!({ "Pet": base(&json!("kind")), "Cat": heir("Pet", &["claws"]), "Dog": heir("Pet", &["bark"]) });
    check_text(
        &named("2.0", &at("Pet"), &schemas),
        &expect![[
            r##"{"properties":{"x":{"type":"object","description":"`kind` tells the kind.","anyOf":[{"allOf":[{"$ref":"#/$defs/Pet"},{"type":"object","properties":{"claws":{"type":"string"}},"required":["claws"]}],"properties":{"kind":{"const":"Cat"}}},{"allOf":[{"$ref":"#/$defs/Pet"},{"type":"object","properties":{"bark":{"type":"string"}},"required":["bark"]}],"properties":{"kind":{"const":"Dog"}}},{"$ref":"#/$defs/Pet","description":"Any other kind."}]}},"$defs":{"Pet":{"type":"object","description":"`kind` tells the kind.","properties":{"kind":{"type":"string"},"name":{"type":"string"}},"required":["kind"]}}}"##
        ]],
    );
    let mapping = json!({ "propertyName": "kind", "mapping": { "cat": "#/d/Cat", "dog": "Dog" } });
    let schemas = with(schemas, "Pet", &base(&mapping));
    check_text(
        &named("3.0.3", &json!({ "nullable": true, "allOf": [at("Pet")] }), &schemas),
        &expect![[
            r##"{"properties":{"x":{"anyOf":[{"type":"object","description":"`kind` tells the kind: cat, dog.","anyOf":[{"allOf":[{"$ref":"#/$defs/Pet"},{"type":"object","properties":{"claws":{"type":"string"}},"required":["claws"]}],"properties":{"kind":{"const":"cat"}}},{"allOf":[{"$ref":"#/$defs/Pet"},{"type":"object","properties":{"bark":{"type":"string"}},"required":["bark"]}],"properties":{"kind":{"const":"dog"}}},{"$ref":"#/$defs/Pet","description":"Any other kind."}]},{"type":"null"}]}},"$defs":{"Pet":{"type":"object","description":"`kind` tells the kind: cat, dog.","properties":{"kind":{"type":"string"},"name":{"type":"string"}},"required":["kind"]}}}"##
        ]],
    );
}

#[test]
fn what_the_document_leaves_in_doubt_is_not_refused() {
    let kind = |discriminator: Value| json!({ "propertyName": "kind", "mapping": discriminator });
    let other = json!({ "kind": "other", "wings": 2 });
    let cat = heir("Pet", &["claws"]);
    let dog = heir("Pet", &["bark"]);
    // Names are guesses, a mapping may leave something out, lead nowhere, or be older than the API.
    for discriminator in [
        kind(json!({ "cat": "#/d/Cat", "dog": "Dog" })),
        json!({ "propertyName": "kind" }),
        kind(json!({ "cat": "Cat" })),
        kind(json!({ "cat": "#/d/Cat", "dog": "Dog", "other": "#/d/Nothing" })),
        kind(json!({ "cat": "Cat", "dog": "other.yaml#/Dog" })),
        kind(json!({ "cat": 5 })),
        kind(json!({ "cat": "" })),
        kind(json!([])),
    ] {
        let schemas = json!({ "Pet": base(&discriminator), "Cat": cat, "Dog": dog });
        check(&named("3.0.3", &at("Pet"), &schemas), std::slice::from_ref(&other), &[]);
    }
    let closed = kind(json!({ "cat": "#/d/Cat", "dog": "Dog" }));
    // What may be left out says nothing when it is.
    let loose = with(base(&closed), "required", &json!(["name"]));
    let schemas = json!({ "Pet": loose, "Cat": cat, "Dog": dog });
    check(
        &named("3.0.3", &at("Pet"), &schemas),
        &[json!({ "name": "a", "wings": 2 })],
        &[json!({ "kind": "cat" })],
    );
}

#[test]
fn the_values_that_a_property_lists_are_the_ones_that_count() {
    let listed = |values: &Value| {
        let mut pet = base(&json!({ "propertyName": "kind" }));
        pet["properties"]["kind"] = at("Kind");
        let kind = json!({ "type": "string", "enum": values });
        let schemas = json!({ "Pet": pet, "Kind": kind, "BigCat": heir("Pet", &["claws"]), "Dog": heir("Pet", &["bark"]) });
        named("3.0.3", &at("Pet"), &schemas)
    };
    check(
        &listed(&json!(["big_cat", "DOG"])),
        &[json!({ "kind": "big_cat", "claws": "c" }), json!({ "kind": "DOG", "bark": "b" })],
        &[json!({ "kind": "big_cat" }), json!({ "kind": "Dog", "bark": "b" }), json!({ "kind": "cow" })],
    );
    // One that nobody describes is what the base says.
    check(
        &listed(&json!(["dog", "cow"])),
        &[json!({ "kind": "dog", "bark": "b" }), json!({ "kind": "cow", "milk": 1 })],
        &[json!({ "kind": "dog" }), json!({ "kind": "sheep" })],
    );
    check(&listed(&json!(["a", "b"])), &[json!({ "kind": "a" })], &[json!({ "kind": "Dog" })]);
    // Two that could be meant are none.
    check(&listed(&json!(["dog", "DOG"])), &[json!({ "kind": "dog" }), json!({ "kind": "DOG" })], &[]);
}

#[test]
fn a_kind_may_say_itself_what_stands_for_it() {
    let own = |value: Value| {
        let mut cat = heir("Pet", &["claws"]);
        cat["allOf"][1]["properties"]["kind"] = value;
        cat
    };
    let stated = with(heir("Pet", &["claws"]), "x-ms-discriminator-value", &json!("#Cats.Cat"));
    for (cat, value) in [
        (own(json!({ "const": "meow" })), "meow"),
        (own(json!({ "type": "string", "enum": ["meow"] })), "meow"),
        (own(json!({ "enum": ["Cat", "Dog"] })), "Cat"),
        (own(json!({ "enum": ["meow", "purr"] })), "purr"),
        (own(json!({ "description": "The kind" })), "Cat"),
        (stated, "#Cats.Cat"),
    ] {
        let schemas = json!({ "Pet": base(&json!("kind")), "Cat": cat });
        let bundle = named("2.0", &at("Pet"), &schemas);
        check(&bundle, &[json!({ "kind": value, "claws": "c" })], &[json!({ "kind": value })]);
    }
}

#[test]
fn kinds_of_kinds_are_kinds() {
    let mut lion = heir("Cat", &["mane"]);
    let schemas = |lion: &Value| {
        json!({
            "Pet": base(&json!("kind")), "Cat": heir("Feline", &["claws"]), "Feline": heir("Pet", &[]), "Lion": lion,
            "Dog": heir("Pet", &["bark"]), "Alias": at("Pet"), "Wolf": heir("Alias", &["howl"]),
        })
    };
    let good = json!({ "kind": "Lion", "claws": "c", "mane": "m" });
    for x in ["Pet", "Alias", "Feline", "Cat"] {
        let bad = [json!({ "kind": "Lion", "claws": "c" }), json!({ "kind": "Lion", "mane": "m" })];
        check(&named("2.0", &at(x), &schemas(&lion)), std::slice::from_ref(&good), &bad);
    }
    for x in ["Pet", "Alias"] {
        let good = [json!({ "kind": "Wolf", "howl": "h" }), json!({ "kind": "Pet" })];
        check(&named("2.0", &at(x), &schemas(&lion)), &good, &[json!({ "kind": "Wolf" })]);
    }
    check(&named("2.0", &at("Lion"), &schemas(&lion)), &[good], &[json!({ "kind": "Lion", "claws": "c" })]);
    // Told apart by something else, from here on.
    lion["discriminator"] = json!("pride");
    let mut all = schemas(&lion);
    all["King"] = heir("Lion", &["crown"]);
    let king =
        |crown: &Value| json!({ "kind": "Lion", "claws": "c", "mane": "m", "pride": "King", "crown": crown });
    check(&named("2.0", &at("Pet"), &all), &[king(&json!("gold"))], &[king(&json!(5))]);
}

#[test]
fn kinds_are_told_where_a_base_is_a_field_too() {
    let mut pet = base(&json!({ "propertyName": "kind", "mapping": { "Cat": "Cat", "Dog": "Dog" } }));
    let schemas = json!({ "Pet": pet, "Cat": heir("Pet", &["claws"]), "Dog": heir("Pet", &["bark"]) });
    let x = json!({ "type": "object", "properties": { "pets": { "type": "array", "items": at("Pet") } } });
    let pets = |pet: &Value| json!({ "pets": [pet] });
    check(
        &named("3.0.3", &x, &schemas),
        &[pets(&json!({ "kind": "Cat", "claws": "c" })), pets(&json!({ "kind": "Cow" }))],
        &[pets(&json!({ "kind": "Cat" })), pets(&json!({ "kind": "Cow" })), pets(&json!(1))],
    );
    // Also where a base is in itself, told or not.
    pet["properties"]["friends"] = json!({ "type": "array", "items": at("Pet") });
    let bundle = named("3.0.3", &x, &with(schemas, "Pet", &pet));
    let (found, _) = fitted(Direction::Input, 0, |detail| whole(&bundle, detail)).unwrap();
    let dog = |friend: &Value| pets(&json!({ "kind": "Dog", "bark": "b", "friends": [friend] }));
    assert!(takes(&found, &dog(&json!({ "kind": "Cat", "claws": "c" }))), "{found}");
    assert!(!takes(&found, &dog(&json!(1))), "{found}");
}

#[test]
fn a_kind_by_mapping_need_not_inherit() {
    let closed = json!({ "type": "object", "additionalProperties": false, "required": ["claws"], "properties": { "claws": { "type": "string" } } });
    let schemas = json!({
        "Pet": base(&json!({ "propertyName": "kind", "mapping": { "cat": "#/d/Cat", "pet": "Pet" } })), "Cat": closed,
    });
    check(
        &named("3.0.3", &at("Pet"), &schemas),
        &[json!({ "kind": "cat", "claws": "c", "name": "n" }), json!({ "kind": "pet", "name": "n" })],
        &[
            json!({ "kind": "cat" }),
            json!({ "kind": "cat", "claws": "c", "name": 5 }),
            json!({ "kind": "dog" }),
        ],
    );
}

#[test]
fn a_closed_base_does_not_refuse_its_kinds() {
    let shut = |schema: Value| with(schema, "additionalProperties", &json!(false));
    let schemas = json!({ "Pet": shut(base(&json!("kind"))), "Cat": shut(heir("Pet", &["claws"])) });
    check(
        &named("2.0", &at("Pet"), &schemas),
        &[json!({ "kind": "Cat", "name": "n", "claws": "c" }), json!({ "kind": "Cow", "milk": 1 })],
        &[json!({ "kind": "Cat", "claws": 5 })],
    );
}

#[test]
fn what_tells_nothing_apart_stays_as_it_is() {
    let number = {
        let mut pet = base(&json!({ "propertyName": "kind", "mapping": { "1": "Cat" } }));
        pet["properties"]["kind"] = json!({ "type": "integer" });
        pet
    };
    let hidden = {
        let mut pet = base(&json!("kind"));
        pet["properties"]["kind"]["readOnly"] = json!(true);
        pet
    };
    for pet in
        [number, hidden, base(&json!("")), base(&json!(5)), base(&json!({})), base(&json!("x".repeat(300)))]
    {
        let schemas = json!({ "Pet": pet, "Cat": heir("Pet", &["claws"]) });
        let bundle = named("3.0.3", &at("Pet"), &schemas);
        assert_eq!(whole(&bundle, Detail::Full), whole(&bundle, Detail::Open), "{pet}");
    }
    // Nothing inherits, or what inherits is listed already.
    let pet = base(&json!("kind"));
    let listed = with(base(&json!({ "propertyName": "kind" })), "oneOf", &json!([at("Cat"), at("Dog")]));
    for schemas in [
        json!({ "Pet": pet, "Cat": { "allOf": [{ "type": "object" }] } }),
        json!({ "Pet": listed, "Cat": heir("Pet", &["claws"]), "Dog": heir("Pet", &["bark"]) }),
    ] {
        let bundle = named("3.0.3", &at("Pet"), &schemas);
        assert_eq!(whole(&bundle, Detail::Full), whole(&bundle, Detail::Open));
        check(&bundle, &[json!({ "kind": "Cat", "name": "a", "claws": "c" })], &[]);
    }
}

#[test]
fn a_property_that_nobody_declares_tells_kinds_apart_too() {
    let schemas =
        json!({ "Pet": { "type": "object", "discriminator": "kind" }, "Cat": heir("Pet", &["claws"]) });
    check(
        &named("2.0", &at("Pet"), &schemas),
        &[json!({ "kind": "Cat", "claws": "c" }), json!({ "kind": "Dog" }), json!({})],
        &[json!({ "kind": "Cat" })],
    );
}

#[test]
fn a_body_whose_kinds_are_elsewhere_is_not_taken_apart() {
    let schemas = json!({
        "Pet": base(&json!("kind")), "Cat": heir("Pet", &["claws"]), "Lion": heir("Cat", &["mane"]),
        "Plain": { "type": "object", "properties": { "a": {} } }, "More": heir("Plain", &["b"]),
    });
    let extra = json!({ "properties": { "more": {} } });
    for (x, apart) in [
        (at("Pet"), false),
        (at("Cat"), false),
        // Which may be another name of a cat, for all that is said.
        (at("Lion"), false),
        (json!({ "allOf": [at("Pet")] }), false),
        (json!({ "allOf": [at("Pet"), extra] }), false),
        (json!({ "allOf": [at("Lion"), extra] }), false),
        (at("Plain"), true),
        (at("More"), true),
    ] {
        let bundle = named("2.0", &x, &schemas);
        let found = fields(spot(&bundle, "x"), Direction::Input, &mut 0).unwrap();
        assert_eq!(found.is_some(), apart, "{x}");
    }
    let mapped = base(&json!({ "propertyName": "kind", "mapping": { "lion": "#/d/Lion" } }));
    let mut own = heir("Cat", &["mane"]);
    own["allOf"][1]["properties"]["kind"] = json!({ "type": "string", "enum": ["lion"] });
    for (key, schema, apart) in [
        ("Pet", mapped, true),
        ("Lion", own, true),
        ("Lion", with(heir("Cat", &["mane"]), "x-ms-discriminator-value", &json!("lion")), true),
        ("Cub", heir("Lion", &["small"]), false),
    ] {
        let schemas = with(schemas.clone(), key, &schema);
        for x in [at("Lion"), json!({ "allOf": [at("Lion"), extra] })] {
            let bundle = named("3.0.3", &x, &schemas);
            let found = fields(spot(&bundle, "x"), Direction::Input, &mut 0).unwrap();
            assert_eq!(found.is_some(), apart, "{key} {schema}");
        }
    }
}

#[test]
fn kinds_in_other_files_are_found() {
    let root = json!({
        "openapi": "3.0.3", "paths": {}, "s": { "x": { "$ref": "pets.yaml#/Pet" } },
        "components": { "schemas": { "Cat": { "$ref": "cat.yaml" }, "Dog": { "$ref": "pets.yaml#/Dog" } } },
    });
    let pet = base(&json!({ "propertyName": "kind", "mapping": { "cat": "cat.yaml", "wolf": "Wolf" } }));
    let heir = |base: &str, name: &str| json!({ "allOf": [{ "$ref": base }, { "required": [name], "properties": { name: { "type": "string" } } }] });
    let mut bundle =
        Bundle::open(Url::parse("file:///api/root.json").unwrap(), root.to_string().as_bytes()).unwrap();
    let pets = json!({ "Pet": pet, "Dog": heir("#/Pet", "bark"), "Wolf": heir("#/Pet", "howl") }).to_string();
    let cat = heir("pets.yaml#/Pet", "claws").to_string();
    for (name, text) in [("pets.yaml", pets), ("cat.yaml", cat)] {
        bundle.add(Url::parse(&format!("file:///api/{name}")).unwrap(), Ok(text.as_bytes()));
    }
    assert_eq!(bundle.wanted(), []);
    check(
        &bundle,
        &[json!({ "kind": "cat", "claws": "c" }), json!({ "kind": "Dog", "bark": 5 })],
        &[json!({ "kind": "cat" })],
    );
    assert!(bundle.is_heir(bundle.find(0, "cat.yaml").unwrap()));
}

#[test]
fn a_narrower_view_of_a_base_is_not_its_only_kind() {
    let only = json!({ "type": "object", "properties": { "kind": { "type": "string", "enum": ["cat"] } } });
    let mut schemas = json!({
        "Pet": base(&json!({ "propertyName": "kind" })), "Cat": heir("Pet", &["claws"]),
        "View": { "allOf": [at("Pet"), only], "additionalProperties": false },
    });
    schemas["Cat"]["x-ms-discriminator-value"] = json!("cat");
    check(
        &named("3.0.3", &at("View"), &schemas),
        &[json!({ "kind": "cat", "claws": "c" })],
        &[json!({ "kind": "dog" })],
    );
}
