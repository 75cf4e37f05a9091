//! Each rule of templates.

use super::*;
use serde_json::{Value, json};

fn arguments(value: &Value) -> Arguments {
    value.as_object().unwrap().clone()
}

#[track_caller]
fn url(template: &str, query: &[(&str, &str)], values: &Value) -> String {
    let query: Vec<_> = query.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let template = UrlTemplate::parse(template, &query).unwrap();
    template.fill(&arguments(values)).unwrap().to_string()
}

#[test]
fn rst_1_a_value_in_the_path_never_ends_where_it_stands() {
    let values = json!({ "a": "x/y?z#%2e é", "n": 5, "b": true, "o": { "k": ["z"] } });
    let path = |template: &str| url(&format!("https://h.test{template}"), &[], &values);
    assert_eq!(path("/v1/${parameters.a}/end"), "https://h.test/v1/x%2Fy%3Fz%23%252e%20%C3%A9/end");
    assert_eq!(path("/${parameters.n}-${parameters.b}"), "https://h.test/5-true");
    assert_eq!(path("/${parameters.o.k.0}#frag"), "https://h.test/z");
    assert_eq!(path(""), "https://h.test/");
}

#[test]
fn rst_1_what_would_lead_to_another_path_is_refused() {
    let template = UrlTemplate::parse("https://h.test/a/${parameters.x}${parameters.y}/b", &[]).unwrap();
    for values in [
        json!({ "x": "..", "y": "" }),
        json!({ "x": ".", "y": "." }),
        json!({ "x": "a" }),
        json!({ "x": "a", "y": null }),
        json!({ "x": "a", "y": {} }),
    ] {
        template.fill(&arguments(&values)).unwrap_err();
    }
    let unusual = UrlTemplate::parse("https://h.test/.${parameters.x}", &[]).unwrap();
    unusual.fill(&arguments(&json!({ "x": "." }))).unwrap_err();
    assert_eq!(unusual.fill(&arguments(&json!({ "x": "git" }))).unwrap().as_str(), "https://h.test/.git");
}

#[test]
fn rst_1_a_placeholder_whose_name_would_end_a_part_of_the_url_is_refused() {
    for address in ["${parameters.a/b}", "${parameters.a?b}", "${parameters.a#b}", "?y=${parameters.a&b}"] {
        let error = UrlTemplate::parse(&format!("https://h.test/x{address}"), &[]).err().unwrap();
        assert!(error.contains("has no } that ends it"), "{error}");
    }
    let values = json!({ "a/b": 1, "a?b": 2, "a=b": 3, "a&b": 4 });
    let address = "https://h.test/?x=${parameters.a/b}&y=${parameters.a?b}&z=${parameters.a=b}";
    assert_eq!(url(address, &[("q", "${parameters.a&b}")], &values), "https://h.test/?x=1&y=2&z=3&q=4");
}

#[test]
fn rst_1_queries_are_made_of_lists_and_objects() {
    let values = json!({
        "s": "a&b=c+d", "l": ["x", 2, null], "o": { "a": 1, "in": { "b": [true, "z"] } }, "m": [{ "a": 1 }, { "a": 2 }],
        "no": null, "k": "sort"
    });
    let query = |pairs: &[(&str, &str)]| {
        let whole = url("https://h.test/?fixed=a%20b", pairs, &values);
        whole.strip_prefix("https://h.test/?fixed=a%20b").unwrap().to_owned()
    };
    assert_eq!(query(&[("s", "${parameters.s}")]), "&s=a%26b%3Dc%2Bd");
    assert_eq!(query(&[("l", "${parameters.l}")]), "&l=x&l=2");
    assert_eq!(
        query(&[("o", "${parameters.o}")]),
        "&o%5Ba%5D=1&o%5Bin%5D%5Bb%5D%5B0%5D=true&o%5Bin%5D%5Bb%5D%5B1%5D=z"
    );
    assert_eq!(query(&[("m", "${parameters.m}")]), "&m%5B0%5D%5Ba%5D=1&m%5B1%5D%5Ba%5D=2");
    assert_eq!(query(&[("a", "${parameters.no}"), ("b", "${parameters.gone}")]), "");
    assert_eq!(query(&[("a", "x-${parameters.gone}-${parameters.l}")]), "&a=x--%5B%22x%22%2C2%2Cnull%5D");
    assert_eq!(query(&[("${parameters.k}", "&")]), "&sort=%26");
    // The same for what stands in the address itself.
    let own =
        url("https://h.test/x?a=${parameters.s}&b=${parameters.gone}&c=1-${parameters.k}&d", &[], &values);
    assert_eq!(own, "https://h.test/x?a=a%26b%3Dc%2Bd&c=1-sort&d");
}

#[track_caller]
fn body(template: impl Into<Value>, values: &Value) -> (Option<&'static str>, String) {
    let template = BodyTemplate::parse(&template.into(), Media::Unsaid).unwrap();
    let (kind, bytes) = template.fill(&arguments(values)).unwrap().unwrap();
    (kind, String::from_utf8(bytes).unwrap())
}

