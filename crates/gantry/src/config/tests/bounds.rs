//! Hostile input: it is refused in bounded time and memory, and nothing panics.

use proptest::prelude::{ProptestConfig, Strategy, any, proptest};
use proptest::sample::select;

use super::load;
use crate::config::de::Context;
use crate::config::definition_files::front_matter;
use crate::config::document::Format;
use crate::config::find;

#[track_caller]
fn refused(format: Format, text: &str) -> String {
    match load(format, text) {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn deep_nesting_is_refused() {
    let open = |text: &str, n: usize| text.repeat(n);
    for depth in [66, 500, 100_000] {
        for (format, text) in [
            (Format::Yaml, open("[", depth)),
            (Format::Yaml, format!("a: {}{}", open("[", depth), open("]", depth))),
            (Format::Yaml, open("- ", depth)),
            (Format::Yaml, (0..depth.min(600)).map(|n| format!("{}a:\n", " ".repeat(n))).collect()),
            (Format::Json, format!("{{\"a\": {}{}}}", open("[", depth), open("]", depth))),
            (Format::Json, format!("{}1{}", open("{\"a\":", depth), open("}", depth))),
            (Format::Toml, format!("a = {}{}", open("[", depth), open("]", depth))),
            (Format::Toml, format!("{}a = 1", open("a.", depth))),
            (Format::Toml, format!("[{}a]", open("a.", depth))),
            (Format::Toml, format!("a = {}1{}", open("{ a = ", depth), open("}", depth))),
        ] {
            refused(format, &text);
        }
    }
}

#[test]
fn dotted_keys_inside_deep_tables_are_refused() {
    let dotted = "a.".repeat(78);
    let text = format!("b = {}1{}", format!("{{ {dotted}a = ").repeat(78), "}".repeat(78));
    refused(Format::Toml, &text);
}

#[test]
fn exponential_aliases_are_refused() {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for n in 1..30 {
        let before = n - 1;
        text.push_str(&format!("a{n}: &a{n} [{}*a{before}]\n", format!("*a{before}, ").repeat(8)));
    }
    assert!(refused(Format::Yaml, &text).contains("anchors and aliases repeat more than 1 MiB"));
}

#[test]
fn a_chain_of_aliases_is_as_deep_as_it_looks() {
    let chain = |n: usize| {
        let mut text = "a0: &a0 [x]\n".to_owned();
        text.extend((1..n).map(|n| format!("a{n}: &a{n} [*a{}]\n", n - 1)));
        refused(Format::Yaml, &text)
    };
    assert!(chain(63).contains("unknown key"));
    assert!(chain(70).contains("nested too deeply"));
}

#[test]
fn long_text_behind_many_aliases_is_refused() {
    let text = format!("a: &a {}\nb: [{}1]\n", "x".repeat(500_000), "*a, ".repeat(1000));
    assert!(refused(Format::Yaml, &text).contains("anchors and aliases repeat more than 1 MiB"));
}

#[test]
fn problems_beyond_a_hundred_are_counted() {
    let text: String = (0..250).map(|n| format!("unknown{n}: 1\n")).collect();
    let message = refused(Format::Yaml, &text);
    assert_eq!(message.lines().count(), 101);
    assert_eq!(message.lines().last(), Some("and 150 more"));
}

#[test]
fn messages_quote_a_bounded_part_of_a_value() {
    let message = refused(Format::Yaml, &format!("{}: 1\nworkspace: \"\\e[31m\\0\"\n", "k".repeat(900)));
    assert!(message.len() < 400, "{message}");
    assert!(!message.contains('\u{1b}'));
}

/// Pieces that the formats give a meaning to, which random bytes rarely hit.
const PIECES: &[&str] = &[
    "\n",
    "  ",
    "\t",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\"",
    "'",
    "&a ",
    "*a",
    "!!str ",
    "|\n",
    ">\n",
    "? ",
    "#",
    "${",
    "${MS}",
    "$${",
    ":-",
    "<<",
    "---\n",
    "=",
    "[[",
    "0x",
    "server",
    "queues",
    "policies",
    "tools",
    "workspace",
    "1",
    "null",
    "é",
    "\u{feff}",
    "\\u",
    "\r",
    "%YAML 1.2\n",
    "1e9",
    "~",
    ".",
    "\"\"\"",
    "'''",
    "name",
    "true",
    "-",
];

fn fragments() -> impl Strategy<Value = String> {
    proptest::collection::vec(select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(text) = find::decode(bytes.clone(), std::path::Path::new("gantry.yaml")) {
            for format in [Format::Yaml, Format::Json, Format::Toml] {
                load(format, &text).err();
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        for format in [Format::Yaml, Format::Json, Format::Toml] {
            load(format, &text).err();
        }
        crate::config::dotenv::parse_dotenv(&text).err();
    }

    #[test]
    fn arbitrary_front_matter_does_not_panic(text in fragments()) {
        for text in [format!("---\n{text}\n---\n{text}"), format!("---\ndescription: {text}\n---\n")] {
            let context = Context::new(std::path::Path::new("a.md").into(), None);
            front_matter::read(&text, &|_| false, &context).err();
        }
    }

    #[test]
    fn arbitrary_syntax_does_not_panic(text in fragments()) {
        for format in [Format::Yaml, Format::Json, Format::Toml] {
            load(format, &text).err();
        }
        crate::config::dotenv::parse_dotenv(&text).err();
    }
}
