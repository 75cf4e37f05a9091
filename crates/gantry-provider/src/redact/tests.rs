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