#[test]
fn rst_1_a_body_keeps_the_types_of_its_arguments() {
    let values = json!({ "n": 1.5, "o": { "a": [1] }, "s": "a\"b", "no": null });
    let json = |template: Value| body(template, &values).1;
    assert_eq!(json(json!("${parameters.o}")), r#"{"a":[1]}"#);
    assert_eq!(json(json!({ "n": "${parameters.n}", "gone": "${parameters.gone}" })), r#"{"n":1.5}"#);
    assert_eq!(json(json!({ "no": "${parameters.no}" })), r#"{"no":null}"#);
    assert_eq!(json(json!(["${parameters.gone}", "${parameters.s}", true])), r#"[null,"a\"b",true]"#);
    assert_eq!(
        json(json!({ "t": "n=${parameters.n} ${parameters.gone}${parameters.o}" })),
        r#"{"t":"n=1.5 {\"a\":[1]}"}"#
    );
}

#[test]
fn rst_1_a_body_that_is_written_as_text_cannot_be_broken_by_what_is_filled_in() {
    let values = json!({ "q": "x\", \"admin\": true, \"y\": \"", "n": [1], "s": "t" });
    let (kind, text) =
        body(json!(r#"{"q": "${parameters.q}", "n": "${parameters.n}", "s":"a ${parameters.s}"}"#), &values);
    let parsed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((kind, parsed), (Some("application/json"), json!({ "q": values["q"], "n": [1], "s": "a t" })));
    let (kind, text) = body(json!("plain ${parameters.s}"), &values);
    assert_eq!((kind, text.as_str()), (Some("text/plain; charset=utf-8"), "plain t"));
}

#[test]
fn rst_1_a_text_is_filled_in_as_its_type_has_it() {
    let values = arguments(&json!({ "u": "x&role=admin", "n": 1.0 }));
    let filled = |text: &str, media| {
        let template = BodyTemplate::parse(&json!(text), media)?;
        let made = template.fill(&values)?.unwrap();
        Ok::<_, String>(String::from_utf8(made.1).unwrap())
    };
    assert_eq!(filled("role=guest", Media::Form).unwrap(), "role=guest");
    assert_eq!(filled("${parameters.u}\n", Media::Other).unwrap(), "x&role=admin\n");
    let error = filled(r#"{"user":"${parameters.u}",}"#, Media::Json).unwrap_err();
    assert!(error.starts_with("bodyTemplate is no JSON; "), "{error}");
    assert_eq!(filled(r#""${parameters.u}""#, Media::Json).unwrap(), r#""x&role=admin""#);
}

#[test]
fn rst_1_whole_numbers_are_written_without_a_fraction() {
    let values: Value =
        serde_json::from_str(r#"{"a":1.0,"b":1e2,"c":1.5,"d":[2.0],"e":-0.0,"f":1e300}"#).unwrap();
    let path =
        url("https://h.test/${parameters.a}/${parameters.b}/${parameters.c}/${parameters.e}", &[], &values);
    assert_eq!(path, "https://h.test/1/100/1.5/0");
    assert_eq!(url("https://h.test/", &[("d", "${parameters.d}")], &values), "https://h.test/?d=2");
    let template = json!({ "a": "${parameters.a}", "d": "${parameters.d}", "f": "${parameters.f}" });
    assert_eq!(body(template, &values).1, r#"{"a":1,"d":[2],"f":1e+300}"#);
}

#[test]
fn rst_1_a_backslash_is_no_part_of_a_path() {
    for address in ["https://h.test/a\\${parameters.x}/b", "https://h.test\\a"] {
        let error = UrlTemplate::parse(address, &[]).err().unwrap();
        assert!(error.contains("write /"), "{error}");
    }
    UrlTemplate::parse("https://h.test/?q=a\\b", &[]).unwrap();
}

#[test]
fn rst_1_a_body_in_which_arguments_would_need_escapes_is_refused() {
    for (template, media) in [
        (json!("user=${parameters.x}&role=guest"), Media::Form),
        (json!("<a n='1'>${parameters.x}</a>"), Media::Unescaped),
        (json!("{\"index\": {}}\n{\"title\": \"${parameters.x}\"}\n"), Media::Unescaped),
        (json!([{ "index": {} }, { "title": "${parameters.x}" }]), Media::Unescaped),
    ] {
        let error = BodyTemplate::parse(&template, media).err().unwrap();
        assert!(error.contains("arguments are not escaped"), "{template}: {error}");
    }
    // A body without placeholders, or one that is an argument and nothing else, is sent as it is.
    let values = json!({ "x": "</a><b c=\"d\">&amp;", "n": 7 });
    for (template, expected) in [("<a/>", "<a/>"), ("${parameters.x}", "</a><b c=\"d\">&amp;")] {
        let template = BodyTemplate::parse(&json!(template), Media::Unescaped).unwrap();
        let filled = template.fill(&arguments(&values)).unwrap().unwrap();
        assert_eq!(String::from_utf8(filled.1).unwrap(), expected);
    }
    let number = BodyTemplate::parse(&json!("${parameters.n}"), Media::Unescaped).unwrap();
    number.fill(&arguments(&values)).unwrap_err();
}

#[test]
fn rst_1_what_looks_like_json_and_is_none_is_not_sent_as_text() {
    for text in [r#"{"a": "${parameters.n}",}"#, "[${parameters.n}]\n", "{\"a\":1}\n{\"b\":2}"] {
        let error = BodyTemplate::parse(&json!(text), Media::Unsaid).err().unwrap();
        assert!(error.contains("set the Content-Type"), "{text}: {error}");
    }
    // Under another type as well an argument could change its structure; a text without arguments is sent as it is.
    for text in [r#"{"Table":"${parameters.t}","Limit":${parameters.n}}"#, "[${parameters.n}]\n"] {
        BodyTemplate::parse(&json!(text), Media::Other).err().unwrap();
    }
    BodyTemplate::parse(&json!("{\"a\":1}\n{\"b\":2}"), Media::Other).unwrap();
    let form = BodyTemplate::parse(&json!(r#"{"a":"b c"}"#), Media::Form).unwrap();
    let filled = form.fill(&arguments(&json!({}))).unwrap().unwrap();
    assert_eq!(filled.1, b"a=b%20c", "an object that is written as text is a form");
    BodyTemplate::parse(&json!("[${parameters.n}] is the number"), Media::Unsaid).unwrap();
}
