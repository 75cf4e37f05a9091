//! Literal and regex search.

use super::*;
use proptest::prelude::*;

#[test]
fn lines_are_found_by_text_in_the_order_of_path_and_line() {
    let bench = Bench::new();
    bench.put("b.rs", "one\nlet x = a.b(c);\nthree a.b(c) a.b(c)\n");
    bench.put("a/z.rs", "a.b(c)\r\n");
    bench.put("a.rs", "axb(c)\n");
    assert_eq!(bench.literal("a.b(c)"), ["a/z.rs:1", "b.rs:2", "b.rs:3"]);
    let answer = bench.search(json!({ "query": "a.b(c)", "mode": "literal" }));
    let expected = json!({ "path": "b.rs", "line": 2, "column": 9, "text": "let x = a.b(c);" });
    assert_eq!(answer["matches"][1], expected);
    assert_eq!(answer["matches"][0]["text"], "a.b(c)");
    assert_eq!((&answer["filesSearched"], answer.get("truncated")), (&json!(3), None));
    assert_eq!(
        bench.places(json!({ "query": r"a.b\(c\)\s*$", "mode": "regex" })),
        ["a.rs:1", "a/z.rs:1", "b.rs:3"]
    );
    assert_eq!(bench.places(json!({ "query": r"^\w+$", "mode": "regex" })), ["b.rs:1"]);
}

#[test]
fn case_differs_once_the_query_has_a_capital_or_the_call_says_so() {
    let bench = Bench::new();
    bench.put("a", "Word\nword\nÄrger\n");
    assert_eq!(bench.literal("word"), ["a:1", "a:2"]);
    assert_eq!(bench.literal("Word"), ["a:1"]);
    assert_eq!(bench.literal("ärger"), ["a:3"]);
    let said = |query: &str, case: bool| {
        bench.places(json!({ "query": query, "mode": "literal", "caseSensitive": case }))
    };
    assert_eq!(said("word", true), ["a:2"]);
    assert_eq!(said("WORD", false), ["a:1", "a:2"]);
}

#[test]
fn paths_and_globs_narrow_a_search() {
    let bench = Bench::new();
    for path in ["src/a.rs", "src/deep/b.rs", "src/c.ts", "top.rs", "srcs/d.rs"] {
        bench.put(path, "needle in code\n");
    }
    for mode in ["literal", "ranked"] {
        let find = |more: Value| {
            let mut arguments = json!({ "query": "needle", "mode": mode });
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut found = paths(&bench.search(arguments));
            found.sort();
            found
        };
        assert_eq!(find(json!({ "glob": "*.rs" })), ["src/a.rs", "src/deep/b.rs", "srcs/d.rs", "top.rs"]);
        assert_eq!(find(json!({ "glob": "src/*.rs" })), ["src/a.rs"]);
        assert_eq!(find(json!({ "glob": ["*.ts", "/top.rs"] })), ["src/c.ts", "top.rs"]);
        assert_eq!(find(json!({ "glob": ["*.{rs,ts}", "!src/**"] })), ["srcs/d.rs", "top.rs"]);
        assert_eq!(find(json!({ "path": "src" })), ["src/a.rs", "src/c.ts", "src/deep/b.rs"]);
        assert_eq!(find(json!({ "path": "./src/deep/../deep/" })), ["src/deep/b.rs"]);
        assert_eq!(find(json!({ "path": "src/a.rs" })), ["src/a.rs"]);
        assert_eq!(find(json!({ "path": "src", "glob": "*.ts" })), ["src/c.ts"]);
        assert!(find(json!({ "glob": "*.py" })).is_empty());
    }
}

#[test]
fn what_git_ignores_is_left_out() {
    let bench = Bench::new();
    fs::create_dir_all(bench.ws(".git/info")).unwrap();
    bench.put(".git/config", "needle");
    bench.put(".git/info/exclude", "excluded.txt\n");
    bench.put(".gitignore", "*.log\n/build/\n!keep.log\n# needle\ntarget\n");
    bench.put("sub/.gitignore", "local.txt\n!sub.log\n");
    bench.put("sub/.ignore", "quiet.txt\n");
    for path in [
        "a.log",
        "keep.log",
        "build/x.txt",
        "sub/build/x.txt",
        "excluded.txt",
        "sub/local.txt",
        "local.txt",
        "sub/sub.log",
        "sub/other.log",
        "sub/quiet.txt",
        "target/x.txt",
        ".hidden",
        ".dir/x.txt",
        "sub/excluded.txt",
    ] {
        bench.put(path, "needle\n");
    }
    // Another repository within: what git says outside does not count there.
    fs::create_dir_all(bench.ws("vendored/.git")).unwrap();
    bench.put("vendored/x.log", "needle\n");
    let expected = ["keep.log:1", "local.txt:1", "sub/build/x.txt:1", "sub/sub.log:1", "vendored/x.log:1"];
    assert_eq!(bench.literal("needle"), expected);
    let mut ranked = bench.ranked("needle");
    ranked.sort();
    assert_eq!(ranked, expected.map(|place| place.trim_end_matches(":1").to_owned()));
    // Rules of folders above count where the search begins below them.
    assert_eq!(
        bench.places(json!({ "query": "needle", "mode": "literal", "path": "sub" })),
        ["sub/build/x.txt:1", "sub/sub.log:1"]
    );
}

