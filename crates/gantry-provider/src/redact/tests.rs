//! What is masked, and in which spellings.

use super::*;

fn hidden(secret: &str, text: &str) -> String {
    let mut redactor = Redactor::default();
    redactor.add(secret);
    redactor.mask(text.to_owned())
}

#[test]
fn a_secret_is_found_however_it_is_spelled() {
    let secret = "a/b+c\"d é😀";
    let escaped = r#"a\/b\u002Bc\"d \u00E9\ud83d\uDE00"#;
    let once = serde_json::to_string(secret).unwrap();
    let twice = serde_json::to_string(&once).unwrap();
    let of_escaped = serde_json::to_string(escaped).unwrap();
    for text in [
        secret,
        escaped,
        once.trim_matches('"'),
        twice.trim_matches(['"', '\\']),
        of_escaped.trim_matches('"'),
        "a%2Fb%2Bc%22d%20%C3%A9%F0%9F%98%80",
        "a%2fb%2bc%22d+%c3%a9%f0%9f%98%80",
    ] {
        assert_eq!(hidden(secret, &format!("<{text}>")), "<[redacted]>", "{text}");
    }
    assert_eq!(hidden("secret", "no \\u00zz \\ %zz %4 secre"), "no \\u00zz \\ %zz %4 secre");
    assert_eq!(hidden("secret", "secretsecret é"), "[redacted][redacted] é");
    assert_eq!(hidden("back\\slash", r"back\slash"), "[redacted]");
}

