//! Documents that mean harm.

use super::{FILE, WEB, found, lost, open, referring, refused, url, wanted};
use crate::openapi::document::Bundle;
use crate::openapi::limits::{BUNDLE_BYTES, BUNDLE_NODES, DOCUMENT_BYTES, DOCUMENTS};
use proptest::prelude::*;
use serde_json::json;

const OUT: &str = "leads out of the folder of the specification";

#[test]
fn rst_2_no_reference_of_a_file_leaves_its_folder() {
    let cases = [
        ("../../etc/passwd", OUT),
        ("../x.yaml", OUT),
        ("../api2/x.yaml", OUT),
        ("../apix", OUT),
        ("%2e%2e/x.yaml", OUT),
        ("a/%2E%2e/.%2e/x.yaml", OUT),
        ("..%2fx.yaml", OUT),
        ("a%2f..%2f..%2f..%2fetc%2fpasswd", OUT),
        ("a/..%5c..%5cx.yaml", OUT),
        ("..\\..\\etc\\passwd", OUT),
        ("a%00.yaml", OUT),
        ("/etc/passwd", OUT),
        ("file:///etc/passwd", OUT),
        ("file:/etc/passwd", OUT),
        ("FILE:///specs/other.yaml", OUT),
        ("//host/specs/api/x.yaml", "leads to another machine"),
        ("file://host/specs/api/x.yaml", "leads to another machine"),
        ("\\\\host\\specs\\api\\x.yaml", "leads to another machine"),
        ("x.yaml?y", "has a query, which files do not have"),
        ("sub/", "leads to a folder"),
        (".", "leads to a folder"),
        ("http://127.0.0.1/x.yaml", OUT),
        ("https://example.com/x.yaml", OUT),
        ("data:application/json,{}", OUT),
        ("javascript:x", OUT),
        ("http://[", "is no address"),
    ];
    for (reference, reason) in cases {
        let bundle = referring(FILE, &[reference, &format!("{reference}#/a")]);
        assert_eq!(wanted(&bundle), [""; 0], "{reference}");
        let outcome = lost(&bundle, 0, reference);
        assert!(outcome.ends_with(reason), "{reference}: {outcome}");
    }
}

#[test]
fn rst_2_no_reference_of_a_server_leads_elsewhere() {
    let other = "leads to another server";
    let cases = [
        ("https://evil.example.com/x.json", other),
        ("http://api.example.com/x.json", other),
        ("https://api.example.com:8443/x.json", other),
        ("//169.254.169.254/latest", other),
        ("https://api.example.com@evil.example/x.json", other),
        ("https://api.example.com.evil.example/x", other),
        ("blob:https://api.example.com/x", other),
        ("ftp://api.example.com/x", other),
        ("data:application/json,{}", other),
        ("file:///etc/passwd", "leads to a file, but the specification came from a server"),
        ("https://u:p@api.example.com/x.json", "has credentials of its own"),
    ];
    for (reference, reason) in cases {
        let bundle = referring(WEB, &[reference]);
        assert_eq!(wanted(&bundle), [""; 0], "{reference}");
        let outcome = lost(&bundle, 0, reference);
        assert!(outcome.ends_with(reason), "{reference}: {outcome}");
    }
}

#[test]
fn another_file_is_held_to_the_folder_of_the_root() {
    let mut bundle = referring(FILE, &["a/b.yaml"]);
    bundle.add(&url("file:///specs/api/a/b.yaml"), Ok(b"[{$ref: ../../x.yaml}, {$ref: ../c.yaml}]"));
    assert_eq!(wanted(&bundle), ["file:///specs/api/c.yaml"]);
    assert_eq!(lost(&bundle, 1, "../../x.yaml"), format!("the reference \"../../x.yaml\" in a/b.yaml {OUT}"));
}

#[test]
fn references_in_circles_end() {
    let text = r##"{"openapi": "3.0.0", "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}, "self": {"$ref": "#/self"}, "f": {"$ref": "b.yaml"}}"##;
    let mut bundle = open(FILE, text);
    bundle.add(&url("file:///specs/api/b.yaml"), Ok(b"$ref: openapi.yaml#/f"));
    let endless = "leads from reference to reference without end";
    for reference in ["#/a", "#/self", "#/f"] {
        let outcome = bundle.find(0, reference).unwrap().resolved().unwrap_err();
        assert!(outcome.ends_with(endless), "{outcome}");
    }
    assert_eq!(found(&bundle, 0, "#/a"), json!({"$ref": "#/b"}));
}

