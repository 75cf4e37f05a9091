//! Each kind of body, byte for byte.

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn whole(media: &str, format: BodyFormat) -> Body {
    Body { media: media.to_owned(), required: false, format, source: Source::Whole, encodings: Vec::new() }
}

fn fields(media: &str, format: BodyFormat, names: &[(&str, &str)]) -> Body {
    let owned = |(argument, name): &(&str, &str)| ((*argument).to_owned(), (*name).to_owned());
    Body { source: Source::Fields(names.iter().map(owned).collect()), ..whole(media, format) }
}

fn write(body: &Body, arguments: &Value) -> Result<Option<Written>, String> {
    body.write(arguments.as_object().unwrap())
}

/// The media type and the text of a body that is text.
#[track_caller]
fn text_of(body: &Body, arguments: &Value) -> (String, String) {
    let (media, bytes) = write(body, arguments).unwrap().expect("a body");
    (media, String::from_utf8(bytes).unwrap())
}

#[track_caller]
fn refused(body: &Body, arguments: &Value, words: &str) {
    assert_eq!(write(body, arguments).unwrap_err(), words);
}

fn part(file: bool, content_type: Option<&str>, style: Option<Style>) -> PropertyEncoding {
    let serialization = style.map(Serialization::new);
    PropertyEncoding { file, content_type: content_type.map(str::to_owned), serialization }
}

fn multipart(parts: Vec<(&str, PropertyEncoding)>) -> Body {
    let encodings = parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect();
    Body { encodings, ..whole("multipart/form-data", BodyFormat::Multipart) }
}

/// A multipart body with `B` for its boundary.
#[track_caller]
fn parts_of(body: &Body, arguments: &Value) -> String {
    let (media, bytes) = write(body, arguments).unwrap().expect("a body");
    let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
    assert!(
        boundary.len() <= 70 && boundary.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    );
    String::from_utf8_lossy(&bytes).replace(boundary, "B")
}