#[test]
fn an_answer_is_cut_at_the_same_place_every_time() {
    let bench = Bench::new();
    for n in 0..300 {
        bench.put(&format!("d{}/f{n:03}.txt", n % 7), "hit\n".repeat(1 + n % 5));
    }
    let all = bench.places(json!({ "query": "hit", "mode": "literal", "maxResults": 1000 }));
    assert_eq!(all.len(), 900);
    assert!(all.is_sorted_by_key(|place| {
        let (path, line) = place.split_once(':').unwrap();
        (path.to_owned(), line.parse::<u32>().unwrap())
    }));
    for most in [1, 2, 10, 100, 899] {
        let arguments = json!({ "query": "hit", "mode": "literal", "maxResults": most });
        let answer = bench.search(arguments.clone());
        assert_eq!(answer["truncated"], true);
        assert_eq!(bench.places(arguments), all[..most]);
    }
    let answer = bench.search(json!({ "query": "hit", "mode": "literal", "maxResults": 900 }));
    assert_eq!((answer.get("truncated"), &answer["filesSearched"]), (None, &json!(300)));
}

#[test]
fn lines_around_a_match_are_shown() {
    let bench = Bench::new();
    bench.put("a", "1\n2\n3 x\n4\n5 x\n6\n7\n8\n");
    let answer = bench.search(json!({ "query": "x", "mode": "literal", "context": 2 }));
    let around = |n: usize| (answer["matches"][n]["before"].clone(), answer["matches"][n]["after"].clone());
    assert_eq!(around(0), (json!(["1", "2"]), json!(["4", "5 x"])));
    assert_eq!(around(1), (json!(["3 x", "4"]), json!(["6", "7"])));
    // A match that is left out still belongs to the lines after the last one that is not.
    let answer = bench.search(json!({ "query": "x", "mode": "literal", "context": 3, "maxResults": 1 }));
    assert_eq!(
        answer["matches"],
        json!([
            { "path": "a", "line": 3, "column": 3, "text": "3 x", "before": ["1", "2"], "after": ["4", "5 x", "6"] }
        ])
    );
    let answer = bench.search(json!({ "query": "1", "mode": "literal", "context": 1 }));
    assert_eq!((answer["matches"][0].get("before"), &answer["matches"][0]["after"]), (None, &json!(["2"])));
}

#[test]
fn binary_files_huge_lines_and_broken_text_do_no_harm() {
    let bench = Bench::new();
    bench.put("binary", b"needle\n\0\x01needle\n");
    bench.put("late", [b"needle\n".repeat(50_000), vec![0], b"needle\n".to_vec()].concat());
    bench.put("latin", b"na\xefve needle\n");
    bench.put(
        "wide.txt",
        [0xff, 0xfe]
            .into_iter()
            .chain("needle ä\n".encode_utf16().flat_map(u16::to_le_bytes))
            .collect::<Vec<u8>>(),
    );
    bench.put("long.js", format!("{}needle{}", "x".repeat(3_000_000), "y".repeat(3_000_000)));
    bench.put("endless", "z".repeat(9 * 1024 * 1024));
    bench.put("empty", "");
    let answer =
        bench.search(json!({ "query": "needle", "mode": "literal", "maxResults": 1000, "glob": "!late" }));
    assert_eq!(paths(&answer), ["latin", "long.js", "wide.txt"]);
    assert_eq!(answer["matches"][0]["text"], "na\u{fffd}ve needle");
    assert_eq!(answer["matches"][2]["text"], "needle ä");
    let long = answer["matches"][1]["text"].as_str().unwrap();
    assert!(long.len() < 600 && long.contains("xneedley"), "{long}");
    assert_eq!(answer["matches"][1]["column"], 3_000_001);
    assert_eq!(answer["skipped"], 1);
    // The file looks like text until enough was found in it, so only a search that reads all of it can tell.
    assert!(bench.places(json!({ "query": "needle", "mode": "literal", "glob": "late" })).len() == 100);
}

#[test]
fn a_large_expression_is_searched_for_in_shorter_lines_only() {
    let bench = Bench::new();
    bench.put("long", format!("{}c", "ab".repeat(1_500_000)));
    bench.put("short", format!("{}c\n", "ab".repeat(3000)));
    for (query, found, skipped) in
        [("[ab]c", vec!["long", "short"], 0), ("[ab]{2000}[c-z]", vec!["short"], 1)]
    {
        let answer = bench.search(json!({ "query": query, "mode": "regex" }));
        assert_eq!(paths(&answer), found, "{query}");
        assert_eq!(answer["skipped"].as_u64().unwrap_or(0), skipped, "{query}");
    }
}

#[test]
fn an_expression_that_is_a_trap_elsewhere_takes_no_time_here() {
    let bench = Bench::new();
    bench.put("a", format!("{}!\n", "a".repeat(200_000)));
    for trap in ["(a+)+$", "(a|aa)+$", "(.*a){20}$", "^(a?){50}a{50}$"] {
        assert!(bench.places(json!({ "query": trap, "mode": "regex" })).is_empty(), "{trap}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_literal_search_finds_what_a_plain_look_at_every_line_finds(
        files in proptest::collection::btree_map("[a-d]{1,2}(/[a-d]{1,2})?\\.txt", "[abAB. *(\\[é\n]{0,80}", 0..12),
        query in "[abAB.*(\\[é]{1,3}",
        most in 1usize..30,
    ) {
        let bench = Bench::new();
        let mut expected = Vec::new();
        let sensitive = query.chars().any(char::is_uppercase);
        let fold = |text: &str| if sensitive { text.to_owned() } else { text.to_lowercase() };
        for (path, text) in &files {
            bench.put(path, text);
            for (n, line) in text.split('\n').enumerate() {
                if fold(line).contains(&fold(&query)) {
                    expected.push(format!("{path}:{}", n + 1));
                }
            }
        }
        let arguments = json!({ "query": query, "mode": "literal", "maxResults": most });
        let answer = bench.search(arguments.clone());
        prop_assert_eq!(answer.get("truncated").is_some(), expected.len() > most);
        expected.truncate(most);
        prop_assert_eq!(bench.places(arguments), expected);
    }
}