#[test]
fn only_so_many_documents_are_wanted() {
    let names: Vec<String> = (0..50_000).map(|index| format!("{index}.yaml")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bundle = referring(FILE, &names);
    // The root is one of them.
    assert_eq!(bundle.wanted().len(), DOCUMENTS - 1);
    assert!(lost(&bundle, 0, "4000.yaml").ends_with("leads to one document more than the 200 that are read"));
}

#[test]
fn documents_may_have_only_so_many_bytes_together() {
    let mut bundle = referring(FILE, &["a.yaml", "b.yaml", "c.yaml"]);
    // As if there had been others.
    bundle.bytes = BUNDLE_BYTES - 10;
    bundle.add(&url("file:///specs/api/a.yaml"), Ok(b"a: 1"));
    bundle.add(&url("file:///specs/api/b.yaml"), Ok(b"b: 12345"));
    bundle.add(&url("file:///specs/api/c.yaml"), Ok(b"c: 123"));
    assert_eq!(found(&bundle, 0, "a.yaml#/a"), json!(1));
    let outcome = lost(&bundle, 0, "b.yaml");
    assert!(
        outcome.ends_with(&format!("all documents of the specification have more than {BUNDLE_BYTES} bytes"))
    );
    assert_eq!(found(&bundle, 0, "c.yaml#/c"), json!(123));
}

#[test]
fn rst_2_a_hundred_megabytes_are_refused() {
    let text = vec![b' '; 100_000_000];
    assert_eq!(refused(&text), format!("it has more than {DOCUMENT_BYTES} bytes"));
    let mut bundle = referring(FILE, &["a.yaml"]);
    bundle.add(&url("file:///specs/api/a.yaml"), Ok(&text));
    assert!(lost(&bundle, 0, "a.yaml").contains("bytes"));
}

#[test]
fn more_values_than_memory_should_hold_are_refused_before_they_are_made() {
    let text = format!("{{\"openapi\": \"3.0.0\", \"x\": [{}1]}}", "[],".repeat(9_000_000));
    assert!(refused(text.as_bytes()).ends_with(&format!("it has more than {BUNDLE_NODES} values")));
    // Within texts, nothing counts.
    let text = format!("{{\"openapi\": \"3.0.0\", \"x\": \"\\\"{}\"}}", "[{,".repeat(3_000_000));
    assert!(Bundle::open(url(FILE), text.as_bytes()).is_ok());
}

#[test]
fn rst_2_billion_laughs_are_refused() {
    let mut text = "openapi: 3.0.0\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        text += &format!("a{level}: &a{level} [{}]\n", format!("*a{}, ", level - 1).repeat(10));
    }
    let outcome = refused(text.as_bytes());
    let clear = "it cannot be read as JSON or YAML: anchors and aliases repeat more than 12 MiB";
    assert!(outcome.starts_with(clear), "{outcome}");
}

#[test]
fn deep_nesting_is_refused() {
    for deep in ["[", "{\"a\":", "{a: ", "- ", "a: [", "[{\"$ref\": "] {
        assert!(refused(deep.repeat(100_000).as_bytes()).starts_with("it cannot be read"), "{deep}");
    }
    let closed = format!("{{\"openapi\": \"3.0.0\", \"x\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(refused(closed.as_bytes()).contains("recursion limit exceeded"));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let outcome = refused(b"openapi: 3.0.0\nx: \xff\xfe");
    assert_eq!(outcome, "it cannot be read as JSON or YAML: it is not UTF-8 text, from byte 18 on");
    assert!(refused(b"\xff\xfeo\0p\0").contains("UTF-16"));
    for text in
        ["\0", "\0\0\0\0", "{\0}", "openapi: 3.0.0\n\0", "a\0: b", "{\"openapi\": \"3.0.0\", \"a\0\": 1}"]
    {
        assert!(!refused(text.as_bytes()).is_empty(), "{text:?}");
    }
}

#[test]
fn a_reference_of_any_length_is_shown_in_short() {
    let bundle = referring(FILE, &[]);
    assert!(lost(&bundle, 0, &format!("#/{}", "é".repeat(100_000))).chars().count() < 300);
    assert!(lost(&bundle, 0, &"a/".repeat(100_000)).chars().count() < 300);
}

#[test]
fn a_long_text_takes_more_steps() {
    let (long, short) = ("k".repeat(64_000), "#/a");
    let own = format!("#/{long}");
    let a = json!({"$ref": own, "list": [long], "types": vec!["string"; 64_000]});
    let document = json!({"openapi": "3.0.0", "a": a, &long: {}});
    let bundle = open(FILE, &document.to_string());
    let root = bundle.root().unwrap();
    let taken = |read: &dyn Fn() -> bool| {
        bundle.set_steps(u64::MAX);
        assert!(read());
        u64::MAX - bundle.steps()
    };
    let a = root.get("a").unwrap();
    assert_eq!(taken(&|| bundle.find(0, short).is_ok()), 1);
    assert_eq!(taken(&|| root.get("none").is_none()), 1);
    for (what, steps) in [
        ("find", taken(&|| bundle.find(0, &own).is_ok())),
        ("reference", taken(&|| a.reference().is_some())),
        ("flag", taken(&|| !a.flag("$ref"))),
        ("key", taken(&|| root.get(&long).is_some())),
        ("members", taken(&|| root.members().count() == 3)),
        ("elements", taken(&|| a.get("list").unwrap().elements().count() == 1)),
        ("list", taken(&|| a.get("types").is_some())),
    ] {
        assert!((1000..=9000).contains(&steps), "{what}: {steps}");
    }
}

#[test]
fn long_addresses_and_long_paths_are_not_multiplied() {
    let long = format!("{}.yaml", "a".repeat(10_000));
    let bundle = referring(FILE, &[&long]);
    assert_eq!(wanted(&bundle), [""; 0]);
    assert!(lost(&bundle, 0, &long).ends_with("is too long"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        drop(Bundle::open(url(FILE), &bytes));
    }

    #[test]
    fn any_reference_is_followed_or_refused(reference in any::<String>(), tail in "[./%#:?@\\\\a-f0-9~]{0,40}") {
        for (location, folder) in [(FILE, "file:///specs/api/"), (WEB, "https://api.example.com/")] {
            for text in [&reference, &tail] {
                let bundle = referring(location, &[text]);
                drop(bundle.find(0, text).map(|node| node.value.is_null()));
                for place in bundle.wanted() {
                    prop_assert!(place.as_str().starts_with(folder));
                    prop_assert_eq!(place.fragment(), None);
                    if let Ok(path) = place.to_file_path() {
                        prop_assert!(path.components().all(|part| part != std::path::Component::ParentDir));
                    }
                }
            }
        }
    }
}