#[test]
fn rst_2_json_is_the_argument_or_an_object_of_the_arguments() {
    let json = "application/json";
    let arguments = json!({"body": [1, {"ä": null}], "a_1": 1, "b": null, "other": 2});
    assert_eq!(
        text_of(&whole(json, BodyFormat::Json), &arguments),
        (json.to_owned(), r#"[1,{"ä":null}]"#.to_owned())
    );
    let some =
        fields("application/vnd.api+json; v=1", BodyFormat::Json, &[("b", "b"), ("a_1", "a"), ("c", "c")]);
    let expected = ("application/vnd.api+json; v=1".to_owned(), r#"{"b":null,"a":1}"#.to_owned());
    assert_eq!(text_of(&some, &arguments), expected);
    assert_eq!(text_of(&whole(json, BodyFormat::Json), &json!({"body": null})).1, "null");
}

#[test]
fn without_arguments_there_is_a_body_only_if_one_is_required() {
    let formats = [
        (BodyFormat::Json, "application/json", Some("{}")),
        (BodyFormat::Form, "application/x-www-form-urlencoded", Some("")),
        (BodyFormat::Multipart, "multipart/form-data", Some("--B--\r\n")),
    ];
    for (format, media, expected) in formats {
        let mut body = fields(media, format, &[("a", "a")]);
        assert_eq!(write(&body, &json!({})).unwrap(), None, "{format:?}");
        assert_eq!(write(&whole(media, format), &json!({})).unwrap(), None, "{format:?}");
        body.required = true;
        let (media, text) = text_of(&body, &json!({}));
        let boundary = media.split_once("boundary=").map_or("none", |(_, boundary)| boundary);
        assert_eq!(Some(text.replace(boundary, "B").as_str()), expected, "{format:?}");
    }
    for format in [BodyFormat::Text, BodyFormat::Binary] {
        assert_eq!(write(&whole("text/plain", format), &json!({})).unwrap(), None);
    }
    let nulls = whole("application/x-www-form-urlencoded", BodyFormat::Form);
    assert_eq!(write(&nulls, &json!({"body": {"a": null, "b": []}})).unwrap(), None);
}

#[test]
fn rst_2_a_form_repeats_lists_and_has_objects_as_json() {
    let media = "application/x-www-form-urlencoded";
    let styles = [
        ("csv", Style::Joined),
        ("deep", Style::DeepObject),
        ("spread", Style::Exploded),
        ("json", Style::Json),
        ("free", Style::Exploded),
    ];
    let encodings = styles.map(|(name, style)| {
        let serialization = Some(Serialization { style, allow_reserved: name == "free" });
        (name.to_owned(), PropertyEncoding { serialization, ..PropertyEncoding::default() })
    });
    let body = Body { encodings: encodings.to_vec(), ..whole(media, BodyFormat::Form) };
    let arguments = json!({"body": {
        "a b": "x y&z=1+é\r\n", "list": [1, {"k": 2}], "object": {"k": true}, "none": null, "csv": ["a", "b,"],
        "deep": {"x": {"y": [1, 2]}}, "spread": {"p": 1}, "json": [1], "free": "/a b&c",
    }});
    let (sent, text) = text_of(&body, &arguments);
    assert_eq!(sent, media);
    assert_eq!(
        text,
        "a+b=x+y%26z%3D1%2B%C3%A9%0D%0A&list=1&list=%7B%22k%22%3A2%7D&object=%7B%22k%22%3Atrue%7D&csv=a,b%2C\
         &deep%5Bx%5D%5By%5D%5B0%5D=1&deep%5Bx%5D%5By%5D%5B1%5D=2&p=1&json=%5B1%5D&free=/a+b%26c"
    );
    refused(
        &whole(media, BodyFormat::Form),
        &json!({"body": [1]}),
        "the argument \"body\" is no object, and the body is a form",
    );
}

#[test]
fn rst_2_the_parts_of_a_multipart_body_are_as_the_document_says() {
    let body = multipart(vec![
        ("photo", part(true, Some("image/png"), None)),
        ("notes", part(true, None, None)),
        ("meta", part(false, Some("application/vnd.x+json"), None)),
        ("csv", part(false, None, Some(Style::Joined))),
        ("xml", part(false, Some("text/xml"), None)),
    ]);
    let arguments = json!({"body": {
        "title": "é\r\n--B", "n": 1.5, "list": ["a", {"k": 1}, null], "object": {"k": "v"}, "none": null,
        "photo": {"content": "aGk", "encoding": "base64", "filename": "a\"b\r\n.png"},
        "notes": [{"content": "one"}, {"content": "two", "filename": "", "contentType": "text/csv; charset=utf-8"}],
        "meta": "word", "csv": ["a", "b"], "xml": "<a/>",
    }});
    let text = parts_of(&body, &arguments);
    let parts: Vec<&str> = text.split("--B\r\nContent-Disposition: form-data; name=").collect();
    let expected = [
        "",
        "\"title\"\r\n\r\né\r\n--B\r\n",
        "\"n\"\r\n\r\n1.5\r\n",
        "\"list\"\r\n\r\na\r\n",
        "\"list\"\r\nContent-Type: application/json\r\n\r\n{\"k\":1}\r\n",
        "\"object\"\r\nContent-Type: application/json\r\n\r\n{\"k\":\"v\"}\r\n",
        "\"photo\"; filename=\"a%22b%0D%0A.png\"\r\nContent-Type: image/png\r\n\r\nhi\r\n",
        "\"notes\"; filename=\"file\"\r\nContent-Type: text/plain\r\n\r\none\r\n",
        "\"notes\"; filename=\"file\"\r\nContent-Type: text/csv; charset=utf-8\r\n\r\ntwo\r\n",
        "\"meta\"\r\nContent-Type: application/vnd.x+json\r\n\r\n\"word\"\r\n",
        "\"csv\"\r\n\r\na,b\r\n",
        "\"xml\"\r\nContent-Type: text/xml\r\n\r\n<a/>\r\n--B--\r\n",
    ];
    assert_eq!(parts, expected);
}

#[test]
fn json_that_is_given_as_text_is_not_made_a_text_of_json() {
    let body = multipart(vec![("meta", part(false, Some("application/json"), None))]);
    for (value, sent) in [
        (json!(" {\"a\": 1}"), " {\"a\": 1}"),
        (json!("{no"), "\"{no\""),
        (json!("12"), "\"12\""),
        (json!(12), "12"),
    ] {
        let text = parts_of(&body, &json!({"body": {"meta": value}}));
        let head = "--B\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json";
        assert_eq!(text, format!("{head}\r\n\r\n{sent}\r\n--B--\r\n"));
    }
}

#[test]
fn a_boundary_comes_from_the_parts() {
    let body = multipart(vec![]);
    let once = write(&body, &json!({"body": {"a": "1"}})).unwrap();
    assert_eq!(write(&body, &json!({"body": {"a": "1"}})).unwrap(), once);
    let other = write(&body, &json!({"body": {"a": "2"}})).unwrap();
    assert_ne!(once.unwrap().0, other.unwrap().0);
}

#[test]
fn names_cannot_leave_their_part() {
    let body = multipart(vec![]);
    let text = parts_of(&body, &json!({"body": {"a\"\r\nX: 1\0": "v"}}));
    assert_eq!(
        text,
        "--B\r\nContent-Disposition: form-data; name=\"a%22%0D%0AX: 1%00\"\r\n\r\nv\r\n--B--\r\n"
    );
}

#[test]
fn a_file_that_is_none_is_refused_with_the_reason() {
    let body = multipart(vec![("f", part(true, None, None))]);
    let of = |file: Value| json!({"body": {"f": file}});
    let whose = "the property \"f\" of the argument \"body\"";
    let rows = [
        (json!("text"), "is no file: a file is an object with \"content\""),
        (json!({}), "is no file: it has no \"content\""),
        (json!({"content": 1}), "has a \"content\" that is no text"),
        (
            json!({"content": "", "encoding": "hex"}),
            "has the encoding \"hex\"; there are \"utf-8\" and \"base64\"",
        ),
        (
            json!({"content": "a_-b", "encoding": "base64"}),
            "has \"content\" that is not base64: Invalid symbol 95, offset 1.",
        ),
    ];
    for (file, words) in rows {
        refused(&body, &of(file), &format!("{whose} {words}"));
    }
    for bad in ["", "png", "image/", "image/*", "image/png\r\nX: 1", "image/png; a=\n", "a b/c", "a/é"] {
        let words =
            format!("{whose} has the content type {bad:?}, which is none; write it like \"image/png\"");
        refused(&body, &of(json!({"content": "", "contentType": bad})), &words);
    }
    let named = Body {
        encodings: body.encodings,
        ..fields("multipart/form-data", BodyFormat::Multipart, &[("f_body", "f")])
    };
    refused(&named, &json!({"f_body": {}}), "the argument \"f_body\" is no file: it has no \"content\"");
}

#[test]
fn rst_2_text_is_sent_as_it_is_with_its_character_set() {
    let sent = |media: &str, value: Value| text_of(&whole(media, BodyFormat::Text), &json!({"body": value}));
    let pair = |media: &str, text: &str| (media.to_owned(), text.to_owned());
    assert_eq!(sent("text/plain", json!("é\n")), pair("text/plain; charset=utf-8", "é\n"));
    assert_eq!(sent("application/xml", json!("<a/>")), pair("application/xml; charset=utf-8", "<a/>"));
    assert_eq!(sent("text/csv; Charset=\"UTF-8\"", json!("é")), pair("text/csv; Charset=\"UTF-8\"", "é"));
    assert_eq!(sent("text/plain", json!(5)), pair("text/plain; charset=utf-8", "5"));
    assert_eq!(sent("text/plain; charset=latin1", json!("e")), pair("text/plain; charset=latin1", "e"));
    let latin = whole("text/plain; charset=latin1", BodyFormat::Text);
    assert!(write(&latin, &json!({"body": "é"})).unwrap_err().contains("as \"latin1\""));
    let plain = whole("text/plain", BodyFormat::Text);
    refused(&plain, &json!({"body": {}}), "the argument \"body\" is no text, and the body is text");
}

#[test]
fn rst_2_binary_is_the_content_of_a_file() {
    let sent = |media: &str, file: Value| {
        write(&whole(media, BodyFormat::Binary), &json!({"body": file})).unwrap().unwrap()
    };
    let pair = |media: &str, bytes: &[u8]| (media.to_owned(), bytes.to_vec());
    let base64 = json!({"content": "AP\n+ /", "encoding": "base64"});
    assert_eq!(sent("application/octet-stream", base64), pair("application/octet-stream", &[0, 255, 191]));
    let typed = json!({"content": "x", "encoding": "utf-8", "contentType": "image/svg+xml"});
    assert_eq!(sent("image/png", typed), pair("image/svg+xml", b"x"));
    assert_eq!(sent("image/png", json!({"content": ""})), pair("image/png", b""));
}

#[test]
fn a_body_has_a_size_that_it_cannot_pass() {
    let words = "the body would have more than 16777216 bytes, which is the most that is sent; send less";
    let large = "x".repeat(BODY_BYTES + 1);
    refused(&whole("application/json", BodyFormat::Json), &json!({"body": large}), words);
    refused(&whole("text/plain", BodyFormat::Text), &json!({"body": large}), words);
    refused(&whole("image/png", BodyFormat::Binary), &json!({"body": {"content": large}}), words);
    let object = json!({"body": {"a": large}});
    refused(&whole("application/x-www-form-urlencoded", BodyFormat::Form), &object, words);
    refused(&multipart(vec![]), &object, words);
    let many = json!({"body": {"n".repeat(1 << 16): vec![json!(1); 1000]}});
    refused(&multipart(vec![]), &many, words);
}

proptest! {
    #[test]
    fn a_form_gives_back_what_was_written(
        fields in prop::collection::btree_map(any::<String>(), any::<String>(), 1..5),
    ) {
        let form = whole("application/x-www-form-urlencoded", BodyFormat::Form);
        let (_, bytes) = write(&form, &json!({"body": fields})).unwrap().unwrap();
        let read: Vec<_> = url::form_urlencoded::parse(&bytes).into_owned().collect();
        prop_assert_eq!(read, fields.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn no_name_and_no_filename_adds_a_line_to_a_part(name in any::<String>(), filename in any::<String>()) {
        let body = multipart(vec![(&name, part(true, None, None))]);
        let file = json!({"content": "x", "filename": filename});
        let (_, bytes) = write(&body, &json!({"body": {name: file}})).unwrap().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.split(['\r', '\n']).filter(|line| !line.is_empty()).collect();
        // The boundary, two headers, the content, and the boundary.
        prop_assert_eq!(lines.len(), 5);
        prop_assert_eq!(lines[1].matches('"').count(), 4);
        prop_assert_eq!(lines[2], "Content-Type: text/plain");
    }
}
