//! Ranked search: what comes first, and how the index follows the files.

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
        assert_eq!(answer["indexed"], json!({ "files": 34, "done": true }));
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
fn the_index_follows_every_change_of_the_files() {
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
fn the_index_outlives_a_restart_and_notices_what_happened_meanwhile() {
    let mut bench = Bench::new();
    bench.put("a.rs", "fn alpha() {}\n");
    bench.put("b.rs", "fn beta() {}\n");
    assert_eq!(bench.ranked("alpha"), ["a.rs"]);
    bench.restart();
    assert!(bench.index().exists());
    bench.put("a.rs", "fn gamma() {}\n");
    fs::remove_file(bench.ws("b.rs")).unwrap();
    bench.put("c.rs", "fn delta() {}\n");
    assert!(bench.ranked("alpha beta").is_empty());
    assert_eq!(bench.ranked("gamma"), ["a.rs"]);
    assert_eq!(bench.ranked("delta"), ["c.rs"]);
}

#[test]
fn a_damaged_index_is_made_anew() {
    let mut bench = Bench::new();
    bench.put("a.rs", "fn alpha() {}\n");
    assert_eq!(bench.ranked("alpha"), ["a.rs"]);
    bench.restart();
    fs::write(bench.index(), "not a database".repeat(1000)).unwrap();
    assert_eq!(bench.ranked("alpha"), ["a.rs"]);
    // Damage in the middle shows only when that part is read.
    for n in 0..200 {
        bench.put(&format!("f{n}.rs"), format!("fn alpha_{n}() {{}}\n"));
    }
    assert_eq!(
        bench.search(json!({ "query": "alpha", "maxResults": 500 }))["matches"].as_array().unwrap().len(),
        201
    );
    bench.restart();
    let mut bytes = fs::read(bench.index()).unwrap();
    let from = bytes.len() / 4;
    bytes[from..].fill(0xa5);
    fs::write(bench.index(), bytes).unwrap();
    assert_eq!(
        bench.search(json!({ "query": "alpha", "maxResults": 500 }))["matches"].as_array().unwrap().len(),
        201
    );
}

#[test]
fn an_index_that_cannot_be_made_is_said_and_the_other_modes_work() {
    let bench = Bench::new();
    bench.put("a.rs", "fn alpha() {}\n");
    bench.put(".gantry/search", "a file where a folder should be");
    let (code, message) = bench.error(json!({ "query": "alpha" }));
    assert_eq!(code, "EXECUTION_ERROR");
    assert!(message.contains("index cannot be used") && message.contains("mode literal"), "{message}");
    assert_eq!(bench.literal("alpha"), ["a.rs:1"]);
}

#[test]
fn large_binary_and_empty_files_are_known_but_not_read_twice() {
    let bench = Bench::new();
    bench.put("large.txt", "needle ".repeat(200_000));
    bench.put("binary.bin", b"needle\0needle");
    bench.put("empty_needle.rs", "");
    bench.put("text.rs", "needle\n");
    let answer = bench.search(json!({ "query": "needle" }));
    let mut found = paths(&answer);
    found.sort();
    assert_eq!(found, ["empty_needle.rs", "text.rs"]);
    assert_eq!(answer["indexed"]["files"], 4);
}

#[test]
fn several_at_once_get_the_same_answer() {
    let bench = Bench::new();
    code(&bench);
    let permits: Vec<Permit> =
        (0..8).map(|_| bench.permit(&json!({ "query": "user profile" })).unwrap()).collect();
    let never = CancellationToken::new();
    let answers = bench.runtime.block_on(async {
        let running = permits.iter().map(|permit| bench.provider.run(&never, permit));
        futures_util::future::join_all(running).await
    });
    for answer in &answers {
        assert_eq!(answer.as_ref().unwrap(), answers[0].as_ref().unwrap());
    }
}
