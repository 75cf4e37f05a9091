//! Ranked search: what comes first, and that every search reads the files as they are.

use super::*;

fn code(bench: &Bench) {
    bench.put(
        "src/profile.rs",
        "//! Users.\n\npub fn load_user_profile(id: u32) -> Profile {\n    todo(id)\n}\n",
    );
    bench.put(
        "src/mail.py",
        "class MailSender:\n    def sendMessage(self, user):\n        return user.profile\n",
    );
    bench.put("docs/guide.md", "# Configuration\n\nHow to configure retries and timeouts.\n");
    bench.put("src/retry.ts", "export function backoffDelay(attempt: number) {\n  return 2 ** attempt;\n}\n");
    for n in 0..30 {
        bench.put(&format!("src/filler{n}.rs"), format!("fn filler_{n}() {{ return user; }}\n"));
    }
}

#[test]
fn the_file_that_defines_what_is_asked_for_comes_first() {
    let bench = Bench::new();
    code(&bench);
    for question in
        ["loadUserProfile", "load_user_profile", "where is the profile of a user loaded", "user profile"]
    {
        let answer = bench.search(json!({ "query": question }));
        let first = &answer["matches"][0];
        assert_eq!(first["path"], "src/profile.rs", "{question}: {answer}");
        assert_eq!((&first["line"], &first["symbol"]), (&json!(3), &json!("load_user_profile")));
        assert_eq!(first["before"], json!(["//! Users.", ""]));
        assert_eq!((&answer["filesSearched"], answer.get("indexed")), (&json!(34), None));
        assert!(answer.get("note").is_none());
    }
    assert_eq!(bench.ranked("send messages")[0], "src/mail.py");
    assert_eq!(bench.ranked("retry")[0], "src/retry.ts");
    assert_eq!(bench.ranked("configuration timeout")[0], "docs/guide.md");
    assert_eq!(bench.ranked("back")[0], "src/retry.ts");
    assert!(bench.ranked("nonexistentword").is_empty());
    let few = bench.search(json!({ "query": "user", "maxResults": 3, "context": 0 }));
    assert_eq!((few["matches"].as_array().unwrap().len(), &few["truncated"]), (3, &json!(true)));
    assert!(few["matches"][0].get("before").is_none());
    let scores: Vec<f64> =
        few["matches"].as_array().unwrap().iter().map(|found| found["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
}

#[test]
fn every_change_of_the_files_is_found() {
    let bench = Bench::new();
    bench.put("a.rs", "fn alpha() {}\n");
    assert_eq!(bench.ranked("alpha"), ["a.rs"]);
    // Of the same size, in the same moment.
    bench.put("a.rs", "fn omega() {}\n");
    assert!(bench.ranked("alpha").is_empty());
    assert_eq!(bench.ranked("omega"), ["a.rs"]);
    bench.put("new/b.rs", "fn beta() {}\n");
    assert_eq!(bench.ranked("beta"), ["new/b.rs"]);
    fs::rename(bench.ws("new"), bench.ws("newer")).unwrap();
    assert_eq!(bench.ranked("beta"), ["newer/b.rs"]);
    fs::remove_file(bench.ws("newer/b.rs")).unwrap();
    assert!(bench.ranked("beta").is_empty());
    bench.put(".gitignore", "a.rs\n");
    assert!(bench.ranked("omega").is_empty());
    bench.put(".gitignore", "");
    assert_eq!(bench.ranked("omega"), ["a.rs"]);
}

#[test]
fn large_and_binary_files_are_not_ranked_and_an_empty_one_is_by_its_name() {
    let bench = Bench::new();
    bench.put("large.txt", "needle ".repeat(200_000));
    bench.put("binary.bin", b"needle\0needle");
    bench.put("empty_needle.rs", "");
    bench.put("text.rs", "needle\n");
    let answer = bench.search(json!({ "query": "needle" }));
    let mut found = paths(&answer);
    found.sort();
    assert_eq!(found, ["empty_needle.rs", "text.rs"]);
    assert_eq!((&answer["filesSearched"], answer.get("skipped")), (&json!(2), None));
}

#[test]
fn several_at_once_get_the_same_answer() {
    let bench = Bench::new();
    code(&bench);
    let permits: Vec<Permit> =
        (0..8).map(|_| bench.permit(&json!({ "query": "user profile" })).unwrap()).collect();
    let never = CancellationToken::new();
    let answers = bench.runtime.block_on(async {
        let running = permits.iter().map(|permit| bench.run(permit, &never));
        futures_util::future::join_all(running).await
    });
    for answer in &answers {
        assert_eq!(answer.as_ref().unwrap(), answers[0].as_ref().unwrap());
    }
}
