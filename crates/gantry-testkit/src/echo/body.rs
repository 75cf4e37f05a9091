//! A request body as JSON: its text or its bytes, and what a form or a multipart body holds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// What a body of this media type holds.
pub(super) fn to_json(media: &str, body: &[u8]) -> Value {
    let mut json = content(body);
    json["bytes"] = body.len().into();
    if media.starts_with("application/x-www-form-urlencoded") {
        json["form"] = json!(pairs(&String::from_utf8_lossy(body)));
    }
    if let Some(boundary) = media.strip_prefix("multipart/").and_then(|rest| rest.split_once("boundary=")) {
        json["parts"] = parts(boundary.1.trim_matches('"'), body).into();
    }
    json
}

/// Bytes as `text`, or as `base64` where they are none.
fn content(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes)
        .map_or_else(|_| json!({ "base64": STANDARD.encode(bytes) }), |text| json!({ "text": text }))
}

/// The pairs of a query or a form, decoded.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// The parts of a multipart body, each with its headers and its content.
fn parts(boundary: &str, body: &[u8]) -> Vec<Value> {
    // The first boundary has no line before it; with one it looks like the others.
    let body = [b"\r\n", body].concat();
    let mut pieces = split(&body, format!("\r\n--{boundary}").as_bytes()).into_iter().skip(1);
    let end = pieces.next_back();
    assert!(end.is_some_and(|end| end.starts_with(b"--")), "the last boundary ends with two dashes");
    pieces.map(part).collect()
}

fn part(piece: &[u8]) -> Value {
    let piece = piece.strip_prefix(b"\r\n").expect("a line end after the boundary");
    let at = piece.windows(4).position(|four| four == b"\r\n\r\n").expect("an empty line after the headers");
    let (head, rest) = piece.split_at(at);
    let mut json = content(&rest[4..]);
    for line in String::from_utf8_lossy(head).lines() {
        let (name, value) = line.split_once(':').expect("a header");
        json["headers"][name.to_ascii_lowercase()] = value.trim().into();
    }
    json
}

fn split<'a>(mut bytes: &'a [u8], by: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while let Some(at) = bytes.windows(by.len()).position(|window| window == by) {
        pieces.push(&bytes[..at]);
        bytes = &bytes[at + by.len()..];
    }
    pieces.push(bytes);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multipart_body_is_taken_apart() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x\r\n\
                     Content-Disposition: form-data; name=\"f\"; filename=\"f.bin\"\r\nContent-Type: image/png\r\n\r\n\xff\r\n\r\n--x--\r\n";
        let json = to_json("multipart/form-data; boundary=x", body);
        assert_eq!(json["parts"][0]["text"], "1", "{json}");
        assert_eq!(json["parts"][1]["headers"]["content-type"], "image/png", "{json}");
        assert_eq!(json["parts"][1]["base64"], STANDARD.encode(b"\xff\r\n"), "{json}");
    }

    #[test]
    fn a_form_is_decoded() {
        let json = to_json("application/x-www-form-urlencoded; charset=utf-8", b"a=1+2&b%5B0%5D=%C3%A9&c");
        assert_eq!(json["form"], json!([["a", "1 2"], ["b[0]", "é"], ["c", ""]]));
    }
}