#[test]
fn short_values_are_masked_where_their_name_says_that_they_are_secret() {
    let mut redactor = Redactor::default();
    for (name, value) in [
        ("Authorization", "Bearer abcd"),
        ("Cookie", "session=xyz1; b=q2w3"),
        ("X-Api-Key", "k-12"),
        ("X-Team", "blue"),
        ("Proxy-Pwd", "pw12"),
    ] {
        redactor.add_header(name, value);
    }
    redactor.add_named("pw", "hunter");
    let text = "abcd xyz1 q2w3 k-12 blue pw12 hunter Bearer session".to_owned();
    let mask = MASK;
    let expected = format!("{mask} {mask} {mask} {mask} blue {mask} {mask} Bearer session");
    assert_eq!(redactor.mask(text), expected);
    redactor.add("1234567");
    assert_eq!(redactor.mask(r#"{"n":1234567,"m":1}"#.to_owned()), format!(r#"{{"n":{mask},"m":1}}"#));
}

#[test]
fn a_password_is_masked_however_the_configuration_has_it() {
    let both = STANDARD.encode("ada:pa:ss words");
    let mut redactor = Redactor::default();
    redactor.add_header("Authorization", &format!("Basic {both}"));
    let mask = MASK;
    let text = format!("ada <pa:ss words> {both} pa%3Ass+words");
    assert_eq!(redactor.mask(text), format!("ada <{mask}> {mask} {mask}"));
    let mut redactor = Redactor::default();
    redactor.add_user(&Url::parse("https://ada:p%40ss+%21@h.test/").unwrap());
    let text = format!("ada p@ss+! p%40ss+%21 {}", STANDARD.encode("ada:p@ss+!"));
    assert_eq!(redactor.mask(text), format!("ada {mask} {mask} {mask}"));
    redactor.add_user(&Url::parse("https://h.test/").unwrap());
}

#[test]
fn a_key_that_stands_where_a_user_does_is_masked() {
    let (key, mask) = ("sk_live_a+b", MASK);
    let in_header = |text: &str| {
        let mut redactor = Redactor::default();
        redactor.add_header("Authorization", &format!("Basic {}", STANDARD.encode(text)));
        redactor
    };
    let in_address = |address: &str| {
        let mut redactor = Redactor::default();
        redactor.add_user(&Url::parse(address).unwrap());
        redactor
    };
    let mut credential = Redactor::default();
    credential.add_basic(key, "");
    for redactor in [
        in_header("sk_live_a+b:"),
        in_address("https://sk_live_a%2Bb@h.test/"),
        in_address("https://sk_live_a+b:@h.test/"),
        credential,
    ] {
        let text = format!("<{key}> sk_live_a%2Bb {}", STANDARD.encode("sk_live_a+b:"));
        assert_eq!(redactor.mask(text), format!("<{mask}> {mask} {mask}"));
    }
    assert_eq!(in_header(key).mask(key.to_owned()), mask);
    // However short it is, something is shown to the service, and others must not see it.
    assert!(!in_address("https://a@h.test/").is_empty());
    assert!(in_address("https://h.test/").is_empty());
}

/// A redactor with a secret variable and one that is none.
fn server() -> Redactor {
    let mut redactor = Redactor::default();
    redactor.add_variable("API_TOKEN", "hunter2-\"x\"");
    redactor.add_variable("DB_URL", "postgres://ada:correct-horse@h/db");
    redactor.add_variable("MEMORY_FILE_PATH", "/data/mem.json");
    redactor.add_variable("DB_PASSWORD", "12345678");
    redactor.add_variable("SECRET_FLAG", "true");
    redactor
}

#[test]
fn results_keep_what_is_no_secret_and_errors_do_not() {
    let redactor = server();
    let text =
        r#"{"a":"hunter2-\"x\"","b":"/data/mem.json","c":1.10,"n":12345678,"correct-horse":true,"t":"true"}"#;
    let result = redactor.masked_result(text).unwrap();
    assert_eq!(
        result,
        r#"{"a":"[redacted]","b":"/data/mem.json","c":1.10,"n":"[redacted]","[redacted]":true,"t":"true"}"#
    );
    let error = redactor.masked_error(text).unwrap();
    assert_eq!(
        error,
        r#"{"a":"[redacted]","b":"[redacted]","c":1.10,"n":"[redacted]","[redacted]":true,"t":"[redacted]"}"#
    );
    assert_eq!(redactor.masked_result(r#"{"b":"/data/mem.json","t":"hunter"}"#), None);
    assert_eq!(redactor.masked_result("not JSON: hunter2-\"x\"").unwrap(), "not JSON: [redacted]");
}

#[test]
fn json_stays_json_however_a_secret_is_spelled_in_it() {
    let secret = r"\d+\\x-secret";
    let mut redactor = Redactor::default();
    redactor.add(secret);
    let once = serde_json::json!({ "v": secret }).to_string();
    let twice = serde_json::json!({ "v": [once, 1], "w": format!("<{secret}>") }).to_string();
    let unicode: String = secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    for text in [once, twice, format!(r#"[{{"v":"{unicode}"}}]"#)] {
        let Some(masked) = redactor.masked_result(&text) else { panic!("nothing is found in {text}") };
        assert!(is_json(&masked) || !is_json(&text), "{masked}");
        assert!(!masked.contains("secret") && masked.contains(MASK), "{masked}");
    }
}

#[test]
fn a_message_is_masked_by_what_it_is() {
    let redactor = server();
    let check = |message: &str, masked: Option<&str>| {
        assert_eq!(redactor.masked_message(message).as_deref(), masked, "{message}");
    };
    check(r#"{"id":1,"result":{"content":["/data/mem.json"]}}"#, None);
    check(
        r#"{"id":12345678,"result":{"isError":true,"content":["/data/mem.json"]}}"#,
        Some(r#"{"id":12345678,"result":{"isError":true,"content":["[redacted]"]}}"#),
    );
    check(
        r#"{"id":1,"error":{"message":"/data/mem.json"}}"#,
        Some(r#"{"id":1,"error":{"message":"[redacted]"}}"#),
    );
    check(
        r#"[{"id":1,"error":{"message":"/data/mem.json"}},{"id":2,"result":{"v":"/data/mem.json"}}]"#,
        Some(r#"[{"id":1,"error":{"message":"[redacted]"}},{"id":2,"result":{"v":"/data/mem.json"}}]"#),
    );
    check("started with /data/mem.json", Some("started with [redacted]"));
}

#[test]
fn only_some_variables_are_secrets_by_their_name() {
    for (name, expected) in [
        ("API_KEY", true),
        ("GITHUB_TOKEN", true),
        ("DB_PASS", true),
        ("OPENAI_APIKEY", true),
        ("TOKEN_FILE", false),
        ("SSH_AUTH_SOCK", false),
        ("GIT_AUTHOR_EMAIL", false),
        ("KEYBOARD", false),
        ("CODE_HOME", false),
        ("MAX_TOKENS", false),
    ] {
        assert_eq!(names_a_secret_variable(name), expected, "{name}");
    }
}
