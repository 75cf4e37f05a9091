//! How much of kinds is told, and what looking for them may cost.

use super::*;

#[test]
fn what_comes_back_has_no_kinds() {
    let schemas = json!({ "Pet": base(&json!("kind")), "Cat": heir("Pet", &["claws"]) });
    let bundle = named("2.0", &at("Pet"), &schemas);
    let mut output = Converter::new(Direction::Output, Detail::Full);
    let told = output.schema(spot(&bundle, "x")).unwrap().to_string();
    assert!(!told.contains("anyOf") && !told.contains("claws"), "{told}");
}

#[test]
fn kinds_in_circles_end() {
    let two = |one: &str, other: &str| with(heir(other, &[one]), "discriminator", &json!("kind"));
    let lone = |other: &str| json!({ "allOf": [at(other)], "discriminator": "kind" });
    for schemas in [
        json!({ "A": two("a", "B"), "B": two("b", "A") }),
        json!({ "A": lone("B"), "B": lone("A") }),
        json!({ "A": lone("A"), "B": heir("A", &["b"]) }),
        json!({ "A": two("a", "B"), "B": two("b", "C"), "C": two("c", "A") }),
        json!({ "A": { "discriminator": { "propertyName": "kind", "mapping": { "a": "A", "b": "B" } } }, "B": { "allOf": [at("A")] } }),
        json!({ "A": with(base(&json!("kind")), "properties", &json!({ "kind": at("A") })), "B": heir("A", &["b"]) }),
    ] {
        for version in ["2.0", "3.0.3", "3.1.0"] {
            let bundle = named(version, &at("A"), &schemas);
            for detail in DETAILS {
                let schema = compiled(whole(&bundle, detail).unwrap());
                drop(
                    Schema::compile(&schema)
                        .unwrap()
                        .check(&json!({ "x": { "kind": "B", "b": "1", "a": "1" } })),
                );
            }
            fields(spot(&bundle, "x"), Direction::Input, &mut 0).unwrap();
        }
    }
}

#[test]
fn so_many_kinds_that_nobody_reads_them_stay_untold() {
    let many = |n: usize| {
        let mut schemas: Map<String, Value> =
            (0..n).map(|n| (format!("Kind{n}"), heir("Pet", &["own"]))).collect();
        schemas.insert("Pet".to_owned(), base(&json!("kind")));
        named("2.0", &json!({ "properties": { "a": at("Pet"), "b": at("Kind0") } }), &Value::Object(schemas))
    };
    let told = |bundle: &Bundle| whole(bundle, Detail::Full).unwrap().to_string().contains("Kind1");
    assert!(told(&many(64)));
    let bundle = many(5000);
    assert!(!told(&bundle));
    check(&bundle, &[json!({ "a": { "kind": "Kind7", "what": 1 } })], &[json!({ "a": { "name": 1 } })]);
}

#[test]
fn kinds_that_are_too_large_are_left_out_before_anything_else() {
    let wide: Vec<String> = (0..200).map(|n| format!("property{n}")).collect();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    let mut schemas: Map<String, Value> = (0..30).map(|n| (format!("Kind{n}"), heir("Pet", &wide))).collect();
    schemas.insert("Pet".to_owned(), base(&json!("kind")));
    schemas.insert("Cow".to_owned(), base(&json!("kind")));
    schemas.insert("Calf".to_owned(), heir("Cow", &["milk"]));
    let schemas = Value::Object(schemas);
    let deep = json!({ "properties": { "pet": at("Pet"), "a": { "items": { "items": { "items": { "items": { "items": { "items": { "minimum": 7 } } } } } } } } });
    let bundle = named("2.0", &deep, &schemas);
    assert_eq!(whole(&bundle, Detail::Full), Err(Misfit::TooManyKinds));
    let (found, detail) = fitted(Direction::Input, 0, |detail| whole(&bundle, detail)).unwrap();
    assert_eq!(DETAILS[detail], Detail::Top);
    assert_eq!(found, whole(&bundle, Detail::Open).unwrap());
    assert!(found.to_string().contains(r#""minimum":7"#) && found.to_string().contains("name"), "{found}");
    // Of the argument itself they are told longer than of what is in it.
    let mut cow = schemas;
    cow["Cow"]["properties"]["pet"] = at("Pet");
    let bundle = named("2.0", &at("Cow"), &cow);
    let (found, detail) = fitted(Direction::Input, 0, |detail| whole(&bundle, detail)).unwrap();
    assert_eq!(DETAILS[detail], Detail::Top);
    let found = compiled(found).to_string();
    assert!(found.contains("milk") && !found.contains("property7"), "{found}");
}

#[test]
fn values_that_are_spelled_otherwise_are_counted() {
    let long =
        |letter: &str| -> Vec<String> { (0..200).map(|n| format!("{}{n:04}", letter.repeat(190))).collect() };
    let mut schemas = json!({
        "A": { "type": "string", "enum": long("a") }, "B": { "type": "string", "enum": long("b") },
        "Pet": { "type": "object", "discriminator": { "propertyName": "kind" }, "properties": { "kind": at("A") } },
    });
    for n in 0..60 {
        schemas[format!("K{n}")] = json!({ "allOf": [at("Pet"), { "properties": { "kind": at("B") } }] });
    }
    let bundle = named("3.0.3", &at("Pet"), &schemas);
    let effort = super::super::hostile::effort(&bundle, Direction::Input, Detail::Full);
    // Each kind lists 200 values, which are compared with those of the base by all their letters.
    assert!(effort > 60 * 200 * 8, "{effort}");
}

#[test]
fn heirs_are_not_looked_for_without_end() {
    // Six thousand that each inherit from all of the first hundred.
    let all: Vec<Value> = (0..100).map(|n| at(&format!("S{n}"))).collect();
    let one = json!({ "allOf": all, "discriminator": "kind" });
    let schemas: Map<String, Value> = (0..6000).map(|n| (format!("S{n}"), one.clone())).collect();
    let bundle = named("2.0", &at("S0"), &Value::Object(schemas));
    assert_eq!(bundle.heirs(bundle.find(0, "S0").unwrap()).count(), 0);
    let (_, bytes) = Direction::Input.limits();
    for detail in DETAILS {
        let effort = super::super::hostile::effort(&bundle, Direction::Input, detail);
        assert!(effort > 0 && effort < 30 * bytes, "{effort} for {detail:?}");
    }
    assert!(fitted(Direction::Input, 0, |detail| whole(&bundle, detail)).is_ok());
}

#[test]
fn a_document_without_kinds_is_not_searched() {
    let bundle = bundle("3.0.3", &json!({ "x": { "type": "object" } }));
    assert!(!bundle.is_heir(spot(&bundle, "x")));
    assert_eq!(bundle.heirs(spot(&bundle, "x")).count(), 0);
}
